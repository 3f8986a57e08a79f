"""Layers whose tops are views of their bottom: Split, Flatten, Reshape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import Alias, Contract, Needs, Shape, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register


@register("Split")
class Split(Layer):
    """Feed one blob to several layers: y_k = x (the same memory); dx = dy_0 + dy_1 + ...

    Inserted automatically where a blob has several readers, with Caffe's names::

        layer { name: "data_split" type: "Split" bottom: "data" top: "data_0" top: "data_1" }
    """

    num_tops = (1, None)
    accepts_extent = True

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        tops = len(self.spec.top)
        return Contract(
            tops=(bottoms[0],) * tops,
            alias={k: Alias(0, diff=False) for k in range(tops)},
            backward_data=Needs(),
            inplace_diff={0: 0},
        )

    def backward_data(self, ops: Any, io: IO) -> None:
        ops.sum_all(io.dy, io.dx[0])


class _View(Layer):
    """Another shape for the same elements: data and gradient share the bottom's memory.

    There is nothing to run in either direction; the engine resolves the alias when it compiles.
    """

    accepts_extent = True

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        (x,) = bottoms
        shape = self.new_shape(x.shape)
        if x.extent and shape[:1] != x.shape[:1]:
            raise self.bad_shape(
                "axis 0 has a size known only at run time and cannot be reshaped",
                expected=f"a top with {x.shape[0]} rows",
                got=shape,
            )
        return Contract(tops=(x.with_shape(*shape),), alias={0: Alias(0)}, backward_data=Needs())

    def new_shape(self, shape: Shape) -> Shape:
        """Return the top's shape for a bottom of ``shape``."""
        raise NotImplementedError


@register("Flatten")
class Flatten(_View):
    """Merge the axes from ``axis`` to ``end_axis`` (both included) into one; a view.

    (N, C, H, W) becomes (N, C H W) by default::

        layer { name: "flat" type: "Flatten" bottom: "pool5" top: "flat" }
    """

    def new_shape(self, shape: Shape) -> Shape:
        p = self.spec.flatten_param
        start, end = self.axis(p.axis, len(shape)), self.axis(p.end_axis, len(shape))
        if end < start:
            raise self.bad_shape(
                "end_axis lies before axis",
                expected=f"end_axis >= {start} for a bottom with {len(shape)} axes",
                got=f"end_axis {p.end_axis}",
            )
        return (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :])


@register("Reshape")
class Reshape(_View):
    """Replace ``num_axes`` axes from ``axis`` on by the dims of ``shape``; a view.

    A dim of 0 copies the bottom's dim at that place, one dim of -1 is inferred. By default all
    axes are replaced; ``num_axes: 0`` inserts, and a negative ``axis`` counts so that -1 is the
    end (new axes are appended there)::

        layer { name: "fold" type: "Reshape" bottom: "ip" top: "maps"
          reshape_param { shape { dim: 0 dim: 16 dim: -1 dim: 7 } } }

    Differences from Caffe: works in place too (Caffe refuses), and chains of views keep their
    gradient (there Reshape then Flatten lost it).
    """

    def setup(self) -> None:
        self.dims = tuple(self.spec.reshape_param.shape.dim)
        if self.dims.count(-1) > 1:
            raise self.bad_shape(
                "new shape contains multiple -1 dims",
                expected="one dim of -1 at most",
                got=self.dims,
            )
        if any(d < -1 for d in self.dims):
            raise self.bad_shape(
                "new shape contains a negative dim",
                expected="dims >= 0, or -1 to infer one",
                got=self.dims,
            )

    def new_shape(self, shape: Shape) -> Shape:
        start, end = self._replaced(shape)
        dims = list(self.dims)
        for i, dim in enumerate(dims):
            if dim == 0:
                if start + i >= len(shape):
                    raise self.bad_shape(
                        "new shape contains a 0, but there is no corresponding bottom axis to copy",
                        expected=f"0 among the first {len(shape) - start} dims only",
                        got=self.dims,
                    )
                dims[i] = shape[start + i]
        new = [*shape[:start], *dims, *shape[end:]]
        count = math.prod(shape)
        if -1 in dims:
            position, known = start + dims.index(-1), -math.prod(new)
            if known == 0 or count % known:
                raise self.bad_shape(
                    f"bottom count ({count}) must be divisible by the product of the specified "
                    f"dimensions ({known})",
                    expected=f"a shape for {count} elements {shape}",
                    got=tuple(new),
                )
            new[position] = count // known
        if math.prod(new) != count:
            raise self.bad_shape(
                "output count must match input count",
                expected=f"{count} elements, as the bottom {shape}",
                got=f"{math.prod(new)} elements {tuple(new)}",
                hint="a dim of -1 is inferred, a dim of 0 copied from the bottom",
            )
        return tuple(new)

    def _replaced(self, shape: Shape) -> tuple[int, int]:
        p = self.spec.reshape_param
        start = self.axis(p.axis, len(shape), end=True)
        if p.num_axes < -1:
            raise self.bad_shape(
                "num_axes must be >= 0, or -1 for all", expected=">= -1", got=p.num_axes
            )
        end = len(shape) if p.num_axes == -1 else start + p.num_axes
        if end > len(shape):
            raise self.bad_shape(
                f"end_axis = axis + num_axes is out of range: {end}",
                expected=f"at most {len(shape)} for the bottom {shape}",
                got=f"axis {p.axis}, num_axes {p.num_axes}",
            )
        return start, end
