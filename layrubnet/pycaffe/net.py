"""``caffe.Net``: a net as pycaffe's scripts use it."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

from layrubnet.engine.net import CompiledNet
from layrubnet.errors import NetError
from layrubnet.loading import open_net, save_weights
from layrubnet.memory.options import memory_options
from layrubnet.pycaffe import batches
from layrubnet.pycaffe.blob import Blob, NetBlob, ParamBlob
from layrubnet.pycaffe.live import LiveNet
from layrubnet.pycaffe.mode import next_seed
from layrubnet.solvers.weights import load_weights

Path = str | os.PathLike[str]


class LayerView:
    """What ``net.layers`` holds for each layer."""

    def __init__(self, type_: str, blobs: list[Blob]) -> None:
        self.type = type_
        self.blobs = blobs

    def __repr__(self) -> str:
        return f"<Layer {self.type}, {len(self.blobs)} blobs>"


class Net:
    """A net with all its blobs and parameters as live arrays.

    ``Net(file, phase)``, ``Net(file, phase, weights=file)``, ``Net(file, weights, phase)``;
    ``level`` and ``stages`` choose layers by their rules. ``phase`` is ``caffe.TRAIN`` or
    ``caffe.TEST``. Gradients of parameters add up until :meth:`clear_param_diffs`.
    ``memory``: a strategy ("reuse", ...) for a net that is run forward as a whole and keeps only
    inputs and outputs; without it every blob is kept, as in Caffe.
    """

    def __init__(
        self,
        network_file: Path | Any,
        *args: Any,
        phase: int | None = None,
        level: int = 0,
        stages: Collection[str] | None = None,
        weights: Path | None = None,
        memory: str | None = None,
    ) -> None:
        phase, level, stages, weights = _arguments(args, phase, level, stages, weights)
        net = open_net(
            network_file,
            phase,
            level=level,
            stages=stages or (),
            seed=next_seed(),
            seeds=True,
            memory=memory_options(memory),
        )
        self._live = LiveNet(net)
        if weights is not None:
            self.copy_from(weights)

    @classmethod
    def wrap(cls, live: LiveNet) -> Net:
        """A pycaffe face for a net that exists (a solver's)."""
        made = cls.__new__(cls)
        made._live = live
        return made

    @property
    def compiled(self) -> CompiledNet:
        """The net underneath."""
        return self._live.net

    # -- looking in ------------------------------------------------------------------------------

    # Names never change, and blobs look their arrays up: the handles can be made once.

    @cached_property
    def blobs(self) -> OrderedDict[str, Blob]:
        """The blobs by name, in order."""
        return OrderedDict((name, NetBlob(self._live, name)) for name in self._live.blob_names)

    @cached_property
    def params(self) -> OrderedDict[str, list[Blob]]:
        """The blobs of each layer that has any, by layer name."""
        stored = self._live.stored
        return OrderedDict((n, self._layer_blobs(n)) for n in self._live.names if stored[n])

    def _layer_blobs(self, layer: str) -> list[Blob]:
        return [ParamBlob(self._live, layer, i) for i in range(len(self._live.stored[layer]))]

    @property
    def inputs(self) -> list[str]:
        """The names of the input blobs."""
        return [value.name for value in self.compiled.graph.inputs()]

    @property
    def outputs(self) -> list[str]:
        """The names of the output blobs, sorted."""
        return [value.name for value in self.compiled.graph.outputs()]

    @property
    def layers(self) -> list[LayerView]:
        """The layers in order, automatic splits included."""
        return list(self.layer_dict.values())

    @cached_property
    def layer_dict(self) -> OrderedDict[str, LayerView]:
        """The layers by name."""
        layers = self._live.layers.items()
        return OrderedDict((n, LayerView(one.type, self._layer_blobs(n))) for n, one in layers)

    @property
    def bottom_names(self) -> OrderedDict[str, list[str]]:
        """The bottoms of each layer."""
        return OrderedDict((name, one.bottoms) for name, one in self._live.layers.items())

    @property
    def top_names(self) -> OrderedDict[str, list[str]]:
        """The tops of each layer."""
        return OrderedDict((name, one.tops) for name, one in self._live.layers.items())

    @property
    def blob_loss_weights(self) -> OrderedDict[str, float]:
        """The weight of each blob in the loss."""
        weights = {
            value.name: weight
            for node in self.compiled.graph.nodes
            for value, weight in zip(node.tops, node.loss_weights, strict=True)
        }
        return OrderedDict((name, weights[name]) for name in self._live.blob_names)

    @property
    def _layer_names(self) -> list[str]:
        return list(self._live.names)

    @property
    def _blob_names(self) -> list[str]:
        return list(self._live.blob_names)

    # -- running ---------------------------------------------------------------------------------

    def forward(
        self,
        blobs: Collection[str] | None = None,
        start: str | None = None,
        end: str | None = None,
        **inputs: Any,
    ) -> dict[str, Any]:
        """Run forward from layer ``start`` to ``end``; return the outputs (live arrays) by name.

        ``inputs``: arrays for all input blobs. ``blobs``: more blobs to return. With ``end``, the
        tops of that layer are returned instead of the net's outputs.
        """
        if inputs:
            self._feed(inputs, self.inputs, "Input blob arguments do not match net inputs.")
        self._live.forward(start, end)
        wanted = self.outputs if end is None else self.top_names[end]
        return {name: self._live.data(name) for name in [*wanted, *(blobs or ())]}

    def backward(
        self,
        diffs: Collection[str] | None = None,
        start: str | None = None,
        end: str | None = None,
        **tops: Any,
    ) -> dict[str, Any]:
        """Run backward from layer ``start`` down to ``end``; return gradients of inputs by name.

        ``tops``: gradients for all output blobs. ``diffs``: more blobs whose gradients to return.
        With ``end``, the gradients of that layer's bottoms are returned.
        """
        if tops:
            expected = "Top diff arguments do not match net outputs."
            self._feed(tops, self.outputs, expected, diff=True)
        self._live.backward(start, end)
        wanted = self.inputs if end is None else self.bottom_names[end]
        return {name: self._live.diff(name) for name in [*wanted, *(diffs or ())]}

    def _feed(
        self, given: Mapping[str, Any], names: list[str], mismatch: str, *, diff: bool = False
    ) -> None:
        if set(given) != set(names):
            raise NetError(
                mismatch, expected=", ".join(sorted(names)), got=", ".join(sorted(given))
            )
        self._live.reshape()
        for name, values in given.items():
            target = self._live.diff(name) if diff else self._live.data(name)
            shape = getattr(values, "shape", None)
            if shape and target.shape and shape[0] != target.shape[0]:
                raise NetError(
                    f"{'Diff' if diff else 'Input'} is not batch sized: {name!r}",
                    expected=target.shape,
                    got=shape,
                )
            target[...] = values

    def _forward(self, start: int, end: int) -> float:
        names = self._live.names
        return self._live.forward(names[start], names[end])

    def _backward(self, start: int, end: int) -> None:
        names = self._live.names
        self._live.backward(names[start], names[end])

    def forward_all(self, blobs: Collection[str] | None = None, **inputs: Any) -> dict[str, Any]:
        """Run forward in batches over arrays with any number of rows; return all outputs."""
        return batches.forward_all(self, blobs or (), inputs)

    def forward_backward_all(
        self,
        blobs: Collection[str] | None = None,
        diffs: Collection[str] | None = None,
        **arrays: Any,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Run forward and backward in batches; ``arrays``: inputs and gradients of outputs."""
        return batches.forward_backward_all(self, blobs or (), diffs or (), arrays)

    def clear_param_diffs(self) -> None:
        """Set all gradients of parameters to 0."""
        self._live.clear_param_diffs()

    def reshape(self) -> None:
        """Carry the new shapes of input blobs through the net."""
        self._live.reshape()

    def set_input_arrays(self, data: Any, labels: Any) -> None:
        """Give the MemoryData layer its rows: (N, C, H, W) and N labels."""
        self._live.set_arrays(data, labels)

    # -- weights ---------------------------------------------------------------------------------

    def copy_from(self, weights: Path) -> None:
        """Load weights (``.caffemodel`` or ``.h5``) into the layers of the same names."""
        load_weights(self.compiled, weights)

    def save(self, path: Path) -> None:
        """Write the weights (``.h5``: HDF5, else ``.caffemodel``)."""
        save_weights(self.compiled, path)

    def load_hdf5(self, path: Path) -> None:
        """Load weights from an HDF5 file."""
        self.copy_from(path)

    def save_hdf5(self, path: Path, write_diff: bool = False) -> None:
        """Write the weights, and the gradients if asked for, as HDF5."""
        save_weights(self.compiled, path, diffs=write_diff)

    def share_with(self, other: Net) -> None:
        """Use the parameter arrays of ``other`` in the layers that both nets have."""
        self._live.share_with(other._live)


def _arguments(
    args: tuple[Any, ...],
    phase: int | None,
    level: int,
    stages: Collection[str] | None,
    weights: Path | None,
) -> tuple[int, int, Collection[str] | None, Path | None]:
    """Sort out pycaffe's two orders: (phase, level, stages, weights) and (weights, phase)."""
    rest = list(args)
    if rest and not isinstance(rest[0], int):
        weights = rest.pop(0)
        phase = rest.pop(0) if rest else phase
    elif rest:
        phase = rest.pop(0)
        level = rest.pop(0) if rest else level
        stages = rest.pop(0) if rest else stages
        weights = rest.pop(0) if rest else weights
    if rest:
        raise TypeError(f"Net() got {len(rest)} arguments too many: {rest}")
    if phase not in (0, 1):
        raise TypeError("Net(file, phase): phase must be caffe.TRAIN or caffe.TEST")
    return phase, level, stages, weights
