"""SVG elements as text: the few that the picture needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from layrubnet.memory.picture.boxes import Box, is_large, merged, path, short
from layrubnet.memory.picture.style import FONT, INK


class Paper:
    """Collects SVG elements."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height = width, height
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" font-family="{FONT}" fill="{INK}">',
            f"<title>{escape(title)}</title>",
            _DEFINITIONS,
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
        ]

    def add(self, element: str) -> None:
        self._parts.append(element)

    def rect(self, x: float, y: float, w: float, h: float, fill: str, more: str = "") -> None:
        self.add(
            f'<rect x="{short(x)}" y="{short(y)}" width="{short(max(w, 0))}" '
            f'height="{short(max(h, 0))}" fill="{fill}"{more and " " + more}/>'
        )

    def line(
        self, x1: float, y1: float, x2: float, y2: float, color: str, width: float = 1,
        more: str = "",
    ) -> None:  # fmt: skip
        self.add(
            f'<line x1="{short(x1)}" y1="{short(y1)}" x2="{short(x2)}" y2="{short(y2)}" '
            f'stroke="{color}" stroke-width="{width}"{more and " " + more}/>'
        )

    def text(
        self, x: float, y: float, text: str, size: float = 15, *, anchor: str = "start",
        fill: str = "", weight: int = 400, more: str = "",
    ) -> None:  # fmt: skip
        style = f' fill="{fill}"' if fill else ""
        style += f' font-weight="{weight}"' if weight != 400 else ""
        style += f' text-anchor="{anchor}"' if anchor != "start" else ""
        self.add(
            f'<text x="{short(x)}" y="{short(y)}" font-size="{size:g}"{style}'
            f"{more and ' ' + more}>{escape(text)}</text>"
        )

    def halo(self, x: float, y: float, text: str, size: float = 15, **style: object) -> None:
        """Text that stays readable over anything."""
        given = dict(style)
        given["more"] = (
            'stroke="#fff" stroke-width="4" stroke-linejoin="round" paint-order="stroke"'
        )
        self.text(x, y, text, size, **given)  # type: ignore[arg-type]

    def boxes(self, by_fill: Mapping[str, list[Box]], stroke: str = "") -> None:
        """Many rectangles, one path per colour; those too small to see are merged."""
        small = {fill: [b for b in found if not is_large(b)] for fill, found in by_fill.items()}
        for fill, found in merged(small).items():
            if found:
                self.add(f'<path d="{path(found)}" fill="{fill}"/>')
        for fill, found in by_fill.items():
            large = [b for b in found if is_large(b)]
            if large:
                self.add(f'<path d="{path(large)}" fill="{fill}"{stroke and " " + stroke}/>')

    def polygon(self, points: Sequence[tuple[float, float]], fill: str, more: str = "") -> None:
        data = "M" + "L".join(f"{short(x)} {short(y)}" for x, y in points) + "z"
        self.add(f'<path d="{data}" fill="{fill}"{more and " " + more}/>')

    def polyline(
        self, points: Sequence[tuple[float, float]], color: str, width: float, more: str = ""
    ) -> None:
        data = "M" + "L".join(f"{short(x)} {short(y)}" for x, y in points)
        self.add(
            f'<path d="{data}" fill="none" stroke="{color}" stroke-width="{width}"'
            f"{more and ' ' + more}/>"
        )

    def svg(self) -> str:
        return "\n".join([*self._parts, "</svg>"])


_DEFINITIONS = """<defs>
<pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" \
patternTransform="rotate(45)"><rect width="7" height="7" fill="#E9E9EE"/>\
<line x1="0" y1="0" x2="0" y2="7" stroke="#C9C9D2" stroke-width="2"/></pattern>
</defs>"""


def shortened(text: str, width: float, size: float) -> str:
    """``text`` cut with an ellipsis to about ``width`` pixels; empty if hardly anything fits."""
    room = int(width / (0.56 * size))
    if len(text) <= room:
        return text
    return text[: room - 1] + "…" if room >= 5 else ""
