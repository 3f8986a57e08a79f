"""Watch the tests: keep the best snapshot, stop early, delete old snapshots."""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING, Any

from layrubnet.errors import NetError, nearest
from layrubnet.observe.observer import SnapshotReport, TestReport
from layrubnet.proto import enum_name
from layrubnet.solvers.sidecar import sidecar_path
from layrubnet.solvers.snapshot import save_best

if TYPE_CHECKING:
    from layrubnet.solvers.solver import Solver


class _Record:
    """The best value of one metric so far."""

    def __init__(self, spec: Any, min_delta: float = 0.0) -> None:
        self.metric: str = spec.metric
        self.sign = 1 if enum_name(spec, "mode") == "MAX" else -1
        self.min_delta = min_delta
        self.best: float | None = None
        self.since = 0

    def improves(self, value: float) -> bool:
        """Note a value; return whether it beats the best by more than ``min_delta``."""
        better = self.best is None or self.sign * (value - self.best) > self.min_delta
        if better:
            self.best, self.since = value, 0
        else:
            self.since += 1
        return better


class Watch:
    """``snapshot_best``, ``early_stop`` and ``keep_snapshots`` of a solver.

    The metric is looked up in every test net's outputs; the first net that has it decides.
    """

    def __init__(self, solver: Any) -> None:
        best, stop = solver.snapshot_best, solver.early_stop
        self.best = _Record(best) if solver.HasField("snapshot_best") else None
        self.stop = _Record(stop, stop.min_delta) if solver.HasField("early_stop") else None
        self.patience = int(stop.patience)
        self.keep = int(solver.keep_snapshots)
        self.kept: list[SnapshotReport] = []

    def see(self, solver: Solver, report: TestReport) -> None:
        """Look at a test's outputs: save the best, stop when nothing gets better."""
        if self.best is not None:
            value = _value(self.best.metric, report, solver)
            if value is not None and self.best.improves(value):
                self._save_best(solver, self.best.metric, value)
        if self.stop is not None:
            value = _value(self.stop.metric, report, solver)
            if value is not None and not self.stop.improves(value):
                self._maybe_stop(solver)

    def written(self, solver: Solver, report: SnapshotReport) -> None:
        """A snapshot was written: delete those that are too old."""
        self.kept = [r for r in self.kept if r.state != report.state] + [report]
        while self.keep and len(self.kept) > self.keep:
            old = self.kept.pop(0)
            # The list may come from a sidecar: what it names is deleted only if it is a snapshot
            # of this very prefix.
            if _stem(old.state) == _stem(old.weights) == _stem(report.state):
                for path in (sidecar_path(old.state), old.state, old.weights):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(path)

    def state(self) -> dict[str, Any]:
        """What a snapshot has to remember."""
        records = {"best": self.best, "stop": self.stop}
        state: dict[str, Any] = {n: [r.best, r.since] for n, r in records.items() if r is not None}
        state["kept"] = [[r.iteration, r.weights, r.state] for r in self.kept]
        return state

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what :meth:`state` gave."""
        for name, record in (("best", self.best), ("stop", self.stop)):
            if record is not None and name in state:
                record.best, record.since = state[name]
        self.kept = [SnapshotReport(*values) for values in state["kept"]]

    def _save_best(self, solver: Solver, metric: str, value: float) -> None:
        path = save_best(solver)
        solver.observers.note(f"Best {metric} so far: {value:g}, saved as {path}")

    def _maybe_stop(self, solver: Solver) -> None:
        record = self.stop
        if record is not None and record.since >= self.patience:
            solver.observers.note(
                f"Early stop: {record.metric} has not improved in {record.since} tests"
            )
            solver.stopped = True


def _stem(path: str) -> str:
    """The absolute prefix of a snapshot's file; the whole path for any other file."""
    found = re.fullmatch(r"(.+)_iter_\d+\.(caffemodel|solverstate)(\.h5)?", os.path.abspath(path))
    return found[1] if found else os.path.abspath(path)


def _value(metric: str, report: TestReport, solver: Solver) -> float | None:
    names = [{v.name for v in net.graph.outputs()} for net in solver.test_nets]
    if not any(metric in those for those in names):
        everything = sorted(set().union(*names))
        close = nearest(metric, everything)
        raise NetError(
            f"no test net has an output {metric!r} to watch",
            where="solver",
            expected=", ".join(everything),
            hint=f"did you mean {close[0]!r}?" if close else "",
        )
    if any(metric in those for those in names[: report.net]):
        return None
    return next((o.value for o in report.outputs if o.name == metric), None)
