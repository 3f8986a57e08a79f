"""Walk arrays in blocks that fit the cache: elementwise chains need no large temporaries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

Array = np.ndarray

BLOCK = 16384
"""Elements per block: with four float32 operands a block stays within a 256 KiB cache."""


def flat(array: Array) -> Array:
    """A one-dimensional view of a contiguous array (an error if that would copy)."""
    view = array.view()
    view.shape = (array.size,)
    return view


def blocks(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Yield matching one-dimensional blocks of contiguous arrays of equal size."""
    size = arrays[0].size
    if size <= BLOCK:
        yield tuple(flat(a) for a in arrays)
        return
    views = [flat(a) for a in arrays]
    for begin in range(0, size, BLOCK):
        yield tuple(v[begin : begin + BLOCK] for v in views)
