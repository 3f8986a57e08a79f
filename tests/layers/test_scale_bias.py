"""Scale and Bias: Caffe's values, all placements of the operand, one and two bottoms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.errors import ShapeError
from tests.layers.common import both_ways, fill_params, same_in_place
from tests.support.checks import check_gradients, check_no_allocation, probe, randomise
from tests.support.golden import GoldenCase

GOLDEN = [
    "bias_all", "bias_axis0", "bias_inplace", "bias_scalar", "bias_two_bottoms",
    "bias_two_bottoms_axis0", "scale_axis0_n2", "scale_axis2", "scale_default",
    "scale_default_filler", "scale_full", "scale_inplace", "scale_negaxis", "scale_tail",
    "scale_two_bottoms", "scale_two_bottoms_axis0", "scale_two_bottoms_same",
]  # fmt: skip

Shape = tuple[int, ...]


def layer(kind: str, param: str = "", second: bool = False) -> str:
    message = f"{kind.lower()}_param {{ {param} }}"
    bottoms = 'bottom: "x" bottom: "s"' if second else 'bottom: "x"'
    return f'layer {{ name: "p" type: "{kind}" {bottoms} top: "y" {message} }}'


FORMS: dict[str, tuple[str, dict[str, Shape]]] = {
    "scale": (layer("Scale"), {"x": (3, 4, 5)}),
    "scale, bias": (layer("Scale", "bias_term: true"), {"x": (3, 4, 5)}),
    "scale, all axes": (layer("Scale", "axis: 0 num_axes: -1 bias_term: true"), {"x": (3, 4)}),
    "scale, one number": (layer("Scale", "num_axes: 0 bias_term: true"), {"x": (3, 4)}),
    "scale, last axis": (layer("Scale", "axis: -1 bias_term: true"), {"x": (3, 4, 5)}),
    "scale, two bottoms": (layer("Scale", "", True), {"x": (3, 4, 5), "s": (4,)}),
    "scale, two bottoms, bias": (
        layer("Scale", "axis: 0 bias_term: true", True),
        {"x": (3, 4, 5), "s": (3, 4)},
    ),
    "scale, second a number": (layer("Scale", "", True), {"x": (3, 4), "s": ()}),
    "bias": (layer("Bias"), {"x": (3, 4, 5)}),
    "bias, one number": (layer("Bias", "num_axes: 0"), {"x": (3, 4)}),
    "bias, two bottoms": (layer("Bias", "axis: 1", True), {"x": (3, 4, 5), "s": (4, 5)}),
}

forms = pytest.mark.parametrize(("text", "inputs"), FORMS.values(), ids=FORMS)


@pytest.mark.parametrize("name", GOLDEN)
def test_caffe(name: str) -> None:
    GoldenCase(name).check()


@forms
def test_gradients(text: str, inputs: dict[str, Shape]) -> None:
    net = probe(text, inputs)
    randomise(net, np.random.default_rng(1))
    check_gradients(net, list(inputs))


@forms
def test_in_place_gives_the_same_bits(text: str, inputs: dict[str, Shape]) -> None:
    same_in_place(text, inputs)


@forms
def test_without_backward_and_in_test_phase(text: str, inputs: dict[str, Shape]) -> None:
    both_ways(text, inputs)


@pytest.mark.parametrize("shape", [(3, 20000), (2, 3, 30000), (20, 50, 40)])
@pytest.mark.parametrize("kind", ["Scale", "Bias"])
def test_no_allocation(kind: str, shape: Shape) -> None:
    param = "bias_term: true" if kind == "Scale" else ""
    check_no_allocation(probe(layer(kind, param), {"x": shape}))
    second = {"x": shape, "s": shape[1:2]}
    check_no_allocation(probe(layer(kind, param, True), second))


def test_initial_values() -> None:
    net = probe(layer("Scale", "bias_term: true"), {"x": (2, 3)})
    assert net.get_blob("p", 0).tolist() == [1, 1, 1]
    assert net.get_blob("p", 1).tolist() == [0, 0, 0]
    assert probe(layer("Bias"), {"x": (2, 3)}).get_blob("p", 0).tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", ["scale, bias", "bias"])
def test_accumulation(name: str) -> None:
    net = probe(*FORMS[name])
    randomise(net, np.random.default_rng(1))
    net.forward()
    net.backward()
    once = {n: np.array(net.param_diff(n)) for n in net.program.param_diff}
    net.backward(accumulate=True)
    for param, values in once.items():
        np.testing.assert_allclose(net.param_diff(param), 2 * values, rtol=1e-5)


def test_in_place_while_testing_takes_no_second_buffer() -> None:
    text = layer("Scale", "bias_term: true").replace('"y"', '"x"')
    net = probe(text, {"x": (3, 4)}, train=False, phase="TEST")
    assert [n for n, b in net.program.buffers.items() if b.kind == "data"] == ["x.data"]


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    start=st.integers(0, 3),
    taken=st.integers(-1, 4),
    second=st.booleans(),
)
def test_against_numpy_broadcasting(shape: list[int], start: int, taken: int, second: bool) -> None:
    start = min(start, len(shape) - 1)
    taken = min(taken, len(shape) - start)
    end = len(shape) if taken == -1 else start + taken
    param = f"axis: {start}" + ("" if second else f" num_axes: {taken}") + " bias_term: true"
    inputs: dict[str, Shape] = {"x": tuple(shape)}
    if second:
        inputs["s"] = tuple(shape[start:end])
    net = probe(layer("Scale", param, second), inputs)
    fill_params(net)
    randomise(net, np.random.default_rng(1))
    net.forward()
    scale = net.data("s") if second else net.param_data("p/0")
    bias = net.param_data(f"p/{0 if second else 1}")
    spread = (*shape[start:end], *([1] * (len(shape) - end)))
    want = net.data("x") * scale.reshape(spread) + bias.reshape(spread)
    np.testing.assert_allclose(net.data("y"), want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["Scale", "Bias"])
@pytest.mark.parametrize(
    ("param", "second", "message"),
    [
        ("axis: 3", False, "axis is out of range"),
        ("axis: 2 num_axes: 2", False, "extends past bottom\\[0\\]'s shape"),
        ("num_axes: -2", False, "num_axes must be non-negative, or -1"),
        ("axis: 0", True, "dimension mismatch between bottom 0 and the"),
        ("axis: 2", True, "dimension mismatch between bottom 0 and the"),
    ],
)
def test_mistakes_are_explained(kind: str, param: str, second: bool, message: str) -> None:
    inputs: dict[str, Shape] = {"x": (2, 3, 4)}
    if second:
        inputs["s"] = (3, 4)
    with pytest.raises(ShapeError, match=message):
        probe(layer(kind, param, second), inputs)
