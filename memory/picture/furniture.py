"""Title, axes, budget line and legend."""

from __future__ import annotations

from layrubnet.memory.picture.paper import Paper, shortened
from layrubnet.memory.picture.scale import Across, Up, count_step
from layrubnet.memory.picture.style import (
    BUDGET,
    FAINT,
    FETCH,
    FILLS,
    GRID,
    INK,
    OFFLOAD,
    PERSISTENT,
    PERSISTENT_OTHER,
    STRIP,
    STRIP_BACKWARD,
    STRIP_FORWARD,
)
from layrubnet.memory.report import EMPTY, parts
from layrubnet.memory.report_text import ABOUT, saving, size
from layrubnet.memory.timeline import KINDS, Timeline
from layrubnet.memory.timeline import PERSISTENT as PERSISTENT_WORDS


def draw_title(paper: Paper, line: Timeline, title: str, bvlc_bytes: int) -> None:
    """What this is, how much memory, how much is saved."""
    plan = line.plan
    name = shortened(title, 700, 30)
    paper.text(118, 48, name, 30, weight=700)
    words = f"strategy {plan.strategy}"
    if plan.strategy in ABOUT:
        words += f" ({ABOUT[plan.strategy]})"
    words += f"  ·  {size(plan.nbytes)} on the device"
    if plan.host_bytes:
        words += f"  ·  {size(plan.host_bytes)} on the host"
    paper.text(118, 80, words, 18, fill=FAINT)
    paper.text(paper.width - 40, 52, saving(plan.nbytes, bvlc_bytes), 36, anchor="end", weight=700)
    paper.text(
        paper.width - 40,
        80,
        f"than BVLC Caffe's {size(bvlc_bytes)}",
        16,
        anchor="end",
        fill=FAINT,
    )


def draw_bytes_axis(paper: Paper, across: Across, up: Up, label: str) -> None:
    """Grid lines with sizes, a name, and the break where the floor is shortened."""
    right = across.left + across.width
    for tick in up.ticks(max(3, int(up.height / 62))):
        y = up.at(tick)
        paper.line(across.left, y, right, y, GRID)
        words = _tick(tick)
        paper.text(across.left - 10, y + 5, words, 14, anchor="end", fill=FAINT)
    middle = up.bottom - up.height / 2
    paper.text(
        24, middle, label, 16, anchor="middle", weight=600,
        more=f'transform="rotate(-90 24 {middle:.0f})"',
    )  # fmt: skip
    if up.broken:
        y = up.bottom - up.squeezed / 2
        points = [(across.left - 6.0, y + 5), (across.left + 6.0, y - 1)]
        paper.polyline(points, INK, 2)
        paper.polyline([(x, y + 6) for x, y in points], INK, 2)


def _tick(nbytes: int) -> str:
    """An exact size as short as can be: ``3.125 GiB``."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if nbytes >= 1 << power:
            return f"{nbytes / (1 << power):.3f}".rstrip("0").rstrip(".") + f" {unit}"
    return str(nbytes)


def draw_budget(paper: Paper, across: Across, up: Up, budget: int | None) -> None:
    """The budget, where it is near enough to be on the paper."""
    if budget is None or budget > up.top_bytes:
        return
    y, right = up.at(budget), across.left + across.width
    paper.line(across.left, y, right, y, BUDGET, 2.2, 'stroke-dasharray="2 3"')
    paper.halo(
        right - 6, y - 6, f"budget {size(budget)}", 14, anchor="end", fill=BUDGET, weight=600
    )


def draw_across(paper: Paper, line: Timeline, across: Across, top: float) -> None:
    """Numbers of instructions and, at some of them, the layer."""
    count = len(line.instructions)
    step = count_step(count, 16)
    for n in range(0, count, step):
        x = across.at(n)
        paper.line(x, top - 6, x, top, FAINT)
        if x < across.left + across.width - 30:
            paper.text(x, top + 15, str(n), 13, anchor="middle", fill=FAINT)
        layer = shortened(line.computing(n).target, 110, 12)
        if n + step / 2 < count:
            paper.text(
                x + 3, top + 32, layer, 12, fill=FAINT,
                more=f'transform="rotate(14 {x + 3:.0f} {top + 32:.0f})"',
            )  # fmt: skip
    paper.text(across.left + across.width + 12, top + 15, "instruction", 14, fill=INK, weight=600)
    paper.text(across.left + across.width + 12, top + 36, "and its layer", 13, fill=FAINT)


def draw_legend(
    paper: Paper, line: Timeline, x: float, top: float, arrows: tuple[int, int], budget: int | None
) -> None:
    """Each colour with its name and its bytes at the peak."""
    held = parts(line)
    paper.text(x, top + 4, "at the peak", 16, weight=600)
    y = top + 32.0
    for kind, words in KINDS.items():
        if kind in line.in_use or (kind == "scratch" and held.get(words)):
            y = _entry(paper, x, y, FILLS[kind], words, held.get(words, 0))
    for kind in line.persistent:
        words = PERSISTENT_WORDS.get(kind, kind)
        if held.get(words, 0) >= 0.001 * line.plan.nbytes:
            color = PERSISTENT.get(kind, PERSISTENT_OTHER)
            y = _entry(paper, x, y, color, words, held[words])
    empty = held.get(EMPTY, 0)
    if empty:
        y = _entry(paper, x, y, "#FFFFFF", "nothing", empty)
    paper.line(x, y - 10, paper.width - 40, y - 10, FAINT)
    paper.text(x + 26, y + 12, "all", 15, weight=600)
    paper.text(paper.width - 40, y + 12, size(line.plan.nbytes), 15, anchor="end", weight=600)
    y += 48
    if arrows[1]:
        some = f" ({arrows[0]} of {arrows[1]} drawn)" if arrows[0] < arrows[1] else ""
        for color, words in ((OFFLOAD, "↓ offload to the host"), (FETCH, "↑ fetch from the host")):
            paper.text(x, y, words, 15, fill=color, weight=600)
            y += 24
        if some:
            paper.text(x, y - 2, some.strip(), 13, fill=FAINT)
            y += 22
    last = len(line.instructions) - 1
    pale = sum(c.nbytes for c in line.lives if c.alone and c.end - c.start < last)
    if pale > 0.01 * line.plan.nbytes:
        paper.rect(x, y - 12, 16, 16, FILLS["feature"], 'opacity="0.16"')
        paper.text(x + 26, y + 2, "pale: reserved, but empty", 14, fill=FAINT)
        y += 26
    y = _strip_legend(paper, line, x, y + 14)
    if budget is not None:
        paper.text(x, y + 2, f"budget {size(budget)}", 15, fill=BUDGET, weight=600)


def _strip_legend(paper: Paper, line: Timeline, x: float, y: float) -> float:
    """The colours of the row of instructions, those that occur."""
    there = {i.op for i in line.instructions}
    paper.text(x, y, "instructions", 16, weight=600)
    y += 28
    for color, words in (
        (STRIP_FORWARD, "forward"),
        (STRIP_BACKWARD, "backward"),
        *((STRIP[op], words) for op, words in _OTHER_STEPS.items() if op in there),
    ):
        stroke = f'stroke="{FAINT}"' if color == "#FFFFFF" else ""
        paper.rect(x, y - 12, 16, 16, color, stroke)
        paper.text(x + 26, y + 2, words, 15)
        y += 26
    return y


_OTHER_STEPS = {
    "recompute": "a layer run again",
    "offload": "an offload starts",
    "fetch": "a fetch starts",
    "wait": "wait for a copy",
}


def _entry(paper: Paper, x: float, y: float, color: str, words: str, nbytes: int) -> float:
    stroke = f'stroke="{FAINT}"' if color == "#FFFFFF" else ""
    paper.rect(x, y - 12, 16, 16, color, stroke)
    paper.text(x + 26, y + 2, words, 15)
    paper.text(paper.width - 40, y + 2, size(nbytes) if nbytes else "-", 15, anchor="end")
    return y + 26
