"""Powers, and several arrays combined into one, on the CPU.

All are computed block by block into scratch and written last, so an output may be the very memory
of any input.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from layrubnet.devices.cpu.basic import BasicOps
from layrubnet.devices.cpu.blocks import BLOCK, Array, blocks
from layrubnet.devices.cpu.select import choose, keep


class ElementwiseOps(BasicOps):
    """Power, and Eltwise's sum, product and maximum."""

    def power_forward(self, x: Array, power: float, scale: float, shift: float, y: Array) -> None:
        """y = (shift + scale * x) ** power"""
        for xb, yb in blocks(x, y):
            _affine(xb, scale, shift, yb)
            _raise(yb, power)

    def power_backward(
        self, x: Array, dy: Array, power: float, scale: float, shift: float, dx: Array
    ) -> None:
        """dx = dy * power * scale * (shift + scale * x) ** (power - 1)"""
        t = self.temporary(x)
        factor = np.float32(power * scale)
        for xb, dyb, dxb in blocks(x, dy, dx):
            tb = t[: xb.size]
            _affine(xb, scale, shift, tb)
            _raise(tb, power - 1)
            np.multiply(tb, factor, out=tb)
            np.multiply(tb, dyb, out=dxb)

    def weighted_total(self, xs: Sequence[Array], weights: Sequence[float], y: Array) -> None:
        """y = w0 * x0 + w1 * x1 + ..., added in this order"""
        total, t = self.temporary(y), self.temporary(y)
        for *xb, yb in blocks(*xs, y):
            total_b, tb = total[: yb.size], t[: yb.size]
            np.multiply(xb[0], np.float32(weights[0]), out=total_b)
            for x, weight in zip(xb[1:], weights[1:], strict=True):
                if weight == 1:
                    np.add(total_b, x, out=total_b)
                else:
                    np.multiply(x, np.float32(weight), out=tb)
                    np.add(total_b, tb, out=total_b)
            np.copyto(yb, total_b)

    def product(self, xs: Sequence[Array], y: Array) -> None:
        """y = x0 * x1 * ..., multiplied in this order"""
        t = self.temporary(y)
        for *xb, yb in blocks(*xs, y):
            tb = t[: yb.size]
            np.multiply(xb[0], xb[1], out=tb)
            for x in xb[2:]:
                np.multiply(tb, x, out=tb)
            np.copyto(yb, tb)

    def maximum_forward(self, xs: Sequence[Array], y: Array, winner: Array) -> None:
        """y = max(x0, x1, ...); winner (uint8) = which. Of x0 and x1 the second wins a tie, a
        later one must be larger than all before it."""
        size = min(y.size, BLOCK)
        t, larger = self.temporary(y), self.scratch(size, "bool")
        best, lanes = self.temporary(y), self.scratch(size, "int32")
        for *xb, yb, wb in blocks(*xs, y, winner):
            n = yb.size
            tb, bb, more = t[:n], best[:n], larger[:n]
            np.copyto(bb, xb[0])
            wb.fill(0)
            for i, x in enumerate(xb[1:], 1):
                np.copyto(tb, bb)
                if i == 1:
                    np.greater(bb, x, out=more)
                    np.logical_not(more, out=more)
                else:
                    np.greater(x, bb, out=more)
                choose(more, x, tb, bb, lanes[:n])
                # Later bottoms have larger numbers: the maximum is the last one that won.
                number = more.view(np.uint8)
                np.multiply(number, np.uint8(i), out=number)
                np.maximum(wb, number, out=wb)
            np.copyto(yb, bb)

    def maximum_backward(self, winner: Array, dy: Array, index: int, dx: Array) -> None:
        """dx = dy where winner == index, 0 elsewhere"""
        size = min(dy.size, BLOCK)
        won, lanes = self.scratch(size, "bool"), self.scratch(size, "int32")
        for wb, dyb, dxb in blocks(winner, dy, dx):
            n = wb.size
            np.equal(wb, np.uint8(index), out=won[:n])
            keep(won[:n], dyb, dxb, lanes[:n])


def _affine(x: Array, scale: float, shift: float, y: Array) -> None:
    np.multiply(x, np.float32(scale), out=y)
    if shift != 0:
        np.add(y, np.float32(shift), out=y)


def _raise(y: Array, power: float) -> None:
    """y = y ** power, by a cheaper function where there is one."""
    if power == 1:
        return
    if power == 2:
        np.square(y, out=y)
        return
    # A negative base or 0 gives NaN or inf, as C's pow; --check-finite reports where it matters.
    with np.errstate(all="ignore"):
        if power == -1:
            np.reciprocal(y, out=y)
        elif power == 0.5:
            np.sqrt(y, out=y)
        else:
            np.power(y, np.float32(power), out=y)
