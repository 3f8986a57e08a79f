"""Placement: no two slots that live together overlap, and the arena is nearly as low as can be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.memory import placement
from layrubnet.memory.lifetimes import Slot, peak
from layrubnet.memory.placement import place

slot_lists = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 30), st.integers(1, 40)), max_size=40
).map(lambda rows: [Slot(start, start + span, 64 * size, []) for start, span, size in rows])


def check(slots: list[Slot], offsets: list[int], height: int) -> None:
    assert len(offsets) == len(slots)
    assert height >= peak(slots)[0]
    starts, ends, sizes = (
        np.array([getattr(slot, name) for slot in slots]) for name in ("start", "end", "nbytes")
    )
    lows = np.array(offsets)
    highs = lows + sizes
    together = (starts[:, None] <= ends) & (starts <= ends[:, None])
    overlap = (lows[:, None] < highs) & (lows < highs[:, None])
    wrong = together & overlap
    np.fill_diagonal(wrong, False)
    assert not wrong.any()
    assert not (lows % 64).any()
    assert not len(lows) or (lows.min() >= 0 and highs.max() <= height)


@given(slot_lists)
@settings(max_examples=60, deadline=None)
def test_slots_that_live_together_do_not_overlap(slots: list[Slot]) -> None:
    check(slots, *place(slots))


@given(slot_lists)
@settings(max_examples=60, deadline=None)
def test_the_fast_methods_do_not_overlap_either(slots: list[Slot]) -> None:
    if slots:
        for placed in placement._attempts(slots, peak(slots)[0]):
            if placed is not None:
                check(slots, *placed)


@given(slot_lists)
@settings(max_examples=20, deadline=None)
def test_the_same_slots_get_the_same_places(slots: list[Slot]) -> None:
    assert place(slots, seed=3) == place(slots, seed=3)


def test_nothing_needs_nothing() -> None:
    assert place([]) == ([], 0)


def test_nested_lifetimes_reach_the_bound() -> None:
    slots = [Slot(k, 200 - k, 64 * (1 + k % 7), []) for k in range(100)]
    slots += [Slot(k, k, 64 * (100 + k % 5), []) for k in range(200)]
    offsets, height = place(slots)
    check(slots, offsets, height)
    assert height == peak(slots)[0]


@pytest.mark.parametrize("long_every", [0, 3])
def test_many_slots_of_repeated_blocks_stay_within_one_percent(long_every: int) -> None:
    slots: list[Slot] = []
    blocks = 600
    for block in range(blocks):
        at = 10 * block
        size = 64 * (256 >> (4 * block // blocks))
        slots += [Slot(at, at + 12, 4 * size, []), Slot(at + 1, at + 4, size, [])]
        slots += [Slot(at + 3, at + 6, size, []), Slot(at + 5, at + 11, 4 * size, [])]
        slots += [Slot(at + 2, at + 2, 3 * size, [])]
        if long_every and block % long_every == 0:
            slots.append(Slot(at, 10 * blocks + 10 * (blocks - block), size, []))
    offsets, height = place(slots)
    assert height <= 1.01 * peak(slots)[0]
    check(slots, offsets, height)
