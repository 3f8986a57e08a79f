"""Basic operations on the CPU: fill, copy, sums, scaling. The reference for every device.

Convention of all operations: inputs first, outputs last; outputs are overwritten unless the name
or an ``accumulate`` flag says otherwise; arrays are C-contiguous; no array is allocated
(temporaries come from ``self.scratch``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from layrubnet.devices.cpu.blocks import BLOCK, Array, blocks
from layrubnet.devices.scratch import ScratchAllocator


class BasicOps:
    """See the module's docstring for the conventions."""

    scratch: ScratchAllocator

    def temporary(self, like: Array) -> Array:
        """Scratch for one block of a walk over ``like``."""
        made: Array = self.scratch(min(like.size, BLOCK), str(like.dtype))
        return made

    def fill(self, y: Array, value: float) -> None:
        """y = value"""
        y.fill(value)

    def copy(self, x: Array, y: Array) -> None:
        """y = x (same number of elements; shapes may differ if contiguous)"""
        np.copyto(y, x if x.shape == y.shape else x.reshape(y.shape))

    def load_host(
        self, fill: Callable[..., None], ys: Sequence[Array | None], xs: Sequence[Array | None] = ()
    ) -> None:
        """Call ``fill(*xs, *ys)`` with host arrays of the same values; ``ys`` get what it writes.

        The only way for code on the host to make values of the net. Absent arrays stay None.
        """
        fill(*xs, *ys)

    def set_item(self, y: Array, index: int, value: float) -> None:
        """y[index] = value, from the host, ordered before later work."""
        y[index] = value

    def add(self, a: Array, b: Array, y: Array) -> None:
        """y = a + b"""
        np.add(a, b, out=y)

    def multiply(self, a: Array, b: Array, y: Array) -> None:
        """y = a * b"""
        np.multiply(a, b, out=y)

    def scale(self, x: Array, factor: float, y: Array) -> None:
        """y = factor * x"""
        np.multiply(x, np.float32(factor), out=y)

    def scale_in_place(self, y: Array, factor: float) -> None:
        """y *= factor"""
        np.multiply(y, np.float32(factor), out=y)

    def axpy(self, alpha: float, x: Array, y: Array) -> None:
        """y += alpha * x"""
        t = self.temporary(x)
        factor = np.float32(alpha)
        for xb, yb in blocks(x, y):
            tb = t[: xb.size]
            np.multiply(xb, factor, out=tb)
            np.add(yb, tb, out=yb)

    def sum_all(self, xs: Sequence[Array | None], y: Array) -> None:
        """y = x0 + x1 + x2 + ..., added in this order; absent ones are left out; none: zero."""
        there = [x for x in xs if x is not None]
        if not there:
            y.fill(0)
            return
        if len(there) == 1:
            self.copy(there[0], y)
            return
        np.add(there[0], there[1], out=y)
        for x in there[2:]:
            np.add(y, x, out=y)

    def weighted_sum(self, xs: Sequence[Array], weights: Sequence[float], y: Array) -> None:
        """y[0] = sum over i of weights[i] * sum(xs[i]), in float64"""
        total = 0.0
        for x, weight in zip(xs, weights, strict=True):
            total += weight * float(np.add.reduce(x, axis=None, dtype=np.float64))
        y[0] = total

    def reduce_sum(self, x: Array, axes: tuple[int, ...], y: Array, accumulate: bool) -> None:
        """y = (y +) sum of x over ``axes``; y has the remaining axes' elements."""
        kept = tuple(n for i, n in enumerate(x.shape) if i not in axes)
        out = y.reshape(kept)
        if accumulate:
            t = self.scratch(kept)
            np.add.reduce(x, axis=axes, out=t)
            np.add(out, t, out=out)
        else:
            np.add.reduce(x, axis=axes, out=out)
