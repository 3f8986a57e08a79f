"""oneDNN's matrix products: any orientation, stacks, and what is left to NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.devices.cpu.onednn import gemm
from layrubnet.devices.cpu.onednn.binding import onednn
from tests.devices.onednn_support import needs_onednn

pytestmark = needs_onednn


@pytest.fixture(scope="module")
def product() -> gemm.Gemm:
    dnn = onednn()
    assert dnn is not None
    return gemm.Gemm(dnn)


def matrices(rng: np.random.Generator, shape: tuple[int, ...], turned: bool) -> np.ndarray:
    *stack, m, n = shape
    made = rng.uniform(-1, 1, (*stack, n, m) if turned else shape).astype(np.float32)
    return np.swapaxes(made, -1, -2) if turned else made


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.tuples(*[st.integers(2, 40)] * 3),
    stack=st.sampled_from([(), (1,), (3,)]),
    turns=st.tuples(st.booleans(), st.booleans()),
    seed=st.integers(0, 9),
)
def test_equals_numpy(
    product: gemm.Gemm,
    sizes: tuple[int, int, int],
    stack: tuple[int, ...],
    turns: tuple[bool, bool],
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    m, n, k = sizes
    a, b = matrices(rng, (*stack, m, k), turns[0]), matrices(rng, (*stack, k, n), turns[1])
    out = np.full((*stack, m, n), 9, np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gemm, "LEAST", 1)
        assert product(a, b, out)
    np.testing.assert_allclose(out, a @ b, rtol=0, atol=1e-5)


def test_rows_of_a_larger_matrix(product: gemm.Gemm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm, "LEAST", 1)
    rng = np.random.default_rng(0)
    a, b = matrices(rng, (2, 9, 7), False)[:, 2:5], matrices(rng, (2, 7, 9), False)[:, :, 1:8]
    whole = np.full((2, 6, 7), 9, np.float32)
    out = whole[:, 1:4]
    assert product(a, b, out)
    np.testing.assert_allclose(out, a @ b, atol=1e-5)
    assert (whole[:, 0] == 9).all()
    assert (whole[:, 4:] == 9).all()


def test_what_is_left_to_numpy(product: gemm.Gemm, monkeypatch: pytest.MonkeyPatch) -> None:
    small = np.ones((4, 4), np.float32)
    out = np.zeros_like(small)
    assert not product(small, small, out)
    monkeypatch.setattr(gemm, "LEAST", 1)
    assert product(small, small, out)
    assert not product(small.astype(np.float64), small, out)
    assert not product(np.ones((8, 8), np.float32)[::2, ::2], small, out)
    assert not product(small, small, out.T)
