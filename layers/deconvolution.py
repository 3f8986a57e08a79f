"""Deconvolution: the transpose of a convolution, for learned upsampling."""

from __future__ import annotations

from typing import Any

from layrubnet.engine.io import IO
from layrubnet.engine.layer import register
from layrubnet.layers.convolution_base import ConvolutionBase


@register("Deconvolution")
class Deconvolution(ConvolutionBase):
    """y[n, o, q] = b[o] + sum of w[c, o, k] * x[n, c, p] over p * stride - pad + k * dilation = q

    The forward is the data gradient of a convolution and the other way round. Shapes: x (N, C,
    \\*S); w (C, num_output / group, \\*kernel); b (num_output); y (N, num_output, \\*T) with
    T = stride (S - 1) + dilation (kernel - 1) + 1 - 2 pad. There is no output padding: where the
    stride does not divide evenly, T is the smallest size that convolves to S::

        layer { name: "up" type: "Deconvolution" bottom: "score" top: "up"
          convolution_param { num_output: 21 kernel_size: 4 stride: 2 pad: 1 group: 21
            bias_term: false weight_filler { type: "bilinear" } } }

    Differences from Caffe: those of Convolution.
    """

    transposed = True

    def top_size(self, size: int, kernel: int, stride: int, pad: int) -> int:
        return stride * (size - 1) + kernel - 2 * pad

    def forward(self, ops: Any, io: IO) -> None:
        for bottom, top in zip(io.x, io.y, strict=True):
            x, y = self.batched(bottom, top=False), self.batched(top, top=True)
            with ops.scratch.reuse():
                self.plan.backward_data(x, io.w[0], y)
            if self.bias:
                ops.add_channel_bias(y.reshape(y.shape[0], self.outputs, -1), io.w[1])

    def backward_data(self, ops: Any, io: IO) -> None:
        for top_diff, bottom_diff in zip(io.dy, io.dx, strict=True):
            if bottom_diff is None:
                continue
            if top_diff is None:
                ops.fill(bottom_diff, 0.0)
                continue
            dy, dx = self.batched(top_diff, top=True), self.batched(bottom_diff, top=False)
            with ops.scratch.reuse():
                self.plan.forward(dy, io.w[0], None, dx)
