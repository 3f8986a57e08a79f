"""Crop: Caffe's values, offsets, gradients, errors that name the axis."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.errors import LayrubError
from tests.layers.common import both_ways
from tests.support.checks import check_gradients, check_no_allocation, probe, randomise
from tests.support.golden import GoldenCase

GOLDEN = ["crop_offset1", "crop_offsets", "crop_axis1", "crop_neg"]


def layer(params: str) -> str:
    return (
        'layer { name: "c" type: "Crop" bottom: "x" bottom: "size" top: "y" '
        f"crop_param {{ {params} }} }}"
    )


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str) -> None:
    GoldenCase(name).check()


def test_starts_at_the_offset() -> None:
    net = probe(layer("axis: 2 offset: 31"), {"x": (1, 1, 568, 568), "size": (1, 21, 500, 500)})
    x = net.data("x")
    x[...] = np.arange(568)[:, None]
    net.forward()
    assert net.data("y").shape == (1, 1, 500, 500)
    assert (net.data("y")[0, 0, 0, 0], net.data("y")[0, 0, -1, 0]) == (31, 530)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_equals_slicing(data: st.DataObject) -> None:
    sizes = [data.draw(st.integers(1, 4)) for _ in range(3)]
    offsets = [data.draw(st.integers(0, 3)) for _ in range(3)]
    shape = [s + o + data.draw(st.integers(0, 2)) for s, o in zip(sizes, offsets, strict=True)]
    params = "axis: 1 " + " ".join(f"offset: {o}" for o in offsets)
    net = probe(layer(params), {"x": (2, *shape), "size": (9, *sizes)})
    randomise(net, np.random.default_rng(0))
    net.diff("x")[...] = 9
    net.forward()
    net.backward()
    cut = (slice(None), *(slice(o, o + s) for o, s in zip(offsets, sizes, strict=True)))
    np.testing.assert_array_equal(net.data("y"), net.data("x")[cut])
    want = np.zeros_like(net.data("x"))
    want[cut] = net.diff("y")
    np.testing.assert_array_equal(net.diff("x"), want)


def test_gradients_and_memory() -> None:
    net = probe(layer("offset: 1 offset: 0"), {"x": (2, 3, 5, 6), "size": (2, 3, 3, 6)})
    randomise(net, np.random.default_rng(1))
    check_gradients(net, ["x"])
    check_no_allocation(net)
    assert "size" not in net.program.blob_diff
    both_ways(layer("offset: 1"), {"x": (2, 3, 5, 6), "size": (1, 1, 3, 4)})


@pytest.mark.parametrize(
    ("params", "size", "message"),
    [
        ("axis: 2 offset: 3", (1, 3, 4, 4), "the crop for dimension 2 is out of bounds"),
        ("axis: 1", (1, 21, 4, 4), "the crop for dimension 1 is out of bounds"),
        ("axis: 2 offset: 1 offset: 1 offset: 1", (1, 3, 4, 4), "number of offset values"),
        ("axis: 4", (1, 3, 4, 4), "the axis is out of range"),
        ("axis: 1", (1, 3, 4), "differ in their number of axes"),
    ],
)
def test_nonsense(params: str, size: tuple[int, ...], message: str) -> None:
    with pytest.raises(LayrubError) as error:
        probe(layer(params), {"x": (1, 3, 6, 6), "size": size})
    assert message in str(error.value)
    assert "'c'" in str(error.value)
