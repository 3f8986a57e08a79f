"""Matrix products with oneDNN's sgemm, on its threads.

NumPy's BLAS does as well on a quiet machine, but its threads wait for each other by spinning. On a
busy machine that makes products of middling size ten times slower. Small products run on one thread
either way, and for very large ones waiting is a small part while BLAS is faster: these stay there.
"""

from __future__ import annotations

import ctypes

import numpy as np

from layrubnet.devices.cpu.blocks import Array
from layrubnet.devices.cpu.onednn.binding import OneDnn
from layrubnet.devices.cpu.onednn.staged import address
from layrubnet.errors import LayrubError

LEAST, MOST = 1 << 18, 3 << 30
"""Multiplications of a product that is computed here: OpenBLAS begins to use threads at 2^18."""
_ITEM = 4
_long, _pointer, _float, _char = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float, ctypes.c_char
_sgemm = ctypes.CFUNCTYPE(
    ctypes.c_int, _char, _char, _long, _long, _long, _float, _pointer, _long, _pointer, _long,
    _float, _pointer, _long,
)  # fmt: skip


def _orientation(x: Array) -> tuple[bytes, int] | None:
    """(transposed?, elements from one row, or column, to the next); None: neither."""
    rows, columns = x.strides[-2:]
    if x.dtype != np.float32:
        return None
    if columns == _ITEM and rows >= _ITEM * x.shape[-1]:
        return b"N", rows // _ITEM
    if rows == _ITEM and columns >= _ITEM * x.shape[-2]:
        return b"T", columns // _ITEM
    return None


class Gemm:
    """Products of float32 matrices, or of stacks of them, in place of ``numpy.matmul``."""

    def __init__(self, dnn: OneDnn) -> None:
        self._sgemm = _sgemm(("dnnl_sgemm", dnn.library))

    def __call__(self, a: Array, b: Array, out: Array) -> bool:
        """out = a b; False, and nothing is done, where that is better left to NumPy."""
        (m, k), n = a.shape[-2:], b.shape[-1]
        if not LEAST <= m * n * k <= MOST or not a.ndim == b.ndim == out.ndim <= 3:
            return False
        turns = [_orientation(x) for x in (a, b, out)]
        if None in turns:
            return False
        (a_turn, a_step), (b_turn, b_step), (out_turn, out_step) = (t for t in turns if t)
        if out_turn != b"N":
            return False
        p, q, r = address(a), address(b), address(out)
        for i in range(a.shape[0] if a.ndim == 3 else 1):
            if i:
                p, q, r = p + a.strides[0], q + b.strides[0], r + out.strides[0]
            status = self._sgemm(
                a_turn, b_turn, m, n, k, 1.0, p, a_step, q, b_step, 0.0, r, out_step
            )
            if status:
                raise LayrubError(f"oneDNN's sgemm failed with status {status}")
        return True
