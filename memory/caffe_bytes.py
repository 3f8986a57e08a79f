"""How many bytes BVLC Caffe takes to train a net: the row that every strategy is compared with.

Caffe allocates lazily and frees nothing, so after one iteration it holds, until the end,

* data of every blob once (a layer in place adds none; Split, Flatten and Reshape share theirs,
  and so do Concat and Slice with one bottom and top);
* gradients of every blob that backward writes, Split tops included, each on its own;
* what the layers keep for themselves, see :mod:`layrubnet.memory.caffe_internals`;
* parameters, as large a gradient for each (statistics too: the solver clears them all) and the
  solver's histories.

Data layers read ahead; their top is one of the ``prefetch`` batches, the others are extra. Not
counted: the CUDA context, the work spaces of cuDNN (which replace im2col's columns there), and
parameters again when a net is tested during training.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from layrubnet.engine.graph import Graph, Node, Value
from layrubnet.memory.caffe_internals import internals, works_in_place

_WORD = 4
_VIEWS = frozenset({"Flatten", "Reshape"})
_READS_AHEAD = frozenset({"Data", "ImageData", "WindowData"})


@dataclass(frozen=True)
class LayerBytes:
    """One layer: its tops (that no earlier layer owns), what it keeps, the parameters it owns.

    ``data``, ``diff``: blobs; ``split_diff``: gradients of Split tops; ``internal``: maps that
    the layer keeps; ``columns``: for im2col; ``vectors``: small things; ``prefetch``: batches read
    ahead; ``params``: parameters and statistics, once.
    """

    name: str
    type: str
    data: int = 0
    diff: int = 0
    split_diff: int = 0
    internal: int = 0
    columns: int = 0
    vectors: int = 0
    prefetch: int = 0
    params: int = 0

    @property
    def features(self) -> int:
        """All but parameters: what a memory strategy can save."""
        return (
            self.data + self.diff + self.split_diff + self.internal + self.columns
            + self.vectors + self.prefetch
        )  # fmt: skip


@dataclass(frozen=True)
class CaffeBytes:
    """The bytes of a net in Caffe by category (as in :class:`LayerBytes`), and layer by layer.

    ``params``, ``param_diffs`` and ``history`` are those of the whole net.
    """

    layers: tuple[LayerBytes, ...]
    data: int
    diff: int
    split_diff: int
    internal: int
    columns: int
    vectors: int
    prefetch: int
    params: int
    param_diffs: int
    history: int

    @property
    def features(self) -> int:
        """All but parameters, their gradients and histories."""
        return sum(layer.features for layer in self.layers)

    @property
    def total(self) -> int:
        """Everything."""
        return self.features + self.params + self.param_diffs + self.history


def caffe_bytes(graph: Graph, *, histories: int = 1) -> CaffeBytes:
    """Account ``graph`` as Caffe would hold it.

    ``histories``: arrays per parameter that the solver keeps (1 for SGD with momentum, 2 for Adam;
    0 for a net that is not trained: then parameters have no gradients either, in phase TEST).
    """
    written = _with_gradient(graph)
    owned = {param.owner: 0 for param in graph.params}
    for param in graph.params:
        owned[param.owner] += _WORD * math.prod(param.shape)
    rows = tuple(_row(node, graph.phase, written, owned.get(node.name, 0)) for node in graph.nodes)

    def whole(category: str) -> int:
        return sum(getattr(row, category) for row in rows)

    params = whole("params")
    return CaffeBytes(
        layers=rows,
        data=whole("data"),
        diff=whole("diff"),
        split_diff=whole("split_diff"),
        internal=whole("internal"),
        columns=whole("columns"),
        vectors=whole("vectors"),
        prefetch=whole("prefetch"),
        params=params,
        param_diffs=params if graph.phase == "TRAIN" else 0,
        history=histories * params,
    )


def _with_gradient(graph: Graph) -> set[str]:
    """The blobs, by name, whose gradient some layer or the loss writes in backward."""
    written: set[str] = set()
    for node in graph.nodes:
        for value, weight in zip(node.tops, node.loss_weights, strict=True):
            if weight or value.needs_gradient:
                written.add(value.name)
    return written


def _row(node: Node, phase: str, written: set[str], params: int) -> LayerBytes:
    kind = node.layer.type
    fresh = [value for value in node.tops if not value.version]
    data, diff = _bytes(fresh), _bytes([v for v in fresh if v.name in written])
    shares = _shares_memory(node)
    kept = internals(node, phase)
    return LayerBytes(
        name=node.name,
        type=kind,
        data=0 if shares or kind == "Split" else data,
        diff=0 if shares or kind == "Split" else diff,
        split_diff=diff if kind == "Split" else 0,
        internal=_WORD * kept.maps,
        columns=_WORD * kept.columns,
        vectors=_WORD * kept.vectors,
        prefetch=(node.layer.spec.data_param.prefetch - 1) * data if kind in _READS_AHEAD else 0,
        params=params,
    )


def _shares_memory(node: Node) -> bool:
    kind = node.layer.type
    alone = len(node.bottoms) == len(node.tops) == 1 and not works_in_place(node)
    return kind in _VIEWS or (kind in ("Concat", "Slice") and alone)


def _bytes(values: list[Value]) -> int:
    return sum(_WORD * value.type.count for value in values)
