"""The upper panel: bytes in use at each instruction, stacked by kind."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from layrubnet.memory.picture.furniture import draw_budget, draw_bytes_axis
from layrubnet.memory.picture.paper import Paper
from layrubnet.memory.picture.scale import Across, Up
from layrubnet.memory.picture.style import FAINT, FILLS, INK, PERSISTENT, PERSISTENT_OTHER
from layrubnet.memory.report_text import size
from layrubnet.memory.timeline import Timeline

_COLUMNS = 1100


def draw_curve(paper: Paper, line: Timeline, across: Across, up: Up, budget: int | None) -> None:
    """Stacked areas; a dot at the peak, a line at what is allocated."""
    draw_bytes_axis(paper, across, up, "bytes in use")
    base = 0
    left, right = across.at(0), across.at(len(line.instructions))
    for kind, nbytes in line.persistent.items():
        color = PERSISTENT.get(kind, PERSISTENT_OTHER)
        top = up.at(base + nbytes)
        paper.rect(left, top, right - left, up.at(base) - top, color)
        base += nbytes
    floor = line.plan.persistent_bytes
    picked = _columns(line.total_in_use)
    below = np.zeros(len(picked), np.int64) + floor
    for kind, curve in line.in_use.items():
        above = below + curve[picked]
        _area(paper, across, up, picked, below, above, FILLS[kind], len(line.instructions))
        below = above
    _outline(paper, across, up, picked, below, len(line.instructions))
    whole = line.plan.nbytes
    paper.line(left, up.at(whole), right, up.at(whole), INK, 1.6, 'stroke-dasharray="7 4"')
    early = line.fullest < len(line.instructions) / 2
    x, anchor = (right - 8, "end") if early else (left + 8, "start")
    words = f"allocated once: {size(whole)}"
    paper.halo(x, up.at(whole) + 17, words, 14, anchor=anchor, weight=600)
    _peak(paper, line, across, up)
    draw_budget(paper, across, up, budget)


def _columns(total: np.ndarray) -> np.ndarray:
    """Instructions to draw: all of them, or the fullest of each column of the paper."""
    if len(total) <= _COLUMNS:
        return np.arange(len(total))
    edges = np.linspace(0, len(total), _COLUMNS + 1).astype(int)
    return np.array([a + int(np.argmax(total[a:b])) for a, b in pairwise(edges)])


def _area(
    paper: Paper, across: Across, up: Up, picked: np.ndarray, below: np.ndarray,
    above: np.ndarray, fill: str, count: int,
) -> None:  # fmt: skip
    if not (above > below).any():
        return
    upper = _steps(across, up, picked, above, count)
    lower = _steps(across, up, picked, below, count)
    paper.polygon([*upper, *reversed(lower)], fill)


def _steps(
    across: Across, up: Up, picked: np.ndarray, values: np.ndarray, count: int
) -> list[tuple[float, float]]:
    """Corners of a staircase: each value lasts until the next picked instruction."""
    ends = [*picked[1:], count]
    points: list[tuple[float, float]] = []
    for start, end, value in zip(picked, ends, values, strict=True):
        y = up.at(int(value))
        if len(points) >= 2 and points[-1][1] == y:
            points[-1] = (across.at(int(end)), y)
        else:
            points += [(across.at(int(start)), y), (across.at(int(end)), y)]
    return points


def _outline(
    paper: Paper, across: Across, up: Up, picked: np.ndarray, total: np.ndarray, count: int
) -> None:
    thin = 1.2 if count < 300 else 0.6
    paper.polyline(_steps(across, up, picked, total, count), INK, thin)


def _peak(paper: Paper, line: Timeline, across: Across, up: Up) -> None:
    n = line.fullest
    instruction = line.computing(n)
    level = line.plan.persistent_bytes + int(line.total_in_use[n])
    x, y = across.at(n + 0.5), up.at(level)
    paper.add(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="#fff" stroke="{INK}" stroke-width="2.5"/>'
    )
    text = f"peak {size(level)}: {instruction.op} {instruction.target}"
    middle = across.left + across.width / 2
    anchor, dx = ("start", 12) if x < middle else ("end", -12)
    low = min(y + 36, up.bottom - 8)
    paper.line(x, y + 6, x, low - 12, FAINT, 1)
    paper.halo(x + dx, low, text, 15, anchor=anchor, weight=600)
