"""Below the arena: what each instruction is, and what waits in host memory."""

from __future__ import annotations

from collections.abc import Mapping

from layrubnet.memory.picture.boxes import Box
from layrubnet.memory.picture.paper import Paper, shortened
from layrubnet.memory.picture.scale import Across
from layrubnet.memory.picture.style import (
    FAINT,
    FETCH,
    HOST,
    INK,
    OFFLOAD,
    STRIP,
    STRIP_BACKWARD,
    STRIP_FORWARD,
)
from layrubnet.memory.report_text import size
from layrubnet.memory.timeline import Timeline

_ARROWS = 45
"""Of more copies than this (in either direction) only some are drawn as arrows."""


def draw_strip(paper: Paper, line: Timeline, across: Across, top: float, height: float) -> None:
    """Two rows of marks, one per instruction: computing (again), and copies that start."""
    boxes: dict[str, list[Box]] = {}
    half = height / 2
    for n, instruction in enumerate(line.instructions):
        op, x = instruction.op, across.at(n)
        plain = STRIP_FORWARD if n < line.turn else STRIP_BACKWARD
        row = top + half + 1 if op in ("offload", "fetch") else top
        box = x, row, across.at(n + 1) - x, half
        boxes.setdefault(STRIP.get(op, plain), []).append(box)
    paper.boxes(boxes)
    paper.text(across.left - 10, top + half + 3, "instructions", 13, anchor="end", fill=FAINT)


def draw_host(
    paper: Paper, line: Timeline, across: Across, box: tuple[int, int], places: Mapping[str, Box]
) -> tuple[int, int]:
    """The host lane and arrows to and from it; returns how many of how many copies have one."""
    top, height = box
    right = across.left + across.width
    paper.rect(across.left, top, across.width, height, "#EEF4F3", f'stroke="{FAINT}"')
    paper.text(across.left - 10, top + 18, "host", 15, anchor="end", weight=600)
    paper.text(across.left - 10, top + 36, size(line.plan.host_bytes), 13, anchor="end", fill=FAINT)
    back = {c.buffer: c for c in line.copies if c.op == "fetch"}
    out = [c for c in line.copies if c.op == "offload"]
    whole = max(1, sum(c.nbytes for c in out))
    below = 0
    stays: list[Box] = []
    arrows: list[tuple[str, float, float, float]] = []
    for copy in out:
        y1 = top + height * below / whole
        y2 = top + height * (below + copy.nbytes) / whole
        below += copy.nbytes
        left = across.at(copy.end)
        fetch = back.get(copy.buffer)
        end = across.at(fetch.start) if fetch else right
        stays.append((left, y1, end - left, y2 - y1))
        device, again = places.get(copy.buffer), places.get(f"{copy.buffer}~")
        if device:
            arrows.append(("down", across.at(copy.start + 0.5), device[1] + device[3] / 2, y1))
        if fetch and again:
            arrows.append(("up", across.at(fetch.start + 0.5), again[1] + again[3] / 2, y1))
    paper.boxes({HOST: stays}, 'stroke="#fff" stroke-width="0.6"')
    for copy, (x, y, width, tall) in zip(out, stays, strict=True):
        if tall >= 15:
            words = f"{copy.buffer.rpartition('.')[0]}  {size(copy.nbytes)}"
            paper.text(
                x + width / 2, y + tall / 2 + 4, shortened(words, width, 12), 12, anchor="middle"
            )
    shown = _spread(arrows, _ARROWS)
    for way, x, device_y, host_y in shown:
        _arrow(paper, way, x, device_y, host_y)
    return len(shown), len(arrows)


def _spread(
    arrows: list[tuple[str, float, float, float]], most: int
) -> list[tuple[str, float, float, float]]:
    """At most ``most`` of each direction, evenly chosen."""
    chosen = []
    for way in ("down", "up"):
        found = [a for a in arrows if a[0] == way]
        step = max(1, -(-len(found) // most))
        chosen += found[::step]
    return chosen


def _arrow(paper: Paper, way: str, x: float, device_y: float, host_y: float) -> None:
    color = OFFLOAD if way == "down" else FETCH
    start, end = (device_y, host_y) if way == "down" else (host_y, device_y)
    tip = 7 if way == "down" else -7
    paper.line(x, start, x, end - tip, color, 1.3, 'opacity="0.8"')
    paper.polygon([(x - 3.5, end - tip), (x + 3.5, end - tip), (x, end)], color)
    paper.add(
        f'<circle cx="{x:.1f}" cy="{start:.1f}" r="2.2" fill="{color}" stroke="{INK}" '
        'stroke-width="0.3"/>'
    )
