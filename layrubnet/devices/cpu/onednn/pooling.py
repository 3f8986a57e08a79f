"""Pooling with oneDNN: planes are put innermost, so that a vector holds one cell of many windows.

Values lie plane by plane outside; a chunk of planes at a time is transposed into scratch.
"""

from __future__ import annotations

import numpy as np

from layrubnet.devices.cpu.blocks import Array
from layrubnet.devices.cpu.onednn.binding import (
    DIFF_DST,
    DIFF_SRC,
    DST,
    FORWARD_TRAINING,
    POOL_CELLS_ALL,
    POOL_CELLS_INSIDE,
    POOL_MAX,
    SRC,
    UINT8,
    WORKSPACE,
    Handle,
    OneDnn,
    Unsupported,
    dims,
)
from layrubnet.devices.cpu.onednn.staged import Staged, address
from layrubnet.devices.geometry import PoolGeometry
from layrubnet.devices.scratch import ScratchAllocator

CHUNK_BYTES = 1 << 20
"""The transposed planes of a chunk take about this much."""
LANES = 16
"""Planes in a chunk are a multiple of the widest vector, where there are so many."""
MOST_CELLS = 254
"""The library numbers the cells of larger windows in more than a byte."""


def _beyond(g: PoolGeometry) -> tuple[int, int]:
    """Padding after the plane that the last windows reach."""
    rows, columns = (
        max(0, (g.out_size[i] - 1) * g.stride[i] + g.kernel[i] - g.size[i] - g.pad[i])
        for i in (0, 1)
    )
    return rows, columns


def maximum_supported(g: PoolGeometry) -> bool:
    """Every window has a cell in the plane, and cells are few enough."""
    inside = all(after < k for after, k in zip(_beyond(g), g.kernel, strict=True))
    return inside and g.kernel[0] * g.kernel[1] <= MOST_CELLS and not g.whole


def average_kind(g: PoolGeometry) -> int | None:
    """The library's average that counts cells as Caffe does; None: neither."""
    if g.whole or any(after >= k for after, k in zip(_beyond(g), g.kernel, strict=True)):
        return None
    if g.pad == (0, 0):
        return POOL_CELLS_INSIDE
    fits = all(after <= pad for after, pad in zip(_beyond(g), g.pad, strict=True))
    return POOL_CELLS_ALL if fits else None


def planes_at_once(g: PoolGeometry, planes: int) -> int:
    """Planes in a chunk, from the shapes alone."""
    fit = CHUNK_BYTES // (4 * g.size[0] * g.size[1])
    return min(planes, max(1, fit // LANES) * LANES)


class Pool:
    """One kind of pooling of ``planes`` planes; raises ``Unsupported`` without a fast kernel."""

    def __init__(self, dnn: OneDnn, kind: int, g: PoolGeometry, planes: int) -> None:
        self.geometry, self.planes = g, planes
        self._dnn, self._kind = dnn, kind
        self._step = planes_at_once(g, planes)
        counts = {self._step, planes % self._step or self._step}
        made = {n: self._describe(n) for n in counts}
        self._forward = {n: forward for n, (forward, _) in made.items()}
        self._backward = {n: backward for n, (_, backward) in made.items()}
        outputs = self._step * g.out_size[0] * g.out_size[1]
        both = [*self._forward.values(), *self._backward.values()]
        self.nbytes = max(one.nbytes for one in both) + outputs + 64

    def _layouts(self, planes: int, size: tuple[int, int]) -> tuple[Handle, Handle]:
        """Outside and inside."""
        shape = (1, planes, *size)
        inner = (planes * size[0] * size[1], 1, planes * size[1], planes)
        return self._dnn.plain(shape), self._dnn.strided(shape, inner)

    def _describe(self, planes: int) -> tuple[Staged, Staged]:
        g, dnn = self.geometry, self._dnn
        x, inner_x = self._layouts(planes, g.size)
        y, inner_y = self._layouts(planes, g.out_size)
        window = (
            dims(g.stride),
            dims(g.kernel),
            dims((0, 0)),
            dims(g.pad),
            dims(_beyond(g)),
        )
        forward = dnn.describe(
            "pooling_forward",
            dnn.engine,
            FORWARD_TRAINING,
            self._kind,
            inner_x,
            inner_y,
            *window,
            dnn.attributes,
        )
        backward = dnn.describe(
            "pooling_backward",
            dnn.engine,
            self._kind,
            inner_x,
            inner_y,
            *window,
            forward,
            dnn.attributes,
        )
        names = [dnn.implementation(d) for d in (forward, backward)]
        if not all(name.startswith("jit") for name in names):
            raise Unsupported(f"pooling: only {names}")
        mask = {}
        if self._kind == POOL_MAX:
            mask[WORKSPACE] = dnn.plain((1, planes, *g.out_size), UINT8)
        return (
            Staged(dnn, forward, {SRC: x}, {DST: y, **mask}),
            Staged(dnn, backward, {DIFF_DST: y, **mask}, {DIFF_SRC: x}),
        )

    def forward(self, take: ScratchAllocator, x: Array, y: Array, mask: Array | None) -> None:
        """y = the largest or the average value; mask = 1 + the number of the largest cell"""
        for begin in range(0, self.planes, self._step):
            end = min(begin + self._step, self.planes)
            with take.reuse():
                one = self._forward[end - begin]
                one.take(take)
                target = address(y[begin:end])
                arguments = {
                    SRC: one.load(SRC, address(x[begin:end])),
                    DST: one.place(DST, target),
                }
                if mask is not None:
                    part = mask[begin:end]
                    arguments[WORKSPACE] = one.place(WORKSPACE, address(part))
                one.run(arguments)
                one.store(DST, target)
                if mask is not None:
                    one.store(WORKSPACE, address(part))
                    np.add(part, np.uint8(1), out=part)

    def backward(self, take: ScratchAllocator, mask: Array | None, dy: Array, dx: Array) -> None:
        """dx = for each input, its part of the gradients of its windows"""
        for begin in range(0, self.planes, self._step):
            end = min(begin + self._step, self.planes)
            with take.reuse():
                one = self._backward[end - begin]
                one.take(take)
                target = address(dx[begin:end])
                arguments = {
                    DIFF_DST: one.load(DIFF_DST, address(dy[begin:end])),
                    DIFF_SRC: one.place(DIFF_SRC, target),
                }
                if mask is not None:
                    # No cell (0) becomes 255, which is no cell's number either.
                    numbers = take(mask[begin:end].shape, "uint8")
                    np.subtract(mask[begin:end], np.uint8(1), out=numbers)
                    arguments[WORKSPACE] = one.load(WORKSPACE, address(numbers))
                one.run(arguments)
                one.store(DIFF_SRC, target)
