"""Snapshots of the solver: Caffe's files, ours, and files that are something else."""

from __future__ import annotations

import numpy as np
import pytest

from layrubnet.errors import WeightsError
from layrubnet.proto import NetParameter, SolverState
from layrubnet.prototxt.state import SavedState, find_learned_net, read_state, write_state
from layrubnet.prototxt.weights import read_weights, write_weights
from tests.support.shared import GOLDEN, needs_golden


def cases():
    return sorted(p.name for p in GOLDEN.glob("*.solverstate*")) if GOLDEN.is_dir() else []


@needs_golden
@pytest.mark.parametrize("name", cases())
def test_caffes_snapshots_are_read_and_written_again(name, tmp_path):
    state = read_state(GOLDEN / name)
    assert f"_iter_{state.iter}." in name
    assert state.learned_net == name.replace("solverstate", "caffemodel")
    weights = read_weights(GOLDEN / state.learned_net)
    shapes = [blob.shape for layer in weights for blob in layer.blobs]
    twice = "adam" in name or "adadelta" in name
    assert [array.shape for array in state.history] == shapes * (2 if twice else 1)
    path = tmp_path / name
    write_state(path, state.iter, state.learned_net, state.history, state.current_step)
    again = read_state(path)
    assert (again.iter, again.learned_net) == (state.iter, state.learned_net)
    assert again.current_step == state.current_step
    for ours, theirs in zip(again.history, state.history, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    if name.endswith(".solverstate"):
        parsed = SolverState.FromString(path.read_bytes())
        assert parsed == SolverState.FromString((GOLDEN / name).read_bytes())


@needs_golden
def test_the_step_of_multistep_is_kept():
    assert read_state(GOLDEN / "solver_lr_multistep_iter_10.solverstate").current_step == 3


def test_wrong_files(tmp_path):
    history = [np.ones((2, 3), np.float32)]
    net = NetParameter(layer=[{"name": "a"}])
    weights = {"a": history}
    for suffix in ("", ".h5"):
        write_weights(tmp_path / f"w.caffemodel{suffix}", net, weights)
        write_state(tmp_path / f"s.solverstate{suffix}", 3, "w.caffemodel", history)
    with pytest.raises(WeightsError, match="use --weights"):
        read_state(tmp_path / "w.caffemodel")
    with pytest.raises(WeightsError, match="use --weights"):
        read_state(tmp_path / "w.caffemodel.h5")
    with pytest.raises(WeightsError, match="--snapshot"):
        read_weights(tmp_path / "s.solverstate")
    with pytest.raises(WeightsError, match="--snapshot"):
        read_weights(tmp_path / "s.solverstate.h5")
    cut = tmp_path / "cut.solverstate"
    cut.write_bytes((tmp_path / "s.solverstate").read_bytes()[:-9])
    with pytest.raises(WeightsError, match="cut off"):
        read_state(cut)
    cut.write_bytes(b"")
    with pytest.raises(WeightsError, match="empty"):
        read_state(cut)


def test_weights_of_a_moved_snapshot(tmp_path):
    path = tmp_path / "s.solverstate"
    state = SavedState(1, "/gone/w.caffemodel")
    with pytest.raises(WeightsError, match="missing"):
        find_learned_net(path, state)
    (tmp_path / "w.caffemodel").touch()
    assert find_learned_net(path, state) == tmp_path / "w.caffemodel"
