"""Silence: use up blobs that nothing else reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import Contract, Needs, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register


@register("Silence")
class Silence(Layer):
    """No top, so that its bottoms are no outputs of the net; their gradients are 0

    Nothing runs forward::

        layer { name: "quiet" type: "Silence" bottom: "label2" }
    """

    num_bottoms = (1, None)
    num_tops = (0, 0)
    accepts_extent = True

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        return Contract(tops=(), forward_needs=Needs(), backward_data=Needs())

    def forward(self, ops: Any, io: IO) -> None:
        """Nothing is computed."""

    def backward_data(self, ops: Any, io: IO) -> None:
        for dx in io.dx:
            if dx is not None:
                ops.fill(dx, 0.0)
