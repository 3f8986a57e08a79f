"""Slice: cut a blob along an axis."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import Alias, Contract, Needs, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register
from layrubnet.layers.cut_axis import as_rows, cut_axis


@register("Slice")
class Slice(Layer):
    """y_k = the k-th piece of x along ``axis`` (1 by default)

    The pieces end at the ``slice_point``s, or are equal where none is given. dx = the gradients
    of the tops side by side, 0 for a top that gets none; no data is needed. With one top it is a
    view of the bottom::

        layer { name: "cut" type: "Slice" bottom: "label" top: "class" top: "box"
          slice_param { axis: 1 slice_point: 1 } }

    ``slice_dim`` is the old name of ``axis``.
    """

    num_tops = (1, None)
    accepts_extent = True

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        (x,) = bottoms
        axis = cut_axis(self, self.spec.slice_param, "slice_dim", x.shape)
        points = self._points(x.shape[axis], axis)
        if len(self.spec.top) == 1:
            return Contract(tops=(x,), alias={0: Alias(0)}, backward_data=Needs())
        if x.extent and axis == 0:
            raise self.bad_shape(
                "axis 0 has a size known only at run time and cannot be sliced",
                expected="axis >= 1",
                got=f"axis {axis}",
            )
        inner = math.prod(x.shape[axis + 1 :])
        sizes = [end - begin for begin, end in itertools.pairwise(points)]
        self.cut = axis
        self.widths = [size * inner for size in sizes]
        return Contract(
            tops=tuple(x.with_shape(*x.shape[:axis], n, *x.shape[axis + 1 :]) for n in sizes),
            backward_data=Needs(),
        )

    def _points(self, size: int, axis: int) -> list[int]:
        """Where the pieces begin and end along the axis."""
        given, pieces = list(self.spec.slice_param.slice_point), len(self.spec.top)
        if not given:
            if size % pieces:
                raise self.bad_shape(
                    f"Number of top blobs ({pieces}) should evenly divide input slice axis "
                    f"({size})",
                    expected=f"a size of axis {axis} divisible by {pieces}",
                    got=size,
                    hint="slice_point says where to cut into unequal pieces",
                )
            return [size // pieces * k for k in range(pieces + 1)]
        if len(given) != pieces - 1:
            raise self.bad_shape(
                "the number of slice points does not suit the number of tops",
                expected=f"{pieces - 1} slice_point (one fewer than tops)",
                got=f"{len(given)}: {given}",
            )
        points = [0, *given, size]
        if any(begin >= end for begin, end in itertools.pairwise(points)):
            raise self.bad_shape(
                "slice points must rise and lie inside the axis",
                expected=f"rising numbers from 1 to {size - 1} (axis {axis})",
                got=given,
            )
        return points

    def forward(self, ops: Any, io: IO) -> None:
        x, begin = as_rows(io.x[0], self.cut), 0
        for y, width in zip(io.y, self.widths, strict=True):
            ops.copy_columns(x, begin, as_rows(y, self.cut), 0, width)
            begin += width

    def backward_data(self, ops: Any, io: IO) -> None:
        dx, begin = as_rows(io.dx[0], self.cut), 0
        for dy, width in zip(io.dy, self.widths, strict=True):
            if dy is None:
                ops.fill_columns(dx, begin, width, 0.0)
            else:
                ops.copy_columns(as_rows(dy, self.cut), 0, dx, begin, width)
            begin += width
