"""Matrix products on the CPU, by the BLAS that NumPy brings."""

from __future__ import annotations

import numpy as np

from layrubnet.devices.cpu.basic import BasicOps
from layrubnet.devices.cpu.blocks import Array


class GemmOps(BasicOps):
    """Matrix products; operands are C-contiguous matrices or transposed views of them."""

    def gemm(self, a: Array, b: Array, y: Array, *, accumulate: bool = False) -> None:
        """y = (y +) a @ b; accumulating takes scratch of y's size."""
        if accumulate:
            t = self.scratch(y.shape)
            np.matmul(a, b, out=t)
            np.add(y, t, out=y)
        else:
            np.matmul(a, b, out=y)

    def gemm_scratch(self, rows: int, columns: int, *, accumulate: bool) -> int:
        """Bytes of scratch for :meth:`gemm` with a result of this size."""
        return 4 * rows * columns + 64 if accumulate else 0

    def add_bias(self, y: Array, bias: Array) -> None:
        """y[i, j] += bias[j]"""
        np.add(y, bias, out=y)
