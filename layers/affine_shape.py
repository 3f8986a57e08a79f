"""Where the smaller operand of Scale and Bias lies along the axes of the larger one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import Shape, TensorType
from layrubnet.engine.layer import Layer


class Broadcast(Layer):
    """Common to Scale and Bias: one value for each place along some axes of bottom 0.

    With one bottom the values are a blob of the layer, shaped as ``num_axes`` axes of the bottom
    from ``axis`` on (-1: all that follow; 0: a single number). With two bottoms they are bottom 1,
    whose axes must equal those of bottom 0 from ``axis`` on.
    """

    num_bottoms = (1, 2)
    accepts_extent = True
    what = "operand"

    def place(self, bottoms: Sequence[TensorType], axis: int, num_axes: int) -> Shape:
        """Find the operand's shape; remember how many values there are and what follows them."""
        x = bottoms[0].shape
        if len(bottoms) == 2:
            shape = bottoms[1].shape
            # A single number fits at any axis, so Caffe ignores the axis then.
            start = self.axis(axis, len(x)) if shape else 0
            self._check_second(x, start, shape)
        else:
            start = self.axis(axis, len(x))
            shape = self._own_shape(x, start, num_axes)
        self.channels, self.single = math.prod(shape), not shape
        self.inner = math.prod(x[start + len(shape) :])
        if any(b.extent for b in bottoms) and (len(bottoms) == 2 or (shape and start == 0)):
            raise self.bad_shape(
                f"the {self.what} must not cover axis 0, whose size is known only at run time",
                expected="axis >= 1 and one bottom",
                got=f"axis {axis}, {len(bottoms)} bottoms",
            )
        return shape

    def _own_shape(self, x: Shape, start: int, num_axes: int) -> Shape:
        if num_axes < -1:
            raise self.bad_shape(
                "num_axes must be non-negative, or -1 to extend to the end of bottom[0]",
                expected=">= -1",
                got=num_axes,
            )
        end = len(x) if num_axes == -1 else start + num_axes
        if end > len(x):
            raise self.bad_shape(
                f"{self.what} blob's shape extends past bottom[0]'s shape when applied starting "
                f"with bottom[0] axis {start}",
                expected=f"num_axes <= {len(x) - start} for the bottom {x}",
                got=num_axes,
            )
        return x[start:end]

    def _check_second(self, x: Shape, start: int, shape: Shape) -> None:
        if x[start : start + len(shape)] != shape:
            raise self.bad_shape(
                f"dimension mismatch between bottom 0 and the {self.what} in bottom 1 "
                f"({self.spec.bottom[1]!r})",
                expected=f"{x[start:]}, or its first axes (axis {start} of {x})",
                got=shape,
                hint=f"{self.type.lower()}_param {{ axis: ... }} says where bottom 1 starts",
            )

    def by_channel(self, array: Any) -> Any:
        """The array as (outer, channels, inner), also when it has fewer rows than declared."""
        if self.single:
            return array.reshape(1, 1, array.size)
        rest = max(1, self.channels * self.inner)
        return array.reshape(array.size // rest, self.channels, self.inner)
