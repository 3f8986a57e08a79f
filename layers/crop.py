"""Crop: cut a blob to the size of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import Contract, Needs, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register
from layrubnet.errors import NetError


@register("Crop")
class Crop(Layer):
    """y[i] = x[i + offset]: bottom 0 cut to the size of bottom 1 from ``axis`` on.

    Axes before ``axis`` are kept whole. ``offset`` is given once for all cut axes, or one per
    axis (default 0); nothing is centred. Bottom 1 gives only its size: its data is not read and
    gets no gradient::

        layer { name: "crop" type: "Crop" bottom: "up" bottom: "data" top: "score"
          crop_param { axis: 2 offset: 19 } }

    Differences from Caffe: bottoms with different numbers of axes are always an error.
    """

    num_bottoms = (2, 2)

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        x, size = bottoms
        p, axes = self.spec.crop_param, len(x.shape)
        if len(size.shape) != axes:
            raise self.bad_shape(
                "the bottoms differ in their number of axes",
                expected=f"{axes} axes",
                got=size.shape,
            )
        axis = self.axis(p.axis, axes)
        offsets = list(p.offset) or [0]
        if len(offsets) not in (1, axes - axis):
            raise NetError(
                "number of offset values specified must be equal to the number of dimensions "
                "following axis",
                where=self.where,
                expected=f"1 or {axes - axis} offsets (axis {axis} of {axes})",
                got=f"{len(offsets)} offsets",
            )
        cut = offsets * (axes - axis) if len(offsets) == 1 else offsets
        self.offsets = (0,) * axis + tuple(cut)
        for i in range(axis, axes):
            if self.offsets[i] + size.shape[i] > x.shape[i]:
                raise self.bad_shape(
                    f"the crop for dimension {i} is out of bounds",
                    expected=f"offset + size <= {x.shape[i]} on axis {i}",
                    got=f"offset {self.offsets[i]} + size {size.shape[i]}",
                    hint=f"bottoms {x.shape} and {size.shape}: lower the offset or raise `axis`",
                )
        return Contract(
            tops=(x.with_shape(*x.shape[:axis], *size.shape[axis:]),),
            forward_needs=Needs(bottoms=(0,)),
            backward_data=Needs(),
            no_gradient=(1,),
        )

    def forward(self, ops: Any, io: IO) -> None:
        ops.crop_forward(io.x[0], self.offsets, io.y[0])

    def backward_data(self, ops: Any, io: IO) -> None:
        ops.crop_backward(io.dy[0], self.offsets, io.dx[0])
