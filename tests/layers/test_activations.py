"""ReLU, Sigmoid, TanH: Caffe's values, gradients, in place, no allocation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.layers.common import both_ways, same_in_place
from tests.support.checks import check_gradients, check_no_allocation, probe, randomise
from tests.support.golden import GoldenCase

GOLDEN = [
    "relu_1d", "relu_inplace", "relu_slope", "relu_slope_inplace", "relu_zeros",
    "sigmoid_inplace", "sigmoid_large", "tanh_basic", "tanh_inplace",
]  # fmt: skip

LAYERS = {
    "ReLU": 'layer { name: "p" type: "ReLU" bottom: "x" top: "y" }',
    "leaky": 'layer { name: "p" type: "ReLU" bottom: "x" top: "y"'
    " relu_param { negative_slope: 0.1 } }",
    "negative slope": 'layer { name: "p" type: "ReLU" bottom: "x" top: "y"'
    " relu_param { negative_slope: -0.5 } }",
    "Sigmoid": 'layer { name: "p" type: "Sigmoid" bottom: "x" top: "y" }',
    "TanH": 'layer { name: "p" type: "TanH" bottom: "x" top: "y" }',
}


@pytest.mark.parametrize("name", GOLDEN)
def test_caffe(name: str) -> None:
    GoldenCase(name).check()


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_gradients(layer: str) -> None:
    net = probe(layer, {"x": (3, 4, 5)})
    rng = np.random.default_rng(1)
    randomise(net, rng)
    x = net.data("x")
    x[...] = np.where(np.abs(x) < 0.05, 0.5, x)  # away from ReLU's corner
    check_gradients(net, ["x"])


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_no_allocation(layer: str) -> None:
    check_no_allocation(probe(layer, {"x": (5, 20000)}))


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_in_place_gives_the_same_bits(layer: str) -> None:
    same_in_place(layer, {"x": (3, 50)})


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_without_backward_and_in_test_phase(layer: str) -> None:
    both_ways(layer, {"x": (3, 50)})


def test_a_negative_slope_reads_the_bottom() -> None:
    """With a negative slope y does not tell the sign of x; in place, x gets a copy."""
    net = probe(LAYERS["negative slope"].replace('top: "y"', 'top: "x"'), {"x": (4,)})
    net.data("x")[...] = 0
    net.executor.arrays["x.data"][...] = [-2, -1, 1, 2]
    net.forward(start="p")
    assert net.data("x").tolist() == [1, 0.5, 1, 2]
    net.diff("x")[...] = 1
    net.backward()
    assert net.executor.arrays["x.diff"].tolist() == [-0.5, -0.5, 1, 1]


@settings(max_examples=25, deadline=None)
@given(values=st.lists(st.floats(-200, 200, width=32), min_size=1, max_size=40))
def test_values_against_float64(values: list[float]) -> None:
    x = np.array(values, np.float32)
    wide = x.astype(np.float64)
    want = {"Sigmoid": 1 / (1 + np.exp(-wide)), "TanH": np.tanh(wide)}
    for name, expected in want.items():
        net = probe(LAYERS[name], {"x": x.shape})
        net.data("x")[...] = x
        net.forward()
        np.testing.assert_allclose(net.data("y"), expected, rtol=1e-5, atol=2e-7)
