"""What layers written in Python for pycaffe build on: ``caffe.Layer`` and its blobs.

A net runs them through :mod:`layrubnet.layers.python_layer`; nothing here knows the engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from layrubnet.errors import NetError
from layrubnet.pycaffe.blob import Blob


class LayerBlob(Blob):
    """A blob as a Python layer sees it: bound to arrays of the net while one of its methods runs.

    Unbound, or where the net has no such array, zeros are made on first use.
    """

    def __init__(
        self, shape: Sequence[int] = (), *, fixed: str = "", stand_in: bool = False
    ) -> None:
        """``fixed``: why the shape cannot change, once it cannot. ``stand_in``: data that only
        have the shape, without memory behind them."""
        self._shape = tuple(shape)
        self._fixed, self._stand_in = fixed, stand_in
        self._data: Any = None
        self._diff: Any = None

    def bind(self, data: Any, diff: Any) -> None:
        """Use these arrays (None: zeros made on demand)."""
        self._data, self._diff = data, diff
        if data is not None:
            self._shape = tuple(data.shape)

    def fix(self, reason: str) -> None:
        """Refuse every change of the shape from now on."""
        self._fixed, self._stand_in = reason, False

    @property
    def data(self) -> Any:
        if self._data is None:
            self._data = self._zeros()
        return self._data

    @property
    def diff(self) -> Any:
        if self._diff is None:
            self._diff = self._zeros()
        return self._diff

    def _zeros(self) -> Any:
        if self._stand_in:
            return np.broadcast_to(np.zeros((), np.float32), self._shape)
        return np.zeros(self._shape, np.float32)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def count(self) -> int:
        return math.prod(self._shape)

    def reshape(self, *dims: int) -> None:
        """Set the shape; once the net is compiled, only the same shape again."""
        shape = tuple(int(d) for d in dims)
        if shape == self._shape:
            return
        if self._fixed:
            raise NetError(self._fixed, expected=self._shape, got=shape)
        if min(shape, default=0) < 0:
            raise NetError("a blob's shape has a negative extent", got=shape)
        self._shape = shape
        self._data = self._diff = None


class BlobVec:
    """The parameters of a Python layer, in order."""

    def __init__(self) -> None:
        self._blobs: list[LayerBlob] = []
        self._closed = False

    def add_blob(self, *dims: int) -> LayerBlob:
        """Add a parameter of this shape, filled with 0; only in ``setup`` and first ``reshape``."""
        if self._closed:
            raise NetError("a layer adds its blobs in setup, not later")
        self._blobs.append(LayerBlob(tuple(int(d) for d in dims)))
        return self._blobs[-1]

    def close(self) -> None:
        """No more blobs, and no other shapes."""
        self._closed = True
        for blob in self._blobs:
            blob.fix("a parameter keeps the shape that setup gave it")

    def __len__(self) -> int:
        return len(self._blobs)

    def __getitem__(self, index: int) -> LayerBlob:
        return self._blobs[index]

    def __iter__(self) -> Iterator[LayerBlob]:
        return iter(self._blobs)


class Layer:
    """The base class of Python layers: ``class MyLayer(caffe.Layer)``.

    Subclasses define ``setup(bottom, top)``, ``reshape(bottom, top)``, ``forward(bottom, top)`` and
    ``backward(top, propagate_down, bottom)``. They find ``param_str``, ``phase`` (0 TRAIN, 1 TEST)
    and ``blobs`` set.
    """

    type = "Python"
    param_str: str
    phase: int
    blobs: BlobVec

    def setup(self, bottom: Any, top: Any) -> None:
        """Read ``param_str``, check the number of blobs, add parameters."""

    def reshape(self, bottom: Any, top: Any) -> None:
        """Give every top its shape."""

    def forward(self, bottom: Any, top: Any) -> None:
        """Write ``top[i].data`` from ``bottom[i].data``."""
        raise NetError(f"the Python layer {type(self).__name__} defines no forward()")
