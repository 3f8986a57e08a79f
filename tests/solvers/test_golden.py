"""Every golden solver case: weights after each iteration, snapshots, resuming, histories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layrubnet.prototxt.state import read_state
from layrubnet.prototxt.weights import read_weights
from layrubnet.solvers.solver import Solver
from tests.solvers.support import ROWS, Recorder, rows_layer, solver_param
from tests.support.golden import COPIES, assert_close, find_case
from tests.support.shared import GOLDEN

CASES = sorted({p.stem for at in (COPIES, GOLDEN) for p in at.glob("solver_*.npz")})
LINE = 'layer { name: "data" type: "HDF5Data"'


class Case:
    """The arrays of a case, and solvers that start where it starts."""

    def __init__(self, name: str) -> None:
        arrays = np.load(find_case(f"{name}.npz"), allow_pickle=False)
        self.name, self.arrays = name, dict(arrays)
        self.meta: dict[str, Any] = json.loads(str(arrays["meta"]))
        ROWS[name] = (arrays["data.x"], arrays["data.t"])
        lines = str(arrays["prototxt"]).splitlines()
        assert any(line.startswith(LINE) for line in lines)
        data = rows_layer(name, self.meta["batch"])
        self.net = "\n".join(data if line.startswith(LINE) else line for line in lines)

    def solver(self, folder: Path) -> tuple[Solver, Recorder]:
        text = str(self.meta["solver"]).replace('net: "net.prototxt"', "")
        param = solver_param(text, self.net)
        param.snapshot_prefix = str(folder / self.name)
        recorder = Recorder()
        solver = Solver(param, observers=[recorder])
        for key, values in self.keys("param."):
            layer, index = key.rsplit(".", 1)
            solver.net.set_blob(layer, int(index), values)
        return solver, recorder

    def keys(self, prefix: str) -> list[tuple[str, np.ndarray]]:
        return [(k[len(prefix) :], v) for k, v in self.arrays.items() if k.startswith(prefix)]

    def check_weights(self, solver: Solver, prefix: str) -> None:
        assert self.keys(prefix)
        for key, values in self.keys(prefix):
            layer, index = key.rsplit(".", 1)
            assert_close(solver.net.get_blob(layer, int(index)), values, f"{prefix}{key}")


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


def test_trajectory(case: Case, tmp_path: Path) -> None:
    solver, recorder = case.solver(tmp_path)
    for t in range(case.meta["iterations"]):
        assert solver.lr == pytest.approx(case.meta["lr"][t], rel=1e-6)
        solver.step(1)
        assert float(solver.net.data("loss")) == pytest.approx(case.meta["losses"][t], rel=1e-4)
        case.check_weights(solver, f"s{t}.param.")
    assert [r.iteration for r in recorder.snapshots] == [5, 10]


def test_snapshots(case: Case, tmp_path: Path) -> None:
    solver, _ = case.solver(tmp_path)
    solver.step(10)
    for name in case.meta["snapshots"]:
        if "solverstate" in name:
            _same_state(tmp_path / name, find_case(name))
        else:
            _same_weights(tmp_path / name, find_case(name))


def _same_weights(path: Path, golden: Path) -> None:
    mine = {w.name: w for w in read_weights(path) if w.blobs}
    for layer in read_weights(golden):
        if not layer.blobs:
            continue
        assert len(mine[layer.name].blobs) == len(layer.blobs)
        for got, want in zip(mine[layer.name].blobs, layer.blobs, strict=True):
            assert_close(got, np.asarray(want), f"{golden.name} {layer.name}")
        for got, want in zip(mine[layer.name].diffs, layer.diffs, strict=True):
            assert (got is None) == (want is None)
            if want is not None:
                assert_close(got, want, f"{golden.name} {layer.name} diff", 1e-3)


def _same_state(path: Path, golden: Path) -> None:
    mine, theirs = read_state(path), read_state(golden)
    assert (mine.iter, mine.current_step) == (theirs.iter, theirs.current_step)
    assert len(mine.history) == len(theirs.history)
    # A bias just before BatchNorm has the gradient 0 but for rounding: hence the common floor.
    floor = 1e-3 * max(float(np.abs(h).max()) for h in theirs.history)
    for index, (got, want) in enumerate(zip(mine.history, theirs.history, strict=True)):
        scale = max(float(np.abs(want).max()), floor)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=0, atol=5e-4 * scale, err_msg=str(index))


def test_resume_from_caffes_snapshot(case: Case, tmp_path: Path) -> None:
    solver, recorder = case.solver(tmp_path)
    state = next(n for n in case.meta["snapshots"] if "_iter_5.solverstate" in n)
    solver.restore(find_case(state))
    assert solver.iter == 5
    assert any("no sidecar" in text for text in recorder.warnings)
    for t in range(3):
        solver.step(1)
        case.check_weights(solver, f"resume{t}.param.")
