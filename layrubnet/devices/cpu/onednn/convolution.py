"""A convolution plan that oneDNN computes, with the plan of columns for what it does not do well.

Values lie in plain NCHW outside. oneDNN's kernels want blocks of channels, so a chunk of images at
a time is copied into scratch in the layout they like, and results are copied back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from layrubnet.devices.cpu.blocks import Array
from layrubnet.devices.cpu.convolution import ConvPlan
from layrubnet.devices.cpu.onednn import choice
from layrubnet.devices.cpu.onednn.binding import (
    BIAS,
    DIFF_DST,
    DIFF_SRC,
    DIFF_WEIGHTS,
    DST,
    SRC,
    WEIGHTS,
    OneDnn,
    Unsupported,
)
from layrubnet.devices.cpu.onednn.passes import Passes
from layrubnet.devices.cpu.onednn.staged import Staged, address
from layrubnet.devices.geometry import ConvGeometry
from layrubnet.devices.scratch import ScratchAllocator
from layrubnet.engine.contract import Scratch

Sizes = dict[int, Staged]
"""One pass for each number of images: a whole chunk, what the planned batch leaves, and one."""


class OneDnnConvPlan:
    """The same interface as :class:`layrubnet.devices.cpu.convolution.ConvPlan`; holds no arrays.

    ``columns`` computes the passes that oneDNN is not good at (``uses`` names the others), and
    pieces of a weight gradient (``chunk``).
    """

    def __init__(
        self, dnn: OneDnn, geometry: ConvGeometry, scratch: ScratchAllocator, columns: ConvPlan
    ) -> None:
        self.geometry = g = geometry
        self._take = scratch
        self._columns = columns
        self.images = choice.images_at_once(g) if g.batch else 1
        self._passes: dict[int, Passes] = {}
        self._forward: Sizes | None = None
        self._forward_bias: Sizes | None = None
        self._data: Sizes | None = None
        self._weights: Sizes | None = None
        if choice.supported(g):
            self._describe(dnn)
        other = self._columns.scratch
        partial = 4 * int(np.prod(g.weight_shape)) + 64
        self.scratch = Scratch(
            max(_nbytes(self._forward, other.forward), _nbytes(self._forward_bias, 0)),
            _nbytes(self._data, other.backward_data),
            max(_nbytes(self._weights, 0) + partial, other.backward_weights),
        )

    def _describe(self, dnn: OneDnn) -> None:
        g = self.geometry
        counts = {self.images, g.batch % self.images or self.images, 1}

        def sizes(wanted: bool, make: Callable[[Passes], Staged]) -> Sizes | None:
            if not wanted:
                return None
            try:
                for n in counts:
                    if n not in self._passes:
                        self._passes[n] = Passes(dnn, g, n)
                return {n: make(self._passes[n]) for n in counts}
            except Unsupported:
                return None

        values = choice.use_forward(g)
        self._forward = sizes(values, lambda p: p.forward(bias=False))
        self._forward_bias = sizes(values, lambda p: p.forward(bias=True))
        self._data = sizes(values, lambda p: p.backward_data())
        self._weights = sizes(choice.use_weights(g, dnn.wide), lambda p: p.backward_weights())
        self._passes.clear()

    @property
    def uses(self) -> tuple[str, ...]:
        """The passes that oneDNN computes."""
        made = {
            "forward": self._forward,
            "backward_data": self._data,
            "backward_weights": self._weights,
        }
        return tuple(name for name, sizes in made.items() if sizes)

    # -- the three passes ------------------------------------------------------------------------

    def forward(self, x: Array, w: Array, b: Array | None, y: Array) -> None:
        """y = w * x (+ b)"""
        sizes = self._forward if b is None else self._forward_bias
        if sizes is None:
            self._columns.forward(x, w, b, y)
            return
        for one, places in self._parts(sizes, x.shape[0], x, y):
            arguments = {WEIGHTS: one.load(WEIGHTS, address(w))}
            if b is not None:
                arguments[BIAS] = address(b)
            for source, target in places:
                arguments[SRC] = one.load(SRC, source)
                arguments[DST] = one.place(DST, target)
                one.run(arguments)
                one.store(DST, target)

    def backward_data(self, dy: Array, w: Array, dx: Array) -> None:
        """dx = the convolution's transpose applied to dy"""
        if self._data is None:
            self._columns.backward_data(dy, w, dx)
            return
        for one, places in self._parts(self._data, dy.shape[0], dy, dx):
            arguments = {WEIGHTS: one.load(WEIGHTS, address(w))}
            for source, target in places:
                arguments[DIFF_DST] = one.load(DIFF_DST, source)
                arguments[DIFF_SRC] = one.place(DIFF_SRC, target)
                one.run(arguments)
                one.store(DIFF_SRC, target)

    def backward_weights(
        self,
        x: Array,
        dy: Array,
        dw: Array,
        accumulate: bool,
        chunk: tuple[int, int] | None = None,
    ) -> None:
        """dw = (dw +) sum over images and positions; ``chunk``: only these rows (one group)"""
        if self._weights is None or chunk is not None:
            self._columns.backward_weights(x, dy, dw, accumulate, chunk)
            return
        if not accumulate and not x.shape[0]:
            dw.fill(0)
        partial = self._take(dw.shape)
        for one, places in self._parts(self._weights, x.shape[0], x, dy):
            for source, gradient in places:
                target = address(partial if accumulate else dw)
                arguments = {
                    SRC: one.load(SRC, source),
                    DIFF_DST: one.load(DIFF_DST, gradient),
                    DIFF_WEIGHTS: one.place(DIFF_WEIGHTS, target),
                }
                one.run(arguments)
                one.store(DIFF_WEIGHTS, target)
                if accumulate:
                    np.add(dw, partial, out=dw)
                accumulate = True

    # -- parts -----------------------------------------------------------------------------------

    def _parts(
        self, sizes: Sizes, batch: int, first: Array, second: Array
    ) -> Iterator[tuple[Staged, list[tuple[int, int]]]]:
        """Passes, ready to run, and where the images lie on which each of them is to run."""
        a, b = address(first), address(second)
        step_a, step_b = first.strides[0], second.strides[0]
        begin = 0
        while begin < batch:
            left = batch - begin
            n = self.images if left >= self.images else left if left in sizes else 1
            count = left // n
            with self._take.reuse():
                one = sizes[n]
                one.take(self._take)
                starts = range(begin, begin + count * n, n)
                yield one, [(a + i * step_a, b + i * step_b) for i in starts]
            begin += count * n


def _nbytes(sizes: Sizes | None, otherwise: int) -> int:
    return max(one.nbytes for one in sizes.values()) if sizes else otherwise
