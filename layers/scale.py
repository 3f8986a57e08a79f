"""Scale: multiply by a smaller array, and add one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import BlobDecl, Contract, Flops, Needs, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import register
from layrubnet.layers.affine_shape import Broadcast
from layrubnet.proto import FillerParameter


@register("Scale")
class Scale(Broadcast):
    """y = s x (+ b), with s and b repeated along the axes they lack

    s is learnt (one bottom; shape = ``num_axes`` axes of x from ``axis`` on, initially 1) or
    bottom 1; b is learnt where ``bias_term`` asks for it (s's shape, initially 0). Gradients:
    dx = s dy; ds = sum of x dy, and db = sum of dy, over the axes that s lacks. ds reads x, so in
    place x gets memory of its own while training, as in Caffe::

        layer { name: "scale1" type: "Scale" bottom: "bn1" top: "bn1"
          scale_param { bias_term: true } }
    """

    what = "scale"

    def setup(self) -> None:
        p = self.spec.scale_param
        self.filler = (
            p.filler if p.HasField("filler") else FillerParameter(type="constant", value=1.0)
        )
        self.bias: bool = p.bias_term

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        p = self.spec.scale_param
        shape = self.place(bottoms, p.axis, p.num_axes)
        x, learnt = bottoms[0], len(bottoms) == 1
        blobs = [BlobDecl("scale", shape, self.filler)] if learnt else []
        if self.bias:
            blobs.append(BlobDecl("bias", shape, p.bias_filler))
        return Contract(
            tops=(x,),
            blobs=tuple(blobs),
            backward_data=Needs(blobs=(0,)) if learnt else Needs(bottoms=(0, 1)),
            backward_weights=Needs(bottoms=(0,) if learnt else ()) if blobs else None,
            accumulates=True,
            inplace={0: 0},
            inplace_diff={0: 0},
            flops=Flops(2.0 * x.count, (1.0 if learnt else 3.0) * x.count, 3.0 * x.count),
        )

    def forward(self, ops: Any, io: IO) -> None:
        scale = io.w[0] if len(io.x) == 1 else io.x[1]
        shift = io.w[len(io.w) - 1].reshape(-1) if self.bias else None
        ops.channel_affine(
            self.by_channel(io.x[0]), scale.reshape(-1), shift, self.by_channel(io.y[0])
        )

    def backward_data(self, ops: Any, io: IO) -> None:
        dy = self.by_channel(io.dy[0])
        two = len(io.dx) == 2
        # The gradient of bottom 1 first: that of bottom 0 may take dy's place.
        if two and io.dx[1] is not None:
            ops.channel_dot(self.by_channel(io.x[0]), dy, io.dx[1].reshape(-1))
        if io.dx[0] is not None:
            scale = io.x[1] if two else io.w[0]
            ops.channel_affine(dy, scale.reshape(-1), None, self.by_channel(io.dx[0]))

    def backward_weights(self, ops: Any, io: IO) -> None:
        dy = self.by_channel(io.dy[0])
        learnt = len(io.x) == 1
        if learnt and io.dw[0] is not None:
            x = self.by_channel(io.x[0])
            ops.channel_dot(x, dy, io.dw[0].reshape(-1), io.accumulate)
        if self.bias and io.dw[-1] is not None:
            ops.channel_sum(dy, io.dw[-1].reshape(-1), io.accumulate)
