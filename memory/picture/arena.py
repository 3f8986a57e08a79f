"""The middle panel: device memory by address, each buffer a rectangle from first to last use."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from layrubnet.memory.picture.boxes import Box, short
from layrubnet.memory.picture.furniture import draw_budget, draw_bytes_axis
from layrubnet.memory.picture.paper import Paper, shortened
from layrubnet.memory.picture.scale import Across, Up
from layrubnet.memory.picture.style import FILLS, ON_FILL, PERSISTENT, PERSISTENT_OTHER
from layrubnet.memory.report_text import size
from layrubnet.memory.timeline import KINDS, Life, Timeline
from layrubnet.memory.timeline import PERSISTENT as PERSISTENT_WORDS

_NAMED = 300
"""So many of the largest rectangles say what they are when pointed at."""


def draw_arena(
    paper: Paper, line: Timeline, across: Across, up: Up, budget: int | None
) -> Mapping[str, Box]:
    """Draw it; return where each buffer lies on the paper."""
    draw_bytes_axis(paper, across, up, "device memory, by address")
    _draw_persistent(paper, line, across, up)
    boxes = {life.name: _box(life, across, up) for life in line.lives if life.kind != "scratch"}
    _draw_reserved(paper, line, across, up)
    by_fill: dict[str, list[Box]] = {}
    for life in line.lives:
        by_fill.setdefault(FILLS[life.kind], []).append(_box(life, across, up))
    paper.boxes(by_fill, 'stroke="#fff" stroke-width="0.7"')
    _draw_names(paper, line, across, up)
    _draw_scratch(paper, line, across, up)
    draw_budget(paper, across, up, budget)
    return boxes


def _box(life: Life, across: Across, up: Up) -> Box:
    x = across.at(life.start)
    top, bottom = up.at(life.offset + life.nbytes), up.at(life.offset)
    return x, top, across.at(life.end + 1) - x, bottom - top


def _draw_persistent(paper: Paper, line: Timeline, across: Across, up: Up) -> None:
    """The floor by kind. Buffers of a kind need not lie together; their sums do here."""
    left, width = across.at(0), across.width
    base = 0
    for kind, nbytes in line.persistent.items():
        top, bottom = up.at(base + nbytes), up.at(base)
        color = PERSISTENT.get(kind, PERSISTENT_OTHER)
        paper.rect(left, top, width, bottom - top, color)
        if bottom - top > 15:
            text = f"{PERSISTENT_WORDS.get(kind, kind)}  {size(nbytes)}"
            fill = "#FFFFFF" if kind in ("param", "param_diff") else "#000000"
            paper.text(left + 10, (top + bottom) / 2 + 5, text, 13, fill=fill)
        base += nbytes


def _draw_reserved(paper: Paper, line: Timeline, across: Across, up: Up) -> None:
    """Places that only one buffer ever uses: pale over the whole step, for they hold nothing."""
    last = len(line.instructions) - 1
    by_fill: dict[str, list[Box]] = {}
    for life in line.lives:
        if life.alone and life.end - life.start < last:
            top, bottom = up.at(life.offset + life.nbytes), up.at(life.offset)
            box = across.left, top, across.width, bottom - top
            by_fill.setdefault(FILLS[life.kind], []).append(box)
    if by_fill:
        paper.add('<g opacity="0.16">')
        paper.boxes(by_fill)
        paper.add("</g>")


def _draw_names(paper: Paper, line: Timeline, across: Across, up: Up) -> None:
    """Titles (shown by browsers on pointing) of the largest rectangles, and text that fits."""
    sized = [(life, _box(life, across, up)) for life in line.lives]
    sized.sort(key=lambda item: -item[1][2] * item[1][3])
    for life, (x, top, width, height) in sized[:_NAMED]:
        if width < 3 or height < 3:
            continue
        fill = ON_FILL.get(life.kind, "#000000")
        words = f"{life.name}: {KINDS[life.kind]}, layer {life.layer}, {size(life.nbytes)}, "
        words += f"instructions {life.start} to {life.end}"
        paper.add(
            f'<path d="M{short(x)} {short(top)}h{short(width)}v{short(height)}h{short(-width)}z" '
            f'fill="transparent"><title>{escape(words)}</title></path>'
        )
        label = shortened(life.origin.rpartition(".")[0] or life.name, width - 10, 12)
        if label and height >= 15:
            paper.text(x + 5, top + height / 2 + 4, label, 12, fill=fill, more=_UNTOUCHED)


def _draw_scratch(paper: Paper, line: Timeline, across: Across, up: Up) -> None:
    plan = line.plan
    top, bottom = up.at(plan.scratch_offset + plan.scratch_bytes), up.at(plan.scratch_offset)
    paper.rect(across.left, top, across.width, bottom - top, "url(#hatch)")
    if bottom - top > 14:
        text = f"scratch that every instruction may use  {size(plan.scratch_bytes)}"
        paper.text(across.left + 10, (top + bottom) / 2 + 5, text, 13)


_UNTOUCHED = 'pointer-events="none"'
