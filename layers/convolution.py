"""Convolution in any number of dimensions."""

from __future__ import annotations

from typing import Any

from layrubnet.engine.io import IO
from layrubnet.engine.layer import register
from layrubnet.layers.convolution_base import ConvolutionBase


@register("Convolution")
class Convolution(ConvolutionBase):
    """y[n, o, p] = b[o] + sum over (c, k) of w[o, c, k] * x[n, c, p * stride - pad + k * dilation]

    Shapes: x (N, C, \\*S) with N all axes before ``axis`` and S any number of spatial axes;
    w (num_output, C / group, \\*kernel); b (num_output); y (N, num_output, \\*T) with
    T = floor((S + 2 pad - dilation (kernel - 1) - 1) / stride) + 1. With ``group`` g, outputs
    of the i-th of g parts see the i-th part of the channels only. Several bottoms of one shape
    give as many tops with the same weights::

        layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
          convolution_param { num_output: 20 kernel_size: 5 weight_filler { type: "xavier" } } }

    Differences from Caffe: on the CPU ``engine: CAFFE`` is NumPy, all else is oneDNN where it is
    installed; ``force_nd_im2col`` is read and changes nothing; an empty top and a dilation of 0
    are errors.
    """

    transposed = False

    def top_size(self, size: int, kernel: int, stride: int, pad: int) -> int:
        return (size + 2 * pad - kernel) // stride + 1

    def forward(self, ops: Any, io: IO) -> None:
        bias = io.w[1] if self.bias else None
        for bottom, top in zip(io.x, io.y, strict=True):
            x, y = self.batched(bottom, top=False), self.batched(top, top=True)
            with ops.scratch.reuse():
                self.plan.forward(x, io.w[0], bias, y)

    def backward_data(self, ops: Any, io: IO) -> None:
        for top_diff, bottom_diff in zip(io.dy, io.dx, strict=True):
            if bottom_diff is None:
                continue
            if top_diff is None:
                ops.fill(bottom_diff, 0.0)
                continue
            dy, dx = self.batched(top_diff, top=True), self.batched(bottom_diff, top=False)
            with ops.scratch.reuse():
                self.plan.backward_data(dy, io.w[0], dx)
