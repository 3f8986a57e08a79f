"""Bias: add a smaller array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import BlobDecl, Contract, Flops, Needs, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import register
from layrubnet.layers.affine_shape import Broadcast


@register("Bias")
class Bias(Broadcast):
    """y = x + b, with b repeated along the axes it lacks

    b is learnt (one bottom; shape = ``num_axes`` axes of x from ``axis`` on, initially 0) or
    bottom 1. Gradients: dx = dy, db = sum of dy over the axes that b lacks; no data is needed::

        layer { name: "bias1" type: "Bias" bottom: "x" top: "x" bias_param { axis: 1 } }
    """

    what = "bias"

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        p = self.spec.bias_param
        shape = self.place(bottoms, p.axis, p.num_axes)
        x, learnt = bottoms[0], len(bottoms) == 1
        return Contract(
            tops=(x,),
            blobs=(BlobDecl("bias", shape, p.filler),) if learnt else (),
            backward_data=Needs(),
            backward_weights=Needs() if learnt else None,
            accumulates=True,
            inplace={0: 0},
            inplace_diff={0: 0},
            flops=Flops(x.count, 0 if learnt else x.count, x.count),
        )

    def forward(self, ops: Any, io: IO) -> None:
        bias = io.w[0] if len(io.w) else io.x[1]
        ops.channel_affine(
            self.by_channel(io.x[0]), None, bias.reshape(-1), self.by_channel(io.y[0])
        )

    def backward_data(self, ops: Any, io: IO) -> None:
        if len(io.dx) == 2 and io.dx[1] is not None:
            ops.channel_sum(self.by_channel(io.dy[0]), io.dx[1].reshape(-1))
        if io.dx[0] is not None:
            ops.copy(io.dy[0], io.dx[0])

    def backward_weights(self, ops: Any, io: IO) -> None:
        ops.channel_sum(self.by_channel(io.dy[0]), io.dw[0].reshape(-1), io.accumulate)
