"""Activations without parameters: ReLU, Sigmoid, TanH. All may work in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import Compact, Contract, Flops, Needs, Saved, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register


@register("ReLU")
class ReLU(Layer):
    """y = max(x, 0) + negative_slope * min(x, 0)

    The gradient needs the sign of y only (for negative_slope >= 0), so x need not be kept; where
    nothing else needs y, a memory plan may keep one bit per element instead::

        layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
    """

    accepts_extent = True

    def setup(self) -> None:
        self.slope: float = self.spec.relu_param.negative_slope

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        (x,) = bottoms
        return Contract(
            tops=(x,),
            backward_data=Needs(tops=(0,)) if self.slope >= 0 else Needs(bottoms=(0,)),
            compact=_signs(x) if self.slope >= 0 else None,
            inplace={0: 0},
            inplace_diff={0: 0},
            flops=Flops(forward=x.count, backward_data=x.count),
        )

    def forward(self, ops: Any, io: IO) -> None:
        ops.relu_forward(io.x[0], self.slope, io.y[0])
        if "positive" in io.saved:
            ops.pack_positive(io.y[0], io.saved.positive)

    def backward_data(self, ops: Any, io: IO) -> None:
        if "positive" in io.saved:
            ops.relu_backward_bits(io.saved.positive, io.dy[0], self.slope, io.dx[0])
            return
        sign = io.y[0] if self.slope >= 0 else io.x[0]
        ops.relu_backward(sign, io.dy[0], self.slope, io.dx[0])


def _signs(x: TensorType) -> Compact:
    """One bit per element: is it positive?"""
    return Compact(Saved("positive", (-(-x.count // 8),), "uint8"), Needs(saved=("positive",)))


class _FromOutput(Layer):
    """An elementwise function whose derivative follows from its value: x need not be kept."""

    accepts_extent = True

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        (x,) = bottoms
        return Contract(
            tops=(x,),
            backward_data=Needs(tops=(0,)),
            inplace={0: 0},
            inplace_diff={0: 0},
            flops=Flops(forward=4.0 * x.count, backward_data=3.0 * x.count),
        )


@register("Sigmoid")
class Sigmoid(_FromOutput):
    """y = 1 / (1 + exp(-x)); dx = dy y (1 - y)

    Computed as (1 + tanh(x / 2)) / 2, as Caffe does, so that no input overflows::

        layer { name: "gate" type: "Sigmoid" bottom: "ip1" top: "gate" }
    """

    def forward(self, ops: Any, io: IO) -> None:
        ops.sigmoid_forward(io.x[0], io.y[0])

    def backward_data(self, ops: Any, io: IO) -> None:
        ops.sigmoid_backward(io.y[0], io.dy[0], io.dx[0])


@register("TanH")
class TanH(_FromOutput):
    """y = tanh(x); dx = dy (1 - y^2)

    Like Sigmoid, the gradient reads y only::

        layer { name: "tanh1" type: "TanH" bottom: "ip1" top: "ip1" }
    """

    def forward(self, ops: Any, io: IO) -> None:
        ops.tanh_forward(io.x[0], io.y[0])

    def backward_data(self, ops: Any, io: IO) -> None:
        ops.tanh_backward(io.y[0], io.dy[0], io.dx[0])
