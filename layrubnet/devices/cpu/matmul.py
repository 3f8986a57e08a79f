"""Matrix products on the CPU: oneDNN's where its library loads and is better, else NumPy's BLAS."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from layrubnet.devices.cpu.blocks import Array
from layrubnet.devices.cpu.onednn.binding import onednn
from layrubnet.devices.cpu.onednn.gemm import Gemm


@lru_cache(maxsize=1)
def _gemm() -> Gemm | None:
    dnn = onednn()
    return Gemm(dnn) if dnn is not None else None


def matmul(a: Array, b: Array, out: Array) -> None:
    """out = a b, for matrices and stacks of them; which library depends on the shapes only."""
    gemm = _gemm()
    if gemm is None or not gemm(a, b, out):
        np.matmul(a, b, out=out)


def numpy_matmul(a: Array, b: Array, out: Array) -> None:
    """out = a b, by the BLAS that NumPy brings."""
    np.matmul(a, b, out=out)
