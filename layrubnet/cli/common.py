"""Flags and steps that several commands share."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
import os
import sys
from pathlib import Path

from layrubnet import proto
from layrubnet.cli.parser import int32
from layrubnet.engine.net import CompiledNet
from layrubnet.errors import DeviceError, LayrubError, NetError
from layrubnet.prototxt.positions import scan
from layrubnet.prototxt.solver_nets import NetSource
from layrubnet.prototxt.text import load, read_net


def add_device_flags(parser: argparse.ArgumentParser) -> None:
    """``--device`` and Caffe's ``--gpu``."""
    group = parser.add_argument_group("device")
    group.add_argument("--device", default="cpu", help="cpu (default)")
    group.add_argument(
        "-gpu", "--gpu", metavar="ID", help="Caffe's flag; this version has no GPU device yet"
    )


def add_state_flags(parser: argparse.ArgumentParser) -> None:
    """Flags that choose the layers of a net: level, stages, unknown fields."""
    group = parser.add_argument_group("which layers")
    group.add_argument(
        "-level", "--level", type=int32, default=0, metavar="N", help="the net's level (0)"
    )
    group.add_argument(
        "-stage", "--stage", default="", metavar="A,B", help="the net's stages, comma-separated"
    )
    group.add_argument(
        "--allow-unknown-fields",
        action="store_true",
        help="go on when the file has fields that layrubnet does not know",
    )
    group.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="FILE",
        help="run this Python file (or module) first: it registers your own layers (repeatable)",
    )


def import_layers(names: list[str]) -> None:
    """Import Python files or modules that register layer types."""
    sys.path.insert(0, os.getcwd())
    for name in names:
        if not name.endswith(".py"):
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as error:
                raise LayrubError(f"--import {name}: {error}") from None
            continue
        path = Path(name)
        if not path.is_file():
            raise LayrubError("--import: there is no such file", where=name)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)


def add_model_flags(parser: argparse.ArgumentParser, *, weights: str) -> None:
    """The net (positional or ``--model``) and its weights."""
    parser.add_argument("net", nargs="?", metavar="NET", help="the net's prototxt")
    parser.add_argument("-model", "--model", metavar="NET", help="the same, Caffe's spelling")
    parser.add_argument(
        "-weights", "--weights", default="", metavar="FILE", help=f"{weights} (.caffemodel, .h5)"
    )


def model_path(args: argparse.Namespace) -> str:
    """The net file from either spelling."""
    path: str | None = args.net or args.model
    if not path:
        raise LayrubError(
            "which net?", hint=f"layrubnet {args.command} --model net.prototxt, or just the file"
        )
    if args.net and args.model and args.net != args.model:
        raise LayrubError("two nets given", expected="one", got=f"{args.net} and {args.model}")
    return path


def add_phase_flag(parser: argparse.ArgumentParser, default: str | None, text: str) -> None:
    """``--phase``, in capitals or not."""
    parser.add_argument(
        "-phase", "--phase", type=str.upper, choices=("TRAIN", "TEST"), default=default, help=text
    )


def weights_paths(args: argparse.Namespace) -> list[str]:
    """The files of ``--weights``; an empty text stands for none, as in Caffe's scripts."""
    paths = split_list(args.weights)
    if args.weights and not paths:
        raise LayrubError("--weights names no file", got=repr(args.weights))
    return paths


def chosen_device(args: argparse.Namespace) -> str:
    """The device to use; a GPU is refused, never silently replaced."""
    if args.gpu is not None:
        raise DeviceError(
            "this version of layrubnet has no GPU device yet",
            got=f"--gpu {args.gpu}",
            hint="leave --gpu out to run on the CPU",
        )
    device: str = args.device
    if device != "cpu":
        raise DeviceError(
            "this version of layrubnet runs on the CPU only", got=f"--device {device}"
        )
    return device


def split_list(text: str) -> list[str]:
    """Comma-separated words; empty ones are dropped."""
    return [part.strip() for part in text.split(",") if part.strip()]


def load_net(
    path: str, phase: str, level: int, stages: list[str], allow_unknown: bool = False
) -> NetSource:
    """Read a net file and choose its layers for a state."""
    net, positions = read_net(Path(path), allow_unknown=allow_unknown)
    source = NetSource(
        net, proto.Phase.Value(phase), level, tuple(stages), net.name or path, positions
    )
    return source.filtered()


def is_net_file(path: str) -> bool:
    """Does a prototxt hold a net (rather than a solver)? Decided by its top-level fields."""
    text, _ = load(Path(path))
    names = {p[0][0] for p, _ in scan(text) if len(p) == 1}
    return bool(names & {"layer", "layers", "input", "input_shape", "input_dim"})


def check_loss(net: CompiledNet) -> None:
    """Raise NetError for a net to train that has nothing to minimise."""
    if not any(weight for node in net.graph.nodes for weight in node.loss_weights):
        raise NetError(
            "the net has no loss in phase TRAIN",
            where=f"net {net.graph.name!r}",
            expected="a layer such as SoftmaxWithLoss, or a top with loss_weight",
            hint="a net for deployment cannot be trained: give the one with data and loss",
        )


def batch_size(net: CompiledNet) -> int | None:
    """Samples per micro-batch: axis 0 of the first top of the first data layer or input."""
    for node in net.graph.nodes:
        if (node.contract.loads or node.layer.type == "Input") and node.tops:
            shape = node.tops[0].type.shape
            return shape[0] if shape else None
    return None


def megabytes(nbytes: float) -> str:
    """A size for people: 12.3 MiB."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if nbytes < 1024 or unit == "GiB":
            return f"{nbytes:.0f} {unit}" if unit == "bytes" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    raise AssertionError


def parameter_count(net: CompiledNet) -> int:
    """Learned numbers of a net, each stored blob once."""
    return sum(math.prod(p.shape) for p in net.graph.params if p.kind == "param")
