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


@dataclass(frozen=True)
class PoolGeometry:
    """Pooling of planes (height, width) = ``size`` to ``out_size``, as Caffe places the windows.

    Window (i, j) covers rows i * stride - pad ... + kernel, cut to the plane; likewise columns.
    """

    size: tuple[int, int]
    out_size: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    pad: tuple[int, int]

    @property
    def mask_dtype(self) -> str:
        """The smallest type for 0 (no cell) and 1 + the row-major index of a window's cell."""
        cells = self.kernel[0] * self.kernel[1]
        return "uint8" if cells <= 255 else "uint16" if cells <= 65535 else "int32"

    @property
    def whole(self) -> bool:
        """One window, which is exactly the plane (global pooling)."""
        return self.out_size == (1, 1) and self.kernel == self.size and self.pad == (0, 0)
