"""A live display for terminals: a progress bar, the loss as a small curve, the last test."""

from __future__ import annotations

from collections import deque
from typing import Any, TextIO

from layrubnet import extras
from layrubnet.errors import MissingDependency
from layrubnet.observe.log import LogObserver, shown
from layrubnet.observe.observer import Observer, SnapshotReport, TestReport, TrainReport

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 40


def sparkline(values: list[float]) -> str:
    """The values as a row of little bars, lowest to highest."""
    if not values:
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return "".join(_BARS[int((v - low) / span * (len(_BARS) - 1))] for v in values)


def progress_observer(stream: TextIO, live: bool | None = None) -> Observer:
    """Return the live display for a terminal, Caffe's log lines for anything else.

    ``live`` decides instead of looking at ``stream``. Without rich, a terminal gets log lines too.
    """
    wanted = stream.isatty() if live is None else live
    if wanted:
        try:
            return LiveProgress(stream)
        except MissingDependency:
            if live:
                raise
    return LogObserver()


class LiveProgress(Observer):
    """Shows a run with rich; notes and warnings scroll by above."""

    def __init__(self, stream: TextIO) -> None:
        console = extras.rich("console")
        progress = extras.rich("progress")
        self._console = console.Console(file=stream, highlight=False)
        self._progress = progress.Progress(
            progress.TextColumn("[bold]{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.fields[info]}", markup=False),
            console=self._console,
        )
        self._task: Any = None
        self._recent: deque[float] = deque(maxlen=_WIDTH)
        self._sum, self._count, self._every = 0.0, 0, 1
        self._last = ""

    def started(self, name: str, lr_policy: str, iteration: int, max_iter: int) -> None:
        self._every = max(1, (max_iter - iteration) // _WIDTH)
        self._task = self._progress.add_task(
            name or "training", total=max_iter, completed=iteration, info=""
        )
        self._progress.start()

    def iterated(self, iteration: int, loss: float) -> None:
        if self._task is None:
            return
        self._sum, self._count = self._sum + loss, self._count + 1
        if self._count == self._every:
            self._recent.append(self._sum / self._count)
            self._sum, self._count = 0.0, 0
        line = sparkline(list(self._recent))
        info = f"loss {loss:.4g} {line} {self._last}"
        self._progress.update(self._task, completed=iteration, info=info)

    def tested(self, report: TestReport) -> None:
        self._last = ", ".join(f"{o.name} {o.value:.4g}" for o in report.outputs[:3])
        outputs = ", ".join(shown(o) for o in report.outputs)
        self._print(f"iteration {report.iteration}: test net #{report.net}: {outputs}")

    def trained(self, report: TrainReport) -> None:
        if self._task is None:
            self._print(f"iteration {report.iteration}: loss {report.loss:g}, lr {report.lr:g}")

    def snapshot(self, report: SnapshotReport) -> None:
        self._print(f"iteration {report.iteration}: snapshot {report.state}")

    def forwarded(self, iteration: int, loss: float) -> None:
        self._print(f"iteration {iteration}: loss {loss:g}")

    def note(self, text: str) -> None:
        self._print(text)

    def warning(self, text: str) -> None:
        self._console.print(text, style="yellow", markup=False)

    def finished(self, iteration: int, early: bool) -> None:
        self.close()
        self._print("stopped early" if early else "done")

    def close(self) -> None:
        self._progress.stop()

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False)
