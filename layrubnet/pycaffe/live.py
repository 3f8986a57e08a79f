"""A compiled net whose inputs may change their shapes, and whose blobs all have a gradient.

:class:`LiveNet` stands behind the faces that users see. It compiles the net again when an input
gets another shape (parameters, histories and statistics stay in their arrays), runs it in part or
whole, and invents zeros for gradients that the program does not compute.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from layrubnet.engine.graph import Graph
from layrubnet.engine.net import CompiledNet
from layrubnet.errors import DataError, NetError, ShapeError, nearest
from layrubnet.pycaffe.versions import Versions

Shape = tuple[int, ...]
_log = logging.getLogger("layrubnet")
_KEPT = ("param", "param_diff", "history", "state", "scalars")


@dataclass
class LayerInfo:
    """A layer as the net's definition has it; ``first`` to ``last`` are its nodes in the graph."""

    type: str
    bottoms: list[str]
    tops: list[str]
    first: int
    last: int


def described(graph: Graph) -> dict[str, LayerInfo]:
    """The layers in order, automatic splits included, composites (LSTM) as one layer each."""
    specs = {spec.name: spec for spec in graph.source.layer}
    found: dict[str, LayerInfo] = {}
    for n, node in enumerate(graph.nodes):
        outer = node.name.split("/")[0]
        if outer in graph.composites and node.name.startswith(f"{outer}/"):
            spec = specs[outer]
            info = LayerInfo(spec.type, list(spec.bottom), list(spec.top), n, n)
            found.setdefault(outer, info).last = n
        else:
            bottoms, tops = ([v.name for v in vs] for vs in (node.bottoms, node.tops))
            found[node.name] = LayerInfo(node.layer.type, bottoms, tops, n, n)
    return found


class LiveNet:
    """Wraps a :class:`CompiledNet`; ``on_rebuild`` hears of every net that takes its place."""

    def __init__(
        self, net: CompiledNet, on_rebuild: Callable[[CompiledNet], None] | None = None
    ) -> None:
        self._on_rebuild = on_rebuild
        self._pending: dict[str, Any] = {}
        self._zeros: dict[str, Any] = {}
        self._memory: tuple[Any, Any] | None = None
        self._adopt(net)

    def adopt(self, net: CompiledNet) -> None:
        """Stand for ``net`` from now on, a compilation of the same definition."""
        self._pending.clear()
        self._adopt(net)
        if self._memory is not None:
            self.set_arrays(*self._memory)

    def _adopt(self, net: CompiledNet) -> None:
        self.net = net
        self.stored = net.graph.layer_blobs()
        self.shapes = net.graph.blob_shapes()
        self.layers = described(net.graph)
        self.names = list(self.layers)
        inner = tuple(f"{name}/" for name in net.graph.composites)
        self.blob_names = [name for name in net.blob_names if not name.startswith(inner)]
        self._versions = Versions(net)

    # -- arrays ----------------------------------------------------------------------------------

    def data(self, blob: str) -> Any:
        """The data of a blob: a live array."""
        return self._pending[blob] if blob in self._pending else self.net.data(blob)

    def diff(self, blob: str) -> Any:
        """The gradient of a blob: a live array, or zeros that belong to nothing."""
        if blob in self.net.program.blob_diff and blob not in self._pending:
            return self.net.diff(blob)
        return self._zero(f"blob {blob}", tuple(self.data(blob).shape))

    def param_data(self, layer: str, index: int) -> Any:
        """Blob ``index`` of a layer: a live array with the shape that this layer sees."""
        param = self.stored[layer][index]
        return self.net.param_data(param.name).reshape(self.shapes[layer][index])

    def param_diff(self, layer: str, index: int) -> Any:
        """The gradient of a layer's blob: a live array, or zeros that belong to nothing."""
        param, shape = self.stored[layer][index], self.shapes[layer][index]
        if param.name in self.net.program.param_diff:
            return self.net.param_diff(param.name).reshape(shape)
        return self._zero(f"param {param.name}", shape)

    def _zero(self, key: str, shape: Shape) -> Any:
        array = self._zeros.get(key)
        if array is None or array.shape != shape:
            array = self._zeros[key] = np.zeros(shape, np.float32)
        return array

    def clear_param_diffs(self) -> None:
        """Set all gradients of parameters to 0."""
        for name in self.net.program.param_diff:
            self.net.device.ops.fill(self.net.param_diff(name), 0.0)
        for key, array in self._zeros.items():
            if key.startswith("param "):
                array[...] = 0

    # -- running ---------------------------------------------------------------------------------

    def forward(self, start: str | None = None, end: str | None = None) -> float:
        """Run forward from layer ``start`` to ``end``, both included; return their loss."""
        self.reshape()
        if not self.net.plan.keeps_everything:
            return self.net.forward(start=start, end=end)
        first, last = self._range(start, end)
        self._versions.before_forward(first, last)
        if start is end is None:
            return self.net.forward()
        names = self.net.layer_names
        self.net.forward(start=names[first], end=names[last])
        self._versions.after_forward(first, last)
        return self._loss(first, last)

    def _loss(self, first: int, last: int) -> float:
        """The weighted losses of some nodes: the program sums them for the whole net only."""
        return sum(
            weight * float(self.net.device.download(self.net.data(value.name)).sum())
            for node in self.net.graph.nodes[first : last + 1]
            for value, weight in zip(node.tops, node.loss_weights, strict=True)
            if weight
        )

    def step(self) -> float:
        """Forward and backward in one, as a memory plan needs it; return the loss."""
        self.reshape()
        loss = self.net.step(iteration=self.net.iteration)
        self.net.iteration += 1
        return loss

    def backward(self, start: str | None = None, end: str | None = None) -> None:
        """Run backward from layer ``start`` down to ``end``; gradients of parameters add up."""
        if not self.net.train:
            raise NetError(
                "this net was compiled without backward",
                hint="test nets of a solver only run forward; open the file as a net of its own",
            )
        self.reshape()
        first, last = self._range(end, start)
        self._versions.before_backward(first, last)
        names = self.net.layer_names
        self.net.backward(start=names[last], end=names[first], accumulate=True)
        self._versions.after_backward(first, last)

    def _range(self, first: str | None, last: str | None) -> tuple[int, int]:
        """The indices of the nodes that layers ``first`` to ``last`` consist of."""
        return (
            self._layer(first).first if first is not None else 0,
            self._layer(last).last if last is not None else len(self.net.graph.nodes) - 1,
        )

    def _layer(self, name: str) -> LayerInfo:
        if name not in self.layers:
            close = nearest(name, self.layers, 3)
            raise NetError(
                f"the net has no layer {name!r}",
                hint=f"did you mean {' or '.join(close)}?" if close else "",
            )
        return self.layers[name]

    # -- shapes ----------------------------------------------------------------------------------

    def reshape_input(self, blob: str, shape: Shape) -> None:
        """Give an input another shape, at once for its array, for the net at ``reshape``."""
        old = self.data(blob)
        if tuple(old.shape) == shape:
            return
        if blob not in {v.name for v in self.net.graph.inputs()}:
            raise NetError(
                f"blob {blob!r} is not an input: its shape follows from the layers before it",
                expected=f"{tuple(old.shape)}, or an input: "
                + (", ".join(v.name for v in self.net.graph.inputs()) or "the net has none"),
                got=shape,
            )
        if any(dim < 0 for dim in shape):
            raise ShapeError(f"blob {blob!r} cannot have a negative size", got=shape)
        device = self.net.device
        memory = device.allocate(4 * math.prod(shape))
        array = device.view(memory, 0, shape, "float32")
        # As in Caffe, as much of the content as fits stays where it was.
        kept = min(math.prod(shape), math.prod(old.shape))
        device.upload(array.reshape(-1)[:kept], device.download(old).reshape(-1)[:kept])
        self._pending[blob] = array

    def reshape(self) -> None:
        """Compile the net for the shapes its inputs have now, if one has changed."""
        if self._pending:
            shapes = {name: tuple(array.shape) for name, array in self._pending.items()}
            self._rebuild(shapes, {})
            self._pending.clear()

    def share_with(self, other: LiveNet) -> None:
        """Use the parameter arrays of ``other`` in every layer that both have."""
        theirs = other.net.graph.layer_blobs()
        arrays: dict[str, Any] = {}
        for layer, params in self.net.graph.layer_blobs().items():
            for index, (mine, source) in enumerate(
                zip(params, theirs.get(layer, ()), strict=False)
            ):
                if mine.shape != source.shape:
                    raise ShapeError(
                        f"Cannot share param {index} weights from layer '{layer}'; shape mismatch",
                        expected=f"{mine.shape} (this net)",
                        got=f"{source.shape} (the other net)",
                    )
                arrays[self.net.program.param_data[mine.name].buffer] = other.net.param_data(
                    source.name
                )
        self._rebuild({}, arrays)

    def _rebuild(self, shapes: Mapping[str, Shape], arrays: Mapping[str, Any]) -> None:
        old = self.net
        buffers = old.program.buffers
        kept = {n: a for n, a in old.executor.persistent.items() if buffers[n].kind in _KEPT}
        for value in old.graph.inputs():
            operand = old.program.blob_data[value.name]
            kept[operand.buffer] = self._pending.get(
                value.name, old.executor.arrays[operand.buffer]
            )
        cursors = {node.name: node.layer.cursor() for node in old.data_nodes()}
        net = CompiledNet(
            reshaped_param(old.param, shapes),
            old.phase,
            device=old.device,
            seed=old.seed,
            rank=old.rank,
            rule=old.rule,
            train=old.train,
            seeds=old.seeds,
            where=old.where,
            arrays={**kept, **arrays},
            memory=old.memory,
        )
        if not net.plan.keeps_everything:
            _log.info(
                "new memory plan for new input shapes: %d bytes (before: %d)",
                net.plan.nbytes,
                old.plan.nbytes,
            )
        try:
            _check_params(old, net)
        except ShapeError:
            net.close()
            raise
        old.close()
        net.iteration = old.iteration
        self._adopt(net)
        if self._memory is not None:
            self.set_arrays(*self._memory)
        for node in net.data_nodes():
            if cursors.get(node.name):
                node.layer.seek(cursors[node.name])
        if self._on_rebuild is not None:
            self._on_rebuild(net)

    # -- data ------------------------------------------------------------------------------------

    def set_arrays(self, data: Any, labels: Any) -> None:
        """Give the MemoryData layer its rows."""
        for node in self.net.data_nodes():
            if node.layer.type == "MemoryData":
                node.layer.set_arrays(data, labels)  # type: ignore[attr-defined]
                self._memory = (data, labels)
                return
        raise DataError(
            "set_input_arrays needs a net with a MemoryData layer",
            hint='layer { type: "MemoryData" top: "data" top: "label" memory_data_param { ... } }',
        )


def reshaped_param(net: Any, shapes: Mapping[str, Shape]) -> Any:
    """A copy of a net whose Input layers give the named blobs these shapes."""
    copy = type(net)()
    copy.CopyFrom(net)
    for layer in copy.layer:
        if layer.type != "Input" or not any(top in shapes for top in layer.top):
            continue
        given = [tuple(s.dim) for s in layer.input_param.shape]
        if len(given) == 1:
            given *= len(layer.top)
        layer.input_param.ClearField("shape")
        for top, old in zip(layer.top, given, strict=True):
            layer.input_param.shape.add().dim.extend(shapes.get(top, old))
    return copy


def _check_params(old: CompiledNet, new: CompiledNet) -> None:
    """No parameter may need another shape: what has been learnt would not fit."""
    before = {p.name: p.shape for p in old.graph.params}
    for p in new.graph.params:
        if before[p.name] != p.shape:
            where = next(node.layer.where for node in new.graph.nodes if node.name == p.owner)
            raise ShapeError(
                f"the new input shape does not suit blob {p.index} of the layer",
                where=where,
                expected=f"a bottom for which the blob has shape {before[p.name]}",
                got=f"one for which it would have shape {p.shape}",
                hint="fully connected layers fix the size of their input; "
                "convolutions of the same extent do not",
            )
