"""Matrix products on the CPU, as layers want them."""

from __future__ import annotations

import numpy as np

from layrubnet.devices.cpu.basic import BasicOps
from layrubnet.devices.cpu.blocks import Array
from layrubnet.devices.cpu.matmul import matmul


class GemmOps(BasicOps):
    """Matrix products; operands are C-contiguous matrices or transposed views of them."""

    def gemm(self, a: Array, b: Array, y: Array, *, accumulate: bool = False) -> None:
        """y = (y +) a @ b; accumulating takes scratch of y's size."""
        if accumulate:
            t = self.scratch(y.shape)
            matmul(a, b, t)
            np.add(y, t, out=y)
        else:
            matmul(a, b, y)

    def gemm_scratch(self, rows: int, columns: int, *, accumulate: bool) -> int:
        """Bytes of scratch for :meth:`gemm` with a result of this size."""
        return 4 * rows * columns + 64 if accumulate else 0

    def add_bias(self, y: Array, bias: Array) -> None:
        """y[i, j] += bias[j]"""
        np.add(y, bias, out=y)
