"""Max and average pooling on the CPU: one elementwise step per cell of the window.

Planes are walked in blocks that fit the cache. ``x`` is (planes, height, width), ``y`` (planes,
\\*out_size). A mask holds, per output, 0 (no cell) or 1 + the index of the cell in its window.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from layrubnet.devices.cpu.basic import BasicOps
from layrubnet.devices.cpu.blocks import Array
from layrubnet.devices.geometry import PoolGeometry
from layrubnet.engine.contract import ITEM_BYTES

PLANE_BLOCK = 1 << 18
"""Elements of x per block: 1 MiB of float32."""
LOWEST = np.float32(np.finfo(np.float32).min)

Cut = tuple[slice, slice, slice]


@lru_cache(maxsize=1024)
def cells(g: PoolGeometry) -> tuple[tuple[int, Cut, Cut], ...]:
    """(1 + cell, where it lies in y, where in x) for each window cell inside some window."""
    rows = [_steps(g, 0, k) for k in range(g.kernel[0])]
    columns = [_steps(g, 1, k) for k in range(g.kernel[1])]
    return tuple(
        (1 + i * g.kernel[1] + j, (slice(None), r[0], c[0]), (slice(None), r[1], c[1]))
        for i, r in enumerate(rows)
        for j, c in enumerate(columns)
        if r and c
    )


def _steps(g: PoolGeometry, axis: int, k: int) -> tuple[slice, slice] | None:
    """Outputs whose window has cell ``k`` inside the plane, and these cells."""
    size, out, stride = g.size[axis], g.out_size[axis], g.stride[axis]
    shift = k - g.pad[axis]
    begin = max(0, -(shift // stride))
    end = min(out, (size - 1 - shift) // stride + 1)
    if end <= begin:
        return None
    first, last = begin * stride + shift, (end - 1) * stride + shift
    return slice(begin, end), slice(first, last + 1, stride)


@lru_cache(maxsize=1024)
def divisors(g: PoolGeometry) -> tuple[tuple[Cut, float], ...]:
    """Parts of y with one divisor each: cells of the window, those in the padding included."""
    rows, columns = _lengths(g, 0), _lengths(g, 1)
    return tuple(((slice(None), r, c), float(max(m * n, 1))) for r, m in rows for c, n in columns)


def _lengths(g: PoolGeometry, axis: int) -> list[tuple[slice, int]]:
    parts: list[tuple[slice, int]] = []
    for o in range(g.out_size[axis]):
        begin = o * g.stride[axis] - g.pad[axis]
        end = min(begin + g.kernel[axis], g.size[axis] + g.pad[axis])
        length = max(end - begin, 0)
        if parts and parts[-1][1] == length:
            parts[-1] = (slice(parts[-1][0].start, o + 1), length)
        else:
            parts.append((slice(o, o + 1), length))
    return parts


def _planes(g: PoolGeometry) -> int:
    return max(1, PLANE_BLOCK // max(g.size[0] * g.size[1], g.out_size[0] * g.out_size[1], 1))


def _walk(g: PoolGeometry, *arrays: Array) -> Iterator[tuple[Array, ...]]:
    step = _planes(g)
    for begin in range(0, arrays[0].shape[0], step):
        yield tuple(a[begin : begin + step] for a in arrays)


class PoolingOps(BasicOps):
    """Pooling of planes; see the module's docstring."""

    def pool_scratch(self, g: PoolGeometry, planes: int) -> int:
        """Bytes of scratch that each of the pooling operations takes."""
        outputs = min(_planes(g), planes) * g.out_size[0] * g.out_size[1]
        return outputs * (1 + 4 + 4 + ITEM_BYTES[g.mask_dtype]) + 4 * 64

    def _temporary(self, g: PoolGeometry, planes: int, dtype: str) -> Array:
        made: Array = self.scratch((min(_planes(g), planes), *g.out_size), dtype)
        return made

    def max_pool_forward(self, x: Array, g: PoolGeometry, y: Array, mask: Array) -> None:
        """y = the largest cell of each window, mask = 1 + its index (the first one of equals)

        A window without cells gives the lowest float and mask 0; NaN in a window gives NaN.
        """
        greater = self._temporary(g, x.shape[0], "bool")
        wide = g.mask_dtype != "uint8"
        number = self._temporary(g, x.shape[0], g.mask_dtype) if wide else greater.view(np.uint8)
        for xb, yb, mb in _walk(g, x, y, mask):
            yb.fill(LOWEST)
            mb.fill(0)
            for cell, outputs, inputs in cells(g):
                xs, ys, ms = xb[inputs], yb[outputs], mb[outputs]
                more = greater[: xb.shape[0]][outputs]
                found = number[: xb.shape[0]][outputs]
                np.greater(xs, ys, out=more)
                np.maximum(xs, ys, out=ys)
                # Cells come in rising order, so the last greater one is the largest number.
                if wide:
                    np.copyto(found, more)
                np.multiply(found, mb.dtype.type(cell), out=found)
                np.maximum(ms, found, out=ms)

    def max_pool_backward(self, mask: Array, dy: Array, g: PoolGeometry, dx: Array) -> None:
        """dx = for each input, the sum of dy over the windows whose largest cell it is"""
        here = self._temporary(g, dx.shape[0], "bool")
        picked = self._temporary(g, dx.shape[0], "int32")
        for mb, dyb, dxb in _walk(g, mask, dy.view(np.int32), dx):
            dxb.fill(0)
            for cell, outputs, inputs in cells(g):
                chosen = here[: dxb.shape[0]][outputs]
                bits = picked[: dxb.shape[0]][outputs]
                np.equal(mb[outputs], mb.dtype.type(cell), out=chosen)
                # Select by bit masks: exact also for NaN and infinity, and much faster
                # than `where=`.
                signs = chosen.view(np.int8)
                np.negative(signs, out=signs)
                np.copyto(bits, signs)
                np.bitwise_and(bits, dyb[outputs], out=bits)
                target = dxb[inputs]
                np.add(target, bits.view(np.float32), out=target)

    def pool_mask_indices(self, mask: Array, g: PoolGeometry, indices: Array) -> None:
        """indices = the position (row * width + column) in the plane that mask names, or -1"""
        width = np.int32(g.size[1])
        corner = self.scratch(g.out_size, "int32")
        for i in range(g.out_size[0]):
            corner[i].fill((i * g.stride[0] - g.pad[0]) * g.size[1])
        for j in range(g.out_size[1]):
            column = corner[:, j]
            np.add(column, np.int32(j * g.stride[1] - g.pad[1]), out=column)
        where = self._temporary(g, mask.shape[0], "int32")
        none = self._temporary(g, mask.shape[0], "bool")
        for mb, out in _walk(g, mask, indices):
            cell, row = where[: mb.shape[0]], out.view(np.int32)
            absent = none[: mb.shape[0]]
            np.equal(mb, 0, out=absent)
            np.copyto(cell, mb)
            np.subtract(cell, np.int32(1), out=cell)
            np.floor_divide(cell, np.int32(g.kernel[1]), out=row)
            np.remainder(cell, np.int32(g.kernel[1]), out=cell)
            np.multiply(row, width, out=row)
            np.add(cell, row, out=cell)
            np.add(cell, corner, out=cell)
            np.copyto(out, cell, casting="same_kind")
            np.copyto(out, np.float32(-1), where=absent)

    def average_pool_forward(self, x: Array, g: PoolGeometry, y: Array) -> None:
        """y = the sum over each window / its cells, padding included (0 for an empty window)"""
        if g.whole:
            flat = x.reshape(x.shape[0], -1)
            np.add.reduce(flat, axis=1, out=y.reshape(-1))
            np.divide(y, np.float32(flat.shape[1]), out=y)
            return
        for xb, yb in _walk(g, x, y):
            yb.fill(0)
            for _, outputs, inputs in cells(g):
                target = yb[outputs]
                np.add(target, xb[inputs], out=target)
            for part, divisor in divisors(g):
                np.divide(yb[part], np.float32(divisor), out=yb[part])

    def average_pool_backward(self, dy: Array, g: PoolGeometry, dx: Array) -> None:
        """dx = for each input, the sum of dy / cells over the windows that hold it"""
        share = self._temporary(g, dx.shape[0], "float32")
        for dyb, dxb in _walk(g, dy, dx):
            shares = share[: dyb.shape[0]]
            for part, divisor in divisors(g):
                np.divide(dyb[part], np.float32(divisor), out=shares[part])
            if g.whole:
                np.copyto(dxb, shares)
                continue
            dxb.fill(0)
            for _, outputs, inputs in cells(g):
                target = dxb[inputs]
                np.add(target, shares[outputs], out=target)
