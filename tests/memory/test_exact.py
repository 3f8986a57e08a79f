"""How far the search for the fastest plan is from the best there is, on nets small enough to try
every plan."""

from __future__ import annotations

from functools import cache

import pytest

from layrubnet.memory.auto import fastest_within
from layrubnet.memory.strategies import fixed_decisions
from tests.support.exact_plans import SMALL_NETS, Exact, iteration_of

GAP = 0.05


@cache
def exact(name: str) -> Exact:
    return Exact(iteration_of(SMALL_NETS[name]))


@pytest.mark.parametrize("share", [0.8, 0.5, 0.2, 0.0])
@pytest.mark.parametrize("name", SMALL_NETS)
def test_auto_is_close_to_the_fastest_plan(name: str, share: float) -> None:
    oracle = exact(name)
    plain = oracle.iteration.outline(fixed_decisions("reuse", oracle.iteration))
    budget = oracle.smallest + int(share * (plain.bound - oracle.smallest))
    best = oracle.seconds(budget)
    found = fastest_within(oracle.iteration, budget)
    assert found.fits
    assert found.outline.height <= budget
    assert best <= found.outline.timing.total * (1 + 1e-9)
    assert found.outline.timing.total <= best * (1 + GAP)


@pytest.mark.parametrize("name", SMALL_NETS)
def test_min_is_the_smallest_peak(name: str) -> None:
    oracle = exact(name)
    smallest = oracle.iteration.outline(fixed_decisions("min", oracle.iteration))
    assert oracle.smallest <= smallest.bound <= oracle.smallest * (1 + GAP)
