"""Deconvolution: Caffe's values, sizes, the transpose of Convolution, gradients, errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.errors import LayrubError
from tests.layers.common import both_ways
from tests.support.checks import check_gradients, check_no_allocation, probe, randomise
from tests.support.golden import GoldenCase

GOLDEN = [
    "deconv_basic", "deconv_stride", "deconv_group", "deconv_bilinear", "deconv_rect",
    "deconv_dilate", "deconv_1x1",
]  # fmt: skip


def layer(params: str, kind: str = "Deconvolution") -> str:
    return (
        f'layer {{ name: "d" type: "{kind}" bottom: "x" top: "y" '
        f"convolution_param {{ {params} }} }}"
    )


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str) -> None:
    GoldenCase(name).check()


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "pad", "want"),
    [(9, 7, 2, 0, 23), (11, 4, 2, 2, 20), (16, 3, 2, 1, 31), (16, 4, 2, 1, 32)],
)
def test_size_without_output_padding(
    size: int, kernel: int, stride: int, pad: int, want: int
) -> None:
    params = f"num_output: 1 kernel_size: {kernel} stride: {stride} pad: {pad}"
    assert probe(layer(params), {"x": (1, 1, size, size)}).data("y").shape == (1, 1, want, want)


@settings(max_examples=30, deadline=None)
@given(
    kernel=st.integers(1, 3),
    stride=st.integers(1, 3),
    group=st.integers(1, 2),
    images=st.integers(1, 6),
    size=st.integers(2, 4),
)
def test_is_the_transpose_of_convolution(
    kernel: int, stride: int, group: int, images: int, size: int
) -> None:
    rng = np.random.default_rng(1)
    shared = f"kernel_size: {kernel} stride: {stride} group: {group} bias_term: false"
    up = probe(layer(f"num_output: {2 * group} {shared}"), {"x": (images, group, size, size)})
    randomise(up, rng)
    up.forward()
    y = up.data("y")
    down = probe(layer(f"num_output: {group} {shared}", "Convolution"), {"x": y.shape})
    down.set_blob("d", 0, up.get_blob("d", 0))
    down.diff("y")[...] = up.data("x")
    down.backward()
    np.testing.assert_allclose(down.diff("x"), y, atol=1e-5)


CASES = [
    ("num_output: 2 kernel_size: 3 stride: 2 pad: 1", (3, 2, 3, 4)),
    ("num_output: 4 kernel_size: 2 dilation: 2 group: 2", (6, 4, 3, 3)),
    ("num_output: 3 kernel_size: 4 stride: 2 pad: 1 group: 3 bias_term: false", (5, 3, 3, 3)),
    ("num_output: 3 kernel_size: 1", (2, 2, 8, 8)),
    ("num_output: 2 kernel_size: 2 stride: 2", (2, 2, 2, 3, 2)),
]


@pytest.mark.parametrize(("params", "shape"), CASES)
def test_gradients(params: str, shape: tuple[int, ...]) -> None:
    net = probe(layer(params), {"x": shape})
    randomise(net, np.random.default_rng(2))
    check_gradients(net, ["x"])


@pytest.mark.parametrize(("params", "shape"), CASES)
def test_no_allocation(params: str, shape: tuple[int, ...]) -> None:
    check_no_allocation(probe(layer(params), {"x": shape}))


def test_bilinear_weights_interpolate() -> None:
    params = (
        "num_output: 2 group: 2 kernel_size: 4 stride: 2 pad: 1 bias_term: false "
        'weight_filler { type: "bilinear" }'
    )
    net = probe(layer(params), {"x": (1, 2, 5, 5)})
    net.data("x")[...] = 3
    net.forward()
    np.testing.assert_allclose(net.data("y")[:, :, 1:-1, 1:-1], 3, rtol=1e-6)


def test_test_phase_and_no_backward() -> None:
    both_ways(layer("num_output: 4 kernel_size: 3"), {"x": (2, 2, 5, 5)})


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("kernel_size: 3", "num_output must be given"),
        ("num_output: 2 kernel_size: 1 pad: 3", "the kernel leaves nothing of axis 2"),
        ("num_output: 4 kernel_size: 1 group: 4", "input channels must be a multiple of group"),
    ],
)
def test_nonsense(params: str, message: str) -> None:
    with pytest.raises(LayrubError, match=message):
        probe(layer(params), {"x": (1, 2, 5, 5)})
