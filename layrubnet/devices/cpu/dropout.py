"""Dropout on the CPU, from the counter-based generator."""

from __future__ import annotations

import numpy as np

from layrubnet.devices.cpu.basic import BasicOps
from layrubnet.devices.cpu.blocks import BLOCK, Array, flat
from layrubnet.devices.cpu.select import keep
from layrubnet.philox import SCRATCH_ROWS, fill_uint32


class DropoutOps(BasicOps):
    """One operation serves both directions: the draw is repeated, not kept."""

    def dropout(
        self,
        x: Array,
        ratio: float,
        factor: float,
        key: tuple[int, int],
        counters: Array,
        y: Array,
    ) -> None:
        """y[j] = factor * x[j] where word j > ratio * 2^32, 0 elsewhere (also where x is NaN)

        Word j is word j of the Philox stream with this key and the upper counter words
        (iteration, micro-batch | rank << 16, 0); ``counters`` holds iteration, micro-batch, rank.
        """
        stream = (int(counters[0]), int(counters[1]) | int(counters[2]) << 16, 0)
        limit = np.uint32(int(ratio * 2.0**32))
        scale = np.float32(factor)
        # A block is a whole number of Philox blocks of 4 words, however large.
        step = max(1, min(-(-x.size // 4), BLOCK // 4)) * 4
        words = self.scratch(step, "uint32")
        kept, lanes = self.scratch(step, "bool"), self.scratch(step, "int32")
        work = self.scratch(SCRATCH_ROWS * step // 4, "uint64")
        x, y = flat(x), flat(y)
        for begin in range(0, x.size, step):
            xb, yb = x[begin : begin + step], y[begin : begin + step]
            n = xb.size
            fill_uint32(words[:n], key, stream, work, first=begin)
            np.greater(words[:n], limit, out=kept[:n])
            np.multiply(xb, scale, out=yb)
            keep(kept[:n], yb, yb, lanes[:n])
