"""Random nets: no plan changes a bit."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from layrubnet.memory.options import MemoryOptions
from layrubnet.memory.strategies import STRATEGIES
from tests.memory.training import Training, budgets, differences, train
from tests.support.random_nets import random_nets

PLANNED = [name for name in STRATEGIES if name not in ("caffe", "auto")]


def check(text: str, strategy: str, budget: int | None, iter_size: int) -> None:
    training = Training(iter_size)
    wanted = train(text, "caffe", training)
    amount = None
    if budget is not None:
        amounts = budgets(text, training, 3)
        amount = amounts[budget % len(amounts)]
    got = train(text, MemoryOptions(strategy if amount is None else "auto", amount), training)
    assert not differences(got, wanted)


ARGUMENTS = {
    "text": random_nets(),
    "strategy": st.sampled_from(PLANNED),
    "budget": st.none() | st.integers(0, 3),
    "iter_size": st.integers(1, 2),
}
COMMON = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=50, derandomize=True, **COMMON)
@given(**ARGUMENTS)
def test_same_bits(text: str, strategy: str, budget: int | None, iter_size: int) -> None:
    check(text, strategy, budget, iter_size)


@pytest.mark.full
@settings(max_examples=600, **COMMON)
@given(**ARGUMENTS)
def test_same_bits_of_many(text: str, strategy: str, budget: int | None, iter_size: int) -> None:
    check(text, strategy, budget, iter_size)
