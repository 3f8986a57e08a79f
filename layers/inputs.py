"""Input: blobs that the user fills."""

from __future__ import annotations

from collections.abc import Sequence

from layrubnet.engine.contract import Contract, TensorType
from layrubnet.engine.layer import Layer, register


@register("Input")
class Input(Layer):
    """Tops of given shapes, filled from outside before each forward.

    ``shape`` is given once for all tops or once per top::

        layer { name: "data" type: "Input" top: "data"
          input_param { shape { dim: 1 dim: 3 dim: 224 dim: 224 } } }
    """

    num_bottoms = (0, 0)
    num_tops = (1, None)

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        shapes = [tuple(s.dim) for s in self.spec.input_param.shape]
        count = len(self.spec.top)
        if len(shapes) not in (1, count):
            raise self.bad_shape(
                "Must specify 'shape' once, or once per top blob",
                expected=f"1 or {count} shapes",
                got=f"{len(shapes)} shapes",
            )
        types = tuple(TensorType(s) for s in shapes)
        return Contract(tops=types if len(types) == count else types * count)
