"""The page: several plans of a net to explore, in one HTML file that needs no network.

The plans travel as compressed JSON inside the page; ``model.js`` unpacks them, ``draw.js`` draws
on a canvas, ``viewer.js`` listens to the mouse and the keyboard.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from layrubnet.memory.cost import CostModel
from layrubnet.memory.picture.style import FILLS, ON_FILL, PERSISTENT, PERSISTENT_OTHER, STRIP
from layrubnet.memory.report import Figures
from layrubnet.memory.report_text import ABOUT
from layrubnet.memory.timeline import KINDS, Timeline
from layrubnet.memory.timeline import PERSISTENT as PERSISTENT_WORDS

_SCRIPTS = ("model.js", "draw.js", "viewer.js")


def page(
    plans: Sequence[tuple[Timeline, Figures]],
    title: str,
    first: str,
    bvlc_bytes: int,
    budget: int | None,
    cost: CostModel,
) -> str:
    """Return the page as text. ``first``: the strategy to show first."""
    names: dict[str, int] = {}
    data = {
        "title": title,
        "first": first,
        "bvlc": bvlc_bytes,
        "budget": budget,
        "figures": cost.figures.name,
        "kinds": [[words, FILLS[k], ON_FILL.get(k, "#000")] for k, words in KINDS.items()],
        "strip": STRIP,
        "plans": [_plan(line, figures, cost, names) for line, figures in plans],
        "names": [],
    }
    data["names"] = list(names)
    packed = gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0)
    scripts = "\n".join(_resource(name) for name in _SCRIPTS)
    return _PAGE.format(
        title=escape(title),
        style=_resource("page.css"),
        data=base64.b64encode(packed).decode(),
        script=scripts,
    )


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _plan(
    line: Timeline, figures: Figures, cost: CostModel, names: dict[str, int]
) -> dict[str, Any]:
    plan, kinds = line.plan, list(KINDS)

    def number(name: str) -> int:
        return names.setdefault(name, len(names))

    return {
        "strategy": plan.strategy,
        "about": ABOUT.get(plan.strategy, ""),
        "seconds": figures.seconds,
        "stall": figures.stall,
        "again": figures.recompute,
        "moved": figures.moved,
        "host": plan.host_bytes,
        "bytes": plan.nbytes,
        "floor": plan.persistent_bytes,
        "scratch": [plan.scratch_offset, plan.scratch_bytes],
        "turn": line.turn,
        "persistent": _persistent(line),
        "instructions": _flat([number(i.op), number(i.target)] for i in line.instructions),
        "micro": [round(cost.seconds(i) * 1e6, 1) for i in line.instructions],
        "lives": _flat(
            [
                number(life.name),
                kinds.index(life.kind),
                number(life.layer),
                life.start,
                life.end,
                life.counted_end,
                life.offset,
                life.nbytes,
                int(life.alone),
            ]
            for life in line.lives
        ),
        "copies": _flat(
            [number(c.op), number(c.buffer), c.start, c.end, c.nbytes] for c in line.copies
        ),
    }


def _persistent(line: Timeline) -> list[list[Any]]:
    return [
        [PERSISTENT_WORDS.get(kind, kind), PERSISTENT.get(kind, PERSISTENT_OTHER), nbytes]
        for kind, nbytes in line.persistent.items()
    ]


def _flat(rows: Iterable[list[int]]) -> list[int]:
    """One long list packs better than many short ones."""
    return [value for row in rows for value in row]


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Memory plan: {title}</title>
<style>
{style}
</style>
</head>
<body>
<header>
  <div><h1 id="title"></h1><p id="summary"></p></div>
  <div id="saving"><strong id="percent"></strong><span id="against"></span></div>
</header>
<nav><div id="strategies" role="tablist" aria-label="strategy"></div>
  <div id="tools"><label><input type="checkbox" id="clock"> horizontal axis in time</label>
  <button id="reset" title="0">whole step</button></div></nav>
<main><canvas id="picture" tabindex="0" aria-label="memory over one step"></canvas>
  <aside id="legend"></aside></main>
<footer>Wheel: zoom in time · Shift + wheel: zoom in address · drag: move · double click or 0: whole
step · click a buffer: keep its description · 1 to 9: strategy · arrows, + and −: move and
zoom</footer>
<div id="tip" role="status" hidden></div>
<script type="text/plain" id="data">{data}</script>
<script>
{script}
</script>
</body>
</html>"""
