"""Concat and Slice: Caffe's values, any axis, unused tops, inverse of each other."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.engine.net import CompiledNet
from layrubnet.errors import NetError
from layrubnet.proto import NetParameter
from tests.layers.common import both_ways, inputs_text
from tests.support.checks import check_gradients, check_no_allocation, probe, randomise
from tests.support.golden import GoldenCase

GOLDEN = [
    "concat_axis0", "concat_default", "concat_neg", "concat_same_twice", "concat_single",
    "slice_axis0", "slice_dim", "slice_neg", "slice_points",
]  # fmt: skip


def concat(param: str, bottoms: str = "ab") -> str:
    names = " ".join(f'bottom: "{b}"' for b in bottoms)
    return f'layer {{ name: "c" type: "Concat" {names} top: "y" concat_param {{ {param} }} }}'


def cut(param: str, tops: str = "pq") -> str:
    names = " ".join(f'top: "{t}"' for t in tops)
    return f'layer {{ name: "s" type: "Slice" bottom: "x" {names} slice_param {{ {param} }} }}'


@pytest.mark.parametrize("name", GOLDEN)
def test_caffe(name: str) -> None:
    GoldenCase(name).check()


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_gradients(axis: int) -> None:
    net = probe(concat(f"axis: {axis}"), {"a": (2, 3, 2), "b": (2, 3, 2)})
    randomise(net, np.random.default_rng(1))
    check_gradients(net, ["a", "b"])
    net = probe(cut(f"axis: {axis}"), {"x": (4, 6, 2)})
    randomise(net, np.random.default_rng(1))
    check_gradients(net, ["x"])


def test_no_allocation() -> None:
    for axis in (0, 1, 2):
        check_no_allocation(probe(concat(f"axis: {axis}"), {"a": (4, 20, 600), "b": (4, 20, 600)}))
        check_no_allocation(probe(cut(f"axis: {axis}"), {"x": (4, 20, 600)}))


def test_without_backward_and_in_test_phase() -> None:
    both_ways(concat("axis: 1"), {"a": (2, 3), "b": (2, 4)})
    both_ways(cut("axis: 1"), {"x": (2, 4)})


@pytest.mark.parametrize("text", [concat("", "a"), cut("", "y").replace('"x"', '"a"')])
def test_a_single_piece_is_a_view(text: str) -> None:
    net = probe(text, {"a": (2, 3)})
    assert [n for n, b in net.program.buffers.items() if b.kind == "data"] == ["a.data"]
    assert not any(i.target in "cs" for i in net.program.variant("first"))


def test_a_top_without_gradient_counts_as_zero() -> None:
    """The silenced piece is under no loss, so no gradient arrives from it."""
    text = inputs_text({"d": (2, 2)})
    text += 'layer { name: "ip" type: "InnerProduct" bottom: "d" top: "x"'
    text += " inner_product_param { num_output: 3 } }" + cut("slice_point: 1", "pq")
    text += 'layer { name: "r" type: "Silence" bottom: "q" }'
    text += 'layer { name: "l" type: "Power" bottom: "p" top: "loss" loss_weight: 1'
    text += " power_param { scale: 2 } }"
    net = CompiledNet(text_format.Parse(text, NetParameter()), "TRAIN")
    sliced = next(i for i in net.program.variant("first") if str(i).startswith("backward_data s"))
    assert sliced.slots["dy"][1] is None
    net.diff("x")[...] = 9
    net.forward()
    net.backward()
    assert net.diff("x").tolist() == [[2, 0, 0], [2, 0, 0]]


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    sizes=st.lists(st.integers(1, 3), min_size=2, max_size=4),
    data=st.data(),
)
def test_against_numpy(shape: list[int], sizes: list[int], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    position = axis % len(shape)
    names, rng = "abcd"[: len(sizes)], np.random.default_rng(1)
    shapes = [(*shape[:position], n, *shape[position + 1 :]) for n in sizes]
    parts = [rng.uniform(-1, 1, s).astype(np.float32) for s in shapes]
    whole = np.concatenate(parts, axis=axis)
    joined = probe(concat(f"axis: {axis}", names), dict(zip(names, shapes, strict=True)))
    for name, part in zip(names, parts, strict=True):
        joined.data(name)[...] = part
    joined.forward()
    assert (joined.data("y") == whole).all()
    joined.diff("y")[...] = whole
    joined.backward()
    points = " ".join(f"slice_point: {p}" for p in np.cumsum(sizes)[:-1])
    split = probe(cut(f"axis: {axis} {points}", names), {"x": whole.shape})
    split.data("x")[...] = whole
    split.forward()
    for name, part in zip(names, parts, strict=True):
        assert (joined.diff(name) == part).all()
        assert (split.data(name) == part).all()
        split.diff(name)[...] = part
    split.backward()
    assert (split.diff("x") == whole).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            concat("axis: 1 concat_dim: 1"),
            "Either axis or concat_dim should be specified; not both",
        ),
        (concat("axis: 2"), "All inputs must have the same shape, except at concat_axis"),
        (concat("", "ad"), "All inputs must have the same shape"),
        (concat("axis: 3"), "axis is out of range"),
        (cut("axis: 1 slice_dim: 1"), "Either axis or slice_dim"),
        (cut("", "pqr"), "should evenly divide input slice axis"),
        (cut("slice_point: 1 slice_point: 2"), "number of slice points"),
        (cut("slice_point: 2 slice_point: 2", "pqr"), "slice points must rise"),
        (cut("slice_point: 4"), "slice points must rise"),
        (cut("slice_point: 0"), "slice points must rise"),
    ],
)
def test_mistakes_are_explained(text: str, message: str) -> None:
    with pytest.raises(NetError, match=message):
        probe(text, {"a": (2, 3, 2), "b": (2, 4, 2), "d": (2, 3), "x": (2, 4, 2)})
