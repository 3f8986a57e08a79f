"""The picture of a plan, one SVG file without dependencies.

From top to bottom: how many bytes are in use, by kind; the device's memory, address by address;
what each instruction is; what waits in host memory. The horizontal axis is the same in all of
them: the instructions of one step, forward then backward.
"""

from __future__ import annotations

from layrubnet.memory.picture.arena import draw_arena
from layrubnet.memory.picture.curve import draw_curve
from layrubnet.memory.picture.furniture import draw_across, draw_legend, draw_title
from layrubnet.memory.picture.lanes import draw_host, draw_strip
from layrubnet.memory.picture.paper import Paper
from layrubnet.memory.picture.scale import Across, Up
from layrubnet.memory.picture.style import BACKWARD, FORWARD
from layrubnet.memory.timeline import Timeline

WIDTH, HEIGHT = 1600, 1000
_LEFT, _RIGHT = 118, 300
_CURVE = (128, 210)
_ARENA = (372, 372)
_STRIP = (750, 24)
_HOST = (796, 96)


def draw(line: Timeline, title: str, bvlc_bytes: int, budget: int | None = None) -> str:
    """Return the picture as SVG text.

    ``title``: the net, in words. ``bvlc_bytes``: what BVLC Caffe takes, for the saving.
    """
    plan = line.plan
    paper = Paper(WIDTH, HEIGHT, f"Memory plan of {title}, strategy {plan.strategy}")
    across = Across(_LEFT, WIDTH - _LEFT - _RIGHT, len(line.instructions))
    copies = bool(line.copies)
    arena_box = _ARENA if copies else (_ARENA[0], _ARENA[1] + _HOST[1] + 28)
    strip_top = _STRIP[0] if copies else _STRIP[0] + _HOST[1] + 28
    draw_title(paper, line, title, bvlc_bytes)
    _halves(paper, line, across, strip_top)
    top_bytes = _top(plan.nbytes, budget)
    curve_up = Up(_CURVE[0] + _CURVE[1], _CURVE[1], top_bytes, plan.persistent_bytes)
    arena_up = Up(sum(arena_box), arena_box[1], top_bytes, plan.persistent_bytes)
    draw_curve(paper, line, across, curve_up, budget)
    places = draw_arena(paper, line, across, arena_up, budget)
    draw_strip(paper, line, across, strip_top, _STRIP[1])
    drawn = (0, 0)
    if copies:
        drawn = draw_host(paper, line, across, _HOST, places)
    draw_across(paper, line, across, (sum(_HOST) if copies else strip_top + _STRIP[1]) + 8)
    draw_legend(paper, line, WIDTH - _RIGHT + 34, _CURVE[0], drawn, budget)
    return paper.svg()


def _top(nbytes: int, budget: int | None) -> int:
    """The top of the axes: a budget that is far away would flatten everything, so it is left out
    there (and named in the legend)."""
    if budget is not None and nbytes <= budget <= 1.5 * nbytes:
        return int(budget * 1.04)
    return int(nbytes * 1.02)


def _halves(paper: Paper, line: Timeline, across: Across, bottom: float) -> None:
    left, turn, right = across.at(0), across.at(line.turn), across.at(len(line.instructions))
    for (top, height), label in ((_CURVE, True), ((_ARENA[0], bottom - _ARENA[0]), False)):
        paper.rect(left, top, turn - left, height, FORWARD)
        paper.rect(turn, top, right - turn, height, BACKWARD)
        if label:
            for x, end, name in ((left, turn, "forward"), (turn, right, "backward")):
                if end - x > 60:
                    paper.text((x + end) / 2, top - 9, f"{name} →", 16, anchor="middle", weight=600)
