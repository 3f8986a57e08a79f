"""What Concat and Slice share: their axis, under its new and its old name, and the cut itself."""

from __future__ import annotations

import math
from typing import Any

from layrubnet.engine.contract import Shape
from layrubnet.engine.layer import Layer
from layrubnet.errors import NetError


def cut_axis(layer: Layer, param: Any, old_name: str, shape: Shape) -> int:
    """Return the axis of ``param`` (``axis``, or the old ``concat_dim``/``slice_dim``)."""
    if param.HasField(old_name):
        if param.HasField("axis"):
            raise NetError(
                f"Either axis or {old_name} should be specified; not both.",
                where=layer.where,
                got=f"axis: {param.axis} {old_name}: {getattr(param, old_name)}",
                hint="keep axis: it is the newer name of the same thing",
            )
        return layer.axis(getattr(param, old_name), len(shape))
    return layer.axis(param.axis, len(shape))


def as_rows(array: Any, axis: int) -> Any:
    """The array as a matrix: the axes before ``axis``, and the others."""
    shape = array.shape
    return array.reshape(math.prod(shape[:axis]), math.prod(shape[axis:]))
