"""The search for the fastest plan within a budget.

A plan is a *base* (which values are computed again: none, some or all of the cheap ones, or all
but checkpoints; and compact forms where there are any), the values that must leave besides so that
it fits (``cover.py``), and copies that use whatever memory is left not to hold up the computation
(``stretch.py``). Every base is planned exactly and timed on paper; the fastest is taken, and
recomputations it does not need are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from layrubnet.memory.checkpoints import checkpoints
from layrubnet.memory.compact import with_compact
from layrubnet.memory.copies import Pace
from layrubnet.memory.cover import cover
from layrubnet.memory.improve import improve, served
from layrubnet.memory.iteration import Decisions, Iteration, Outline
from layrubnet.memory.rewrite import Choice
from layrubnet.memory.settle import settle
from layrubnet.memory.strategies import cheap_recomputes, fixed_decisions

FREE_TIME = 0.05
"""Without a budget, ``auto`` may cost this share of the time of ``reuse``."""
AIM = 0.005
"""Rooms nearer than this share to one another are not told apart."""

_LOSS = 0.02
"""A plan that loses a larger share of its time to find addresses is compared with others."""

_Choices = Mapping[str, Choice]


@dataclass(frozen=True)
class Found:
    """A plan that the search came up with, and whether it fits."""

    outline: Outline
    fits: bool


def fastest_within(iteration: Iteration, budget: int) -> Found:
    """The fastest plan that takes at most ``budget`` bytes; the smallest if none fits.

    A plan whose addresses do not work out is made again for a little less.
    """
    fitting: list[Outline] = []
    for share in (1.0, 0.97, 0.92, 0.85):
        aim = int(share * budget)
        found = _fastest(iteration, aim)
        if not found.fits:
            break
        outline = settle(found.outline, budget)
        if outline.height <= budget:
            fitting += [outline, *_fits(settle(improve(outline, aim), budget), budget)]
            if outline.timing.total <= found.outline.timing.total * (1 + _LOSS):
                return Found(_fastest_of(fitting), True)
            break
    smallest = _smallest(iteration)
    fitting += _fits(smallest, budget)
    return Found(_fastest_of(fitting) if fitting else smallest, bool(fitting))


def _fastest_of(outlines: Sequence[Outline]) -> Outline:
    return min(outlines, key=lambda o: o.timing.total)


def _fits(outline: Outline, budget: int) -> list[Outline]:
    return [outline] if outline.height <= budget else []


def _smallest(iteration: Iteration) -> Outline:
    outline = iteration.outline(fixed_decisions("min", iteration))
    return settle(outline, int(outline.bound * (1 + AIM)))


def _fastest(iteration: Iteration, budget: int) -> Found:
    plain = iteration.outline(fixed_decisions("reuse", iteration))
    if plain.bound <= budget:
        return Found(plain, True)
    smallest = plain
    best: tuple[Outline, _Choices] | None = None
    for base in _bases(iteration):
        outline = _within(iteration, base, budget)
        smallest = min(smallest, outline, key=lambda o: o.bound)
        if outline.bound <= budget and (best is None or _faster(outline, best[0])):
            best = outline, base
    if best is not None:
        return Found(_without_waste(iteration, *best, budget), True)
    return Found(smallest, False)


def smallest_for_free(iteration: Iteration) -> Outline:
    """The smallest arena whose predicted time is at most 5 % above that of ``reuse``."""
    best = iteration.outline(fixed_decisions("reuse", iteration))
    limit = best.timing.total * (1 + FREE_TIME)
    spare = limit - best.timing.total
    cheap = _groups(iteration, cheap_recomputes(iteration))
    for share in (0.0, 0.5, 0.8, 1.0):
        some = with_compact(iteration, _some(iteration, cheap, share * spare))
        plain = iteration.outline(Decisions(some, Pace(0, 0)))
        if plain.timing.total > limit:
            break
        outline = _smallest_room(plain, limit)
        if outline.bound < best.height:
            best = min(best, settle(outline, int(outline.bound * (1 + AIM)), limit), key=_size)
    return best


def _smallest_room(plain: Outline, limit: float) -> Outline:
    """The least memory within ``limit`` seconds that offloading from ``plain`` leads to."""
    best = plain
    low, high = cover(plain, 0).peak, plain.bound
    while high - low > AIM * high:
        room = (low + high) // 2
        outline = _covered(plain, room)
        if outline.bound <= room and outline.timing.total <= limit:
            best, high = outline, outline.bound
        else:
            low = room
    return best


def _size(outline: Outline) -> tuple[int, float]:
    return outline.height, outline.timing.total


def _faster(one: Outline, other: Outline) -> bool:
    return (one.timing.total, one.bound) < (other.timing.total, other.bound)


def _bases(iteration: Iteration) -> Iterator[_Choices]:
    cheap = cheap_recomputes(iteration)
    for base in ({}, cheap, *checkpoints(iteration)):
        yield with_compact(iteration, base)


def _within(iteration: Iteration, base: _Choices, budget: int) -> Outline:
    return _covered(iteration.outline(Decisions(base, Pace(0, 0))), budget)


def _covered(plain: Outline, room: int) -> Outline:
    """The outline ``plain`` with as many values offloaded as it takes to fit into ``room``.

    What is left may be larger than the arithmetic says, since an operand that leaves cannot be
    written over; then a little more leaves.
    """
    iteration, base = plain.iteration, plain.decisions.choices
    target = room
    for _ in range(3):
        leaving = cover(plain, target).names
        choices = {**base, **dict.fromkeys(leaving, Choice.OFFLOAD)}
        outline = iteration.outline(Decisions(choices, room=room))
        if outline.bound <= room:
            break
        target -= outline.bound - room
    return outline


@dataclass(frozen=True)
class _Group:
    """A value that waits, and what must be computed again for it alone or with others."""

    names: tuple[str, ...]
    rate: float
    """Seconds per byte freed."""


def _groups(iteration: Iteration, choices: _Choices) -> list[_Group]:
    """The recomputations ``choices`` by the waiting value they serve, the cheapest first."""
    value = {v.name: v for v in iteration.values if choices.get(v.name) is Choice.RECOMPUTE}
    groups = []
    for c in iteration.candidates:
        if c.name not in value:
            continue
        names = [n for n in served(iteration, c) if n in value]
        seconds = sum(_seconds(iteration, value[n].writer) for n in names)
        groups.append(_Group(tuple(names), seconds / max(1, c.nbytes)))
    return sorted(groups, key=lambda g: g.rate)


def _seconds(iteration: Iteration, writer: int) -> float:
    return iteration.costs.seconds(iteration.forward[writer])


def _some(iteration: Iteration, groups: Sequence[_Group], spare: float) -> _Choices:
    """As many of the recomputations as fit into ``spare`` seconds."""
    writer = {v.name: v.writer for v in iteration.values}
    chosen: dict[str, Choice] = {}
    for group in groups:
        new = [n for n in group.names if n not in chosen]
        spare -= sum(_seconds(iteration, writer[n]) for n in new)
        if spare < 0:
            break
        chosen |= dict.fromkeys(new, Choice.RECOMPUTE)
    return chosen


def _without_waste(iteration: Iteration, best: Outline, base: _Choices, budget: int) -> Outline:
    """Drop the dearest recomputations of ``base`` as long as that makes the plan faster."""
    groups = _groups(iteration, base)
    low, high = 0, len(groups)
    for _ in range(5):
        if high - low < 2:
            break
        middle = (low + high) // 2
        fewer = {n: Choice.RECOMPUTE for g in groups[:middle] for n in g.names}
        outline = _within(iteration, with_compact(iteration, fewer), budget)
        if outline.bound <= budget and _faster(outline, best):
            best, high = outline, middle
        else:
            low = middle
    return best
