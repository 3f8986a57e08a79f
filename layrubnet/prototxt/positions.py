"""Where each layer of a prototxt file begins, for messages such as ``net.prototxt:41:1``.

protobuf's text parser keeps no positions, so a small scanner walks the same text once more. It
knows only the shape of the format (fields, braces, lists, strings, comments): what it meets has
already been accepted by the real parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

# A field's path: (name, how many of that name came before it in its message) from the root on.
Path = tuple[tuple[str, int], ...]
_Token = tuple[str, bool, int]  # its text, whether it is a word, its offset
_END: _Token = ("", False, -1)

_TOKEN = re.compile(
    r"""(?P<skip>\#[^\n]*|\s+|[;,])
      |(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      |(?P<word>[A-Za-z_0-9.+][A-Za-z_0-9.+-]*)
      |(?P<sign>.)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a file; lines and columns count from 1."""

    file: str
    line: int
    column: int
    field: str = "layer"  # the name of the field that begins there

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Positions:
    """The file of a net and where each of its layers begins (None: the layer was added by us)."""

    file: str
    layers: tuple[Position | None, ...] = ()

    def where(self, index: int, name: str = "") -> str:
        """Return ``file:line:col layer 'name'`` for the layer with this index."""
        place = self.layers[index] if 0 <= index < len(self.layers) else None
        label = f" layer {name!r}" if name else f" layer {index}"
        return f"{place or self.file}{label}"

    def keep(self, indices: Iterable[int]) -> Positions:
        """Return the positions of the given layers only, in the given order."""
        return replace(self, layers=tuple(self._at(i) for i in indices))

    def prepend(self) -> Positions:
        """Return the positions after an added layer was put first."""
        return replace(self, layers=(None, *self.layers))

    def _at(self, index: int) -> Position | None:
        return self.layers[index] if index < len(self.layers) else None


def scan(text: str) -> Iterator[tuple[Path, int]]:
    """Yield the path and the offset of every field of the text, in order.

    The entries of a list of messages, ``layer: [{...}, {...}]``, are fields of their own.
    """
    matches = _TOKEN.finditer(text)
    tokens = ((m[0], m.lastgroup == "word", m.start()) for m in matches if m.lastgroup != "skip")
    return _message(tokens, ())


def _message(tokens: Iterator[_Token], path: Path) -> Iterator[tuple[Path, int]]:
    counts: dict[str, int] = {}
    for name, is_word, start in tokens:
        if name in ("}", ">"):
            return
        if not is_word:  # the second of two adjacent strings
            continue
        value = next(tokens, _END)[0]
        if value == ":":
            value = next(tokens, _END)[0]
        entries: Iterator[_Token] = iter([(value, False, start)])
        if value == "[":
            entries = iter(lambda: next(tokens, _END), _END)
        for entry, _, offset in entries:
            if entry == "]":
                break
            index = counts.get(name, 0)
            counts[name] = index + 1
            here = (*path, (name, index))
            yield here, offset
            if entry in ("{", "<"):
                yield from _message(tokens, here)
            elif entry == "-":
                next(tokens, _END)


def locate(text: str, file: str, names: Iterable[str], under: Path = ()) -> tuple[Position, ...]:
    """Return where the fields with one of these names begin, in the message at path ``under``."""
    wanted = frozenset(names)
    starts = [
        (path[-1][0], offset)
        for path, offset in scan(text)
        if path[:-1] == under and path[-1][0] in wanted
    ]
    places = []
    line, line_start, done = 1, 0, 0
    for name, offset in starts:
        breaks = text.count("\n", done, offset)
        if breaks:
            line += breaks
            line_start = text.rfind("\n", done, offset) + 1
        done = offset
        places.append(Position(file, line, offset - line_start + 1, name))
    return tuple(places)
