"""Copies between columns of matrices on the CPU: what Concat and Slice are made of."""

from __future__ import annotations

import numpy as np

from layrubnet.devices.cpu.blocks import Array


class ColumnOps:
    """Operands are matrices; only the named columns are read or written."""

    def copy_columns(self, x: Array, x_begin: int, y: Array, y_begin: int, width: int) -> None:
        """y[:, y_begin : y_begin + width] = x[:, x_begin : x_begin + width]"""
        np.copyto(y[:, y_begin : y_begin + width], x[:, x_begin : x_begin + width])

    def fill_columns(self, y: Array, begin: int, width: int, value: float) -> None:
        """y[:, begin : begin + width] = value"""
        y[:, begin : begin + width].fill(value)
