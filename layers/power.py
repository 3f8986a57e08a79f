"""Power: shift, scale, raise to a power."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import Alias, Contract, Flops, Needs, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register


@register("Power")
class Power(Layer):
    """y = (shift + scale x)^power; dx = dy power scale (shift + scale x)^(power - 1)

    With power 1 the gradient reads no data; with power 1, scale 1 and shift 0 the top is a view
    of the bottom and nothing runs. Otherwise x is kept::

        layer { name: "centre" type: "Power" bottom: "data" top: "data"
          power_param { scale: 0.0078125 shift: -1 } }

    Differences from Caffe: in place, the gradient is right (with power 1 Caffe squares the
    factor, with other powers it reads the overwritten bottom). The derivative is computed from x,
    not from y / x, so it is right at base 0 too.
    """

    accepts_extent = True

    def setup(self) -> None:
        p = self.spec.power_param
        self.power, self.scale, self.shift = p.power, p.scale, p.shift

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        (x,) = bottoms
        if (self.power, self.scale, self.shift) == (1, 1, 0):
            return Contract(tops=(x,), alias={0: Alias(0)}, backward_data=Needs())
        linear = self.power == 1
        constant = self.power * self.scale == 0
        cost = 2.0 * x.count if linear else 20.0 * x.count
        return Contract(
            tops=(x,),
            forward_needs=Needs(bottoms=() if constant else (0,)),
            backward_data=Needs(bottoms=() if linear or constant else (0,)),
            inplace={0: 0},
            inplace_diff={0: 0},
            flops=Flops(forward=cost, backward_data=cost),
        )

    def forward(self, ops: Any, io: IO) -> None:
        if self.power * self.scale == 0:
            # Caffe's rule: 0^0 counts as 1.
            ops.fill(io.y[0], 1.0 if self.power == 0 else self.shift**self.power)
        else:
            ops.power_forward(io.x[0], self.power, self.scale, self.shift, io.y[0])

    def backward_data(self, ops: Any, io: IO) -> None:
        if self.power * self.scale == 0:
            ops.fill(io.dx[0], 0.0)
        elif self.power == 1:
            ops.scale(io.dy[0], self.scale, io.dx[0])
        else:
            ops.power_backward(io.x[0], io.dy[0], self.power, self.scale, self.shift, io.dx[0])
