"""A live display for terminals: a progress bar, the loss as a small curve, the last test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TextIO

from layrubnet import extras
from layrubnet.errors import MissingDependency
from layrubnet.observe.log import LogObserver
from layrubnet.observe.observer import Observer, SnapshotReport, TestReport

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 32


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
    """Shows a run with rich: a bar, and below it loss, curve and last test.

    Notes, tests and snapshots scroll by above.
    """

    def __init__(self, stream: TextIO) -> None:
        rich_console, progress = extras.rich("console"), extras.rich("progress")
        self._text = extras.rich("text").Text
        self._group = rich_console.Group
        self._console = rich_console.Console(file=stream, highlight=False)
        self._progress = progress.Progress(
            progress.TextColumn("[bold]{task.description}"),
            progress.BarColumn(bar_width=None),
            progress.MofNCompleteColumn(),
            progress.TimeRemainingColumn(),
            console=self._console,
            expand=True,
        )
        self._task: Any = None
        self._curve: list[float] = []
        self._sum, self._count, self._every = 0.0, 0, 1
        self._loss = self._test = ""
        self._gone = False
        self.stopping = False
        """A request to stop has arrived and waits for the end of the iteration."""
        self._live = extras.rich("live").Live(get_renderable=self._picture, console=self._console)

    def _picture(self) -> Any:
        below = f"loss {self._loss or '-'}  {sparkline(self._curve)}  {self._test}"
        if self.stopping:
            below = "stopping after this iteration, with a snapshot; Ctrl-C again: at once"
        return self._group(self._progress, self._text(below, no_wrap=True, overflow="ellipsis"))

    def started(self, name: str, lr_policy: str, iteration: int, max_iter: int) -> None:
        self._task = self._progress.add_task(
            name or "training", total=max_iter, completed=iteration
        )
        self._show(self._live.start)

    def iterated(self, iteration: int, loss: float) -> None:
        self._loss = f"{loss:.4g}"
        self._sum, self._count = self._sum + loss, self._count + 1
        if self._count == self._every:
            self._curve.append(self._sum / self._count)
            self._sum, self._count = 0.0, 0
            if len(self._curve) == _WIDTH:  # the whole run so far, in half as many bars
                pairs = zip(self._curve[::2], self._curve[1::2], strict=True)
                self._curve = [(a + b) / 2 for a, b in pairs]
                self._every *= 2
        if self._task is not None:
            self._progress.update(self._task, completed=iteration)

    def tested(self, report: TestReport) -> None:
        outputs = [f"{o.name} {o.value:.4g}" for o in report.outputs]
        self._test = "test " + ", ".join(outputs[:3])
        shown = ", ".join(outputs[:8]) + (", ..." if len(outputs) > 8 else "")
        self._print(f"iteration {report.iteration}: test net #{report.net}: {shown}")

    def snapshot(self, report: SnapshotReport) -> None:
        self._print(f"iteration {report.iteration}: snapshot {report.state}")

    def note(self, text: str) -> None:
        self._print(text)

    def warning(self, text: str) -> None:
        self._print(text, style="yellow")

    def finished(self, iteration: int, early: bool) -> None:
        self.close()
        self._print(f"iteration {iteration}: " + ("stopped early" if early else "done"))

    def close(self) -> None:
        if self._task is not None:
            self._task = None
            self._show(self._live.stop)

    def _print(self, text: str, style: str | None = None) -> None:
        if self._task is not None:
            self._show(self._live.refresh)  # it redraws what it drew last, which may be old
        self._show(lambda: self._console.print(text, style=style, markup=False))

    def _show(self, draw: Callable[[], object]) -> None:
        """Draw, unless the terminal has been closed: training goes on without it."""
        if not self._gone:
            try:
                draw()
            except OSError:
                self._gone = True
