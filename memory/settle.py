"""Give up some of the copies' memory where addresses cannot be found for all of it.

``stretch.py`` fills the memory up to the brim at every instruction; then the addresses often do not
work out. With a little less room for the copies they do, at little cost in time.
"""

from __future__ import annotations

from dataclasses import replace

from layrubnet.memory.iteration import Outline

_SHARES = (0.93, 0.8, 0.7, 0.0)
MANY = 5000
"""With so many slots fewer shares are tried."""


def settle(outline: Outline, height: int, seconds: float = float("inf")) -> Outline:
    """The outline with as much room for its copies as lets the arena stay below ``height``.

    The lowest of those tried if none does; none that takes more than ``seconds`` but the first.
    """
    room = outline.decisions.room
    if room is None or outline.height <= height:
        return outline
    best = outline
    for share in _SHARES if len(outline.slots) < MANY else _SHARES[2:]:
        other = outline.iteration.outline(
            replace(outline.decisions, room=int(share * min(room, outline.bound)))
        )
        if other.timing.total > seconds:
            break
        if other.height < best.height:
            best = other
        if best.height <= height:
            break
    return best
