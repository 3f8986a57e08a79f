"""Operations with one value per channel, on arrays seen as (outer, channels, inner).

Outputs may be the memory of an input of the same shape. Sums are taken tile by tile in a fixed
order: over the inner axis first (pairwise), then over the outer one.
"""

from __future__ import annotations

import numpy as np

from layrubnet.devices.cpu.basic import BasicOps
from layrubnet.devices.cpu.blocks import BLOCK, Array
from layrubnet.devices.cpu.select import choose, keep
from layrubnet.devices.cpu.tiles import Tile, tile_shape, tiles


class ChannelOps(BasicOps):
    """Scale, shift and PReLU by channel, and the sums that their gradients need."""

    def channel_affine(self, x: Array, scale: Array | None, shift: Array | None, y: Array) -> None:
        """y[n, c, i] = scale[c] * x[n, c, i] + shift[c]; an absent factor is 1, a shift 0."""
        for tile in tiles(x.shape):
            source, target = x[tile], y[tile]
            if scale is not None:
                np.multiply(source, scale[tile[1], None], out=target)
                source = target
            if shift is not None:
                np.add(source, shift[tile[1], None], out=target)

    def channel_sum(self, x: Array, y: Array, accumulate: bool = False) -> None:
        """y[c] = (y[c] +) sum over n, i of x[n, c, i]"""
        if not accumulate:
            y.fill(0)
        inner_sums = self.scratch(BLOCK)
        sums = self.scratch(BLOCK)
        for tile in tiles(x.shape):
            _add_sums(x[tile], tile, inner_sums, sums, y)

    def channel_dot(self, a: Array, b: Array, y: Array, accumulate: bool = False) -> None:
        """y[c] = (y[c] +) sum over n, i of a[n, c, i] * b[n, c, i]"""
        if not accumulate:
            y.fill(0)
        products, inner_sums, sums = (self.scratch(BLOCK) for _ in range(3))
        for tile in tiles(a.shape):
            t = _shaped(products, tile)
            np.multiply(a[tile], b[tile], out=t)
            _add_sums(t, tile, inner_sums, sums, y)

    def prelu_forward(self, x: Array, slope: Array, y: Array) -> None:
        """y = x where x > 0, slope[c] * x elsewhere"""
        self._scale_negative(x, x, slope, y)

    def prelu_backward(self, x: Array, dy: Array, slope: Array, dx: Array) -> None:
        """dx = dy where x > 0, slope[c] * dy elsewhere"""
        self._scale_negative(x, dy, slope, dx)

    def _scale_negative(self, sign: Array, x: Array, slope: Array, y: Array) -> None:
        positive, lanes = self.scratch(BLOCK, "bool"), self.scratch(BLOCK, "int32")
        products = self.scratch(BLOCK)
        for tile in tiles(x.shape):
            mask, t = _shaped(positive, tile), _shaped(products, tile)
            np.greater(sign[tile], np.float32(0), out=mask)
            np.multiply(x[tile], slope[tile[1], None], out=t)
            choose(mask, x[tile], t, y[tile], _shaped(lanes, tile))

    def prelu_slope_gradient(
        self, x: Array, dy: Array, dslope: Array, accumulate: bool = False
    ) -> None:
        """dslope[c] = (dslope[c] +) sum of x * dy over the elements of c with x <= 0"""
        if not accumulate:
            dslope.fill(0)
        negative, lanes = self.scratch(BLOCK, "bool"), self.scratch(BLOCK, "int32")
        products, inner_sums, sums = (self.scratch(BLOCK) for _ in range(3))
        for tile in tiles(x.shape):
            mask, t = _shaped(negative, tile), _shaped(products, tile)
            np.less_equal(x[tile], np.float32(0), out=mask)
            np.multiply(x[tile], dy[tile], out=t)
            keep(mask, t, t, _shaped(lanes, tile))
            _add_sums(t, tile, inner_sums, sums, dslope)


def _shaped(scratch: Array, tile: Tile) -> Array:
    """Scratch of one block, seen with the shape of a tile."""
    n, c, i = tile_shape(tile)
    return scratch[: n * c * i].reshape(n, c, i)


def _add_sums(x: Array, tile: Tile, inner_sums: Array, sums: Array, y: Array) -> None:
    """y[c] += sum of the tile ``x`` over its outer and inner axis."""
    n, c, _ = tile_shape(tile)
    rows = inner_sums[: n * c].reshape(n, c)
    np.add.reduce(x, axis=2, out=rows)
    column = sums[:c]
    np.add.reduce(rows, axis=0, out=column)
    target = y[tile[1]]
    np.add(target, column, out=target)
