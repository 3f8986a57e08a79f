"""Eltwise: Caffe's values and ties, gradients with zeros, in place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.errors import NetError
from tests.layers.common import assert_same_bits, both_ways, inputs_text, run, same_in_place
from tests.support.checks import check_gradients, check_no_allocation, make_net, probe, randomise
from tests.support.golden import GoldenCase

GOLDEN = [
    "eltwise_coeff", "eltwise_max", "eltwise_max3", "eltwise_max_ties", "eltwise_prod_unstable",
    "eltwise_same_twice", "eltwise_sum", "eltwise_sum3",
]  # fmt: skip

PARAMS = [
    "operation: SUM", "operation: SUM coeff: 1 coeff: -1 coeff: 0.5",
    "operation: SUM coeff: 2 coeff: 1 coeff: 1", "operation: PROD",
    "operation: PROD stable_prod_grad: false", "operation: MAX",
]  # fmt: skip
SHAPES = {"x": (3, 5), "b": (3, 5), "c": (3, 5)}


def layer(param: str, bottoms: str = "xbc", top: str = "y") -> str:
    names = " ".join(f'bottom: "{b}"' for b in bottoms)
    return f'layer {{ name: "p" type: "Eltwise" {names} top: "{top}" eltwise_param {{ {param} }} }}'


@pytest.mark.parametrize("name", GOLDEN)
def test_caffe(name: str) -> None:
    GoldenCase(name).check()


@pytest.mark.parametrize("param", PARAMS)
def test_gradients(param: str) -> None:
    net = probe(layer(param), SHAPES)
    randomise(net, np.random.default_rng(1))
    if "MAX" in param:  # keep away from ties
        for k, name in enumerate(SHAPES):
            net.data(name)[...] = np.round(net.data(name), 1) + 0.03 * k
    check_gradients(net, list(SHAPES))


@pytest.mark.parametrize("param", PARAMS)
def test_no_allocation(param: str) -> None:
    check_no_allocation(probe(layer(param), dict.fromkeys(SHAPES, (2, 20000))))


@pytest.mark.parametrize("param", PARAMS)
def test_in_place_gives_the_same_bits(param: str) -> None:
    same_in_place(layer(param), SHAPES)


@pytest.mark.parametrize("param", PARAMS)
def test_without_backward_and_in_test_phase(param: str) -> None:
    both_ways(layer(param), SHAPES)


def test_in_place_sum_as_caffe_cannot() -> None:
    net = probe(layer("", "xb", top="x"), {"x": (2,), "b": (2,)})
    net.data("x")[...] = [1, 2]
    net.data("b")[...] = [10, 20]
    net.forward()
    assert net.data("x").tolist() == [11, 22]


@pytest.mark.parametrize("param", ["", "operation: PROD", "operation: MAX"])
def test_in_place_over_views_of_one_blob(param: str) -> None:
    """Both bottoms are the same memory, which the top overwrites."""
    head = inputs_text({"a": (6,)})
    head += 'layer { name: "s" type: "Split" bottom: "a" top: "x" top: "b" }'
    a = np.arange(1, 7, dtype=np.float32)
    results = [
        run(head + layer(param, "xb", top), {"a": a}, top, np.ones(6, np.float32))
        for top in ("y", "x")
    ]
    assert_same_bits(*results)


def test_residual_block_with_a_second_consumer_of_the_skip() -> None:
    """The skip blob feeds the branch, the sum and a third reader; in place changes no bit."""
    head = inputs_text({"d": (2, 6)})
    head += 'layer { name: "n" type: "Power" bottom: "d" top: "x" power_param { scale: 2 } }'
    head += 'layer { name: "f" type: "Sigmoid" bottom: "x" top: "b" }'
    rng = np.random.default_rng(2)
    d, seed = (rng.uniform(-1, 1, (2, 6)).astype(np.float32) for _ in range(2))
    results = []
    for top in ("y", "b"):
        body = head + layer("", "bx", top)
        body += f'layer {{ name: "r" type: "ReLU" bottom: "{top}" top: "{top}" }}'
        body += (
            f'layer {{ name: "e" type: "Eltwise" bottom: "{top}" bottom: "x" top: "z"'
            " eltwise_param { operation: PROD } }"
        )
        results.append(run(body, {"d": d}, "z", seed))
    assert_same_bits(*results)


@settings(max_examples=30, deadline=None)
@given(
    values=st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=2, max_size=5)
)
def test_maximum_and_product_against_loops(values: list[list[int]]) -> None:
    """Small integers: many ties and zero factors."""
    count, names = len(values), "xbcde"
    for operation in ("MAX", "PROD"):
        net = make_net(
            inputs_text(dict.fromkeys(names[:count], (3,)))
            + layer(f"operation: {operation}", names[:count])
        )
        for name, row in zip(names, values, strict=False):
            net.data(name)[...] = row
        net.forward()
        net.diff("y")[...] = [1, 2, 3]
        net.backward()
        for j in range(3):
            column = [row[j] for row in values]
            if operation == "MAX":
                winner = 0 if column[0] > column[1] else 1
                for i in range(2, count):
                    winner = i if column[i] > column[winner] else winner
                want = [float(j + 1) if i == winner else 0.0 for i in range(count)]
                assert net.data("y")[j] == max(column)
            else:
                want = [(j + 1.0) * np.prod(column[:i] + column[i + 1 :]) for i in range(count)]
                assert net.data("y")[j] == np.prod(column)
            assert [float(net.diff(n)[j]) for n in names[:count]] == want


@pytest.mark.parametrize(
    ("param", "bottoms", "message"),
    [
        ("operation: PROD coeff: 1 coeff: 1", "xb", "only takes coefficients for summation"),
        ("coeff: 1", "xb", "one coefficient per bottom"),
        ("operation: MAX", "x", "wrong number of bottom"),
        ("", "xd", "bottom 1 \\('d'\\) has another shape"),
    ],
)
def test_mistakes_are_explained(param: str, bottoms: str, message: str) -> None:
    with pytest.raises(NetError, match=message):
        probe(layer(param, bottoms), {"x": (3, 5), "b": (3, 5), "d": (5, 3)})
