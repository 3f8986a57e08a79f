"""Debugging of plans: memory whose content is dead is filled with NaN.

A layer that reads what it did not declare, or a plan that gives a place away too early, then shows
at once: the next read finds NaN (for integers: -1 or the largest number) instead of stale values
that happen to be right.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from layrubnet.memory.plan import Schedule

PATTERN = 255
"""Every byte; it makes NaN of each floating-point type."""

_Span = tuple[int, int]


class _View(Protocol):
    def __call__(self, offset: int, shape: Any, dtype: str) -> Any: ...


class Poison:
    """The byte ranges of one schedule that nobody may read, by instruction.

    ``view`` makes an array at an address of the plan; ``kept``: buffers that never die (None: all).
    """

    def __init__(
        self, schedule: Schedule, arena: _Span, view: _View, ops: Any, kept: Collection[str] | None
    ) -> None:
        self._view, self._ops = view, ops
        lives = _lifetimes(schedule, kept)
        spans = {
            name: (schedule.offsets[name], schedule.offsets[name] + schedule.buffers[name].nbytes)
            for name in lives
        }
        self._start = _without(
            [arena], [spans[name] for name, (first, _) in lives.items() if first < 0]
        )
        self._after: dict[int, list[_Span]] = {}
        for name, (_, last) in lives.items():
            if last < len(schedule.instructions):
                living = [spans[n] for n, (a, b) in lives.items() if a <= last < b]
                self._after.setdefault(last, []).extend(_without([spans[name]], living))

    def start(self) -> None:
        """Fill all that the schedule does not find filled from outside."""
        self._fill(self._start)

    def scratch(self, begin: int, nbytes: int) -> None:
        """Fill the scratch of the next instruction."""
        self._fill([(begin, begin + nbytes)])

    def after(self, position: int) -> None:
        """Fill what the instruction at ``position`` was the last to use."""
        self._fill(self._after.get(position, []))

    def _fill(self, spans: list[_Span]) -> None:
        for begin, end in spans:
            self._ops.fill(self._view(begin, (end - begin,), "uint8"), PATTERN)


def _lifetimes(schedule: Schedule, kept: Collection[str] | None) -> dict[str, tuple[int, int]]:
    """First and last use of each buffer; -1: filled from outside, past the end: kept."""
    lives: dict[str, tuple[int, int]] = {}
    end = len(schedule.instructions)
    for position, instruction in enumerate(schedule.instructions):
        for names, first in ((instruction.reads, -1), (instruction.writes, position)):
            for name in names:
                if name in schedule.offsets:
                    last = end if kept is None or name in kept else position
                    lives[name] = (lives.get(name, (first, 0))[0], last)
    return lives


def _without(spans: list[_Span], living: list[_Span]) -> list[_Span]:
    """``spans`` cut to what no living range covers."""
    for low, high in living:
        spans = [
            piece
            for begin, end in spans
            for piece in ((begin, min(end, low)), (max(begin, high), end))
            if piece[0] < piece[1]
        ]
    return spans
