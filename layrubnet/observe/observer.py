"""What a solver tells the world: it calls observers, and prints nothing itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Output:
    """One number of a net's outputs; ``weight`` is its loss weight (0: no loss)."""

    name: str
    value: float
    weight: float = 0.0


@dataclass(frozen=True)
class TrainReport:
    """What ``display`` shows. ``rate`` is iterations per second over the last ``seconds``."""

    iteration: int
    loss: float
    lr: float
    outputs: tuple[Output, ...]
    rate: float
    seconds: float
    display: int


@dataclass(frozen=True)
class TestReport:
    """Mean outputs of test net ``net``; ``loss`` only under ``test_compute_loss``."""

    __test__ = False

    iteration: int
    net: int
    outputs: tuple[Output, ...]
    loss: float | None = None


@dataclass(frozen=True)
class SnapshotReport:
    """The files of a snapshot, all complete."""

    iteration: int
    weights: str
    state: str


class Observer:
    """Override what is of interest; everything else is ignored."""

    def started(self, name: str, lr_policy: str, iteration: int, max_iter: int) -> None:
        """Training begins (or goes on) at ``iteration``."""

    def iterated(self, iteration: int, loss: float) -> None:
        """One more iteration is done: ``iteration`` counts updates so far."""

    def trained(self, report: TrainReport) -> None:
        """The numbers that ``display`` asks for."""

    def testing(self, iteration: int, net: int) -> None:
        """A test begins."""

    def tested(self, report: TestReport) -> None:
        """A test is done."""

    def writing(self, path: str, kind: str, hdf5: bool) -> None:
        """A file of a snapshot is being written; ``kind`` is "weights" or "state"."""

    def snapshot(self, report: SnapshotReport) -> None:
        """A snapshot is complete."""

    def forwarded(self, iteration: int, loss: float) -> None:
        """The loss after the last update."""

    def note(self, text: str) -> None:
        """Anything else worth a line."""

    def warning(self, text: str) -> None:
        """Something the user should look at."""

    def finished(self, iteration: int, early: bool) -> None:
        """Training is over; ``early``: stopped by request."""

    def close(self) -> None:
        """Release files and the terminal; nothing is told afterwards."""


class Observers(Observer):
    """Passes everything on to several observers, in order."""

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self.all: list[Observer] = list(observers)

    def started(self, name: str, lr_policy: str, iteration: int, max_iter: int) -> None:
        for one in self.all:
            one.started(name, lr_policy, iteration, max_iter)

    def iterated(self, iteration: int, loss: float) -> None:
        for one in self.all:
            one.iterated(iteration, loss)

    def trained(self, report: TrainReport) -> None:
        for one in self.all:
            one.trained(report)

    def testing(self, iteration: int, net: int) -> None:
        for one in self.all:
            one.testing(iteration, net)

    def tested(self, report: TestReport) -> None:
        for one in self.all:
            one.tested(report)

    def writing(self, path: str, kind: str, hdf5: bool) -> None:
        for one in self.all:
            one.writing(path, kind, hdf5)

    def snapshot(self, report: SnapshotReport) -> None:
        for one in self.all:
            one.snapshot(report)

    def forwarded(self, iteration: int, loss: float) -> None:
        for one in self.all:
            one.forwarded(iteration, loss)

    def note(self, text: str) -> None:
        for one in self.all:
            one.note(text)

    def warning(self, text: str) -> None:
        for one in self.all:
            one.warning(text)

    def finished(self, iteration: int, early: bool) -> None:
        for one in self.all:
            one.finished(iteration, early)

    def close(self) -> None:
        for one in self.all:
            one.close()
