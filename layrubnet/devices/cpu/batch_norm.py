"""Batch normalisation on the CPU. Arrays are (N, C, S): samples, channels, elements of a channel.

Two passes: the mean first, then the variance of the centred values, which is accurate even where
the mean is large beside the deviation.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from layrubnet.devices.cpu.basic import BasicOps
from layrubnet.devices.cpu.blocks import BLOCK, Array

_Part = tuple[slice, slice, slice]


def _parts(shape: tuple[int, ...]) -> Iterator[_Part]:
    """Cut (N, C, S) into parts of at most BLOCK elements, whole samples or channels first."""
    samples, channels, size = shape
    length = max(1, min(size, BLOCK))
    per_channel = max(1, min(channels, BLOCK // length))
    per_sample = 1
    if per_channel == channels and length == size:
        per_sample = max(1, min(samples, BLOCK // (channels * length)))
    for n in range(0, samples, per_sample):
        for c in range(0, channels, per_channel):
            for s in range(0, size, length):
                yield (
                    slice(n, min(n + per_sample, samples)),
                    slice(c, min(c + per_channel, channels)),
                    slice(s, min(s + length, size)),
                )


class BatchNormOps(BasicOps):
    """Statistics of channels, and normalisation by them."""

    def batch_norm_scratch(self, channels: int) -> int:
        """Bytes of scratch for each operation of this family."""
        return 20 * channels + 12 * BLOCK + 1024

    def batch_norm_forward(
        self, x: Array, eps: float, y: Array, mean: Array, variance: Array
    ) -> None:
        """mean, variance = of x over samples and S; y = (x - mean) / sqrt(variance + eps)

        The variance is divided by the number of elements. y may be x.
        """
        self._channel_means(x, None, None, mean)
        self._channel_means(x, None, mean, variance)
        inverse = self.scratch(variance.shape)
        np.copyto(inverse, variance)
        self._invert(inverse, eps)
        self._normalise(x, mean, inverse, y)

    def batch_norm_backward(
        self, y: Array, dy: Array, variance: Array, eps: float, dx: Array
    ) -> None:
        """dx = (dy - mean(dy) - y * mean(dy * y)) / sqrt(variance + eps); dx may be dy"""
        mean, product = self.scratch(variance.shape), self.scratch(variance.shape)
        self._channel_means(dy, None, None, mean)
        self._channel_means(dy, y, None, product)
        inverse = self.scratch(variance.shape)
        np.copyto(inverse, variance)
        self._invert(inverse, eps)
        block = self.temporary(y)
        for part in _parts(y.shape):
            yp, dyp, dxp, channels = y[part], dy[part], dx[part], part[1]
            t = block[: yp.size].reshape(yp.shape)
            np.multiply(yp, product[channels, None], out=t)
            np.add(t, mean[channels, None], out=t)
            np.subtract(dyp, t, out=dxp)
            np.multiply(dxp, inverse[channels, None], out=dxp)

    def batch_norm_stored_forward(
        self,
        x: Array,
        mean_sum: Array,
        variance_sum: Array,
        factor: Array,
        eps: float,
        y: Array,
    ) -> None:
        """y = (x - mean) / sqrt(variance + eps), both from sums over a factor; y may be x"""
        mean, inverse = self.scratch(mean_sum.shape), self.scratch(mean_sum.shape)
        self._stored(mean_sum, factor, mean)
        self._stored(variance_sum, factor, inverse)
        self._invert(inverse, eps)
        self._normalise(x, mean, inverse, y)

    def batch_norm_stored_backward(
        self, dy: Array, variance_sum: Array, factor: Array, eps: float, dx: Array
    ) -> None:
        """dx = dy / sqrt(variance + eps); dx may be dy"""
        inverse = self.scratch(variance_sum.shape)
        self._stored(variance_sum, factor, inverse)
        self._invert(inverse, eps)
        np.multiply(dy, inverse[:, None], out=dx)

    def batch_norm_update(
        self,
        mean: Array,
        variance: Array,
        count: int,
        fraction: float,
        mean_sum: Array,
        variance_sum: Array,
        factor: Array,
    ) -> None:
        """sum = fraction * sum + new, for the mean, the unbiased variance and 1

        Unbiased: variance * count / (count - 1), for ``count`` > 1.
        """
        t = self.scratch(mean.shape)
        correction = count / (count - 1) if count > 1 else 1.0
        np.multiply(variance, np.float32(correction), out=t)
        for total, new in ((mean_sum, mean), (variance_sum, t)):
            np.multiply(total, np.float32(fraction), out=total)
            np.add(total, new, out=total)
        np.multiply(factor, np.float32(fraction), out=factor)
        np.add(factor, np.float32(1), out=factor)

    def is_zero(self, x: Array) -> bool:
        """Is the first element of x zero?"""
        return bool(x[0] == 0)

    def _stored(self, total: Array, factor: Array, y: Array) -> None:
        """y = total / factor, or 0 if the factor is 0"""
        value = float(factor[0])
        np.multiply(total, np.float32(1 / value if value else 0), out=y)

    def _channel_means(self, x: Array, other: Array | None, centre: Array | None, y: Array) -> None:
        """y = mean over samples and S of x, of x * other, or of (x - centre)^2"""
        part_sum, block = self.scratch(y.shape), self.temporary(x)
        y.fill(0)
        for part in _parts(x.shape):
            values, channels = x[part], part[1]
            if other is not None or centre is not None:
                t = block[: values.size].reshape(values.shape)
                if other is not None:
                    np.multiply(values, other[part], out=t)
                elif centre is not None:
                    np.subtract(values, centre[channels, None], out=t)
                    np.multiply(t, t, out=t)
                values = t
            np.add.reduce(values, axis=(0, 2), out=part_sum[channels])
            np.add(y[channels], part_sum[channels], out=y[channels])
        np.divide(y, np.float32(max(1, x.shape[0] * x.shape[2])), out=y)

    def _normalise(self, x: Array, mean: Array, inverse: Array, y: Array) -> None:
        """y = (x - mean) * inverse, per channel"""
        for part in _parts(x.shape):
            yp, channels = y[part], part[1]
            np.subtract(x[part], mean[channels, None], out=yp)
            np.multiply(yp, inverse[channels, None], out=yp)

    def _invert(self, y: Array, eps: float) -> None:
        """y = 1 / sqrt(y + eps)"""
        np.add(y, np.float32(eps), out=y)
        np.sqrt(y, out=y)
        np.divide(np.float32(1), y, out=y)
