"""oneDNN's pooling against NumPy's: the same masks, the same gradients, NaN and infinity."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.devices.cpu.onednn import pooling
from layrubnet.devices.cpu.ops import CpuOps
from layrubnet.devices.cpu.pooling import PoolingOps
from layrubnet.devices.geometry import PoolGeometry
from layrubnet.layers.pooling import pooled_size
from tests.devices.onednn_support import bind_scratch, needs_onednn

pytestmark = needs_onednn


class NumpyOps(CpuOps):
    """The reference: the operations that the fast ones fall back on."""

    pool_scratch = PoolingOps.pool_scratch
    max_pool_forward = PoolingOps.max_pool_forward
    max_pool_backward = PoolingOps.max_pool_backward
    average_pool_forward = PoolingOps.average_pool_forward
    average_pool_backward = PoolingOps.average_pool_backward


@st.composite
def pools(draw: st.DrawFn) -> PoolGeometry:
    kernel = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    pad = tuple(draw(st.integers(0, k - 1)) for k in kernel)
    stride = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    size = tuple(k + draw(st.integers(0, 7)) for k in kernel)
    floor = draw(st.booleans())
    out = [
        pooled_size(s, k, t, p, floor=floor, clip=any(pad))
        for s, k, t, p in zip(size, kernel, stride, pad, strict=True)
    ]
    return PoolGeometry(size, (out[0], out[1]), kernel, stride, pad)  # type: ignore[arg-type]


def results(ops: CpuOps, g: PoolGeometry, x: np.ndarray, dy: np.ndarray) -> list[np.ndarray]:
    """y, mask, dx of the maximum; y, dx of the average."""
    nbytes = ops.pool_scratch(g, x.shape[0])
    top, average = np.full_like(dy, 9), np.full_like(dy, 9)
    mask = np.full(dy.shape, 9, g.mask_dtype)
    dx, spread = np.full_like(x, 9), np.full_like(x, 9)
    bind_scratch(ops, nbytes)
    for step in (
        lambda: ops.max_pool_forward(x, g, top, mask),
        lambda: ops.max_pool_backward(mask, dy, g, dx),
        lambda: ops.average_pool_forward(x, g, average),
        lambda: ops.average_pool_backward(dy, g, spread),
    ):
        ops.scratch.reset(nbytes)
        step()
    return [top, mask, dx, average, spread]


def compare(g: PoolGeometry, x: np.ndarray, dy: np.ndarray) -> None:
    got, want = results(CpuOps(), g, x, dy), results(NumpyOps(), g, x, dy)
    np.testing.assert_array_equal(got[0], want[0])
    np.testing.assert_array_equal(got[1], want[1])
    for a, b in zip(got[2:], want[2:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@settings(max_examples=120, deadline=None)
@given(g=pools(), planes=st.integers(1, 40), lanes=st.sampled_from([4, 16]), seed=st.integers(0, 9))
def test_equals_numpy(g: PoolGeometry, planes: int, lanes: int, seed: int) -> None:
    """Few different values, so that ties are frequent; chunks that do not divide the planes."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, (planes, *g.size)).astype(np.float32)
    dy = rng.uniform(-1, 1, (planes, *g.out_size)).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooling, "LANES", lanes)
        patch.setattr(pooling, "CHUNK_BYTES", 4 * lanes * g.size[0] * g.size[1])
        compare(g, x, dy)


@settings(max_examples=40, deadline=None)
@given(g=pools(), special=st.sampled_from([np.nan, np.inf, -np.inf]), seed=st.integers(0, 9))
def test_nan_and_infinity_as_with_numpy(g: PoolGeometry, special: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, (6, *g.size)).astype(np.float32)
    x[rng.uniform(size=x.shape) < 0.4] = special
    dy = rng.uniform(-1, 1, (6, *g.out_size)).astype(np.float32)
    got, want = results(CpuOps(), g, x, dy), results(NumpyOps(), g, x, dy)
    np.testing.assert_array_equal(got[0], want[0])
    np.testing.assert_array_equal(got[1], want[1])
    np.testing.assert_allclose(got[2], want[2], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", [2, 3])
def test_usual_windows_are_onednns(kernel: int) -> None:
    g = PoolGeometry((32, 31), (16, 15), (kernel, kernel), (2, 2), (0, 0))
    ops = CpuOps()
    ops.pool_scratch(g, 32)
    assert (g, 32) in ops._max_pools
    assert (g, 32) in ops._average_pools


def test_unusual_windows_are_numpys() -> None:
    whole = PoolGeometry((6, 6), (1, 1), (6, 6), (1, 1), (0, 0))
    outside = PoolGeometry((7, 7), (4, 4), (1, 1), (3, 3), (0, 0))
    ops = CpuOps()
    for g in (whole, outside):
        ops.pool_scratch(g, 8)
    assert not ops._max_pools
    assert not ops._average_pools
