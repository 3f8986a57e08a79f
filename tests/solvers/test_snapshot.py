"""Snapshots: exact resuming, Caffe's files, damaged and missing pieces, the newest valid one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from layrubnet.data.datum import encode_datum
from layrubnet.data.lmdb_source import write_lmdb
from layrubnet.errors import WeightsError
from layrubnet.observe.signals import Action
from layrubnet.solvers.snapshot import find_newest, prefix_of
from layrubnet.solvers.solver import Solver
from tests.solvers.support import (
    Recorder,
    linear_net,
    make_solver,
    solver_param,
    weights_of,
)

ROOT = Path(__file__).resolve().parents[2]
TEXT = 'lr_policy: "multistep" base_lr: 0.05 gamma: 0.5 stepvalue: 3 stepvalue: 7 average_loss: 4 '


def solver_in(folder: Path, more: str = "momentum: 0.9", net: str | None = None) -> Solver:
    return make_solver(f'{TEXT} {more} snapshot_prefix: "{folder}/s"', net)[0]


def images_net(folder: Path) -> str:
    """A net with random crops and mirrors, dropout and BatchNorm on images from an LMDB."""
    source = folder / "images"
    if not source.exists():
        rng = np.random.default_rng(0)
        images = rng.integers(0, 256, (11, 1, 8, 8), np.uint8)
        records = ((f"{i:03d}".encode(), encode_datum(im, i % 3)) for i, im in enumerate(images))
        write_lmdb(source, records)
    return f"""
      layer {{ name: "data" type: "Data" top: "x" top: "t"
        transform_param {{ crop_size: 6 mirror: true scale: 0.01 }}
        data_param {{ source: "{source}" batch_size: 4 }} }}
      layer {{ name: "f1" type: "InnerProduct" bottom: "x" top: "h"
        inner_product_param {{ num_output: 8 weight_filler {{ type: "xavier" }} }} }}
      layer {{ name: "bn" type: "BatchNorm" bottom: "h" top: "h" }}
      layer {{ name: "r" type: "ReLU" bottom: "h" top: "h" }}
      layer {{ name: "d" type: "Dropout" bottom: "h" top: "h" }}
      layer {{ name: "f2" type: "InnerProduct" bottom: "h" top: "s"
        inner_product_param {{ num_output: 3 weight_filler {{ type: "xavier" }} }} }}
      layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "s" bottom: "t" top: "loss" }}
    """


def image_text(folder: Path) -> str:
    return f"""type: "Adam" lr_policy: "step" stepsize: 4 gamma: 0.5 base_lr: 0.01 momentum: 0.9
      iter_size: 2 average_loss: 3 snapshot: 5 snapshot_prefix: "{folder}/s" max_iter: 12
      test_iter: 2 test_interval: 4 """


KILLED = """
import os, signal, sys
from pathlib import Path
from layrubnet.observe.observer import Observer
from layrubnet.solvers.solver import Solver
from tests.solvers.support import solver_param
from tests.solvers.test_snapshot import image_text, images_net

class Killer(Observer):
    def iterated(self, iteration, loss):
        if iteration == 7:
            os.kill(os.getpid(), signal.SIGKILL)

folder = Path(sys.argv[1])
Solver(solver_param(image_text(folder), images_net(folder)), observers=[Killer()]).step(12)
"""


def test_killed_and_resumed_equals_uninterrupted(tmp_path: Path) -> None:
    code = [sys.executable, "-c", KILLED, str(tmp_path)]
    assert subprocess.run(code, cwd=ROOT, check=False).returncode == -9
    text, net = image_text(tmp_path), images_net(tmp_path)
    newest = find_newest(f"{tmp_path}/s")
    assert newest == f"{tmp_path}/s_iter_5.solverstate"
    seed = json.loads((tmp_path / "s_iter_5.layrubnet.json").read_text())["seed"]

    whole, recorder = make_solver(text, net, seed=seed)
    whole.step(12)
    resumed, later = make_solver(text, net, seed=None)  # the seed comes from the snapshot
    resumed.restore(newest)
    resumed.step(7)
    assert later.losses == recorder.losses[5:]
    assert resumed.smoothed_loss == whole.smoothed_loss
    assert [t.outputs for t in later.tests] == [t.outputs for t in recorder.tests[2:]]
    for name, values in weights_of(whole).items():
        assert weights_of(resumed)[name].tobytes() == values.tobytes(), name
    whole.close()
    resumed.close()


@pytest.mark.parametrize("form", ["BINARYPROTO", "HDF5"])
@pytest.mark.parametrize("kind", ["SGD", "AdaDelta"])
def test_files_of_both_formats(tmp_path: Path, kind: str, form: str) -> None:
    more = f'type: "{kind}" momentum: 0.9 snapshot_format: {form}'
    first = solver_in(tmp_path, more)
    first.step(4)
    state = first.snapshot()
    first.step(3)
    second = solver_in(tmp_path, more)
    second.restore(state)
    assert (second.iter, second.current_step) == (4, 1)
    second.step(3)
    for name, values in weights_of(first).items():
        assert weights_of(second)[name].tobytes() == values.tobytes()
    suffix = ".h5" if form == "HDF5" else ""
    names = {p.name for p in tmp_path.iterdir()}
    stem = "s_iter_4"
    assert names == {
        f"{stem}.caffemodel{suffix}",
        f"{stem}.solverstate{suffix}",
        f"{stem}.layrubnet.json",
    }


def test_moved_folder(tmp_path: Path) -> None:
    first = solver_in(tmp_path / "a")
    first.step(2)
    first.snapshot()
    shutil.move(tmp_path / "a", tmp_path / "b")
    second = solver_in(tmp_path / "a")
    second.restore(tmp_path / "b" / "s_iter_2.solverstate")
    assert second.iter == 2


def test_wrong_kind_of_file(tmp_path: Path) -> None:
    solver = solver_in(tmp_path)
    solver.step(1)
    solver.snapshot()
    with pytest.raises(WeightsError, match="weights") as caught:
        solver.restore(tmp_path / "s_iter_1.caffemodel")
    assert "--weights" in str(caught.value) or "solverstate" in str(caught.value)


def test_snapshot_of_another_solver_type(tmp_path: Path) -> None:
    sgd = solver_in(tmp_path)
    sgd.step(1)
    state = sgd.snapshot()
    adam = solver_in(tmp_path, 'type: "Adam"')
    before = weights_of(adam)
    with pytest.raises(WeightsError, match=r"Incorrect length of history blobs\.") as caught:
        adam.restore(state)
    assert "2 blobs, 2 each for Adam" in str(caught.value)
    assert all((weights_of(adam)[n] == v).all() for n, v in before.items())
    assert adam.iter == 0


def test_snapshot_of_another_net(tmp_path: Path) -> None:
    first = solver_in(tmp_path)
    first.step(1)
    state = first.snapshot()
    other = solver_in(tmp_path, net=linear_net().replace("num_output: 1", "num_output: 1 axis: 1"))
    other.restore(state)  # the same shapes
    wider = linear_net("wide").replace("num_output: 1", "num_output: 2")
    wider = wider.replace('bottom: "t"', 'bottom: "y"')
    with pytest.raises(WeightsError, match="history of parameter 'ip/0'"):
        solver_in(tmp_path, net=wider).restore(state)


def resumed(folder: Path, state: str) -> tuple[Solver, Recorder]:
    solver, recorder = make_solver(f'{TEXT} snapshot_prefix: "{folder}/s"')
    solver.restore(state)
    return solver, recorder


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.unlink(), "no sidecar"),
        (lambda path: path.write_text("{"), "is damaged"),
        (lambda path: path.write_text("[1]"), "unknown format"),
        (lambda path: path.write_text('{"format": 1, "weights_sha256": "0"}'), "not written with"),
    ],
)
def test_without_a_valid_sidecar_it_loads_as_caffes(
    tmp_path: Path, damage: object, words: str
) -> None:
    first, _ = make_solver(f'{TEXT} snapshot_prefix: "{tmp_path}/s"')
    first.step(3)
    state = first.snapshot()
    assert callable(damage)
    damage(tmp_path / "s_iter_3.layrubnet.json")
    solver, recorder = resumed(tmp_path, state)
    assert solver.iter == 3
    assert len(recorder.warnings) == 1
    assert words in recorder.warnings[0]
    assert solver.net.data_nodes()[0].layer.cursor() == {"row": 0}


def test_with_a_sidecar_the_data_goes_on(tmp_path: Path) -> None:
    first, _ = make_solver(f'{TEXT} snapshot_prefix: "{tmp_path}/s"')
    first.step(3)
    solver, recorder = resumed(tmp_path, first.snapshot())
    assert solver.net.data_nodes()[0].layer.cursor() == {"row": 12}
    assert list(solver.losses) == list(first.losses)
    assert recorder.warnings == []


def test_other_choices_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = make_solver(f'{TEXT} snapshot_prefix: "{tmp_path}/s"')
    first.step(1)
    state = first.snapshot()
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "77")
    _, recorder = resumed(tmp_path, state)
    assert any("-> 77" in text for text in recorder.notes)


@pytest.mark.parametrize("action", [Action.SNAPSHOT, Action.STOP])
def test_snapshot_in_the_middle_of_a_test(tmp_path: Path, action: Action) -> None:
    more = f'test_iter: 3 test_interval: 2 max_iter: 8 snapshot_prefix: "{tmp_path}/s"'
    whole, recorder = make_solver(f"{TEXT} {more}")
    whole.step(8)
    asked = [Action.NONE, Action.NONE, action]
    # Asked once per test batch and iteration: the third time is in the first test.
    requests = iter(asked)
    first, _ = make_solver(f"{TEXT} {more}", requests=lambda: next(requests, Action.NONE))
    first.step(1)
    if action is Action.STOP:
        first.snapshot()
    second, later = make_solver(f"{TEXT} {more}")
    second.restore(tmp_path / "s_iter_0.solverstate")
    second.step(8)
    assert [t.outputs for t in later.tests] == [t.outputs for t in recorder.tests]
    assert later.losses == recorder.losses


def test_plateau_goes_on(tmp_path: Path) -> None:
    text = f"""lr_policy: "plateau" base_lr: 0.05 gamma: 0.5 plateau_winsize: 3 plateau_winsize: 3
        average_loss: 2 snapshot: 5 snapshot_prefix: "{tmp_path}/s" """
    whole, recorder = make_solver(text)
    whole.step(40)
    assert whole.current_step == 2
    second, later = make_solver(text)
    second.restore(tmp_path / "s_iter_5.solverstate")
    second.step(35)
    assert later.losses == recorder.losses[5:]
    assert sum("Plateau Status" in text for text in recorder.notes) == 2


class TestFindNewest:
    """``--resume`` without a path."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        solver = solver_in(tmp_path, "snapshot: 2")
        solver.step(12)
        return tmp_path

    def newest(self, folder: Path) -> tuple[str | None, list[str]]:
        said: list[str] = []
        path = find_newest(f"{folder}/s", said.append)
        return path and Path(path).name, said

    def test_by_number(self, folder: Path) -> None:
        name, said = self.newest(folder)
        assert name == "s_iter_12.solverstate"
        assert len(said) == 1
        assert "s_iter_12" in said[0]

    @pytest.mark.parametrize("suffix", ["solverstate", "caffemodel", "layrubnet.json"])
    def test_incomplete_ones_are_passed_over(self, folder: Path, suffix: str) -> None:
        (folder / f"s_iter_12.{suffix}").write_bytes(b"\x0a")
        name, said = self.newest(folder)
        assert name == "s_iter_10.solverstate"
        assert "Passed over" in said[0]

    def test_missing_weights(self, folder: Path) -> None:
        (folder / "s_iter_12.caffemodel").unlink()
        assert self.newest(folder)[0] == "s_iter_10.solverstate"

    def test_caffes_own(self, folder: Path) -> None:
        for path in folder.glob("*.json"):
            path.unlink()
        name, said = self.newest(folder)
        assert name == "s_iter_12.solverstate"
        assert "without a sidecar" in said[-1]

    def test_none(self, tmp_path: Path) -> None:
        assert find_newest(str(tmp_path / "s")) is None
        assert find_newest(str(tmp_path / "nowhere" / "s")) is None


def test_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solver = solver_in(tmp_path)
    solver.step(1)

    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("layrubnet.files.os.replace", full)
    with pytest.raises(Exception, match="No space left"):
        solver.snapshot()
    assert list(tmp_path.iterdir()) == []


def test_prefix(tmp_path: Path) -> None:
    assert prefix_of(solver_param('snapshot_prefix: "a/b"'), "x/solver.prototxt") == "a/b"
    assert prefix_of(solver_param(""), "x/solver.prototxt") == "x/solver"
    folder = f'snapshot_prefix: "{tmp_path}"'
    assert prefix_of(solver_param(folder), "x/solver.prototxt") == f"{tmp_path}/solver"
