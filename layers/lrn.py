"""LRN: local response normalisation, across channels or within each channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layrubnet.devices.geometry import PoolGeometry
from layrubnet.engine.contract import Contract, Flops, Needs, Scratch, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register
from layrubnet.errors import NetError


@register("LRN")
class LRN(Layer):
    """ACROSS_CHANNELS: y = x * (k + alpha / n * sum of x^2 over n neighbouring channels) ^ -beta

    WITHIN_CHANNEL: y = x * (1 + alpha * average of x^2 over an n by n window) ^ -beta, where the
    average counts the padding as zeros and ``k`` is not used. n is ``local_size``, odd. Shapes:
    x and y (N, C, H, W)::

        layer { name: "norm1" type: "LRN" bottom: "pool1" top: "norm1"
          lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 } }

    Backward keeps x only and computes the scales again. Differences from Caffe: ``engine`` is
    read and changes nothing; it may run in place (the engine then keeps x where backward
    needs it).
    """

    accepts_extent = True

    def setup(self) -> None:
        p = self.spec.lrn_param
        self.size, self.alpha, self.beta, self.k = p.local_size, p.alpha, p.beta, p.k
        self.within = p.norm_region == p.WITHIN_CHANNEL
        if self.size % 2 != 1:
            raise NetError(
                "LRN only supports odd values for local_size",
                where=self.where,
                expected="an odd number",
                got=self.size,
            )

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        (x,) = bottoms
        if len(x.shape) != 4:
            raise self.bad_shape(
                "Input must have 4 axes, corresponding to (num, channels, height, width)",
                expected="4 axes",
                got=x.shape,
            )
        self.channels, size = x.shape[1], (x.shape[2], x.shape[3])
        n, pad = self.size, self.size // 2
        self.window = PoolGeometry(size, size, (n, n), (1, 1), (pad, pad))
        work = float(x.count * (n * n if self.within else n))
        return Contract(
            tops=(x,),
            backward_data=Needs(bottoms=(0,)),
            inplace={0: 0},
            inplace_diff={0: 0},
            flops=Flops(forward=work, backward_data=2 * work),
        )

    def prepare(self, ops: Any) -> Scratch:
        size = (
            ops.lrn_within_scratch(self.window) if self.within else ops.lrn_scratch(self.channels)
        )
        return Scratch(forward=size, backward_data=size)

    def _view(self, array: Any) -> Any:
        n, c, h, w = array.shape
        return array.reshape(n * c, h, w) if self.within else array.reshape(n, c, h * w)

    def forward(self, ops: Any, io: IO) -> None:
        x, y = self._view(io.x[0]), self._view(io.y[0])
        if self.within:
            ops.lrn_within_forward(x, self.window, self.alpha, self.beta, y)
        else:
            ops.lrn_across_forward(x, self.size, self.alpha, self.beta, self.k, y)

    def backward_data(self, ops: Any, io: IO) -> None:
        x, dy, dx = self._view(io.x[0]), self._view(io.dy[0]), self._view(io.dx[0])
        if self.within:
            ops.lrn_within_backward(x, dy, self.window, self.alpha, self.beta, dx)
        else:
            ops.lrn_across_backward(x, dy, self.size, self.alpha, self.beta, self.k, dx)
