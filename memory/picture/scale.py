"""From instructions and bytes to places on the paper."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

_BREAK_FROM = 0.3
"""Persistent memory beyond this share of the axis is drawn shortened, with a break."""
_BREAK_TO = 0.1


@dataclass(frozen=True)
class Across:
    """Instructions from left to right: instruction ``n`` covers ``at(n)`` to ``at(n + 1)``."""

    left: float
    width: float
    count: int

    def at(self, position: float) -> float:
        return self.left + self.width * position / max(1, self.count)


@dataclass(frozen=True)
class Up:
    """Bytes from ``bottom`` upwards. Where ``floor`` bytes at the bottom would leave too little
    room for the rest, they are drawn shortened to ``squeezed`` pixels and the axis is broken."""

    bottom: float
    height: float
    top_bytes: int
    floor: int = 0

    @property
    def broken(self) -> bool:
        return self.floor > _BREAK_FROM * self.top_bytes

    @property
    def squeezed(self) -> float:
        return _BREAK_TO * self.height if self.broken else 0.0

    def at(self, nbytes: float) -> float:
        if not self.broken:
            return self.bottom - self.height * nbytes / max(1, self.top_bytes)
        if nbytes <= self.floor:
            return self.bottom - self.squeezed * nbytes / self.floor
        share = (nbytes - self.floor) / max(1, self.top_bytes - self.floor)
        return self.bottom - self.squeezed - (self.height - self.squeezed) * share

    def ticks(self, about: int = 6) -> Iterator[int]:
        """Multiples of a power of two."""
        start = self.floor if self.broken else 0
        step = nice_step((self.top_bytes - start) / about)
        value = -(-start // step) * step
        if self.broken:
            yield 0
        while value <= self.top_bytes:
            yield value
            value += step


def nice_step(nbytes: float) -> int:
    """The next larger power of two: round in any unit of 1024."""
    return 1 << max(0, math.ceil(math.log2(max(1.0, nbytes))))


def count_step(count: int, about: int) -> int:
    """A round step that cuts ``count`` into about so many parts."""
    rough = max(1.0, count / about)
    base = int(10.0 ** int(math.log10(rough)))
    return next((f * base for f in (1, 2, 5, 10) if f * base >= rough), base * 10)
