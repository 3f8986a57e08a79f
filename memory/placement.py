"""Offsets in one arena for slots with lifetimes: no two that live together may overlap.

Small problems try several orders (each slot takes the lowest gap among those already placed that
live with it) and keep the best; large ones use a two-ended sweep over time, long-lived slots from
below and short-lived ones from above. Both stop at once when they reach the lower bound.
"""

from __future__ import annotations

import random
from bisect import insort
from collections.abc import Callable, Sequence

import numpy as np

from layrubnet.memory.lifetimes import Slot, peak

SMALL = 4000
"""Up to so many slots the orders are tried; more take the sweep."""
TRIES = 60
"""Random changes of the best order when no plain order reaches the lower bound."""

_ORDERS: tuple[Callable[[Slot], tuple[int, ...]], ...] = (
    lambda s: (-s.nbytes, s.start),
    lambda s: (-(s.end - s.start), -s.nbytes),
    lambda s: (-s.nbytes * (s.end - s.start + 1), s.start),
    lambda s: (s.start, -s.nbytes),
)


def place(slots: Sequence[Slot], *, seed: int = 0) -> tuple[list[int], int]:
    """Return an offset for each slot (same order) and the height of the arena."""
    bound, _ = peak(slots)
    if len(slots) > SMALL:
        return _sweep(slots, bound)
    best: tuple[list[int], int] = ([], -1)
    best_order: list[int] = []
    for key in _ORDERS:
        order = sorted(range(len(slots)), key=lambda i: key(slots[i]))
        offsets, height = _gaps(slots, order)
        if best[1] < 0 or height < best[1]:
            best, best_order = (offsets, height), order
        if height == bound:
            return best
    return _improve(slots, best, best_order, bound, seed)


def _gaps(slots: Sequence[Slot], order: Sequence[int]) -> tuple[list[int], int]:
    """Place in this order, each slot in the smallest gap that holds it."""
    n = len(slots)
    starts, ends = np.empty(n, np.int64), np.empty(n, np.int64)
    lows, highs = np.empty(n, np.int64), np.empty(n, np.int64)
    offsets = [0] * n
    height = 0
    for k, i in enumerate(order):
        slot = slots[i]
        together = (starts[:k] <= slot.end) & (ends[:k] >= slot.start)
        taken_low, taken_high = lows[:k][together], highs[:k][together]
        by_address = np.argsort(taken_low, kind="stable")
        offset = _gap(taken_low[by_address], taken_high[by_address], slot.nbytes)
        starts[k], ends[k] = slot.start, slot.end
        lows[k], highs[k] = offset, offset + slot.nbytes
        offsets[i] = offset
        height = max(height, offset + slot.nbytes)
    return offsets, height


def _gap(lows: np.ndarray, highs: np.ndarray, size: int) -> int:
    """The start of the tightest gap of ``size`` bytes between occupied ranges, or their end."""
    if not len(lows):
        return 0
    tops = np.maximum.accumulate(highs)
    begins = np.concatenate(([0], tops[:-1]))
    room = lows - begins
    fits = room >= size
    if fits.any():
        tight = np.where(fits, room, np.iinfo(np.int64).max)
        return int(begins[int(np.argmin(tight))])
    return int(tops[-1])


def _improve(
    slots: Sequence[Slot],
    best: tuple[list[int], int],
    order: list[int],
    bound: int,
    seed: int,
) -> tuple[list[int], int]:
    """Move random slots to the front of the order, as long as that helps."""
    rng = random.Random(seed)
    tries = TRIES if len(slots) <= 600 else 6
    for _ in range(tries):
        changed = list(order)
        for _ in range(1 + len(slots) // 40):
            changed.insert(
                rng.randrange(len(slots) // 4 + 1), changed.pop(rng.randrange(len(slots)))
            )
        offsets, height = _gaps(slots, changed)
        if height <= best[1]:
            order = changed
            if height < best[1]:
                best = (offsets, height)
            if height == bound:
                break
    return best


def _sweep(slots: Sequence[Slot], bound: int) -> tuple[list[int], int]:
    """Allocate and free in the order of time within a given height; grow it until all fit."""
    lengths = sorted(s.end - s.start for s in slots)
    threshold = max(8, 4 * lengths[len(lengths) // 2])
    height = bound
    while True:
        offsets = _try_sweep(slots, height, threshold)
        if offsets is not None:
            return offsets, height
        height += max(64, bound // 100 // 64 * 64)


def _try_sweep(slots: Sequence[Slot], height: int, threshold: int) -> list[int] | None:
    offsets = [0] * len(slots)
    holes = [(0, height)]
    by_start = sorted(range(len(slots)), key=lambda i: (slots[i].start, -slots[i].nbytes))
    by_end = sorted(range(len(slots)), key=lambda i: slots[i].end)
    freed = 0
    for i in by_start:
        slot = slots[i]
        while slots[by_end[freed]].end < slot.start:
            gone = by_end[freed]
            _release(holes, offsets[gone], offsets[gone] + slots[gone].nbytes)
            freed += 1
        low = slot.end - slot.start > threshold
        candidates = range(len(holes)) if low else range(len(holes) - 1, -1, -1)
        for k in candidates:
            begin, end = holes[k]
            if end - begin >= slot.nbytes:
                if low:
                    offsets[i] = begin
                    rest = (begin + slot.nbytes, end)
                else:
                    offsets[i] = end - slot.nbytes
                    rest = (begin, end - slot.nbytes)
                if rest[0] < rest[1]:
                    holes[k] = rest
                else:
                    del holes[k]
                break
        else:
            return None
    return offsets


def _release(holes: list[tuple[int, int]], begin: int, end: int) -> None:
    """Give a range back, joining it with the holes beside it."""
    insort(holes, (begin, end))
    k = holes.index((begin, end))
    if k + 1 < len(holes) and holes[k + 1][0] == end:
        holes[k : k + 2] = [(begin, holes[k + 1][1])]
    if k and holes[k - 1][1] == holes[k][0]:
        holes[k - 1 : k + 1] = [(holes[k - 1][0], holes[k][1])]
