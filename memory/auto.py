"""The search for the fastest plan within a budget.

Decisions are tried along *ladders*: lists of decisions sorted by what they cost per byte, of which
a plan takes a prefix. Longer prefixes need less memory, so the shortest sufficient prefix is found
by bisection; every step is an exact count of the peak. Several ladders (recompute first, offload
first, ...) and two paces of copying are tried, and the fastest plan that fits is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layrubnet.memory.candidates import Candidate
from layrubnet.memory.iteration import Decisions, Iteration, Outline
from layrubnet.memory.rewrite import Choice, Pace
from layrubnet.memory.strategies import cheap_recomputes, fixed_decisions

FREE_TIME = 0.05
"""Without a budget, ``auto`` may cost this share of the time of ``reuse``."""

_Step = tuple[str, Choice]


@dataclass(frozen=True)
class Found:
    """A plan that the search came up with, and whether it fits."""

    outline: Outline
    fits: bool


def fastest_within(iteration: Iteration, budget: int) -> Found:
    """The fastest plan whose peak is at most ``budget`` bytes; the smallest if none fits."""
    plain = iteration.outline(fixed_decisions("reuse", iteration))
    if plain.bound <= budget:
        return Found(plain, True)
    fitting: list[Outline] = []
    smallest = plain
    for ladder, pace in _ladders(iteration):
        outline = _shortest_prefix(iteration, ladder, pace, budget)
        if outline.bound <= budget:
            fitting.append(outline)
        smallest = min(smallest, outline, key=lambda o: o.bound)
    for name in ("min",):
        outline = iteration.outline(fixed_decisions(name, iteration))
        if outline.bound <= budget:
            fitting.append(outline)
        smallest = min(smallest, outline, key=lambda o: o.bound)
    if fitting:
        return Found(min(fitting, key=lambda o: o.timing.total), True)
    return Found(smallest, False)


def smallest_for_free(iteration: Iteration) -> Outline:
    """The smallest peak whose predicted time is at most 5 % above that of ``reuse``."""
    plain = iteration.outline(fixed_decisions("reuse", iteration))
    limit = plain.timing.total * (1 + FREE_TIME)
    best = plain
    for ladder, pace in _ladders(iteration):
        low, high = 0, len(ladder)
        while low < high:
            middle = (low + high + 1) // 2
            outline = iteration.outline(Decisions(dict(ladder[:middle]), pace))
            if outline.timing.total <= limit:
                low = middle
                best = min(best, outline, key=lambda o: (o.bound, o.timing.total))
            else:
                high = middle - 1
    return best


def _shortest_prefix(
    iteration: Iteration, ladder: Sequence[_Step], pace: Pace, budget: int
) -> Outline:
    best = iteration.outline(Decisions(dict(ladder), pace))
    if best.bound > budget:
        return best
    low, high = 0, len(ladder)
    while low < high:
        middle = (low + high) // 2
        outline = iteration.outline(Decisions(dict(ladder[:middle]), pace))
        if outline.bound <= budget:
            high, best = middle, outline
        else:
            low = middle + 1
    return best


def _ladders(iteration: Iteration) -> Iterator[tuple[list[_Step], Pace]]:
    """Ladders with the pace of their copies, from gentle to rough."""
    cheap = cheap_recomputes(iteration)
    repeated: list[_Step] = list(cheap.items())
    moves = [c for c in iteration.candidates if c.name not in cheap]
    by_wait = sorted(moves, key=lambda c: c.writer)
    all_by_wait = sorted(iteration.candidates, key=lambda c: c.writer)
    timed, step = Pace(), Pace(1, 1)
    yield repeated + _offloads(by_wait), timed
    yield _offloads(all_by_wait), timed
    yield repeated + _offloads(by_wait), step
    yield _offloads(all_by_wait), step
    yield _repeats(iteration), timed
    yield repeated + _mixed(iteration, cheap), timed


def _offloads(found: Sequence[Candidate]) -> list[_Step]:
    """Earliest first: what forward makes first waits longest, and its copy has most time."""
    return [(c.name, Choice.OFFLOAD) for c in found]


def _repeats(iteration: Iteration) -> list[_Step]:
    """Recompute by cost per byte, cheapest first."""
    cost, forward = iteration.cost, iteration.forward
    found = [v for v in iteration.values if v.repeatable]
    found.sort(key=lambda v: cost.seconds(forward[v.writer]) / max(1, v.nbytes))
    return [(v.name, Choice.RECOMPUTE) for v in found]


def _mixed(iteration: Iteration, cheap: dict[str, Choice]) -> list[_Step]:
    """Each buffer by whichever is faster for it: a copy both ways, or its layer once more."""
    cost, forward = iteration.cost, iteration.forward
    steps: list[tuple[float, _Step]] = []
    for c in iteration.candidates:
        if c.name in cheap:
            continue
        move = cost.copy_seconds("offload", c.nbytes) + cost.copy_seconds("fetch", c.nbytes)
        repeat = cost.seconds(forward[c.writer]) if c.repeatable else float("inf")
        choice = Choice.OFFLOAD if move <= repeat else Choice.RECOMPUTE
        steps.append((min(move, repeat) / max(1, c.nbytes), (c.name, choice)))
    return [step for _, step in sorted(steps, key=lambda item: item[0])]
