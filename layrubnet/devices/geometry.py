"""The geometry of sliding windows: what a convolution plan needs to know, on any device."""

from __future__ import annotations

import math
from dataclasses import dataclass

from layrubnet.engine.contract import Shape


@dataclass(frozen=True)
class ConvGeometry:
    """A convolution of x (batch, channels, \\*size) to y (batch, outputs, \\*out_size).

    Weights are (outputs, channels / group, \\*kernel). The tuples have one entry per spatial axis.
    """

    batch: int
    channels: int
    outputs: int
    size: Shape
    out_size: Shape
    kernel: Shape
    stride: Shape
    pad: Shape
    dilation: Shape
    group: int = 1

    @property
    def weight_shape(self) -> Shape:
        """(outputs, channels / group, \\*kernel)"""
        return (self.outputs, self.channels // self.group, *self.kernel)

    @property
    def padded_size(self) -> Shape:
        """The spatial size of x with its padding."""
        return tuple(s + 2 * p for s, p in zip(self.size, self.pad, strict=True))

    @property
    def positions(self) -> int:
        """Places where the kernel is applied, per image."""
        return math.prod(self.out_size)

    @property
    def column_rows(self) -> int:
        """Rows of the column matrix, all groups together: channels * kernel."""
        return self.channels * math.prod(self.kernel)

    @property
    def pointwise(self) -> bool:
        """The columns are x itself: kernel 1, stride 1, no padding."""
        ones = (1,) * len(self.kernel)
        return self.kernel == ones and self.stride == ones and not any(self.pad)

    @property
    def flops(self) -> float:
        """Floating-point operations of one pass (forward, or either gradient)."""
        return 2.0 * self.batch * self.outputs * self.positions * self.column_rows / self.group
