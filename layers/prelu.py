"""PReLU: ReLU with learnt slopes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import BlobDecl, Contract, Flops, Needs, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register
from layrubnet.proto import FillerParameter

INITIAL_SLOPE = 0.25


@register("PReLU")
class PReLU(Layer):
    """y = x where x > 0, a x elsewhere, with one slope a per channel (axis 1) or one for all

    The slopes start at 0.25. Gradients: dx = dy where x > 0, a dy elsewhere; da = sum of x dy
    over x <= 0. Both read x (a slope may turn negative, so y does not tell the sign), also in
    place: x then gets memory of its own, as in Caffe::

        layer { name: "prelu1" type: "PReLU" bottom: "conv1" top: "conv1"
          param { lr_mult: 1 decay_mult: 0 } prelu_param { channel_shared: false } }
    """

    accepts_extent = True

    def setup(self) -> None:
        p = self.spec.prelu_param
        self.shared = p.channel_shared
        self.filler = (
            p.filler
            if p.HasField("filler")
            else FillerParameter(type="constant", value=INITIAL_SLOPE)
        )

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        (x,) = bottoms
        if len(x.shape) < 2:
            raise self.bad_shape(
                "Number of axes of bottom blob must be >=2.",
                expected="(N, C, ...)",
                got=x.shape,
            )
        self.channels = x.shape[1]
        self.inner = math.prod(x.shape[2:])
        return Contract(
            tops=(x,),
            blobs=(BlobDecl("slope", () if self.shared else (self.channels,), self.filler),),
            backward_data=Needs(bottoms=(0,), blobs=(0,)),
            backward_weights=Needs(bottoms=(0,)),
            accumulates=True,
            inplace={0: 0},
            inplace_diff={0: 0},
            flops=Flops(2.0 * x.count, 2.0 * x.count, 3.0 * x.count),
        )

    def _by_slope(self, array: Any) -> Any:
        """The array as (outer, slopes, inner)."""
        if self.shared:
            return array.reshape(1, 1, array.size)
        return array.reshape(array.shape[0], self.channels, self.inner)

    def forward(self, ops: Any, io: IO) -> None:
        ops.prelu_forward(self._by_slope(io.x[0]), io.w[0].reshape(-1), self._by_slope(io.y[0]))

    def backward_data(self, ops: Any, io: IO) -> None:
        x, dy, dx = (self._by_slope(a) for a in (io.x[0], io.dy[0], io.dx[0]))
        ops.prelu_backward(x, dy, io.w[0].reshape(-1), dx)

    def backward_weights(self, ops: Any, io: IO) -> None:
        x, dy = self._by_slope(io.x[0]), self._by_slope(io.dy[0])
        ops.prelu_slope_gradient(x, dy, io.dw[0].reshape(-1), io.accumulate)
