"""Convolution on the CPU: columns of a chunk of images, one matrix product per chunk and group.

A plan fixes the chunk when it is made; the sums are then always taken in the same order. Other
libraries' plans (oneDNN's is in ``onednn``) stand in its place: same methods, same ``scratch``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from layrubnet.devices.cpu.blocks import Array
from layrubnet.devices.cpu.im2col import col2im, im2col, images_last, inside
from layrubnet.devices.cpu.matmul import numpy_matmul
from layrubnet.devices.geometry import ConvGeometry
from layrubnet.devices.scratch import ScratchAllocator
from layrubnet.engine.contract import Scratch

COLUMN_BYTES = 2 << 20
"""Columns of a chunk take about this much: they stay in the cache until they are used."""
FEW, FEW_STRIDED, FEW_BYTES = 4, 8, 4 << 20
"""A chunk of fewer images does not pay for putting the images last; so many may take more bytes."""
WIDE = 64
"""From so many positions on, a pointwise product per image needs no reordering at all."""


def _chunk(g: ConvGeometry) -> int:
    """Images per chunk: as many as the column bytes allow, in chunks of nearly equal size."""
    if g.pointwise and g.positions >= WIDE:
        return 1
    per_image = 4 * g.positions * max(g.column_rows, g.outputs, 1)
    most = COLUMN_BYTES // max(per_image, 1)
    few = FEW if g.stride[-1:] in ((), (1,)) else FEW_STRIDED
    if most < few:
        most = few if few * per_image <= FEW_BYTES else 1
    chunks = -(-g.batch // most)
    return max(1, -(-g.batch // max(chunks, 1)))


class ConvPlan:
    """How one convolution is computed; holds no arrays.

    ``x`` is (batch, channels, \\*size), ``y`` (batch, outputs, \\*out_size), ``w`` (outputs,
    channels / group, \\*kernel), ``b`` (outputs) or None. ``scratch`` says what each instruction
    takes. ``product(a, b, out)`` multiplies matrices. The batch may be smaller than planned. A
    deconvolution runs ``backward_data`` forwards
    and ``forward`` backwards.
    """

    def __init__(
        self,
        geometry: ConvGeometry,
        scratch: ScratchAllocator,
        product: Callable[[Array, Array, Array], None] = numpy_matmul,
    ) -> None:
        self.geometry = g = geometry
        self._take = scratch
        self._product = product
        self.chunk = n = _chunk(g)
        padded = 0 if n == 1 and not any(g.pad) else 4 * n * g.channels * math.prod(g.padded_size)
        columns = 0 if g.pointwise else 4 * n * g.column_rows * g.positions
        staged = 0 if n == 1 else 4 * n * g.outputs * g.positions
        self._padded, self._columns, self._staged = padded, columns, staged
        both = padded + columns + staged + 3 * 64
        weights = 4 * math.prod(g.weight_shape) + 64
        self.scratch = Scratch(both, both, both + weights)

    # -- the three passes ------------------------------------------------------------------------

    def forward(self, x: Array, w: Array, b: Array | None, y: Array) -> None:
        """y = w * x (+ b)"""
        g = self.geometry
        flat_w = self._matrices(w)
        buffers = self._buffers()
        for begin, end in self._chunks(x):
            columns = self._unroll(x[begin:end], buffers)
            part = y[begin:end]
            out = self._output(part, buffers[2])
            self._product(flat_w, columns, out)
            if b is not None:
                np.add(out, b.reshape(g.group, -1, 1), out=out)
            if end - begin > 1:
                np.copyto(images_last(part), out.reshape(g.outputs, *g.out_size, end - begin))

    def backward_data(self, dy: Array, w: Array, dx: Array) -> None:
        """dx = the convolution's transpose applied to dy"""
        g = self.geometry
        turned = self._matrices(w).transpose(0, 2, 1)
        buffers = self._buffers()
        for begin, end in self._chunks(dy):
            dout = self._gather(dy[begin:end], buffers[2])
            part = dx[begin:end]
            padded = self._padded_like(part, buffers[0])
            columns = (
                padded.reshape(g.group, g.channels // g.group, -1)
                if g.pointwise
                else self._column_matrix(end - begin, buffers[1])
            )
            if g.outputs == g.group:
                # One output per group: an outer product, for which BLAS is slow.
                np.multiply(turned, dout, out=columns)
            else:
                self._product(turned, dout, columns)
            if not g.pointwise:
                col2im(g, columns, padded)
            if self._padded:
                np.copyto(images_last(part), inside(g, padded))

    def backward_weights(
        self,
        x: Array,
        dy: Array,
        dw: Array,
        accumulate: bool,
        chunk: tuple[int, int] | None = None,
    ) -> None:
        """dw = (dw +) sum over images and positions; ``chunk``: only these rows (one group)"""
        begin_row, end_row = chunk or (0, self.geometry.outputs)
        rows = slice(begin_row, end_row) if chunk else slice(None)
        target = self._matrices(dw)[:, rows]
        buffers = self._buffers()
        partial: Array | None = None
        for begin, end in self._chunks(x):
            columns = self._unroll(x[begin:end], buffers).transpose(0, 2, 1)
            dout = self._gather(dy[begin:end], buffers[2])[:, rows]
            if not accumulate:
                self._product(dout, columns, target)
                accumulate = True
                continue
            if partial is None:
                partial = self._take(target.shape)
            self._product(dout, columns, partial)
            np.add(target, partial, out=target)
        if not accumulate:
            target.fill(0)

    # -- parts -----------------------------------------------------------------------------------

    def _chunks(self, x: Array) -> Iterator[tuple[int, int]]:
        images = x.shape[0]
        for begin in range(0, images, self.chunk):
            yield begin, min(begin + self.chunk, images)

    def _matrices(self, w: Array) -> Array:
        g = self.geometry
        return w.reshape(g.group, g.outputs // g.group, g.column_rows // g.group)

    def _buffers(self) -> tuple[Array, Array, Array]:
        """Flat scratch for padded images, columns and outputs with the images last."""
        return (
            self._take(self._padded // 4),
            self._take(self._columns // 4),
            self._take(self._staged // 4),
        )

    def _padded_like(self, x: Array, buffer: Array) -> Array:
        """Padded images, images last; x itself where neither padding nor reordering is needed."""
        g = self.geometry
        if not self._padded:
            return images_last(x)
        shape = (g.channels, *g.padded_size, x.shape[0])
        return buffer[: math.prod(shape)].reshape(shape)

    def _column_matrix(self, images: int, buffer: Array) -> Array:
        g = self.geometry
        shape = (g.group, g.column_rows // g.group, g.positions * images)
        return buffer[: math.prod(shape)].reshape(shape)

    def _unroll(self, x: Array, buffers: tuple[Array, Array, Array]) -> Array:
        g = self.geometry
        padded = self._padded_like(x, buffers[0])
        if self._padded:
            if any(g.pad):
                padded.fill(0)
            np.copyto(inside(g, padded), images_last(x))
        if g.pointwise:
            return padded.reshape(g.group, g.channels // g.group, -1)
        columns = self._column_matrix(x.shape[0], buffers[1])
        im2col(g, padded, columns)
        return columns

    def _output(self, y: Array, buffer: Array) -> Array:
        """Where a product goes: y itself for one image, else staged with the images last."""
        g = self.geometry
        shape = (g.group, g.outputs // g.group, g.positions * y.shape[0])
        return y.reshape(shape) if y.shape[0] == 1 else buffer[: math.prod(shape)].reshape(shape)

    def _gather(self, dy: Array, buffer: Array) -> Array:
        g = self.geometry
        out = self._output(dy, buffer)
        if dy.shape[0] > 1:
            np.copyto(out.reshape(g.outputs, *g.out_size, dy.shape[0]), images_last(dy))
        return out
