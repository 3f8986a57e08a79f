"""Signs at one bit per element: packed as said, and the gradient of ReLU to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.devices.cpu.blocks import BLOCK
from layrubnet.devices.cpu.ops import CpuOps
from tests.devices.onednn_support import bind_scratch
from tests.support.array_memory import count_array_memory

SIZES = [0, 1, 7, 8, 9, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 13]


def operands(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values with every special case, gradients, and room for the bits."""
    rng = np.random.default_rng(size)
    y, dy = (rng.normal(size=size).astype(np.float32) for _ in range(2))
    special = np.array([0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-45], np.float32)
    for values in (y, dy):
        values[rng.permutation(size)[: len(special)]] = special[: min(size, len(special))]
    return y, dy, np.full(-(-size // 8), 0xAA, np.uint8)


def ops() -> CpuOps:
    made = CpuOps()
    bind_scratch(made, CpuOps.BASE_SCRATCH)
    return made


def again(made: CpuOps) -> CpuOps:
    made.scratch.reset(CpuOps.BASE_SCRATCH)
    return made


@pytest.mark.parametrize("slope", [0.0, 0.1])
@pytest.mark.parametrize("size", SIZES)
def test_bits_and_gradients(size: int, slope: float) -> None:
    y, dy, bits = operands(size)
    made = ops()
    made.pack_positive(y, bits)
    naive = [sum(int(y[j] > 0) << j - k for j in range(k, min(k + 8, size))) for k in
             range(0, size, 8)]  # fmt: skip
    assert bits.tolist() == naive
    want, got = np.empty_like(dy), np.empty_like(dy)
    again(made).relu_backward(y, dy, slope, want)
    again(made).relu_backward_bits(bits, dy, slope, got)
    assert got.tobytes() == want.tobytes()
    again(made).relu_backward_bits(bits, dy, slope, dy)
    assert dy.tobytes() == want.tobytes()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=100))
def test_every_pattern(mask: list[bool]) -> None:
    y = np.where(mask, 1, -1).astype(np.float32)
    bits = np.empty(-(-y.size // 8), np.uint8)
    ops().pack_positive(y, bits)
    assert bits.tobytes() == np.packbits(mask, bitorder="little").tobytes()
    dx = np.empty_like(y)
    ops().relu_backward_bits(bits, np.ones_like(y), 0.0, dx)
    assert dx.tolist() == [float(m) for m in mask]


def test_no_allocation() -> None:
    y, dy, bits = operands(5 * BLOCK + 3)
    made = ops()
    with count_array_memory() as memory:
        made.pack_positive(y, bits)
        again(made).relu_backward_bits(bits, dy, 0.1, dy)
    assert memory.peak < 1024
