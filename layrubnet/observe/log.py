"""Caffe's own log lines, so that every parser of Caffe's logs works on ours.

Lines go through Python's ``logging`` (logger ``layrubnet``) and look like glog's::

    I1201 13:45:01.123456 12345 solver.cpp:239] Iteration 100 (2.1 iter/s, 47s/100 iters), loss = 1

Known lines name the place in Caffe that prints them, since some scripts search for it.
"""

from __future__ import annotations

import contextlib
import logging
import time
from typing import TextIO

from layrubnet.observe.observer import Observer, Output, TestReport, TrainReport

LOGGER = logging.getLogger("layrubnet")


class GlogFormatter(logging.Formatter):
    """``Lmmdd hh:mm:ss.uuuuuu thread file:line] message``"""

    def format(self, record: logging.LogRecord) -> str:
        level = "F" if record.levelno >= logging.CRITICAL else record.levelname[0]
        level = "I" if level == "D" else level
        moment = time.strftime("%m%d %H:%M:%S", time.localtime(record.created))
        micros = int(record.created % 1 * 1e6)
        place = getattr(record, "place", "") or f"{record.filename}:{record.lineno}"
        head = f"{level}{moment}.{micros:06d} {record.process or 0:5d} {place}] "
        lines = record.getMessage().splitlines() or [""]
        return "\n".join(head + line for line in lines)


class _LogFile(logging.FileHandler):
    """A log file that gives up, saying so once, when the disk is full: training goes on."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's name)
        LOGGER.removeHandler(self)
        LOGGER.warning("%s cannot be written any more; training goes on", self.baseFilename)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            super().close()


def add_handler(target: TextIO | str, level: int = logging.INFO) -> logging.Handler:
    """Send log lines to a stream, or append them to a file; returns the handler to remove later."""
    handler: logging.Handler
    if isinstance(target, str):
        handler = _LogFile(target, encoding="utf-8")
    else:
        handler = logging.StreamHandler(target)
    handler.setLevel(level)
    handler.setFormatter(GlogFormatter())
    LOGGER.addHandler(handler)
    LOGGER.setLevel(min(level, LOGGER.level or level))
    LOGGER.propagate = False
    return handler


def remove_handler(handler: logging.Handler) -> None:
    """Stop sending lines to a handler and close its file."""
    LOGGER.removeHandler(handler)
    handler.close()


class LogObserver(Observer):
    """Says everything a solver does in Caffe's words."""

    def started(self, name: str, lr_policy: str, iteration: int, max_iter: int) -> None:
        _say("solver.cpp:293", f"Solving {name}")
        _say("solver.cpp:294", f"Learning Rate Policy: {lr_policy}")

    def trained(self, report: TrainReport) -> None:
        _say(
            "solver.cpp:239",
            f"Iteration {report.iteration} ({report.rate:g} iter/s, "
            f"{report.seconds:g}s/{report.display} iters), loss = {report.loss:g}",
        )
        for index, output in enumerate(report.outputs):
            _say("solver.cpp:258", f"    Train net output #{index}: {shown(output)}")
        _say("sgd_solver.cpp:112", f"Iteration {report.iteration}, lr = {report.lr:g}")

    def testing(self, iteration: int, net: int) -> None:
        _say("solver.cpp:347", f"Iteration {iteration}, Testing net (#{net})")

    def tested(self, report: TestReport) -> None:
        if report.loss is not None:
            _say("solver.cpp:399", f"Test loss: {report.loss:g}")
        for index, output in enumerate(report.outputs):
            _say("solver.cpp:414", f"    Test net output #{index}: {shown(output)}")

    def writing(self, path: str, kind: str, hdf5: bool) -> None:
        form = "HDF5 file" if hdf5 else "binary proto file"
        if kind == "weights":
            _say("solver.cpp:464", f"Snapshotting to {form} {path}")
        else:
            _say("sgd_solver.cpp:284", f"Snapshotting solver state to {form} {path}")

    def forwarded(self, iteration: int, loss: float) -> None:
        _say("solver.cpp:327", f"Iteration {iteration}, loss = {loss:g}")

    def note(self, text: str) -> None:
        LOGGER.info(text)

    def warning(self, text: str) -> None:
        LOGGER.warning(text)

    def finished(self, iteration: int, early: bool) -> None:
        if early:
            _say("solver.cpp:316", "Optimization stopped early.")
        else:
            _say("solver.cpp:332", "Optimization Done.")


def shown(output: Output) -> str:
    """``name = value``, and for losses the weight: ``(* 1 = 0.42 loss)``."""
    text = f"{output.name} = {output.value:g}"
    if output.weight:
        text += f" (* {output.weight:g} = {output.weight * output.value:g} loss)"
    return text


def _say(place: str, text: str) -> None:
    LOGGER.info(text, extra={"place": place})
