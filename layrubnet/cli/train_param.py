"""The solver's parameters from a solver file, or made for a bare net file, plus overrides."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from layrubnet.cli import common
from layrubnet.cli.parser import int32, int64, number
from layrubnet.errors import LayrubError, PrototxtError, nearest
from layrubnet.proto import SolverParameter
from layrubnet.prototxt.text import parse, read_net, read_solver
from layrubnet.prototxt.upgrade import upgrade_solver
from layrubnet.solvers.snapshot import prefix_of

FLAGS: tuple[tuple[str, str, Any, Any, str], ...] = (
    ("--lr", "base_lr", number, 0.01, "learning rate"),
    ("--type", "type", str, "SGD", "SGD, Nesterov, AdaGrad, RMSProp, AdaDelta or Adam"),
    ("--momentum", "momentum", number, 0.9, "momentum"),
    ("--weight-decay", "weight_decay", number, 0.0005, "weight decay"),
    ("--lr-policy", "lr_policy", str, "fixed", "fixed, step, exp, inv, multistep, poly, ..."),
    ("--max-iter", "max_iter", int32, 1000, "iterations"),
    ("--iter-size", "iter_size", int32, None, "micro-batches per update"),
    ("--display", "display", int32, 20, "iterations between reports"),
    ("--snapshot-every", "snapshot", int32, None, "iterations between snapshots"),
    ("--snapshot-prefix", "snapshot_prefix", str, None, "start of the snapshots' names"),
    ("--test-iter", "test_iter", int32, None, "test batches; needs --test-interval"),
    ("--test-interval", "test_interval", int32, None, "iterations between tests"),
    ("--seed", "random_seed", int64, None, "seed of all random draws"),
)
"""Flag, solver field, type, default for a bare net, help."""

_NO_MOMENTUM = ("AdaGrad", "RMSProp")


def add_solver_flags(parser: argparse.ArgumentParser) -> None:
    """Flags that set fields of the solver; with a net file they make up the whole solver."""
    group = parser.add_argument_group("solver (these override the solver file)")
    for flag, field, kind, default, text in FLAGS:
        shown = f"{text} ({default} for a bare net)" if default is not None else text
        group.add_argument(flag, dest=f"solver_{field}", type=kind, metavar="X", help=shown)
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="set any field of the solver, as in its file (repeatable)",
    )
    group.add_argument(
        "--check-finite",
        action="store_true",
        help="check every instruction's results; the first NaN or infinity is named",
    )
    group.add_argument(
        "--test-stage", default="", metavar="A,B", help="stages of the test nets (--stage: train)"
    )


def solver_parameter(path: str, args: argparse.Namespace) -> tuple[Any, str]:
    """Return the SolverParameter to train with and the file that paths are relative to."""
    if common.is_net_file(path):
        param = _for_net(path, args)
    else:
        param = read_solver(Path(path), allow_unknown=args.allow_unknown_fields)
    _override(param, args)
    param.snapshot_prefix = prefix_of(param, path)
    return param, path


def _for_net(path: str, args: argparse.Namespace) -> Any:
    read_net(Path(path), allow_unknown=args.allow_unknown_fields)  # mistakes in it come first
    param = SolverParameter(net=path, snapshot_prefix=str(Path(path).with_suffix("")))
    for _, field, _, default, _ in FLAGS:
        if default is not None:
            setattr(param, field, default)
    if args.solver_type in _NO_MOMENTUM:
        param.ClearField("momentum")
    if (args.solver_test_iter is None) != (args.solver_test_interval is None):
        raise LayrubError(
            "testing a bare net needs both --test-iter and --test-interval",
            hint="for example --test-iter 10 --test-interval 500",
        )
    return param


def _override(param: Any, args: argparse.Namespace) -> None:
    for _, field, _, _, _ in FLAGS:
        value = getattr(args, f"solver_{field}")
        if value is None:
            continue
        if field == "test_iter":
            param.test_iter[:] = [value] * max(1, len(param.test_iter))  # for every test net
        else:
            setattr(param, field, value)
    for assignment in args.set:
        _assign(param, assignment)
    if args.check_finite:
        param.check_finite = True
    for stage in common.split_list(args.stage):
        param.train_state.stage.append(stage)
    if args.level:
        param.train_state.level = args.level
    if args.test_stage:
        states = param.test_state or [param.test_state.add() for _ in param.test_iter]
        for state in states:
            state.stage.extend(common.split_list(args.test_stage))


def _assign(param: Any, assignment: str) -> None:
    field, equals, value = assignment.partition("=")
    field = field.strip()
    fields = param.DESCRIPTOR.fields_by_name
    if not equals or field not in fields:
        close = nearest(field, fields)
        raise LayrubError(
            f"--set {assignment}: the solver has no field {field!r}" if equals
            else f"--set {assignment}: expected FIELD=VALUE",
            hint=f"did you mean {close[0]!r}?" if close else "",
        )  # fmt: skip
    text = value.strip()
    if not text:
        raise LayrubError(f"--set {assignment}: the value is missing")
    if fields[field].cpp_type == fields[field].CPPTYPE_STRING and text[:1] not in ('"', "'"):
        text = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    try:
        given = upgrade_solver(parse(f"{field}: {text}", SolverParameter), "--set")
    except PrototxtError as error:
        raise LayrubError(error.what, where=f"--set {assignment}", hint=error.hint) from None
    param.ClearField(field)
    param.MergeFrom(given)
