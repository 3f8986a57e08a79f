"""Which engine pools on the CPU: oneDNN where its library loads, else NumPy.

Both give the same values (the average to rounding), so callers need not know.
"""

from __future__ import annotations

import math

import numpy as np

from layrubnet.devices.cpu.blocks import Array
from layrubnet.devices.cpu.onednn.binding import POOL_MAX, Unsupported, onednn
from layrubnet.devices.cpu.onednn.pooling import Pool, average_kind, maximum_supported
from layrubnet.devices.cpu.pooling import PoolingOps
from layrubnet.devices.geometry import PoolGeometry

Key = tuple[PoolGeometry, int]


class FastPoolingOps(PoolingOps):
    """NumPy's pooling with oneDNN's in its place for sizes that ``pool_scratch`` was asked about.

    Other numbers of planes than planned are NumPy's.
    """

    def __init__(self) -> None:
        super().__init__()
        self._max_pools: dict[Key, Pool] = {}
        self._average_pools: dict[Key, Pool] = {}

    def pool_scratch(self, g: PoolGeometry, planes: int) -> int:
        """Bytes of scratch that each of the pooling operations takes."""
        key, dnn = (g, planes), onednn()
        if dnn is not None and planes and key not in self._average_pools:
            for pools, kind in (
                (self._max_pools, POOL_MAX if maximum_supported(g) else None),
                (self._average_pools, average_kind(g)),
            ):
                if kind is not None:
                    try:
                        pools[key] = Pool(dnn, kind, g, planes)
                    except Unsupported:
                        continue
        made = [pools[key] for pools in (self._max_pools, self._average_pools) if key in pools]
        return max([super().pool_scratch(g, planes), *(pool.nbytes for pool in made)])

    def max_pool_forward(self, x: Array, g: PoolGeometry, y: Array, mask: Array) -> None:
        """y = the largest cell of each window, mask = 1 + its index (the first one of equals)

        A window without cells gives the lowest float and mask 0; NaN in a window gives NaN.
        """
        pool = self._max_pools.get((g, x.shape[0]))
        # oneDNN passes over NaN, and gives a window of -infinity its first cell; a NaN anywhere
        # makes the least value NaN.
        if pool is None or not math.isfinite(np.minimum.reduce(x, axis=None)):
            super().max_pool_forward(x, g, y, mask)
        else:
            pool.forward(self.scratch, x, y, mask)

    def max_pool_backward(self, mask: Array, dy: Array, g: PoolGeometry, dx: Array) -> None:
        """dx = for each input, the sum of dy over the windows whose largest cell it is"""
        pool = self._max_pools.get((g, dx.shape[0]))
        if pool is None:
            super().max_pool_backward(mask, dy, g, dx)
        else:
            pool.backward(self.scratch, mask, dy, dx)

    def average_pool_forward(self, x: Array, g: PoolGeometry, y: Array) -> None:
        """y = the sum over each window / its cells, padding included (0 for an empty window)"""
        pool = self._average_pools.get((g, x.shape[0]))
        if pool is None:
            super().average_pool_forward(x, g, y)
        else:
            pool.forward(self.scratch, x, y, None)

    def average_pool_backward(self, dy: Array, g: PoolGeometry, dx: Array) -> None:
        """dx = for each input, the sum of dy / cells over the windows that hold it"""
        pool = self._average_pools.get((g, dx.shape[0]))
        if pool is None:
            super().average_pool_backward(dy, g, dx)
        else:
            pool.backward(self.scratch, None, dy, dx)
