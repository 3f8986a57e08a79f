"""Offsets in one arena for slots with lifetimes: no two that live together may overlap.

First come methods that cost n log n: a two-ended sweep over time (long-lived slots from below,
short ones from above), and layers (long-lived slots stacked first, short ones by size on top of
the stack). Where they miss the lower bound, small problems try several orders (each slot takes the
tightest gap among those already placed that live with it), then move what sticks out to the front
of the order, again and again.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from layrubnet.memory.lifetimes import Slot, peak
from layrubnet.memory.plan import ALIGNMENT

TINY = 300
"""Up to so many slots nothing but the bound is good enough."""
SMALL = 1000
"""Up to so many slots orders are searched when the fast methods miss the bound."""
TRIES = 150
"""Changes of the best order when no plain order reaches the lower bound."""
CLOSE = 0.004
"""A height this near to the lower bound (as a share of it) is good enough for a large problem."""

_ENDLESS = 1 << 62
_Placed = tuple[list[int], int]

_Key = Callable[[Slot], tuple[int, ...]]
_ORDERS: tuple[_Key, ...] = (
    lambda s: (-s.nbytes, s.start),
    lambda s: (-(s.end - s.start), -s.nbytes),
    lambda s: (-s.nbytes * (s.end - s.start + 1), s.start),
    lambda s: (s.start, -s.nbytes),
)
_SHORT_ORDERS: tuple[_Key, ...] = (
    lambda s: (-s.nbytes, s.start),
    lambda s: (-s.nbytes, -s.end),
)


def place(slots: Sequence[Slot], *, seed: int = 0) -> _Placed:
    """Return an offset for each slot (same order) and the height of the arena."""
    bound, _ = peak(slots)
    if not slots:
        return [], 0
    close = 0.0 if len(slots) <= TINY else CLOSE / 4 if len(slots) <= SMALL else CLOSE
    best = _fast(slots, bound, close)
    if len(slots) <= SMALL and best[1] > bound * (1 + close):
        best = _lower(best, _search(slots, bound, seed))
    return best


def _lower(one: _Placed, other: _Placed) -> _Placed:
    return other if other[1] < one[1] else one


# -- small problems ------------------------------------------------------------------------------


def _search(slots: Sequence[Slot], bound: int, seed: int) -> _Placed:
    best: _Placed = ([], -1)
    best_order: list[int] = []
    for key in _ORDERS:
        order = sorted(range(len(slots)), key=lambda i: key(slots[i]))
        offsets, height = _gaps(slots, order)
        if best[1] < 0 or height < best[1]:
            best, best_order = (offsets, height), order
        if height == bound:
            return best
    return _improve(slots, best, best_order, bound, seed)


def _gaps(slots: Sequence[Slot], order: Sequence[int]) -> _Placed:
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
        tight = np.where(fits, room, _ENDLESS)
        return int(begins[int(np.argmin(tight))])
    return int(tops[-1])


def _improve(
    slots: Sequence[Slot], best: _Placed, order: list[int], bound: int, seed: int
) -> _Placed:
    """Place what sticks out above the bound before the rest, and sometimes something else."""
    rng = random.Random(seed)
    tries = max(4, min(TRIES, 5_000 // max(1, len(slots))))
    current = best
    for _ in range(tries):
        offsets = current[0]
        out = {i for i in order if offsets[i] + slots[i].nbytes > bound}
        out.add(rng.randrange(len(slots)))
        order = [i for i in order if i in out] + [i for i in order if i not in out]
        current = _gaps(slots, order)
        if current[1] < best[1]:
            best = current
        if current[1] == bound:
            break
    return best


# -- large problems ------------------------------------------------------------------------------


def _fast(slots: Sequence[Slot], bound: int, close: float) -> _Placed:
    best: _Placed = ([], -1)
    for placed in _attempts(slots, bound):
        if placed is not None and (best[1] < 0 or placed[1] < best[1]):
            best = placed
            if best[1] <= bound * (1 + close):
                break
    return best


def _attempts(slots: Sequence[Slot], bound: int) -> Iterator[_Placed | None]:
    lengths = sorted(s.end - s.start for s in slots)
    median = lengths[len(lengths) // 2]
    thresholds = sorted({max(8, 4 * median), max(16, 2 * median), 32, 128})
    by_start = sorted(range(len(slots)), key=lambda i: (slots[i].start, -slots[i].nbytes))
    by_end = sorted(range(len(slots)), key=lambda i: slots[i].end)
    for share in (0.0, CLOSE / 4, CLOSE):
        allowed = int(bound * (1 + share)) // ALIGNMENT * ALIGNMENT
        for threshold in thresholds:
            offsets = _sweep(slots, by_start, by_end, allowed, threshold)
            yield None if offsets is None else (offsets, _height(slots, offsets))
    for order in _SHORT_ORDERS:
        for threshold in (16, 64, 256):
            yield _layers(slots, threshold, order)


def _sweep(
    slots: Sequence[Slot],
    by_start: Sequence[int],
    by_end: Sequence[int],
    height: int,
    threshold: int,
) -> list[int] | None:
    """Allocate and free in the order of time within ``height``; ``None`` if something fails."""
    offsets = [0] * len(slots)
    holes = [(0, height)]
    freed = 0
    for i in by_start:
        slot = slots[i]
        while slots[by_end[freed]].end < slot.start:
            gone = by_end[freed]
            _release(holes, offsets[gone], offsets[gone] + slots[gone].nbytes)
            freed += 1
        offset = _take(holes, slot.nbytes, low=slot.end - slot.start > threshold)
        if offset is None:
            return None
        offsets[i] = offset
    return offsets


def _height(slots: Sequence[Slot], offsets: Sequence[int]) -> int:
    return max(o + s.nbytes for o, s in zip(offsets, slots, strict=True))


def _take(holes: list[tuple[int, int]], nbytes: int, *, low: bool) -> int | None:
    """Cut a piece out of the first hole that holds it, from below or from above."""
    for k in range(len(holes)) if low else range(len(holes) - 1, -1, -1):
        begin, end = holes[k]
        if end - begin < nbytes:
            continue
        offset = begin if low else end - nbytes
        if end - begin == nbytes:
            del holes[k]
        else:
            holes[k] = (begin + nbytes, end) if low else (begin, end - nbytes)
        return offset
    return None


def _release(holes: list[tuple[int, int]], begin: int, end: int) -> None:
    """Give a range back, joining it with the holes beside it."""
    k = bisect_left(holes, (begin, end))
    if k < len(holes) and holes[k][0] == end:
        end = holes.pop(k)[1]
    if k and holes[k - 1][1] == begin:
        k -= 1
        begin = holes.pop(k)[0]
    holes.insert(k, (begin, end))


def _layers(slots: Sequence[Slot], threshold: int, order: _Key) -> _Placed:
    """Stack the slots that live longer than ``threshold``; the others go on top in ``order``."""
    offsets = [0] * len(slots)
    long = [i for i, s in enumerate(slots) if s.end - s.start > threshold]
    tops = _stack(slots, long, offsets)
    height = int(tops.max(initial=0))
    short = [i for i, s in enumerate(slots) if s.end - s.start <= threshold]
    short.sort(key=lambda i: order(slots[i]))
    width = threshold + 1
    buckets: dict[int, list[tuple[int, int, int, int]]] = {}
    for i in short:
        slot = slots[i]
        start, end, size = slot.start, slot.end, slot.nbytes
        first, last = start // width, end // width
        near = buckets.setdefault(first, [])
        if last != first:
            near = near + [b for b in buckets.setdefault(last, []) if b[2] // width != first]
        taken = [b for b in near if b[2] <= end and b[3] >= start]
        floor = int(tops[start : end + 1].max())
        offset = _tightest(sorted(taken), floor, size)
        offsets[i] = offset
        entry = (offset, offset + size, start, end)
        buckets[first].append(entry)
        if last != first:
            buckets[last].append(entry)
        height = max(height, offset + size)
    return offsets, height


def _tightest(taken: Sequence[tuple[int, int, int, int]], floor: int, size: int) -> int:
    """The start of the tightest gap above ``floor`` between the ranges of ``taken``, or its end."""
    best, best_room = -1, 0
    for low, high, _, _ in taken:
        room = low - floor
        if room >= size and (best < 0 or room < best_room):
            best, best_room = floor, room
        floor = max(floor, high)
    return best if best >= 0 else floor


def _stack(slots: Sequence[Slot], chosen: Sequence[int], offsets: list[int]) -> np.ndarray:
    """Give the chosen slots the lowest free places in the order of time.

    Returns how high they reach at every instruction.
    """
    last = max((s.end for s in slots), default=-1)
    tops = np.zeros(last + 1, np.int64)
    events: list[tuple[int, int, int]] = [(slots[i].start, 1, i) for i in chosen]
    events += [(slots[i].end + 1, 0, i) for i in chosen]
    events.sort(key=lambda e: (e[0], e[1], -slots[e[2]].nbytes))
    holes = [(0, _ENDLESS)]
    before = 0
    for time, begins, i in events:
        if time > before:
            tops[before:time] = holes[-1][0]
            before = time
        if begins:
            offset = _take(holes, slots[i].nbytes, low=True)
            assert offset is not None
            offsets[i] = offset
        else:
            _release(holes, offsets[i], offsets[i] + slots[i].nbytes)
    tops[before:] = 0
    return tops
