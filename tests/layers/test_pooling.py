"""Pooling: Caffe's values and sizes, a naive loop, masks, gradients, errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.errors import LayrubError
from layrubnet.layers.pooling import pooled_size
from tests.layers.common import both_ways
from tests.support.checks import check_gradients, check_no_allocation, probe, randomise
from tests.support.golden import GoldenCase

GOLDEN = [
    "pool_max2", "pool_max3s2", "pool_max3s2p1", "pool_max_floor", "pool_max_clip",
    "pool_max_stride_gt", "pool_max_rect", "pool_max_ties", "pool_max_mask", "pool_max_global",
    "pool_ave2", "pool_ave3s1p1", "pool_ave_floor", "pool_ave_global", "pool_ave_clip",
    "pool_max_default_stride",
]  # fmt: skip
LOWEST = np.finfo(np.float32).min


def layer(params: str, tops: str = 'top: "y"') -> str:
    return f'layer {{ name: "p" type: "Pooling" bottom: "x" {tops} pooling_param {{ {params} }} }}'


MASKED = 'top: "y" top: "m"'


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str) -> None:
    GoldenCase(name).check()


@pytest.mark.parametrize(
    ("kernel", "stride", "pad", "size", "want"),
    [
        (3, 2, 0, 112, 56), (3, 2, 1, 64, 33), (3, 2, 1, 112, 57), (2, 2, 0, 129, 65),
        (3, 2, 0, 32, 16), (3, 3, 1, 4, 2), (3, 2, 1, 1, 1),
    ],
)  # fmt: skip
def test_sizes_round_up(kernel: int, stride: int, pad: int, size: int, want: int) -> None:
    params = f"kernel_size: {kernel} stride: {stride} pad: {pad}"
    net = probe(layer(params), {"x": (1, 1, size, size)})
    assert net.data("y").shape == (1, 1, want, want)


@pytest.mark.parametrize(
    "words", ["round_mode: FLOOR", "ceil_mode: false", "torch_pooling: true",
              "round_mode: FLOOR ceil_mode: false torch_pooling: true"],
)  # fmt: skip
def test_ways_to_round_down(words: str) -> None:
    net = probe(layer(f"kernel_size: 2 stride: 2 {words}"), {"x": (1, 1, 5, 7)})
    assert net.data("y").shape == (1, 1, 2, 3)


# -- against a naive loop ------------------------------------------------------------------------


def naive(
    x: np.ndarray, kernel: int, stride: int, pad: int, out: tuple[int, int], average: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Values and positions of one plane, window by window."""
    height, width = x.shape
    y, m = np.empty(out, np.float32), np.full(out, -1.0, np.float32)
    for i, j in np.ndindex(out):
        top, left = i * stride - pad, j * stride - pad
        rows = range(max(top, 0), min(top + kernel, height))
        columns = range(max(left, 0), min(left + kernel, width))
        cells = [(x[r, c], -(r * width + c)) for r in rows for c in columns]
        if average:
            area = (min(top + kernel, height + pad) - top) * (
                min(left + kernel, width + pad) - left
            )
            y[i, j] = sum(float(v) for v, _ in cells) / area if cells else 0
        else:
            y[i, j], position = max(cells) if cells else (LOWEST, 1)
            m[i, j] = -position
    return y, m


@settings(max_examples=120, deadline=None)
@given(average=st.booleans(), floor=st.booleans(), seed=st.integers(0, 1 << 30))
def test_equals_the_definition(average: bool, floor: bool, seed: int) -> None:
    # Sizes come from the seed: drawn one by one they hardly ever make the last window special.
    rng = np.random.default_rng(seed)
    kernel, stride = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    pad = int(rng.integers(0, kernel))
    height, width = (int(n) for n in rng.integers(1, 10, 2))
    out = tuple(
        pooled_size(n, kernel, stride, pad, floor=floor, clip=pad > 0) for n in (height, width)
    )
    params = (
        f"pool: {'AVE' if average else 'MAX'} kernel_size: {kernel} stride: {stride} pad: {pad} "
        f"round_mode: {'FLOOR' if floor else 'CEIL'}"
    )
    text = layer(params, 'top: "y"' if average else MASKED)
    if min(out) < 1:
        with pytest.raises(LayrubError, match="the window does not fit"):
            probe(text, {"x": (2, 2, height, width)})
        return
    net = probe(text, {"x": (2, 2, height, width)})
    x = net.data("x")
    x[...] = rng.integers(-3, 3, x.shape)  # ties
    dy = net.diff("y")
    dy[...] = rng.uniform(-1, 1, dy.shape)
    net.forward()
    net.backward()
    want = np.zeros_like(x)
    for n, c in np.ndindex(2, 2):
        y, m = naive(x[n, c], kernel, stride, pad, out, average)
        np.testing.assert_allclose(net.data("y")[n, c], y, atol=1e-6)
        if average:
            continue
        np.testing.assert_array_equal(net.data("m")[n, c], m)
        for value, position in zip(dy[n, c].ravel(), m.ravel(), strict=True):
            if position >= 0:
                want[n, c].reshape(-1)[int(position)] += value
    if not average:
        np.testing.assert_allclose(net.diff("x"), want, atol=1e-6)


def test_padding_is_never_the_largest() -> None:
    net = probe(layer("kernel_size: 3 stride: 2 pad: 1", MASKED), {"x": (1, 1, 3, 3)})
    net.data("x")[...] = -np.arange(1, 10).reshape(3, 3)
    net.forward()
    np.testing.assert_array_equal(net.data("y")[0, 0], [[-1, -2], [-4, -5]])
    np.testing.assert_array_equal(net.data("m")[0, 0], [[0, 1], [3, 4]])


def test_the_average_counts_padding_up_to_the_trailing_pad() -> None:
    """Rows of the windows on 4 cells: -1..1, 1..3, and 3..4, where a cell 5 does not count."""
    net = probe(layer("pool: AVE kernel_size: 3 stride: 2 pad: 1"), {"x": (1, 1, 4, 4)})
    net.data("x")[...] = 1
    net.forward()
    share = np.array([2 / 3, 1, 1 / 2])
    np.testing.assert_allclose(net.data("y")[0, 0], np.outer(share, share), rtol=1e-6)


@pytest.mark.parametrize(("pool", "value"), [("MAX", LOWEST), ("AVE", 0)])
def test_a_window_outside_is_defined(pool: str, value: float) -> None:
    """Kernel 2, stride 3 on 9 cells: the fourth window starts where the plane ends."""
    net = probe(layer(f"pool: {pool} kernel_size: 2 stride: 3"), {"x": (1, 1, 9, 9)})
    net.data("x")[...] = 1
    net.diff("y")[...] = np.nan
    net.diff("y")[:, :, :3, :3] = 1
    net.forward()
    net.backward()
    y = net.data("y")
    assert y.shape == (1, 1, 4, 4)
    assert (y[:, :, :3, :3] == 1).all()
    assert (y[:, :, 3] == np.float32(value)).all()
    assert (y[:, :, :, 3] == np.float32(value)).all()
    assert net.diff("x").sum() == pytest.approx(9)


def test_nan_and_infinity() -> None:
    net = probe(layer("kernel_size: 2 stride: 2"), {"x": (1, 1, 2, 6)})
    net.data("x")[...] = [[1, np.nan, np.inf, 2, -np.inf, -np.inf], [2, 3, 4, 5, -np.inf, 0]]
    net.diff("y")[...] = [[1, np.inf, 3]]
    net.forward()
    net.backward()
    np.testing.assert_array_equal(net.data("y"), [[[[np.nan, np.inf, 0]]]])
    np.testing.assert_array_equal(net.diff("x")[0, 0, :, 2:], [[np.inf, 0, 0, 0], [0, 0, 0, 3]])


@pytest.mark.parametrize(
    ("kernel", "dtype"), [((15, 17), "uint8"), ((16, 16), "uint16"), ((256, 257), "int32")]
)
def test_mask_type_by_window(kernel: tuple[int, int], dtype: str) -> None:
    params = f"kernel_h: {kernel[0]} kernel_w: {kernel[1]} stride_h: 1 stride_w: {kernel[1]}"
    rows = kernel[0] if dtype == "int32" else kernel[0] + 1
    net = probe(layer(params, MASKED), {"x": (1, 1, rows, kernel[1])})
    assert net.graph.nodes[-1].contract.saved[0].dtype == dtype
    x = net.data("x")
    x[...] = np.arange(x.size).reshape(x.shape)
    net.diff("y")[...] = 2
    net.forward()
    net.backward()
    positions = net.data("m").ravel().astype(int)
    assert positions[-1] == x.size - 1
    assert net.diff("x").ravel()[positions] == pytest.approx(2)
    assert net.diff("x").sum() == pytest.approx(2 * positions.size)


# -- gradients, memory ---------------------------------------------------------------------------

CASES = [
    "pool: MAX kernel_size: 3 stride: 2 pad: 1",
    "pool: AVE kernel_size: 3 stride: 2 pad: 1",
    "pool: AVE kernel_h: 2 kernel_w: 3 stride_h: 1 stride_w: 4",
    "pool: AVE global_pooling: true",
    "pool: MAX global_pooling: true",
]


@pytest.mark.parametrize("params", CASES)
def test_gradients(params: str) -> None:
    net = probe(layer(params), {"x": (2, 3, 6, 7)})
    randomise(net, np.random.default_rng(1))
    values = np.random.default_rng(2).permutation(net.data("x").size)  # no two within the step
    net.data("x")[...] = values.reshape(net.data("x").shape) * 0.1
    check_gradients(net, ["x"])


@pytest.mark.parametrize("params", CASES)
@pytest.mark.parametrize("shape", [(2, 3, 6, 7), (3, 70, 40, 40)])
def test_no_allocation(params: str, shape: tuple[int, ...]) -> None:
    check_no_allocation(probe(layer(params), {"x": shape}))


def test_no_allocation_with_a_wide_mask() -> None:
    text = layer("kernel_size: 20 stride: 20", MASKED)
    check_no_allocation(probe(text, {"x": (4, 20, 60, 60)}))


def test_blocks_of_planes_change_nothing() -> None:
    """Many planes are walked in blocks; each one is pooled as if it were alone."""
    for params in CASES[:2]:
        many = probe(layer(params), {"x": (1, 700, 20, 20)})
        randomise(many, np.random.default_rng(3))
        many.forward()
        many.backward()
        one = probe(layer(params), {"x": (1, 1, 20, 20)})
        for plane in (0, 654, 655, 699):
            one.data("x")[...] = many.data("x")[:, plane]
            one.diff("y")[...] = many.diff("y")[:, plane]
            one.forward()
            one.backward()
            assert (one.data("y")[0, 0] == many.data("y")[0, plane]).all()
            # Overlapping windows may add up in another order.
            np.testing.assert_allclose(
                one.diff("x")[0, 0], many.diff("x")[0, plane], rtol=1e-6, atol=1e-7
            )


def test_backward_keeps_the_mask_only() -> None:
    contract = probe(layer("kernel_size: 2"), {"x": (1, 1, 4, 4)}).graph.nodes[-1].contract
    needs = contract.backward_data
    assert (needs.bottoms, needs.tops, needs.saved) == ((), (), ("mask",))


@pytest.mark.parametrize("params", CASES)
def test_test_phase_and_no_backward(params: str) -> None:
    both_ways(layer(params), {"x": (2, 3, 6, 7)})


# -- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("", "the filter size is missing"),
        ("kernel_size: 2 kernel_h: 2", "not both"),
        ("kernel_h: 2", "both kernel_h and kernel_w are required"),
        ("kernel_size: 2 stride: 2 stride_w: 1", "not both"),
        ("kernel_size: 2 pad_w: 1", "both pad_h and pad_w are required"),
        ("kernel_size: 0", "Filter dimensions cannot be zero"),
        ("kernel_size: 2 stride: 0", "Stride dimensions cannot be zero"),
        ("kernel_size: 2 pad: 2", "the padding must be smaller than the kernel"),
        ("kernel_size: 2 global_pooling: true", "Filter size cannot specified"),
        ("global_pooling: true stride: 2", "only pad = 0 and stride = 1"),
        ("kernel_size: 9", "the window does not fit the height"),
        ("pool: STOCHASTIC kernel_size: 2", "not on the CPU either"),
        ("kernel_size: 2 round_mode: CEIL ceil_mode: false", "contradict each other"),
        ("kernel_size: 2 torch_pooling: true ceil_mode: true", "contradict each other"),
    ],
)
def test_nonsense(params: str, message: str) -> None:
    with pytest.raises(LayrubError) as error:
        probe(layer(params), {"x": (1, 1, 4, 5)})
    assert message in str(error.value)
    assert "'p'" in str(error.value)


def test_four_axes_and_one_top_for_the_average() -> None:
    with pytest.raises(LayrubError, match="Input must have 4 axes"):
        probe(layer("kernel_size: 2"), {"x": (4, 4, 4)})
    with pytest.raises(LayrubError, match="only MAX pooling has a second top"):
        probe(layer("pool: AVE kernel_size: 2", MASKED), {"x": (1, 1, 4, 4)})
