"""The queue simulation: overlap, stalls, and copies that slow the computation down."""

from __future__ import annotations

from dataclasses import replace

import pytest

from layrubnet.engine.program import Buffer, Instruction
from layrubnet.memory.cost import GPU, CostModel
from layrubnet.memory.simulate import simulate

BUFFERS = {"b": Buffer("b", "data", (250,)), "b~": Buffer("b~", "data", (250,))}
"""1,000 bytes: a copy takes one second at 1,000 bytes a second."""


def work(name: str) -> Instruction:
    return Instruction("forward", name)


ITERATION = [
    work("a"),
    Instruction("offload", "b", reads=("b",)),
    work("c"),
    Instruction("wait", "offload b", reads=("b",)),
    Instruction("fetch", "b", writes=("b~",)),
    work("d"),
    Instruction("wait", "fetch b", reads=("b~",)),
]


def model(seconds: float, drag: float = 0.0) -> CostModel:
    figures = replace(GPU, to_host=1000.0, from_host=1000.0, launch=0.0, drag=drag)
    return CostModel(figures, {("forward", n): seconds for n in "acd"})


def test_copies_hide_behind_longer_work() -> None:
    timing = simulate(ITERATION, BUFFERS, model(2.0))
    assert timing.total == pytest.approx(6.0)
    assert timing.stall == 0
    assert (timing.to_host, timing.from_host) == (1.0, 1.0)


def test_what_does_not_hide_is_the_stall() -> None:
    timing = simulate(ITERATION, BUFFERS, model(0.25))
    assert timing.stall == pytest.approx(2 * 0.75)
    assert timing.total == pytest.approx(3 * 0.25 + 1.5)


def test_drag_counts_as_computing() -> None:
    timing = simulate(ITERATION, BUFFERS, model(2.0, drag=0.5))
    assert timing.total == pytest.approx(6.0 + 2 * 0.5)
    assert timing.compute == pytest.approx(7.0)
