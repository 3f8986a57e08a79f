"""Train a net, from a solver file or directly from a net file.

  layrubnet train solver.prototxt
  layrubnet train solver.prototxt --weights pretrained.caffemodel   fine-tune
  layrubnet train solver.prototxt --resume       go on from the newest snapshot
  layrubnet train solver.prototxt --snapshot out/net_iter_500.solverstate
  layrubnet train solver.prototxt --set base_lr=0.001 --set max_iter=5000
  layrubnet train solver.prototxt --log-dir out --plot out/loss.png
  layrubnet train solver.prototxt --memory-budget 2GiB   fit into less memory
  layrubnet train net.prototxt --lr 0.05 --max-iter 2000 \\
      --test-iter 10 --test-interval 500

A net file without a solver is trained with the defaults given below. Snapshots
(weights, state, and a .layrubnet.json that makes resuming exact) are named
<snapshot_prefix>_iter_<N>; without a prefix, after the prototxt, beside it.

Ctrl-C (SIGINT) or SIGTERM writes a snapshot and stops, a second Ctrl-C stops
at once; SIGHUP writes a snapshot and goes on. Progress is shown live on a
terminal, as Caffe's log lines elsewhere.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from layrubnet.cli import common
from layrubnet.cli.memory_flags import add_memory_flags, chosen_memory
from layrubnet.cli.train_log import announce, open_log
from layrubnet.cli.train_param import add_solver_flags, solver_parameter
from layrubnet.errors import LayrubError
from layrubnet.observe.signals import EFFECTS, SignalActions
from layrubnet.solvers.snapshot import find_newest
from layrubnet.solvers.solver import Solver
from layrubnet.solvers.weights import load_weights

NAME = "train"
ALIASES: list[str] = []
USAGE = "layrubnet train SOLVER_OR_NET [options]"
HELP = "train a net from a solver file or a net file"
NEWEST = "<newest>"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="SOLVER_OR_NET", help="the prototxt to train")
    parser.add_argument("-solver", "--solver", metavar="SOLVER", help="the same, Caffe's spelling")
    start = parser.add_argument_group("where to start")
    start.add_argument(
        "-weights",
        "--weights",
        default="",
        metavar="A,B",
        help="weights to fine-tune from, by layer name (.caffemodel, .h5); later files win",
    )
    start.add_argument(
        "--skip-mismatched",
        action="store_true",
        help="leave out layers of --weights whose shapes differ, instead of refusing",
    )
    start.add_argument(
        "-snapshot",
        "--snapshot",
        metavar="STATE",
        help="go on from this .solverstate (or .solverstate.h5)",
    )
    start.add_argument(
        "--resume",
        nargs="?",
        const=NEWEST,
        metavar="STATE",
        help="go on from this state; without a name, from the newest valid one",
    )
    add_solver_flags(parser)
    output = parser.add_argument_group("output")
    output.add_argument(
        "-log_dir",
        "--log_dir",
        "--log-dir",
        metavar="FOLDER",
        help="where log and JSON lines go (beside the snapshots)",
    )
    output.add_argument("--no-log-files", action="store_true", help="write no log files")
    output.add_argument("--plot", metavar="PNG", help="draw the loss curve when training ends")
    output.add_argument("--tensorboard", metavar="FOLDER", help="write TensorBoard events")
    output.add_argument(
        "--progress",
        choices=("auto", "live", "plain"),
        default="auto",
        help="live display or plain log lines (auto: live on a terminal)",
    )
    add_memory_flags(parser)
    signals = parser.add_argument_group("signals")
    for name, default in (("sigint_effect", "stop"), ("sighup_effect", "snapshot")):
        signals.add_argument(
            f"-{name}",
            f"--{name}",
            choices=EFFECTS,
            default=default,
            help=f"what {name[:6].upper()} does: none, snapshot or stop ({default})",
            metavar="EFFECT",
        )
    common.add_state_flags(parser)
    common.add_device_flags(parser)


def run(args: argparse.Namespace) -> int:
    path = _one_file(args)
    weights = common.weights_paths(args)
    if args.snapshot and args.resume is not None:
        raise LayrubError("--snapshot and --resume are the same thing: give one of them")
    if weights and (args.snapshot or args.resume is not None):
        raise LayrubError(
            "Give a snapshot to resume training or weights to finetune but not both.",
            hint="a snapshot already holds the weights",
        )
    device = common.chosen_device(args)
    param, solver_file = solver_parameter(path, args)
    memory = chosen_memory(args, param)
    with (
        open_log(args, param) as log,
        SignalActions(args.sigint_effect, args.sighup_effect, log.requested) as signals,
    ):
        solver = Solver(
            param,
            solver_file=solver_file,
            device=device,
            observers=log.observers,
            requests=signals,
            allow_unknown=args.allow_unknown_fields,
            memory=memory,
        )
        try:
            common.check_loss(solver.net)
            resume = _resume_from(args, param, solver.observers.note)
            announce(solver, log, resume)
            if weights:
                report = load_weights(solver.net, weights, skip_mismatched=args.skip_mismatched)
                for line in report.lines():
                    solver.observers.note(line)
            solver.solve(resume)
            if solver.stopped:
                solver.observers.note(f"To go on: layrubnet train {path} --resume")
        finally:
            solver.close()
    log.draw_plot()
    return 0


def _one_file(args: argparse.Namespace) -> str:
    path: str | None = args.file or args.solver
    if not path:
        raise LayrubError("which solver?", hint="layrubnet train solver.prototxt")
    if args.file and args.solver and args.file != args.solver:
        raise LayrubError("two files given", expected="one", got=f"{args.file} and {args.solver}")
    return path


def _resume_from(args: argparse.Namespace, param: Any, say: Callable[[str], None]) -> str | None:
    if args.resume == "":
        raise LayrubError("--resume= names no file", hint="--resume alone takes the newest one")
    given: str | None = args.resume or args.snapshot or None  # --snapshot "": none, as in Caffe
    if given != NEWEST:
        return given
    newest = find_newest(param.snapshot_prefix, say)
    if newest is None:
        raise LayrubError(
            f"--resume: there is no valid snapshot of {param.snapshot_prefix!r}",
            hint="start without --resume, or name the .solverstate file",
        )
    return newest
