"""Which values must leave so that no instruction sees more than so many bytes.

Exact arithmetic on the lifetimes of an iteration: a value that leaves frees its bytes at every
instruction between its last use in forward and its first in backward.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layrubnet.memory.iteration import Outline
from layrubnet.memory.plan import aligned
from layrubnet.memory.stretch import profile


@dataclass(frozen=True)
class Cover:
    """Values to offload, and the peak that is left."""

    names: list[str]
    peak: int


def cover(outline: Outline, room: int) -> Cover:
    """Choose kept values of ``outline`` to offload until at most ``room`` bytes are live.

    At the fullest instruction, those that wait there leave, the earliest made first: they wait
    longest, and their copies have most time. Stops where nothing that waits is left.
    """
    instructions = outline.rewritten.instructions
    live = np.array(profile(outline.slots, len(instructions)), np.int64)
    names, begins, ends, sizes = _waiting(outline)
    free = np.ones(len(names), bool)
    chosen: list[str] = []
    while len(live):
        worst = int(live.argmax())
        excess = int(live[worst]) - room
        if excess <= 0:
            break
        there = np.flatnonzero(free & (begins < worst) & (ends > worst))
        if not len(there):
            break
        enough = int(np.searchsorted(np.cumsum(sizes[there]), excess)) + 1
        for k in there[:enough]:
            live[begins[k] + 1 : ends[k]] -= sizes[k]
            chosen.append(names[k])
        free[there[:enough]] = False
    return Cover(chosen, int(live.max(initial=0)))


def _waiting(outline: Outline) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    """Kept candidates in the order in which forward makes them: names, last and first use, bytes.

    The uses are positions in the outline; the turn is where the forward pass ends.
    """
    iteration = outline.iteration
    kept = {c.name: c for c in iteration.candidates if c.name not in outline.decisions.choices}
    # By the order of the forward pass: some of its instructions may have another form here.
    position = [
        k for k, i in enumerate(outline.rewritten.instructions) if i.op not in ("offload", "wait")
    ][: len(iteration.forward)]
    turn = position[-1]
    first: dict[str, int] = {}
    for k in range(turn + 1, len(outline.rewritten.instructions)):
        for name in outline.rewritten.instructions[k].reads:
            if name in kept:
                first.setdefault(name, k)
    rows = [
        (c.name, position[c.last_forward], first[c.name], aligned(c.nbytes))
        for c in kept.values()
        if c.name in first
    ]
    begins, ends, sizes = (np.array([r[k] for r in rows], np.int64) for k in (1, 2, 3))
    return [r[0] for r in rows], begins, ends, sizes
