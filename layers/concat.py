"""Concat: join blobs along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import Alias, Contract, Needs, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register
from layrubnet.layers.cut_axis import as_rows, cut_axis


@register("Concat")
class Concat(Layer):
    """y = the bottoms one after the other along ``axis`` (1 by default)

    All other axes must agree. The gradient of each bottom is its part of dy; no data is needed.
    With one bottom the top is a view of it::

        layer { name: "both" type: "Concat" bottom: "a" bottom: "b" top: "both"
          concat_param { axis: 1 } }

    ``concat_dim`` is the old name of ``axis``.
    """

    num_bottoms = (1, None)
    accepts_extent = True

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        x = bottoms[0]
        axis = cut_axis(self, self.spec.concat_param, "concat_dim", x.shape)
        if len(bottoms) == 1:
            return Contract(tops=(x,), alias={0: Alias(0)}, backward_data=Needs())
        for i, other in enumerate(bottoms[1:], 1):
            same = len(other.shape) == len(x.shape) and all(
                n == m
                for j, (n, m) in enumerate(zip(x.shape, other.shape, strict=True))
                if j != axis
            )
            if not same:
                raise self.bad_shape(
                    "All inputs must have the same shape, except at concat_axis "
                    f"(bottom {i}, {self.spec.bottom[i]!r})",
                    expected=f"{x.shape} except at axis {axis}",
                    got=other.shape,
                )
        if any(b.extent for b in bottoms) and (axis == 0 or len({b.extent for b in bottoms}) > 1):
            raise self.bad_shape(
                "blobs with a size known only at run time can be joined only with their like",
                expected="axis >= 1 and bottoms of the same run-time extent",
                got=f"axis {axis}",
            )
        self.cut = axis
        self.widths = [math.prod(b.shape[axis:]) for b in bottoms]
        joined = sum(b.shape[axis] for b in bottoms)
        return Contract(
            tops=(x.with_shape(*x.shape[:axis], joined, *x.shape[axis + 1 :]),),
            backward_data=Needs(),
        )

    def forward(self, ops: Any, io: IO) -> None:
        y, begin = as_rows(io.y[0], self.cut), 0
        for x, width in zip(io.x, self.widths, strict=True):
            ops.copy_columns(as_rows(x, self.cut), 0, y, begin, width)
            begin += width

    def backward_data(self, ops: Any, io: IO) -> None:
        dy, begin = as_rows(io.dy[0], self.cut), 0
        for dx, width in zip(io.dx, self.widths, strict=True):
            if dx is not None:
                ops.copy_columns(dy, begin, as_rows(dx, self.cut), 0, width)
            begin += width
