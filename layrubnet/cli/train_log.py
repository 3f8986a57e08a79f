"""Where a training run's words go: terminal, log file, JSON lines, TensorBoard, plot."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from layrubnet.cli import common
from layrubnet.errors import LayrubError
from layrubnet.files import check_writable
from layrubnet.observe.events import JsonLines
from layrubnet.observe.log import LOGGER, LogObserver, add_handler, remove_handler
from layrubnet.observe.observer import Observer
from layrubnet.observe.plot import check_format, draw
from layrubnet.observe.progress import LiveProgress, progress_observer
from layrubnet.observe.signals import Action
from layrubnet.observe.tensorboard import TensorBoard
from layrubnet.proto import enum_name
from layrubnet.solvers.solver import Solver
from layrubnet.version import __version__


@dataclass
class RunLog:
    """The observers of a run and the files they write; a context that closes them."""

    observers: list[Observer] = field(default_factory=list)
    handlers: list[logging.Handler] = field(default_factory=list)
    file: logging.Handler | None = None
    log: str | None = None
    events: str | None = None
    plot: str | None = None

    def __enter__(self) -> RunLog:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        for observer in self.observers:
            observer.close()
        if isinstance(error, LayrubError) and self.file is not None:
            # The terminal gets it from the command line; a log should say how a run ended, too.
            place = {"place": "train"}
            values = (LOGGER.name, logging.ERROR, "", 0, "%s", (error,), None)
            self.file.handle(LOGGER.makeRecord(*values, extra=place))
        for handler in self.handlers:
            remove_handler(handler)

    def requested(self, action: Action) -> None:
        """Say that a request to stop has been heard: a slow iteration may still take a while."""
        if action is not Action.STOP:
            return
        if isinstance(self.observers[0], LiveProgress):
            self.observers[0].stopping = True  # drawn by its own thread
        else:  # inside a signal handler, which may have interrupted a print: straight to the file
            with contextlib.suppress(OSError):
                os.write(2, b"layrubnet: stopping after this iteration (Ctrl-C again: at once)\n")

    def draw_plot(self) -> None:
        """Draw the loss curve, if one was asked for."""
        if self.plot and self.events:
            draw(self.events, self.plot)


def open_log(args: argparse.Namespace, param: Any) -> RunLog:
    """Open everything the flags ask for. Log lines go to stderr, as Caffe's do."""
    if args.plot and args.no_log_files:
        raise LayrubError("--plot draws from the log files, which --no-log-files turns off")
    if args.plot:
        check_format(args.plot)
        check_writable(args.plot)
    run = RunLog(plot=args.plot)
    try:
        _fill(run, args, param)
    except BaseException:
        run.__exit__(None, None, None)
        raise
    return run


def _fill(run: RunLog, args: argparse.Namespace, param: Any) -> None:
    live = {"auto": None, "live": True, "plain": False}[args.progress]
    terminal = progress_observer(sys.stderr, live)
    run.observers.append(terminal)
    plain = isinstance(terminal, LogObserver)
    if plain:
        run.handlers.append(add_handler(sys.stderr))
    else:
        run.handlers.append(_WarningsTo(terminal))
        LOGGER.addHandler(run.handlers[-1])
    if args.tensorboard:
        run.observers.append(TensorBoard(args.tensorboard))
    if not args.no_log_files:
        stem = _stem(args, param)
        run.log, run.events = f"{stem}.log", f"{stem}.jsonl"
        for path in (run.log, run.events):
            check_writable(path)
        run.file = add_handler(run.log)
        run.handlers.append(run.file)
        run.observers.append(JsonLines(run.events))
        if not plain:
            run.observers.append(LogObserver())


class _WarningsTo(logging.Handler):
    """Shows on the live display what layers warn of; the solver tells it the rest itself."""

    def __init__(self, terminal: Observer) -> None:
        super().__init__(logging.WARNING)
        self.terminal = terminal

    def emit(self, record: logging.LogRecord) -> None:
        if record.module != "log":
            self.terminal.warning(record.getMessage())


def _stem(args: argparse.Namespace, param: Any) -> str:
    prefix = Path(param.snapshot_prefix or "layrubnet")
    folder = Path(args.log_dir) if args.log_dir else prefix.parent
    return str(folder / (prefix.name or "layrubnet"))


def announce(solver: Solver, run: RunLog, resume: str | None) -> None:
    """The first lines of a run: version, device, batch, memory, seed, where logs go."""
    net = solver.net
    batch = common.batch_size(net)
    each = solver.rule.iter_size
    threads = os.environ.get("OMP_NUM_THREADS") or os.environ.get("OPENBLAS_NUM_THREADS") or "auto"
    memory = common.megabytes(net.executor.allocated_bytes)
    samples = f"{batch} x iter_size {each} = {(batch or 0) * each} samples per update"
    say = solver.observers.note
    say(f"layrubnet {__version__} on {net.device.describe()}, threads {threads}")
    say(f"Net {net.graph.name!r}: {common.parameter_count(net):,} parameters, batch {samples}")
    if solver.test_nets:  # a budget is the train net's: the two are told apart
        tests = common.megabytes(sum(n.executor.allocated_bytes for n in solver.test_nets))
        number = len(solver.test_nets)
        memory += f", {tests} more for {number} test net{'s' if number > 1 else ''}"
    say(f"Memory: {memory} (strategy {net.plan.strategy})")
    if net.plan.host_bytes:
        say(f"Offload: {common.megabytes(net.plan.host_bytes)} of feature maps leave the device")
    say(f"Seed: {solver.seed}")
    say(f"Logs: {run.log}, {run.events}" if run.log else "Logs: none (--no-log-files)")
    if enum_name(solver.param, "solver_mode") == "GPU" and solver.param.HasField("solver_mode"):
        say("solver_mode: GPU, but this version has no GPU device yet: training on the CPU")
    if resume:
        say(f"Resuming from {resume}")
