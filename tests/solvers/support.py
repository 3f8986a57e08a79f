"""Nets for the solver's tests, fed by a layer that hands out the rows of given arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from layrubnet.engine.contract import Contract, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register
from layrubnet.observe.observer import Observer, SnapshotReport, TestReport, TrainReport
from layrubnet.proto import SolverParameter
from layrubnet.prototxt.text import parse
from layrubnet.prototxt.upgrade import upgrade_solver
from layrubnet.solvers.solver import Solver

ROWS: dict[str, tuple[np.ndarray, ...]] = {}
"""Arrays by the name that a TestRows layer's python_param.layer gives."""


@register("TestRows")
class TestRows(Layer):
    """Consecutive rows of the arrays, round and round; batch_size stands in data_param."""

    __test__ = False
    num_bottoms = (0, 0)
    num_tops = (1, None)

    def setup(self) -> None:
        self.arrays = ROWS[self.spec.python_param.layer]
        self.batch = int(self.spec.data_param.batch_size)
        self.row = 0

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        shapes = [(self.batch, *a.shape[1:]) for a in self.arrays]
        return Contract(tops=tuple(TensorType(s) for s in shapes), loads=True)

    def load(self, ops: Any, io: IO) -> None:
        rows = np.arange(self.row, self.row + self.batch) % len(self.arrays[0])
        for top, array in zip(io.y, self.arrays, strict=True):
            top[...] = array[rows]
        self.row += self.batch

    def cursor(self) -> dict[str, int]:
        return {"row": self.row}

    def seek(self, cursor: dict[str, int]) -> None:
        self.row = cursor["row"]


class Recorder(Observer):
    """Keeps what the solver said."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.trains: list[TrainReport] = []
        self.tests: list[TestReport] = []
        self.snapshots: list[SnapshotReport] = []
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def iterated(self, iteration: int, loss: float) -> None:
        self.losses.append(loss)

    def trained(self, report: TrainReport) -> None:
        self.trains.append(report)

    def tested(self, report: TestReport) -> None:
        self.tests.append(report)

    def snapshot(self, report: SnapshotReport) -> None:
        self.snapshots.append(report)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def warning(self, text: str) -> None:
        self.warnings.append(text)


def solver_param(text: str, net: str = "") -> Any:
    """An upgraded SolverParameter from text; ``net`` becomes its net_param."""
    param = upgrade_solver(parse(text, SolverParameter))
    if net:
        param.MergeFrom(parse(f"net_param {{ {net} }}", SolverParameter))
    return param


def rows_layer(key: str, batch: int, tops: Sequence[str] = ("x", "t"), rule: str = "") -> str:
    """The prototxt of a TestRows layer named ``data``."""
    named = " ".join(f'top: "{t}"' for t in tops)
    return (
        f'layer {{ name: "data" type: "TestRows" {named} {rule} '
        f'python_param {{ layer: "{key}" }} data_param {{ batch_size: {batch} }} }}\n'
    )


def linear_net(key: str = "linear", batch: int = 4, extra: str = "") -> str:
    """Linear regression: EuclideanLoss of an InnerProduct; rows are registered under ``key``."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(10, 3)).astype(np.float32)
    t = (x @ np.array([[1.0], [-2.0], [0.5]]) + 0.3).astype(np.float32)
    ROWS[key] = (x, t)
    return (
        'name: "linear"\n'
        + rows_layer(key, batch)
        + 'layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"'
        " inner_product_param { num_output: 1"
        ' weight_filler { type: "gaussian" std: 0.1 } } }\n'
        + extra
        + 'layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }\n'
    )


def make_solver(text: str, net: str | None = None, **options: Any) -> tuple[Solver, Recorder]:
    """A solver on ``net`` (linear regression by default) and the recorder that observes it."""
    recorder = Recorder()
    param = solver_param(text, linear_net() if net is None else net)
    return Solver(param, observers=[recorder], **{"seed": 3, **options}), recorder


def weights_of(solver: Solver) -> dict[str, np.ndarray]:
    """Copies of all blobs of the train net by stored name."""
    return {p.name: np.array(solver.net.param_data(p.name)) for p in solver.net.graph.params}
