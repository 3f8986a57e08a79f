"""Checkpoints: keep what crosses a few cuts of the forward pass, compute all the rest again.

A cut is a place where few bytes are live: between the blocks of a residual net only the trunk
crosses. With ``k`` segments of equal bytes, what is kept grows with ``k`` and what is computed
again at one time shrinks; the best ``k`` is about the square root of the number of places.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from layrubnet.memory.iteration import Iteration
from layrubnet.memory.rewrite import Choice

_Choices = dict[str, Choice]


def checkpoints(iteration: Iteration) -> Iterator[_Choices]:
    """Choices for the best number of segments, and for some others.

    More segments keep more at the cuts; that pays where it can be offloaded.
    """
    cuts = _Cuts(iteration)
    best = cuts.best_count()
    for count in dict.fromkeys((best, max(1, best // 2), best * 2, best * 4)):
        yield cuts.choices(count)


def best_checkpoints(iteration: Iteration) -> _Choices:
    """Choices for the best number of segments."""
    return next(checkpoints(iteration))


class _Cuts:
    """The forward pass as seen from its cuts: position k lies after instruction k."""

    def __init__(self, iteration: Iteration) -> None:
        self.iteration = iteration
        length = len(iteration.forward)
        self.values = [v for v in iteration.values if v.repeatable]
        crossing, made = [0] * (length + 1), [0] * length
        for value in self.values:
            made[value.writer] += value.nbytes
            crossing[value.writer] += value.nbytes
            crossing[value.last_forward] -= value.nbytes
        self.made, self.crossing = made, crossing[:length]
        for k in range(1, length):
            self.crossing[k] += self.crossing[k - 1]
        self.total = sum(made)

    def positions(self, count: int) -> list[int]:
        """Cuts that divide what is made into about ``count`` segments, where least crosses."""
        share = self.total / count
        found: list[int] = []
        since, best = 0, -1
        for k, nbytes in enumerate(self.made):
            since += nbytes
            if since >= 0.6 * share and (best < 0 or self.crossing[k] <= self.crossing[best]):
                best = k
                after = 0
            elif best >= 0:
                after += nbytes
            if best >= 0 and since >= 1.3 * share:
                found.append(best)
                since, best = after, -1
        return found

    def estimate(self, count: int) -> int:
        """Bytes kept and the largest segment, roughly."""
        cuts = self.positions(count)
        largest = segment = 0
        following = iter([*cuts, len(self.made)])
        end = next(following)
        for k, nbytes in enumerate(self.made):
            segment += nbytes
            largest = max(largest, segment)
            if k == end:
                segment, end = 0, next(following)
        return largest + sum(self.crossing[k] for k in cuts)

    def best_count(self) -> int:
        """The number of segments with the smallest estimate."""
        limit = max(1, min(len(self.values), 4 * math.isqrt(len(self.values)) + 4))
        counts = sorted({max(1, round(1.25**k)) for k in range(40) if 1.25**k <= limit})
        return min(counts, key=self.estimate)

    def choices(self, count: int) -> _Choices:
        """Compute again all that does not cross a cut."""
        cuts = self.positions(count)
        kept = set()
        following = 0
        for value in self.values:  # in the order of their writers
            while following < len(cuts) and cuts[following] < value.writer:
                following += 1
            if following < len(cuts) and cuts[following] < value.last_forward:
                kept.add(value.name)
        return {v.name: Choice.RECOMPUTE for v in self.values if v.name not in kept}
