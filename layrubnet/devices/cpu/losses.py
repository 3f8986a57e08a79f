"""Losses without a softmax, on the CPU. Elements in float32, sums of scalars in float64."""

from __future__ import annotations

import numpy as np

from layrubnet.devices.cpu.basic import BasicOps
from layrubnet.devices.cpu.blocks import BLOCK, Array, blocks, flat

_SPARE = 1024


def _sum(x: Array) -> float:
    return float(np.add.reduce(x, axis=None, dtype=np.float64))


class LossOps(BasicOps):
    """Sigmoid cross entropy, Euclidean and contrastive loss."""

    # -- sigmoid cross entropy -------------------------------------------------------------------

    def sigmoid_cross_entropy_forward(
        self, x: Array, targets: Array, ignore: int | None, divisor: float | None, loss: Array
    ) -> None:
        """loss = sum of max(x, 0) - x * target + log(1 + exp(-|x|)), over the divisor

        Elements whose truncated target is ``ignore`` do not count; ``divisor`` None: the number
        of elements that count. The divisor is at least 1.
        """
        a, b = self.temporary(x), self.temporary(x)
        ignored = self.scratch(min(x.size, BLOCK), "bool")
        total = 0.0
        for xb, tb in blocks(x, targets):
            ab, bb = a[: xb.size], b[: xb.size]
            np.abs(xb, out=ab)
            np.negative(ab, out=ab)
            np.exp(ab, out=ab)
            np.log1p(ab, out=ab)
            np.maximum(xb, np.float32(0), out=bb)
            np.add(ab, bb, out=ab)
            np.multiply(xb, tb, out=bb)
            np.subtract(ab, bb, out=ab)
            if ignore is not None:
                np.copyto(ab, 0, where=self._ignored(tb, ignore, bb, ignored))
            total += _sum(ab)
        loss[...] = total / self._counted(targets, ignore, divisor)

    def sigmoid_cross_entropy_backward(
        self,
        x: Array,
        targets: Array,
        ignore: int | None,
        divisor: float | None,
        dloss: Array,
        dx: Array,
    ) -> None:
        """dx = (sigmoid(x) - target) * dloss / divisor, 0 for ignored elements"""
        factor = np.float32(float(dloss) / self._counted(targets, ignore, divisor))
        b = self.temporary(x)
        ignored = self.scratch(min(x.size, BLOCK), "bool")
        half = np.float32(0.5)
        for xb, tb, dxb in blocks(x, targets, dx):
            np.multiply(xb, half, out=dxb)
            np.tanh(dxb, out=dxb)
            np.multiply(dxb, half, out=dxb)
            np.add(dxb, half, out=dxb)
            np.subtract(dxb, tb, out=dxb)
            np.multiply(dxb, factor, out=dxb)
            if ignore is not None:
                np.copyto(dxb, 0, where=self._ignored(tb, ignore, b[: xb.size], ignored))

    def _ignored(self, targets: Array, ignore: int, t: Array, mask: Array) -> Array:
        np.trunc(targets, out=t)
        found = mask[: targets.size]
        np.equal(t, np.float32(ignore), out=found)
        return found

    def _counted(self, targets: Array, ignore: int | None, divisor: float | None) -> float:
        if divisor is None:
            divisor = float(targets.size)
            if ignore is not None:
                t, mask = self.temporary(targets), self.scratch(min(targets.size, BLOCK), "bool")
                for (tb,) in blocks(targets):
                    divisor -= int(np.count_nonzero(self._ignored(tb, ignore, t[: tb.size], mask)))
        return max(1.0, divisor)

    # -- Euclidean -------------------------------------------------------------------------------

    def euclidean_loss_forward(self, a: Array, b: Array, divisor: float, loss: Array) -> None:
        """loss = sum of (a - b)^2 / divisor"""
        t, total = self.temporary(a), 0.0
        for ab, bb in blocks(a, b):
            tb = t[: ab.size]
            np.subtract(ab, bb, out=tb)
            np.multiply(tb, tb, out=tb)
            total += _sum(tb)
        loss[...] = total / divisor

    def scaled_difference(self, a: Array, b: Array, factor: float, dloss: Array, dx: Array) -> None:
        """dx = (a - b) * factor * dloss"""
        scale = np.float32(factor * float(dloss))
        for ab, bb, dxb in blocks(a, b, dx):
            np.subtract(ab, bb, out=dxb)
            np.multiply(dxb, scale, out=dxb)

    # -- contrastive -----------------------------------------------------------------------------

    def contrastive_scratch(self, rows: int, size: int) -> int:
        """Bytes of scratch for one forward, or two backward operations, on (N, K) arrays."""
        return 4 * max(BLOCK, size) + 32 * rows + _SPARE

    def contrastive_forward(
        self,
        a: Array,
        b: Array,
        similar: Array,
        margin: float,
        legacy: bool,
        squares: Array,
        loss: Array,
    ) -> None:
        """squares[n] = |a[n] - b[n]|^2; loss = sum over pairs n of l[n] / (2 N)

        l = squares for similar pairs; else max(margin - sqrt(squares), 0)^2, or with ``legacy``
        max(margin - squares, 0).
        """
        rows, size = a.shape
        step = max(1, BLOCK // max(1, size))
        block = self.scratch(max(BLOCK, size))
        for n in range(0, rows, step):
            part = slice(n, min(n + step, rows))
            t = block[: a[part].size].reshape(a[part].shape)
            np.subtract(a[part], b[part], out=t)
            np.multiply(t, t, out=t)
            np.add.reduce(t, axis=1, out=squares[part])
        gap = self._gap(squares, margin, legacy)
        np.maximum(gap, np.float32(0), out=gap)
        if not legacy:
            np.multiply(gap, gap, out=gap)
        np.copyto(gap, squares, where=self._similar(similar))
        loss[...] = _sum(gap) / (2 * max(1, rows))

    def contrastive_backward(
        self,
        a: Array,
        b: Array,
        similar: Array,
        margin: float,
        legacy: bool,
        squares: Array,
        sign: float,
        dloss: Array,
        dx: Array,
    ) -> None:
        """dx[n] = sign * (a[n] - b[n]) * f[n] * dloss / N

        f = 1 for similar pairs; else, where the margin is violated,
        -(margin - distance) / (distance + 1e-4), or with ``legacy`` -1; and 0 elsewhere.
        """
        rows = a.shape[0]
        gap, f = self._gap(squares, margin, legacy), self.scratch(rows)
        near = self._similar(similar)
        still = self.scratch(rows, "bool")
        np.less_equal(gap, np.float32(0), out=still)
        np.greater(still, near, out=still)
        if legacy:
            f.fill(-1)
        else:
            np.sqrt(squares, out=f)
            np.add(f, np.float32(1e-4), out=f)
            np.divide(gap, f, out=f)
            np.negative(f, out=f)
        np.copyto(f, 1, where=near)
        np.multiply(f, np.float32(sign * float(dloss) / max(1, rows)), out=f)
        np.subtract(a, b, out=dx)
        np.multiply(dx, f[:, None], out=dx)
        np.copyto(dx, 0, where=still[:, None])

    def _gap(self, squares: Array, margin: float, legacy: bool) -> Array:
        """margin - distance (``legacy``: the squared one)"""
        gap: Array = self.scratch(squares.shape)
        if legacy:
            np.copyto(gap, squares)
        else:
            np.sqrt(squares, out=gap)
        np.subtract(np.float32(margin), gap, out=gap)
        return gap

    def _similar(self, labels: Array) -> Array:
        """Which labels are not 0 once they are truncated."""
        t, mask = self.scratch(labels.size), self.scratch(labels.size, "bool")
        np.trunc(flat(labels), out=t)
        np.not_equal(t, np.float32(0), out=mask)
        found: Array = mask
        return found
