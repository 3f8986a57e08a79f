"""Silence: no output, zero gradient, no effect on its neighbours."""

from __future__ import annotations

import numpy as np

from tests.layers.common import assert_same_bits, both_ways, inputs_text, run
from tests.support.checks import check_no_allocation, probe
from tests.support.golden import GoldenCase

SILENCE = 'layer { name: "p" type: "Silence" bottom: "x" }'


def test_caffe() -> None:
    GoldenCase("silence_one").check()


def test_the_bottom_is_no_output_and_gets_a_zero_gradient() -> None:
    net = probe(SILENCE, {"x": (2, 3)})
    assert net.graph.outputs() == []
    net.diff("x")[...] = 5
    net.forward()
    net.backward()
    assert not net.diff("x").any()


def test_a_second_reader_gets_its_own_gradient_only() -> None:
    head = inputs_text({"x": (2, 3)})
    use = 'layer { name: "t" type: "TanH" bottom: "x" top: "y" }'
    rng = np.random.default_rng(1)
    x, seed = (rng.uniform(-1, 1, (2, 3)).astype(np.float32) for _ in range(2))
    with_silence = run(head + use + SILENCE, {"x": x}, "y", seed)
    assert_same_bits(with_silence, run(head + use, {"x": x}, "y", seed))


def test_no_allocation_and_every_phase() -> None:
    text = SILENCE + 'layer { name: "t" type: "TanH" bottom: "z" top: "y" }'
    check_no_allocation(probe(text, {"x": (3, 20000), "z": (3,)}))
    both_ways(text, {"x": (3,), "z": (3,)})
