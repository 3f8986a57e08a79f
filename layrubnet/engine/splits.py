"""Insert Split layers where one value feeds several layers, with Caffe's names and order.

Caffe's rule: every use of a blob as a bottom counts, and a non-zero loss weight on the top counts
as one more use. The k-th use reads ``<blob>_<layer>_<top index>_split_<k>``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from layrubnet.engine.layer import layer_class
from layrubnet.proto import LayerParameter


def split_layer_name(layer: str, blob: str, top: int) -> str:
    """The name of the Split layer behind top ``top`` of ``layer``."""
    return f"{blob}_{layer}_{top}_split"


def loss_weight(layer: Any, top: int) -> float:
    """The loss weight of a top: given, or 1 for the first top of a loss layer, else 0."""
    if len(layer.loss_weight):
        return float(layer.loss_weight[top]) if top < len(layer.loss_weight) else 0.0
    return 1.0 if top == 0 and layer_class(layer.type).is_loss else 0.0


def insert_splits(layers: list[Any]) -> list[Any]:
    """Return a new list of LayerParameters in which every value has at most one reader."""
    producer: dict[str, tuple[int, int]] = {}
    uses: dict[tuple[int, int], int] = defaultdict(int)
    source_of: dict[tuple[int, int], tuple[int, int]] = {}
    for i, layer in enumerate(layers):
        for j, bottom in enumerate(layer.bottom):
            if bottom in producer:  # a missing producer is reported by the builder
                source_of[i, j] = producer[bottom]
                uses[producer[bottom]] += 1
        for j, top in enumerate(layer.top):
            producer[top] = (i, j)
            uses[i, j] += loss_weight(layer, j) != 0
    result: list[Any] = []
    served: dict[tuple[int, int], int] = defaultdict(int)
    for i, layer in enumerate(layers):
        copy = LayerParameter()
        copy.CopyFrom(layer)
        for j, bottom in enumerate(layer.bottom):
            source = source_of.get((i, j))
            if source is not None and uses[source] > 1:
                split = split_layer_name(layers[source[0]].name, bottom, source[1])
                copy.bottom[j] = f"{split}_{served[source]}"
                served[source] += 1
        result.append(copy)
        for j, top in enumerate(layer.top):
            if uses[i, j] > 1:
                weight = loss_weight(layer, j)
                split = split_layer_name(layer.name, top, j)
                result.append(_split(split, top, uses[i, j], weight))
                if weight:
                    # Caffe moves the loss weight to the split's first top.
                    served[i, j] += 1
                    while len(copy.loss_weight) < len(copy.top):
                        copy.loss_weight.append(0)
                    copy.loss_weight[j] = 0
    return result


def _split(name: str, bottom: str, count: int, weight: float) -> Any:
    layer = LayerParameter(name=name, type="Split", bottom=[bottom])
    for k in range(count):
        layer.top.append(f"{name}_{k}")
        if weight:
            layer.loss_weight.append(0 if k else weight)
    return layer
