"""Layers whose tops are views of their bottom: Split (more in reshape.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import Alias, Contract, Needs, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register


@register("Split")
class Split(Layer):
    """Feed one blob to several layers: y_k = x (the same memory); dx = dy_0 + dy_1 + ...

    Inserted automatically where a blob has several readers, with Caffe's names.
    """

    num_tops = (1, None)
    accepts_extent = True

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        tops = len(self.spec.top)
        return Contract(
            tops=(bottoms[0],) * tops,
            alias={k: Alias(0, diff=False) for k in range(tops)},
            backward_data=Needs(),
            inplace_diff={0: 0},
        )

    def backward_data(self, ops: Any, io: IO) -> None:
        ops.sum_all(io.dy, io.dx[0])
