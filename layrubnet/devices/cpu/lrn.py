"""Local response normalisation on the CPU, tile by tile; nothing is kept between the passes.

Every tile is read in full before it is written, so y may be x and dx may be dy.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from layrubnet.devices.cpu.blocks import BLOCK, Array
from layrubnet.devices.cpu.pooling import PoolingOps
from layrubnet.devices.geometry import PoolGeometry

Tile = tuple[slice, slice, slice]


def _tiles(shape: tuple[int, ...]) -> Iterator[Tile]:
    """Parts of (images, channels, positions) with all channels and about BLOCK elements."""
    images, channels, positions = shape
    wide = max(1, min(positions, BLOCK // channels))
    many = max(1, BLOCK // (channels * positions))
    for n in range(0, images, many):
        for p in range(0, positions, wide):
            yield slice(n, n + many), slice(None), slice(p, p + wide)


def _sum_neighbours(values: Array, size: int, total: Array) -> None:
    """total[:, c] = sum of values[:, c - size // 2 ... c + size // 2], inside the channels"""
    channels, radius = values.shape[1], size // 2
    total.fill(0)
    for shift in range(-radius, radius + 1):
        begin, end = max(0, -shift), min(channels, channels - shift)
        if begin < end:
            target = total[:, begin:end]
            np.add(target, values[:, begin + shift : end + shift], out=target)


def _negative_power(s: Array, beta: float, y: Array) -> None:
    """y = s ^ -beta (y is not s)"""
    if beta == 0.75:
        # s^(1/4) / s: two square roots are many times faster than a power.
        np.sqrt(s, out=y)
        np.sqrt(y, out=y)
        np.divide(y, s, out=y)
    else:
        np.power(s, np.float32(-beta), out=y)


class LrnOps(PoolingOps):
    """Across channels: x (images, channels, positions); within: x (planes, height, width)."""

    def lrn_scratch(self, channels: int) -> int:
        """Bytes of scratch for the passes across channels."""
        return 3 * (4 * max(BLOCK, channels) + 64)

    def _lrn_temporaries(self, tile: Array, count: int) -> list[Array]:
        return [self.scratch(tile.shape) for _ in range(count)]

    def lrn_across_forward(
        self, x: Array, size: int, alpha: float, beta: float, k: float, y: Array
    ) -> None:
        """y = x * s ^ -beta with s = k + alpha / size * sum of x^2 over ``size`` channels"""
        for tile in _tiles(x.shape):
            xt = x[tile]
            with self.scratch.reuse():
                s, t = self._lrn_temporaries(xt, 2)
                self._lrn_scale(xt, size, alpha, k, t, s)
                _negative_power(s, beta, t)
                np.multiply(xt, t, out=y[tile])

    def _lrn_scale(
        self, x: Array, size: int, alpha: float, k: float, square: Array, s: Array
    ) -> None:
        np.multiply(x, x, out=square)
        _sum_neighbours(square, size, s)
        np.multiply(s, np.float32(alpha / size), out=s)
        np.add(s, np.float32(k), out=s)

    def lrn_across_backward(
        self, x: Array, dy: Array, size: int, alpha: float, beta: float, k: float, dx: Array
    ) -> None:
        """dx = dy * s ^ -beta - 2 alpha beta / size * x * sum of dy * y / s over the channels"""
        for tile in _tiles(x.shape):
            xt, dyt, dxt = x[tile], dy[tile], dx[tile]
            with self.scratch.reuse():
                s, t, r = self._lrn_temporaries(xt, 3)
                self._lrn_scale(xt, size, alpha, k, t, s)
                _negative_power(s, beta, t)
                np.multiply(dyt, xt, out=r)
                np.multiply(r, t, out=r)
                np.divide(r, s, out=r)
                _sum_neighbours(r, size, s)
                np.multiply(s, xt, out=s)
                np.multiply(s, np.float32(2 * alpha * beta / size), out=s)
                np.multiply(dyt, t, out=dxt)
                np.subtract(dxt, s, out=dxt)

    # -- within a channel ------------------------------------------------------------------------

    def lrn_within_scratch(self, g: PoolGeometry) -> int:
        """Bytes of scratch for the passes within a channel."""
        planes = self._lrn_planes(g)
        area = g.size[0] * g.size[1]
        return 3 * (4 * planes * area + 64) + self.pool_scratch(g, planes)

    def _lrn_planes(self, g: PoolGeometry) -> int:
        return max(1, BLOCK // (g.size[0] * g.size[1]))

    def _lrn_within_scale(
        self, x: Array, g: PoolGeometry, alpha: float, square: Array, s: Array
    ) -> None:
        np.multiply(x, x, out=square)
        self.average_pool_forward(square, g, s)
        np.multiply(s, np.float32(alpha), out=s)
        np.add(s, np.float32(1), out=s)

    def lrn_within_forward(
        self, x: Array, g: PoolGeometry, alpha: float, beta: float, y: Array
    ) -> None:
        """y = x * s ^ -beta with s = 1 + alpha * (average of x^2 over the window)"""
        step = self._lrn_planes(g)
        for begin in range(0, x.shape[0], step):
            xb = x[begin : begin + step]
            with self.scratch.reuse():
                s, t = self._lrn_temporaries(xb, 2)
                self._lrn_within_scale(xb, g, alpha, t, s)
                _negative_power(s, beta, t)
                np.multiply(xb, t, out=y[begin : begin + step])

    def lrn_within_backward(
        self, x: Array, dy: Array, g: PoolGeometry, alpha: float, beta: float, dx: Array
    ) -> None:
        """dx = dy * s ^ -beta - 2 alpha beta * x * (spread of dy * y / s over the windows)

        The spread is the gradient of the average: each window's value over its cells.
        """
        step = self._lrn_planes(g)
        for begin in range(0, x.shape[0], step):
            part = slice(begin, begin + step)
            xb, dyb, dxb = x[part], dy[part], dx[part]
            with self.scratch.reuse():
                s, t, r = self._lrn_temporaries(xb, 3)
                self._lrn_within_scale(xb, g, alpha, t, s)
                _negative_power(s, beta, t)
                np.multiply(dyb, xb, out=r)
                np.multiply(r, t, out=r)
                np.divide(r, s, out=r)
                self.average_pool_backward(r, g, s)
                np.multiply(s, xb, out=s)
                np.multiply(s, np.float32(2 * alpha * beta), out=s)
                np.multiply(dyb, t, out=dxb)
                np.subtract(dxb, s, out=dxb)
