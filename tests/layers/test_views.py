"""Split, Flatten, Reshape: shapes, gradients through chains of views, in-place layers on views."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.errors import ShapeError
from tests.layers.common import assert_same_bits, both_ways, inputs_text, run
from tests.support.checks import check_gradients, check_no_allocation, make_net, probe, randomise
from tests.support.golden import GoldenCase

GOLDEN = [
    "flatten_default", "flatten_mid", "flatten_neg", "reshape_axis", "reshape_infer",
    "reshape_insert", "reshape_negaxis", "reshape_zero_mid", "split_four", "split_one",
]  # fmt: skip

FLATTEN = 'layer { name: "f" type: "Flatten" bottom: "%s" top: "%s" }'
FOLD = (
    'layer { name: "r%s" type: "Reshape" bottom: "%s" top: "%s"'
    " reshape_param { shape { dim: 0 dim: 2 dim: -1 } } }"
)
CHAINS = {
    "Reshape, Flatten": FOLD % ("1", "x", "m") + FLATTEN % ("m", "y"),
    "Flatten, Reshape": FLATTEN % ("x", "m") + FOLD % ("1", "m", "y"),
    "Reshape, Reshape": FOLD % ("1", "x", "m") + FOLD % ("2", "m", "y"),
    "in place": FOLD % ("1", "x", "x") + FLATTEN % ("x", "y"),
}


def reshape(param: str) -> str:
    return f'layer {{ name: "p" type: "Reshape" bottom: "x" top: "y" reshape_param {{ {param} }} }}'


@pytest.mark.parametrize("name", GOLDEN)
def test_caffe(name: str) -> None:
    GoldenCase(name).check()


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_chains_of_views_have_the_identity_as_gradient(chain: str) -> None:
    """In Caffe the first of these gave zero gradients."""
    net = make_net(inputs_text({"x": (3, 8)}) + chain)
    assert not any(i.target[0] in "fr" for i in net.program.variant("first"))
    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    net.executor.arrays["x.data"][...] = x
    net.forward()
    assert net.data("y").ravel().tolist() == x.ravel().tolist()
    net.diff("y")[...] = 2 * x.reshape(net.diff("y").shape)
    net.backward()
    assert (net.executor.arrays["x.diff"] == 2 * x).all()


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_views_between_layers_that_learn(chain: str) -> None:
    """The parameters below a chain of views get the gradients they have without it."""
    head = inputs_text({"d": (3, 5)}) + (
        'layer { name: "ip" type: "InnerProduct" bottom: "d" top: "x"'
        " inner_product_param { num_output: 8 } }"
    )
    tail = 'layer { name: "ip2" type: "InnerProduct" bottom: "%s" top: "z"' + (
        " inner_product_param { num_output: 2 } }"
    )
    rng = np.random.default_rng(1)
    d = rng.uniform(-1, 1, (3, 5)).astype(np.float32)
    seed = rng.uniform(-1, 1, (3, 2)).astype(np.float32)
    with_views = run(head + chain + tail % "y", {"d": d}, "z", seed)
    assert_same_bits(with_views, run(head + tail % "x", {"d": d}, "z", seed))
    assert np.abs(with_views["dip/0"]).max() > 0


VIEWS = {
    "Reshape": FOLD % ("1", "x", "v"),
    "Flatten": FLATTEN % ("x", "v"),
    "Reshape, Flatten": FOLD % ("1", "x", "m") + FLATTEN % ("m", "v"),
    "Split": 'layer { name: "s" type: "Split" bottom: "x" top: "v" top: "other" }',
    "Reshape, second reader": FOLD % ("1", "x", "v")
    + 'layer { name: "second" type: "TanH" bottom: "x" top: "other" }',
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("before", ["Sigmoid", "ReLU"])
@pytest.mark.parametrize("kind", ["ReLU", "Sigmoid", "PReLU"])
def test_in_place_layers_on_views(kind: str, before: str, view: str) -> None:
    """Sigmoid's gradient reads x, which the in-place layer on the view would overwrite."""
    head = inputs_text({"d": (3, 8)})
    head += f'layer {{ name: "b" type: "{before}" bottom: "d" top: "x" }}' + view
    rng = np.random.default_rng(3)
    d, seed = (rng.uniform(-1, 1, (3, 8)).astype(np.float32) for _ in range(2))
    results = []
    for top in ("v", "w"):
        body = head + f'layer {{ name: "a" type: "{kind}" bottom: "v" top: "{top}" }}'
        if "other" in view:  # a reader of the overwritten memory, after the in-place layer
            body += f'layer {{ name: "g" type: "Flatten" bottom: "{top}" top: "flat" }}'
            body += 'layer { name: "h" type: "Flatten" bottom: "other" top: "flat2" }'
            body += 'layer { name: "e" type: "Eltwise" bottom: "flat" bottom: "flat2" top: "z"'
            body += " eltwise_param { operation: PROD } }"
        else:
            body += f'layer {{ name: "e" type: "Flatten" bottom: "{top}" top: "z" }}'
        results.append(run(body, {"d": d}, "z", seed))
    assert_same_bits(*results)


def test_gradients_of_a_split() -> None:
    net = probe('layer { name: "p" type: "Split" bottom: "x" top: "a" top: "b" }', {"x": (3, 4)})
    randomise(net, np.random.default_rng(1))
    check_gradients(net, ["x"])


def test_no_allocation() -> None:
    text = reshape("shape { dim: -1 }") + 'layer { name: "t" type: "TanH" bottom: "y" top: "z" }'
    check_no_allocation(probe(text, {"x": (3, 20000)}))


def test_without_backward_and_in_test_phase() -> None:
    both_ways(reshape("shape { dim: 2 dim: -1 }"), {"x": (3, 4)})


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    start=st.integers(0, 4),
    taken=st.integers(-1, 4),
    data=st.data(),
)
def test_reshape_against_numpy(
    shape: list[int], start: int, taken: int, data: st.DataObject
) -> None:
    start = min(start, len(shape))
    taken = min(taken, len(shape) - start)
    end = len(shape) if taken == -1 else start + taken
    count = math.prod(shape[start:end])
    parts = data.draw(st.sampled_from([d for d in range(1, count + 1) if count % d == 0]))
    dims = data.draw(st.sampled_from([[parts, count // parts], [-1, parts], [parts, 1, -1]]))
    negative = data.draw(st.booleans())
    axis = start - len(shape) - 1 if negative else start
    text = f"axis: {axis} num_axes: {taken} shape {{ {' '.join(f'dim: {d}' for d in dims)} }}"
    net = probe(reshape(text), {"x": tuple(shape)})
    middle = np.empty(count).reshape(dims).shape
    assert net.data("y").shape == (*shape[:start], *middle, *shape[end:])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (reshape("shape { dim: -1 dim: -1 }"), "multiple -1 dims"),
        (reshape("shape { dim: -2 }"), "negative dim"),
        (reshape("shape { dim: 5 dim: -1 }"), "must be divisible"),
        (reshape("shape { dim: 2 dim: 6 }"), "output count must match input count"),
        (reshape("shape { dim: 0 dim: 0 dim: 0 dim: 0 }"), "no corresponding bottom axis"),
        (reshape("shape { dim: 1 } axis: 2 num_axes: 2"), "end_axis = axis \\+ num_axes"),
        (reshape("shape { dim: 1 } axis: 4"), "axis is out of range"),
        (reshape("shape { dim: 1 } num_axes: -2"), "num_axes must be"),
        (
            'layer { name: "p" type: "Flatten" bottom: "x" top: "y"'
            " flatten_param { axis: 2 end_axis: 1 } }",
            "end_axis lies before axis",
        ),
        (
            'layer { name: "p" type: "Flatten" bottom: "x" top: "y" flatten_param { axis: 3 } }',
            "axis is out of range",
        ),
    ],
)
def test_mistakes_are_explained(text: str, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        probe(text, {"x": (2, 3, 4)})
