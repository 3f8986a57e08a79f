"""What the original Layrub allocates for a net: its own row in every comparison.

Its plan is made once, when the net is built, from the types of the layers. In the words of that
code, ReLU, Dropout, BatchNorm and Scale are *in place*, Split and SoftmaxWithLoss are themselves,
all others are *rest* layers.

Between layers. The tops of the rest layers, in order, take the first block that is free or a new
one; a block is as large as its largest content. A blob's block is free when all its readers have
been placed (the reader of a Split's top counts for the Split's bottom) and two more rest layers
as well. The bottoms of all Splits but the first then move to two buffers in turn. Feature maps go
to the host after their last reader in forward and come back for backward.

Within a layer. A gradient takes the place of its feature map where the layer that makes the map is
InnerProduct, Pooling, Convolution, Concat or Eltwise, and the reader one of these, Split or
SoftmaxWithLoss. The k-th tops of all Splits share one gradient, for k below the smallest number
of tops; further ones have their own. All other gradients are made when needed and freed after the
backward of the layer below.

Shared by all layers: the mask of ReLU (a byte per element), temp and x_norm (data and gradient) of
BatchNorm, temp of Scale. All else that layers keep, and parameters, are as in Caffe.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from layrubnet.engine.graph import Graph, Node, Value
from layrubnet.memory.caffe_bytes import caffe_bytes
from layrubnet.memory.caffe_internals import works_in_place

_IN_PLACE = frozenset({"ReLU", "Dropout", "BatchNorm", "Scale"})
_NOT_REST = _IN_PLACE | {"SoftmaxWithLoss", "Split"}
_OVERWRITTEN = frozenset({"InnerProduct", "Pooling", "Convolution", "Concat", "Eltwise"})
_OVERWRITES = _OVERWRITTEN | {"Split", "SoftmaxWithLoss"}
_SHARES_INTERNALS = frozenset({"BatchNorm", "Scale"})


@dataclass(frozen=True)
class LayrubBytes:
    """Device bytes by category; ``host``: the pinned copies, one for all that ever leaves.

    ``offloaded`` feature maps and ``offloaded_internals`` leave, and return, once an iteration.
    """

    blocks: int
    data: int
    split_diff: int
    split_diff_own: int
    diff: int
    internal_shared: int
    internal: int
    columns: int
    vectors: int
    params: int
    param_diffs: int
    history: int
    offloaded: int
    offloaded_internals: int

    @property
    def host(self) -> int:
        """Pinned memory of the host."""
        return self.offloaded + self.offloaded_internals

    @property
    def features(self) -> int:
        """Feature maps, gradients and what the layers keep, without im2col and vectors."""
        return (
            self.data + self.split_diff + self.split_diff_own + self.diff
            + self.internal_shared + self.internal
        )  # fmt: skip

    @property
    def total(self) -> int:
        """Everything."""
        return (
            self.features + self.columns + self.vectors
            + self.params + self.param_diffs + self.history
        )  # fmt: skip


def layrub_bytes(graph: Graph, *, histories: int = 1) -> LayrubBytes:
    """Account ``graph`` (a net in phase TRAIN) as the original Layrub would hold it."""
    caffe = caffe_bytes(graph, histories=histories)
    net = _Net(graph)
    blocks, data = net.data()
    split_diff, split_diff_own = net.split_diffs()
    offloaded, offloaded_internals = net.offloads()
    return LayrubBytes(
        blocks=blocks,
        data=data,
        split_diff=split_diff,
        split_diff_own=split_diff_own,
        diff=net.other_diffs(),
        internal_shared=net.shared_internals(),
        internal=sum(row.internal for row in caffe.layers if row.type not in _SHARES_INTERNALS),
        columns=caffe.columns,
        vectors=caffe.vectors,
        params=caffe.params,
        param_diffs=caffe.param_diffs,
        history=caffe.history,
        offloaded=offloaded,
        offloaded_internals=offloaded_internals,
    )


class _Net:
    """The net as Layrub sees it: layers by type, blobs by name (versions in place are one)."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = graph.nodes
        self.maker: dict[str, Node] = {}
        self.nbytes: dict[str, int] = {}
        for node in self.nodes:
            for value in node.tops:
                if not value.version:
                    self.maker[value.name] = node
                    self.nbytes[value.name] = 4 * value.type.count
        self.rest = [i for i, node in enumerate(self.nodes) if node.layer.type not in _NOT_REST]
        self.splits = [node for node in self.nodes if node.layer.type == "Split"]

    def _trunk(self, value: Value) -> str:
        """The blob itself, or the one that a Split has made it from."""
        maker = self.maker[value.name]
        return maker.bottoms[0].name if maker.layer.type == "Split" else value.name

    # -- between layers --------------------------------------------------------------------------

    def data(self) -> tuple[int, int]:
        """How many blocks there are, and the bytes of all feature maps."""
        references: Counter[str] = Counter()
        for node in self.nodes:
            for value in node.bottoms:
                references[value.name] += (
                    len(node.tops) if node.layer.type == "Split" else not works_in_place(node)
                )
        owners: list[str] = []
        sizes: list[int] = []
        place = {name: ("own", name) for name in self.nbytes}

        def release(name: str) -> None:
            references[name] = max(references[name] - 1, -1)

        for position, i in enumerate(self.rest):
            node = self.nodes[i]
            for value in node.tops:
                k = next((k for k, o in enumerate(owners) if references[o] == -1), len(owners))
                if k == len(owners):
                    owners.append("")
                    sizes.append(0)
                owners[k], sizes[k] = value.name, max(sizes[k], self.nbytes[value.name])
                place[value.name] = ("block", str(k))
            for value in node.bottoms:
                release(self._trunk(value))
            if i > 1:
                before = self.nodes[self.rest[position - 2]] if position > 1 else node
                for value in before.tops:
                    release(value.name)
        memory = {("block", str(k)): size for k, size in enumerate(sizes)}
        for number, split in enumerate(self.splits[1:]):
            name = split.bottoms[0].name
            place[name] = key = ("split", str(number % 2))
            memory[key] = max(memory.get(key, 0), self.nbytes[name])
        used = {
            key: memory.get(key, self.nbytes[name])
            for name, key in place.items()
            if self.maker[name].layer.type != "Split"
        }
        return len(owners), sum(used.values())

    def offloads(self) -> tuple[int, int]:
        """Bytes to the host in an iteration: feature maps, and what layers keep for backward."""
        left = Counter(self._trunk(v) for node in self.nodes for v in node.bottoms)
        features = internals = 0
        rest = set(self.rest)
        for i, node in enumerate(self.nodes):
            left.subtract(self._trunk(v) for v in node.bottoms)
            if i in rest and 0 < i < len(self.nodes) - 3:
                features += sum(
                    self.nbytes[v.name] for v in node.bottoms if not left[self._trunk(v)]
                )
            copies = {"ReLU": 1, "BatchNorm": 8, "Scale": 4}.get(node.layer.type, 0)
            if copies:
                internals += copies * node.bottoms[0].type.count
        return features, internals

    # -- gradients -------------------------------------------------------------------------------

    def _over_its_map(self) -> set[str]:
        return {
            value.name
            for i, node in enumerate(self.nodes)
            if i > 1 and node.layer.type in _OVERWRITES
            for value in node.bottoms
            if self.maker[value.name].layer.type in _OVERWRITTEN
        }

    def split_diffs(self) -> tuple[int, int]:
        """Bytes of the gradients that all Splits share, and of those they do not."""
        fewest = min((len(split.tops) for split in self.splits), default=0)
        shared, own = [0] * fewest, 0
        for split in self.splits:
            for k, value in enumerate(split.tops):
                if value.needs_gradient and k < fewest:
                    shared[k] = max(shared[k], self.nbytes[value.name])
                elif value.needs_gradient:
                    own += self.nbytes[value.name]
        return sum(shared), own

    def other_diffs(self) -> int:
        """The most bytes that gradients with memory of their own take at any moment."""
        skip = self._over_its_map() | {v.name for split in self.splits for v in split.tops}
        live: dict[str, int] = {}
        most = 0
        for node in reversed(self.nodes):
            for value in (*node.bottoms, *node.tops):
                wanted = value.needs_gradient or (node.needs_backward and value in node.tops)
                if wanted and value.name not in skip:
                    live[value.name] = self.nbytes[value.name]
            # Never more than a few: what a layer made is freed when the one below has run.
            most = max(most, sum(live.values()))
            if node.layer.type not in _NOT_REST:
                for value in node.tops:
                    live.pop(value.name, None)
        return most

    # -- within layers ---------------------------------------------------------------------------

    def shared_internals(self) -> int:
        """One buffer of each kind, as large as the largest layer needs."""
        largest: Counter[str] = Counter()

        def need(kind: str, count: int) -> None:
            largest[kind] = max(largest[kind], count)

        for node in self.nodes:
            kind = node.layer.type
            if kind not in ("ReLU", "BatchNorm", "Scale"):
                continue
            count, in_place = node.bottoms[0].type.count, works_in_place(node)
            if kind == "ReLU":
                need("mask", count)
            elif kind == "BatchNorm":
                need("temp", 4 * count)
                need("x_norm", 4 * count)
                need("x_norm.diff", 4 * count * in_place)
            else:
                need("scale", 4 * count * in_place)
        return sum(largest.values())
