"""Colours and fonts. The colours are Okabe and Ito's, which colour-blind readers can tell apart."""

from __future__ import annotations

FILLS = {
    "feature": "#0072B2",
    "gradient": "#D55E00",
    "saved": "#009E73",
    "fetched": "#56B4E9",
    "recomputed": "#CC79A7",
    "scratch": "#8A8A8A",
    "other": "#B8B8B8",
}
"""By kind of :data:`layrubnet.memory.timeline.KINDS`."""

ON_FILL = {"feature": "#FFFFFF"}
"""Colour of text on a fill; black where none is given."""

PERSISTENT = {
    "param": "#4A4A55",
    "param_diff": "#6E6E7C",
    "history": "#9494A3",
    "data": "#B9B9C6",
}
PERSISTENT_OTHER = "#CFCFD8"

INK = "#1D1D24"
FAINT = "#5C5C66"
GRID = "#DADAE0"
FORWARD = "#F6F7FA"
BACKWARD = "#FBF5EE"
BUDGET = "#B3001B"
OFFLOAD = "#005A4E"
FETCH = "#1F78B4"
HOST = "#8CC9EE"
STRIP_FORWARD = "#C6C9D3"
STRIP_BACKWARD = "#DDCBB5"
STRIP = {
    "recompute": FILLS["recomputed"],
    "offload": OFFLOAD,
    "fetch": FETCH,
    "wait": "#FFFFFF",
}
"""Marks in the row of instructions that are not plain computing."""
FONT = "Inter, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif"
