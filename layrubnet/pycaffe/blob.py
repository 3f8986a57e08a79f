"""Blobs as pycaffe shows them: live arrays for the data and the gradient."""

from __future__ import annotations

import math
from typing import Any

from layrubnet.pycaffe.live import LiveNet


class Blob:
    """A named array with a gradient. Writing into ``data`` and ``diff`` changes the net.

    The arrays are looked up at each access, so a handle stays good when the net is reshaped.
    """

    @property
    def data(self) -> Any:
        """The values: a live array."""
        raise NotImplementedError

    @property
    def diff(self) -> Any:
        """The gradient: a live array; zeros where the net computes none."""
        raise NotImplementedError

    def reshape(self, *dims: int) -> None:
        """Give the blob another shape."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape)

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def num(self) -> int:
        """Axis 0 of the shape seen with four axes."""
        return self._legacy(0)

    @property
    def channels(self) -> int:
        """Axis 1 of the shape seen with four axes."""
        return self._legacy(1)

    @property
    def height(self) -> int:
        """Axis 2 of the shape seen with four axes."""
        return self._legacy(2)

    @property
    def width(self) -> int:
        """Axis 3 of the shape seen with four axes."""
        return self._legacy(3)

    def _legacy(self, axis: int) -> int:
        shape = self.shape
        if len(shape) > 4:
            raise ValueError(f"a blob with {len(shape)} axes has no num, channels, height, width")
        return shape[axis] if axis < len(shape) else 1

    def __repr__(self) -> str:
        return f"<Blob {' x '.join(map(str, self.shape)) or 'scalar'}>"


class NetBlob(Blob):
    """A blob between layers."""

    def __init__(self, net: LiveNet, name: str) -> None:
        self._net, self.name = net, name

    @property
    def data(self) -> Any:
        return self._net.data(self.name)

    @property
    def diff(self) -> Any:
        return self._net.diff(self.name)

    def reshape(self, *dims: int) -> None:
        """Give an input blob another shape; the rest follows at the next reshape or forward."""
        self._net.reshape_input(self.name, tuple(int(d) for d in dims))


class ParamBlob(Blob):
    """A parameter (or statistic) of a layer."""

    def __init__(self, net: LiveNet, layer: str, index: int) -> None:
        self._net, self._layer, self._index = net, layer, index

    @property
    def data(self) -> Any:
        return self._net.param_data(self._layer, self._index)

    @property
    def diff(self) -> Any:
        return self._net.param_diff(self._layer, self._index)

    def reshape(self, *dims: int) -> None:
        """Parameters keep their shape: it follows from the net's definition."""
        if tuple(dims) != self.shape:
            raise ValueError(
                f"blob {self._index} of layer {self._layer!r} has shape {self.shape}, which follows"
                " from the net's definition: change it there"
            )
