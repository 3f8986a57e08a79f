"""Softmax."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.errors import ShapeError
from tests.support.checks import check_gradients, check_no_allocation, make_net, probe, randomise
from tests.support.golden import GoldenCase

CASES = ["softmax_default", "softmax_spatial", "softmax_axis2", "softmax_axis0", "softmax_inplace"]


def softmax(axis: int, top: str = "y") -> str:
    return (
        f'layer {{ name: "l" type: "Softmax" bottom: "x" top: "{top}"'
        f" softmax_param {{ axis: {axis} }} }}"
    )


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    GoldenCase(name).check()


@pytest.mark.parametrize("train", [True, False])
def test_both_ways_of_compiling(train: bool) -> None:
    net = probe(softmax(1), {"x": (2, 3)}, phase="TEST", train=train)
    net.data("x")[...] = [[1, 1, 1], [1000, 0, -1000]]
    net.forward()
    np.testing.assert_allclose(net.data("y"), [[1 / 3] * 3, [1, 0, 0]], rtol=1e-6)


@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple),
    data=st.data(),
)
@settings(max_examples=30, deadline=None)
def test_equals_the_formula(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    net = probe(softmax(axis), {"x": shape})
    randomise(net, np.random.default_rng(len(shape)), -5, 5)
    x, dy = net.data("x").astype(np.float64), net.diff("y").astype(np.float64)
    net.forward()
    net.backward()
    e = np.exp(x)
    y = e / e.sum(axis, keepdims=True)
    np.testing.assert_allclose(net.data("y"), y, rtol=1e-5)
    np.testing.assert_allclose(
        net.diff("x"), (dy - (dy * y).sum(axis, keepdims=True)) * y, atol=1e-6
    )


def test_gradients() -> None:
    net = probe(softmax(1), {"x": (2, 4, 3)})
    randomise(net, np.random.default_rng(0))
    check_gradients(net, ["x"])


def test_in_place_gives_the_same_bits() -> None:
    two = softmax(1, "x2").replace('"x"', '"x1"') + softmax(1, "x2").replace('"l"', '"m"').replace(
        'bottom: "x"', 'bottom: "x2"'
    ).replace('top: "x2"', 'top: "x3"')
    one = two.replace('"x3"', '"x2"')
    results = []
    for text, last in ((two, "x3"), (one, "x2")):
        net = probe(text, {"x1": (3, 70, 5)})
        net.data("x1")[...] = np.random.default_rng(1).normal(size=(3, 70, 5))
        net.diff(last)[...] = np.random.default_rng(2).normal(size=(3, 70, 5))
        net.forward()
        net.backward()
        results.append((np.array(net.data(last)), np.array(net.diff("x1"))))
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_allocates_nothing() -> None:
    for shape in ((300, 200), (2, 3, 200, 301)):
        net = probe(softmax(1), {"x": shape})
        randomise(net, np.random.default_rng(0))
        check_no_allocation(net)


def test_axis_out_of_range() -> None:
    with pytest.raises(ShapeError, match="axis is out of range"):
        probe(softmax(2), {"x": (2, 3)})


def test_on_a_null_device_nothing_is_needed_but_shapes() -> None:
    net = make_net(
        'layer { name: "d" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }'
        + softmax(-1)
    )
    assert net.graph.nodes[-1].contract.tops[0].shape == (2, 3)
