"""SigmoidCrossEntropyLoss: independent yes/no targets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import Contract, Flops, Needs, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register
from layrubnet.layers.normalisation import divisor_of, normalisation


@register("SigmoidCrossEntropyLoss")
class SigmoidCrossEntropyLoss(Layer):
    """loss = sum of -(t log p + (1 - t) log(1 - p)) / divisor, with p = 1 / (1 + exp(-x))

    Computed as max(x, 0) - x t + log(1 + exp(-|x|)), which never overflows. Bottoms: scores and
    targets in [0, 1], equally many. Gradient: (p - t) * dloss / divisor. ``loss_param`` as for
    SoftmaxWithLoss, but the default normalization is BATCH_SIZE (the size of axis 0)::

        layer { name: "loss" type: "SigmoidCrossEntropyLoss" bottom: "fc" bottom: "tags"
          top: "loss" }
    """

    num_bottoms = (2, 2)
    is_loss = True
    accepts_extent = True

    def setup(self) -> None:
        p = self.spec.loss_param
        self.ignore = p.ignore_label if p.HasField("ignore_label") else None
        self.mode = normalisation(p, default="BATCH_SIZE")

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        x, targets = bottoms
        if x.count != targets.count or x.extent != targets.extent or not x.shape:
            raise self.bad_shape(
                "SigmoidCrossEntropyLoss layer inputs must have the same count",
                expected=f"{x.count} targets, as scores {x.shape}",
                got=f"{targets.count} targets {targets.shape}",
            )
        self.inner = math.prod(x.shape[1:])
        work = 10.0 * x.count
        return Contract(
            tops=(TensorType(()),),
            backward_data=Needs(bottoms=(0, 1)),
            no_gradient=(1,),
            flops=Flops(forward=work, backward_data=work),
        )

    def _divisor(self, x: Any) -> float | None:
        return divisor_of(self.mode, x.shape[0], self.inner)

    def forward(self, ops: Any, io: IO) -> None:
        x = io.x[0]
        ops.sigmoid_cross_entropy_forward(x, io.x[1], self.ignore, self._divisor(x), io.y[0])

    def backward_data(self, ops: Any, io: IO) -> None:
        x = io.x[0]
        ops.sigmoid_cross_entropy_backward(
            x, io.x[1], self.ignore, self._divisor(x), io.dy[0], io.dx[0]
        )
