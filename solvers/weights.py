"""Weights of a net from files (by layer name, as Caffe's fine-tuning does), and into files."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from layrubnet.engine.net import CompiledNet
from layrubnet.errors import WeightsError
from layrubnet.prototxt.weights import LayerWeights, read_weights

Arrays = dict[str, list[Any]]


@dataclass
class LoadReport:
    """Which layers got what, by name. ``new`` keep their initial values."""

    copied: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    mismatched: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """The report for the log, one line a group that is not empty."""
        groups = (
            ("copied from the weights", self.copied),
            ("in the weights only (ignored)", self.ignored),
            ("of another shape (skipped)", self.mismatched),
            ("given more than once (the last counts)", self.duplicates),
            ("new (initial values kept)", self.new),
        )
        return [
            f"{len(names)} layers {what}: {', '.join(names)}" for what, names in groups if names
        ]


def split_paths(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return the single paths; each may be a list with commas, as Caffe's ``--weights``."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    return [part.strip() for one in given for part in os.fspath(one).split(",") if part.strip()]


def load_weights(
    net: CompiledNet,
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    skip_mismatched: bool = False,
) -> LoadReport:
    """Copy blobs from weights files into the layers of the same name; later files win.

    Layers that only the file or only the net has are left alone and reported. A shape that does
    not fit raises :class:`~layrubnet.errors.WeightsError`, unless ``skip_mismatched``. Legacy
    shapes of four axes fit when they agree from the end on.
    """
    report = LoadReport()
    targets = {name: blobs for name, blobs in net.graph.layer_blobs().items() if blobs}
    known = set(net.layer_names) | set(targets)
    for path in split_paths(paths):
        for layer in read_weights(path):
            if layer.name not in known:
                if layer.blobs:
                    report.ignored.append(layer.name)
            elif layer.blobs or layer.name in targets:
                _load_layer(net, layer, path, skip_mismatched, report)
    seen = set(report.copied) | set(report.mismatched)
    report.new = [name for name in targets if name not in seen]
    return report


def _load_layer(
    net: CompiledNet, layer: LayerWeights, path: str, skip: bool, report: LoadReport
) -> None:
    name, params = layer.name, net.graph.layer_blobs().get(layer.name, ())
    problem = _misfit(layer, params)
    if problem is not None:
        if not skip:
            what, expected, got = problem
            raise WeightsError(
                what,
                where=path,
                expected=expected,
                got=got,
                hint="To learn this layer's parameters from scratch rather than copying from a "
                "saved net, rename the layer (or skip layers that do not fit).",
            )
        report.mismatched.append(name)
        return
    for index, values in enumerate(layer.blobs):
        if values is not None:
            net.set_blob(name, index, np.asarray(values))
    if name in report.copied:
        if name not in report.duplicates:
            report.duplicates.append(name)
    else:
        report.copied.append(name)


def _misfit(layer: LayerWeights, params: Sequence[Any]) -> tuple[str, str, str] | None:
    # An HDF5 file stores shared blobs at their owner only, so the last ones may be missing.
    shared = [p for p in params[len(layer.blobs) :] if p.owner != layer.name]
    if len(layer.blobs) + len(shared) != len(params):
        return (
            f"Incompatible number of blobs for layer {layer.name}",
            f"{len(params)} blobs (this net)",
            f"{len(layer.blobs)} blobs (the file)",
        )
    for index, (values, param) in enumerate(zip(layer.blobs, params, strict=False)):
        if values is not None and not fits(values.shape, param.shape):
            return (
                f"Cannot copy param {index} weights from layer '{layer.name}'; shape mismatch.",
                f"{_show(param.shape)} (this net)",
                f"{_show(values.shape)} (the file)",
            )
    return None


def fits(stored: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether shapes agree; four stored axes may have extra leading ones (legacy files)."""
    if len(stored) == 4 and len(wanted) < 4:
        return tuple(stored) == (1,) * (4 - len(wanted)) + tuple(wanted)
    return tuple(stored) == tuple(wanted)


def _show(shape: Sequence[int]) -> str:
    return f"{' '.join(map(str, shape))} ({math.prod(shape)})"


def net_blobs(net: CompiledNet, *, diffs: bool = False) -> tuple[Arrays, Arrays | None]:
    """Return host copies of all blobs by layer name, and of their gradients if wanted.

    A blob without a gradient (lr_mult 0, statistics) has zeros there, as in Caffe's files.
    """
    data: Arrays = {}
    gradients: Arrays = {}
    for name, params in net.graph.layer_blobs().items():
        if not params:
            continue
        data[name] = [net.device.download(net.param_data(p.name)) for p in params]
        if diffs:
            gradients[name] = [
                net.device.download(net.param_diff(p.name))
                if p.name in net.program.param_diff
                else np.zeros(p.shape, np.float32)
                for p in params
            ]
    return data, gradients if diffs else None
