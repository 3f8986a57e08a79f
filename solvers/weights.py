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
            ("in the weights only, ignored", self.ignored),
            ("of another shape, skipped", self.mismatched),
            ("given more than once, the last counts", self.duplicates),
            ("new, with their initial values", self.new),
        )
        return [f"Layers {what} ({len(n)}): {', '.join(n)}" for what, n in groups if n]


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
    report, values = LoadReport(), {}
    targets = {name: blobs for name, blobs in net.graph.layer_blobs().items() if blobs}
    shapes = net.graph.blob_shapes()
    known = {*net.layer_names, *targets}
    for path in split_paths(paths):
        for layer in read_weights(path):
            if layer.name not in known:
                if layer.blobs:
                    report.ignored.append(layer.name)
                continue
            params = targets.get(layer.name, ())
            if not layer.blobs and not _all_shared(layer.name, params):
                continue
            problem = _misfit(layer, params, shapes.get(layer.name, ()))
            if problem is not None:
                if not skip_mismatched:
                    raise _refused(problem, path)
                report.mismatched.append(layer.name)
                continue
            group = report.duplicates if layer.name in values else report.copied
            group.append(layer.name)
            values[layer.name] = layer.blobs
    # Only now, so that an error leaves the net as it was.
    for name, blobs in values.items():
        for index, blob in enumerate(blobs):
            if blob is not None:
                net.set_blob(name, index, np.asarray(blob))
    seen = {*report.copied, *report.mismatched}
    report.new = [name for name in targets if name not in seen]
    return report


def _all_shared(name: str, params: Sequence[Any]) -> bool:
    """Whether other layers own every blob: then an HDF5 file has none under this name."""
    return bool(params) and all(p.owner != name for p in params)


def _refused(problem: tuple[str, str, str], path: str) -> WeightsError:
    what, expected, got = problem
    return WeightsError(
        what,
        where=path,
        expected=expected,
        got=got,
        hint="To learn this layer's parameters from scratch rather than copying from a saved net, "
        "rename the layer.",
    )


def _misfit(
    layer: LayerWeights, params: Sequence[Any], shapes: Sequence[tuple[int, ...]]
) -> tuple[str, str, str] | None:
    # An HDF5 file stores shared blobs at their owner only, so the last ones may be missing.
    shared = [p for p in params[len(layer.blobs) :] if p.owner != layer.name]
    if len(layer.blobs) + len(shared) != len(params):
        return (
            f"Incompatible number of blobs for layer {layer.name}",
            f"{len(params)} blobs (this net)",
            f"{len(layer.blobs)} blobs (the file)",
        )
    for index, (values, shape) in enumerate(zip(layer.blobs, shapes, strict=False)):
        if values is not None and not fits(values.shape, shape):
            return (
                f"Cannot copy param {index} weights from layer '{layer.name}'; shape mismatch.",
                f"{_show(shape)} (this net)",
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
    shapes = net.graph.blob_shapes()
    for name, params in net.graph.layer_blobs().items():
        if not params:
            continue
        data[name] = [
            net.device.download(net.param_data(p.name)).reshape(shape)
            for p, shape in zip(params, shapes[name], strict=True)
        ]
        if diffs:
            gradients[name] = [
                net.device.download(net.param_diff(p.name)).reshape(shape)
                if p.name in net.program.param_diff
                else np.zeros(shape, np.float32)
                for p, shape in zip(params, shapes[name], strict=True)
            ]
    return data, gradients if diffs else None
