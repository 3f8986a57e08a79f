"""Make a plan faster by changing one decision at a time, as long as it still fits.

Values of repeated blocks are alike (same size, same work): they first change together, then one by
one. Deep nets thus get most of the improvement from a few tries; small ones are searched until no
single change helps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from layrubnet.memory.candidates import Candidate
from layrubnet.memory.iteration import Iteration, Outline
from layrubnet.memory.rewrite import Choice

WORK = 60_000
"""Instructions to look at in all tries together; a try looks at each of the plan's."""

_Choices = Mapping[str, Choice]


def improve(outline: Outline, budget: int) -> Outline:
    """A plan at least as fast as ``outline`` with a peak of at most ``budget`` bytes."""
    if not outline.decisions.choices:
        return outline
    best = outline
    moves = _moves(outline.iteration)
    tries = WORK // max(1, len(outline.rewritten.instructions))
    better = True
    while better:
        better = False
        for move in moves:
            for choice in Choice:
                if tries <= 0:
                    return best
                changed = _changed(best, move, choice)
                if changed == best.decisions.choices:
                    continue
                tries -= 1
                other = best.iteration.outline(
                    replace(best.decisions, choices=changed, room=budget)
                )
                if other.bound <= budget and other.timing.total < best.timing.total * (1 - 1e-6):
                    best, better = other, True
    return best


def _moves(iteration: Iteration) -> list[Sequence[Candidate]]:
    """Sets of candidates to change together, those with most bytes first."""
    alike: dict[object, list[Candidate]] = {}
    for c in iteration.candidates:
        writer = iteration.forward[c.writer]
        alike.setdefault((writer.op, len(writer.reads), writer.flops, c.nbytes), []).append(c)
    groups: list[Sequence[Candidate]] = [g for g in alike.values() if len(g) > 1]
    singles: list[Sequence[Candidate]] = [(c,) for c in iteration.candidates]
    for moves in (groups, singles):
        moves.sort(key=lambda move: -sum(c.nbytes for c in move))
    return groups + singles


def _changed(outline: Outline, move: Sequence[Candidate], choice: Choice) -> _Choices:
    """The choices of ``outline`` with this one for all of ``move`` that can have it."""
    iteration = outline.iteration
    choices = dict(outline.decisions.choices)
    for c in move:
        if choice is Choice.KEEP:
            choices.pop(c.name, None)
        elif choice is Choice.OFFLOAD:
            choices[c.name] = choice
        elif choice is Choice.COMPACT:
            if c.name in iteration.compacts:
                choices[c.name] = choice
        elif c.repeatable:
            choices |= dict.fromkeys(served(iteration, c), choice)
    return choices


def served(iteration: Iteration, candidate: Candidate) -> list[str]:
    """The candidate and all that must be computed again for it, as backward does not read it."""
    values = iteration.by_name
    names = [candidate.name]
    for name in names:  # grows while it is walked
        for read in iteration.forward[values[name].writer].reads:
            value = values.get(read)
            waits = value is None or value.first_backward >= 0 or not value.repeatable
            if not waits and read not in names:
                names.append(read)
    return names
