"""``auto``: plans fit their budget, cost little where memory is plenty, and say what is needed."""

from __future__ import annotations

import pytest

from layrubnet.memory.auto import FREE_TIME, fastest_within, smallest_for_free
from layrubnet.memory.copies import Pace
from layrubnet.memory.cover import cover
from layrubnet.memory.iteration import Decisions
from layrubnet.memory.planner import BudgetError
from layrubnet.memory.rewrite import Choice
from layrubnet.memory.strategies import fixed_decisions
from tests.memory.planning import iteration_of, known_program, planned

NETS = ["AlexNet", "GoogLeNet", "VGG-16"]


@pytest.mark.parametrize("net", ["AlexNet", "VGG-16"])
def test_less_memory_takes_more_time_and_every_plan_fits(net: str) -> None:
    iteration = iteration_of(known_program(net))
    plain = iteration.outline(fixed_decisions("reuse", iteration))
    low = iteration.outline(fixed_decisions("min", iteration)).bound
    before = 0.0
    for share in (1.0, 0.4, 0.1):
        budget = int(low + share * (plain.height - low))
        found = fastest_within(iteration, budget)
        assert found.fits
        assert found.outline.height <= budget
        assert found.outline.timing.total >= before * 0.97
        before = found.outline.timing.total
    assert fastest_within(iteration, plain.height).outline.timing.total == plain.timing.total


@pytest.mark.parametrize("net", NETS)
def test_without_a_budget_it_costs_five_percent_at_most(net: str) -> None:
    iteration = iteration_of(known_program(net))
    plain = iteration.outline(fixed_decisions("reuse", iteration))
    outline = smallest_for_free(iteration)
    assert outline.timing.total <= plain.timing.total * (1 + FREE_TIME)
    assert outline.height <= 0.95 * plain.height


def test_as_small_as_hybrid_and_much_faster() -> None:
    iteration = iteration_of(known_program("AlexNet"))
    hybrid = iteration.outline(fixed_decisions("hybrid", iteration))
    found = fastest_within(iteration, hybrid.height)
    assert found.fits
    assert found.outline.timing.total < 0.7 * hybrid.timing.total


def test_a_budget_that_cannot_be_met_is_refused_with_one_that_can() -> None:
    program = known_program("LeNet")
    smallest = planned(program, "min")
    with pytest.raises(BudgetError) as refused:
        planned(program, "auto", smallest.nbytes - smallest.arena_bytes // 2)
    needed = int(str(refused.value).split("at least ")[1].split()[0])
    assert planned(program, "auto", needed).nbytes <= needed


def test_cover_is_exact_where_nothing_is_shared() -> None:
    iteration = iteration_of(known_program("AlexNet"))
    plain = iteration.outline(Decisions(share=False))
    room = (plain.bound + cover(plain, 0).peak) // 2
    chosen = cover(plain, room)
    choices = dict.fromkeys(chosen.names, Choice.OFFLOAD)
    outline = iteration.outline(Decisions(choices, Pace(0, 0), share=False))
    assert chosen.peak <= room
    assert outline.bound == chosen.peak
