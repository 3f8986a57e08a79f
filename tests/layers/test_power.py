"""Power: Caffe's values, every kind of power, Caffe's in-place mistake not repeated."""

from __future__ import annotations

import numpy as np
import pytest

from tests.layers.common import both_ways, same_in_place
from tests.support.checks import check_gradients, check_no_allocation, make_net, probe, randomise
from tests.support.golden import GoldenCase

GOLDEN = [
    "power_frac", "power_identity", "power_linear", "power_linear_inplace", "power_square",
    "power_zeropower", "power_zeroscale",
]  # fmt: skip

PARAMS = [
    "", "scale: 2 shift: -1", "power: 2 scale: 0.5 shift: 1", "power: 2", "power: 3 scale: -1",
    "power: -1 shift: 4", "power: 0.5 shift: 3", "power: -0.75 scale: 0.5 shift: 3",
    "power: 1.5 shift: 3", "power: 0 scale: 2", "scale: 0 power: 2 shift: 3",
]  # fmt: skip


def layer(param: str, top: str = "y") -> str:
    return f'layer {{ name: "p" type: "Power" bottom: "x" top: "{top}" power_param {{ {param} }} }}'


@pytest.mark.parametrize("name", GOLDEN)
def test_caffe(name: str) -> None:
    GoldenCase(name).check()


@pytest.mark.parametrize("param", PARAMS)
def test_gradients(param: str) -> None:
    net = probe(layer(param), {"x": (3, 4)})
    randomise(net, np.random.default_rng(1))
    check_gradients(net, ["x"])


@pytest.mark.parametrize("param", PARAMS)
def test_in_place_gives_the_same_bits(param: str) -> None:
    with np.errstate(all="ignore"):
        same_in_place(layer(param), {"x": (3, 20)})


@pytest.mark.parametrize("param", ["scale: 2", "power: 2", "power: -0.75 shift: 3"])
def test_no_allocation(param: str) -> None:
    check_no_allocation(probe(layer(param), {"x": (3, 20000)}))


@pytest.mark.parametrize("param", ["", "scale: 2", "power: 0.5 shift: 3"])
def test_without_backward_and_in_test_phase(param: str) -> None:
    both_ways(layer(param), {"x": (3, 20)})


def test_power_one_in_place_scales_once() -> None:
    net = probe(layer("scale: 3", top="x"), {"x": (2,)})
    net.data("x")[...] = 1
    net.forward()
    net.diff("x")[...] = [1, 2]
    net.backward()
    assert net.executor.arrays["x.diff"].tolist() == [3, 6]


def test_the_derivative_at_base_zero() -> None:
    """Caffe divides y by x there and gets NaN."""
    net = probe(layer("power: 3"), {"x": (2,)})
    net.data("x")[...] = [0, 2]
    net.forward()
    net.diff("y")[...] = 1
    net.backward()
    assert net.diff("x").tolist() == [0, 12]


def test_the_identity_runs_nothing() -> None:
    text = 'layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 4 } } }'
    net = make_net(text + layer(""))
    assert [i.target for i in net.program.variant("first") if i.target == "p"] == []
    net.data("x")[...] = 7
    net.forward()
    assert net.data("y").tolist() == [7] * 4
