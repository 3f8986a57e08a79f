"""``input: "data" input_dim: 1 ...`` (or ``input_shape``) to an Input layer put first."""

from __future__ import annotations

from typing import Any

from layrubnet.errors import PrototxtError
from layrubnet.proto import LayerParameter
from layrubnet.prototxt.positions import Positions

_AXES = 4


def upgrade_inputs(net: Any, places: Positions) -> Positions:
    """Replace the input fields of ``net`` in place; return the positions of its layers.

    Without any shape the inputs are dropped, as in Caffe: old weights files are like that.
    """
    names, dims, shapes = list(net.input), list(net.input_dim), list(net.input_shape)
    if dims and shapes:
        raise PrototxtError(
            "Must specify either input_shape OR deprecated input_dim, not both.",
            where=places.file,
        )
    if shapes and len(shapes) != len(names):
        raise PrototxtError(
            "Exactly one input_shape must be specified per input.",
            where=places.file,
            got=f"{len(names)} input and {len(shapes)} input_shape entries",
        )
    if dims and len(dims) != _AXES * len(names):
        raise PrototxtError(
            "four input_dim entries must be specified per input",
            where=places.file,
            got=f"{len(names)} input and {len(dims)} input_dim entries",
            hint="for other numbers of axes use input_shape { dim: ... }",
        )
    for field in ("input", "input_dim", "input_shape"):
        net.ClearField(field)
    if not (dims or shapes):
        return places
    layer = LayerParameter(name="input", type="Input", top=names)
    for index in range(len(names)):
        shape = layer.input_param.shape.add()
        if shapes:
            shape.CopyFrom(shapes[index])
        else:
            shape.dim.extend(dims[_AXES * index : _AXES * (index + 1)])
    net.layer.insert(0, layer)
    return places.prepend()
