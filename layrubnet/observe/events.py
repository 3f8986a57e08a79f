"""Events of a run as JSON lines: one object a line, written out at once.

Every object has ``event`` (start, train, test, snapshot, end) and ``time`` (seconds since 1970);
``train`` and ``test`` have ``iteration`` and ``outputs`` by name. A run that is resumed appends to
the same file: a reader takes the last line of each iteration.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import time
from pathlib import Path
from typing import Any

from layrubnet.errors import LayrubError
from layrubnet.observe.observer import Observer, Output, SnapshotReport, TestReport, TrainReport

_log = logging.getLogger("layrubnet")


class JsonLines(Observer):
    """Appends events to the file ``path``."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        target = Path(path)
        self._failed = False
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(target, "a", encoding="utf-8")  # noqa: SIM115 (closed by close())
        except OSError as error:
            raise LayrubError(f"cannot be written: {error.strerror}", where=str(path)) from None

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()

    def started(self, name: str, lr_policy: str, iteration: int, max_iter: int) -> None:
        self._write("start", iteration, net=name, lr_policy=lr_policy, max_iter=max_iter)

    def trained(self, report: TrainReport) -> None:
        self._write(
            "train",
            report.iteration,
            loss=report.loss,
            lr=report.lr,
            iterations_per_second=report.rate,
            outputs=_by_name(report.outputs),
        )

    def tested(self, report: TestReport) -> None:
        more = {} if report.loss is None else {"loss": report.loss}
        outputs = _by_name(report.outputs)
        self._write("test", report.iteration, net=report.net, outputs=outputs, **more)

    def snapshot(self, report: SnapshotReport) -> None:
        self._write("snapshot", report.iteration, weights=report.weights, state=report.state)

    def forwarded(self, iteration: int, loss: float) -> None:
        self._write("train", iteration, loss=loss)

    def warning(self, text: str) -> None:
        self._write("warning", None, text=text)

    def finished(self, iteration: int, early: bool) -> None:
        self._write("end", iteration, early=early)

    def _write(self, event: str, iteration: int | None, **values: Any) -> None:
        head = {"event": event, "time": round(time.time(), 3)}
        if iteration is not None:
            head["iteration"] = iteration
        if self._failed:
            return
        try:
            self._file.write(json.dumps({**head, **_plain(values)}) + "\n")
            self._file.flush()
        except OSError as error:  # a full disk: no reason to stop training
            self._failed = True
            _log.warning("%s cannot be written any more: %s", self._file.name, error.strerror)


def _by_name(outputs: tuple[Output, ...]) -> dict[str, Any]:
    """Values by name; an output of several numbers is a list."""
    found: dict[str, list[float]] = {}
    for output in outputs:
        found.setdefault(output.name, []).append(output.value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become strings."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def read_events(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the events of a file; a last line cut off by a crash is left out."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise LayrubError(f"cannot be read: {error.strerror}", where=os.fspath(path)) from None
    events = []
    for number, line in enumerate(lines, 1):
        try:
            events.append(json.loads(line))
        except ValueError:
            if number == len(lines):
                break
            raise LayrubError("is no JSON", where=f"{os.fspath(path)}:{number}") from None
    return events
