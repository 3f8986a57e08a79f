"""Softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import Contract, Flops, Needs, Scratch, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register


@register("Softmax")
class Softmax(Layer):
    """y = exp(x - max x) / sum exp(x - max x), along ``axis`` (default 1)

    The gradient dx = (dy - sum of dy * y) * y needs y only; both directions run in place::

        layer { name: "prob" type: "Softmax" bottom: "ip2" top: "prob" }
    """

    accepts_extent = True

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        (x,) = bottoms
        axis = self.axis(self.spec.softmax_param.axis, len(x.shape))
        if x.extent and axis == 0:
            raise self.bad_shape(
                "the size of the softmax axis is known only at run time",
                expected="an axis from 1 on",
                got=axis,
            )
        self.classes, self.inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
        self.outer = math.prod(x.shape[:axis])
        return Contract(
            tops=(x,),
            backward_data=Needs(tops=(0,)),
            inplace={0: 0},
            inplace_diff={0: 0},
            flops=Flops(forward=5.0 * x.count, backward_data=4.0 * x.count),
        )

    def prepare(self, ops: Any) -> Scratch:
        need = ops.softmax_scratch(self.outer, self.classes, self.inner)
        return Scratch(forward=need, backward_data=need)

    def _folded(self, array: Any) -> Any:
        return array.reshape(array.size // (self.classes * self.inner), self.classes, self.inner)

    def forward(self, ops: Any, io: IO) -> None:
        ops.softmax_forward(self._folded(io.x[0]), self._folded(io.y[0]))

    def backward_data(self, ops: Any, io: IO) -> None:
        ops.softmax_backward(self._folded(io.y[0]), self._folded(io.dy[0]), self._folded(io.dx[0]))
