"""LRN: Caffe's values, the definition in float64, gradients, in place, errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.errors import LayrubError
from tests.layers.common import both_ways, same_in_place
from tests.support.checks import check_gradients, check_no_allocation, probe, randomise
from tests.support.golden import GoldenCase

GOLDEN = ["lrn_default", "lrn_across3", "lrn_alex", "lrn_few_channels", "lrn_within5"]


def layer(params: str) -> str:
    return f'layer {{ name: "n" type: "LRN" bottom: "x" top: "y" lrn_param {{ {params} }} }}'


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str) -> None:
    GoldenCase(name).check()


@settings(max_examples=40, deadline=None)
@given(
    channels=st.integers(1, 9),
    radius=st.integers(0, 4),
    beta=st.sampled_from([0.75, 0.5, 1.0, 0.6]),
    k=st.sampled_from([1.0, 2.0]),
    within=st.booleans(),
)
def test_equals_the_definition(
    channels: int, radius: int, beta: float, k: float, within: bool
) -> None:
    n, alpha = 2 * radius + 1, 0.4
    region = "WITHIN_CHANNEL" if within else "ACROSS_CHANNELS"
    params = f"local_size: {n} alpha: {alpha} beta: {beta} k: {k} norm_region: {region}"
    net = probe(layer(params), {"x": (2, channels, 4, 3)})
    randomise(net, np.random.default_rng(1), -3, 3)
    net.forward()
    x = net.data("x").astype(np.float64)
    if within:
        square = np.pad(x * x, [(0, 0), (0, 0), (radius, radius), (radius, radius)])
        total = sum(square[:, :, i : i + 4, j : j + 3] for i in range(n) for j in range(n))
        scale = 1 + alpha / n**2 * total
    else:
        square = np.pad(x * x, [(0, 0), (radius, radius), (0, 0), (0, 0)])
        scale = k + alpha / n * sum(square[:, c : c + channels] for c in range(n))
    np.testing.assert_allclose(net.data("y"), x * scale**-beta, rtol=1e-5, atol=1e-6)


CASES = [
    "local_size: 3 alpha: 0.5 beta: 0.75 k: 2",
    "local_size: 5 alpha: 0.7 beta: 0.6",
    "local_size: 3 alpha: 2 norm_region: WITHIN_CHANNEL",
]


@pytest.mark.parametrize("params", CASES)
def test_gradients(params: str) -> None:
    net = probe(layer(params), {"x": (2, 4, 3, 5)})
    randomise(net, np.random.default_rng(2))
    check_gradients(net, ["x"])


@pytest.mark.parametrize("params", CASES)
@pytest.mark.parametrize("shape", [(2, 4, 3, 5), (2, 96, 30, 30), (40, 8, 5, 5)])
def test_no_allocation(params: str, shape: tuple[int, ...]) -> None:
    check_no_allocation(probe(layer(params), {"x": shape}))


@pytest.mark.parametrize("params", CASES)
def test_in_place(params: str) -> None:
    same_in_place(layer(params), {"x": (3, 4, 5, 4)})


@pytest.mark.parametrize("params", CASES)
def test_tiles_change_nothing(params: str) -> None:
    """Large bottoms are walked in tiles; each image comes out as if it were alone."""
    many, one = (probe(layer(params), {"x": (n, 40, 25, 24)}) for n in (3, 1))
    randomise(many, np.random.default_rng(3))
    many.forward()
    many.backward()
    one.data("x")[...] = many.data("x")[2:]
    one.diff("y")[...] = many.diff("y")[2:]
    one.forward()
    one.backward()
    np.testing.assert_allclose(one.data("y")[0], many.data("y")[2], rtol=1e-6)
    np.testing.assert_allclose(one.diff("x")[0], many.diff("x")[2], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("params", CASES)
def test_test_phase_and_no_backward(params: str) -> None:
    both_ways(layer(params), {"x": (2, 3, 6, 7)})


def test_nonsense() -> None:
    with pytest.raises(LayrubError, match="LRN only supports odd values for local_size"):
        probe(layer("local_size: 4"), {"x": (1, 2, 3, 3)})
    with pytest.raises(LayrubError, match="Input must have 4 axes"):
        probe(layer(""), {"x": (1, 2)})
