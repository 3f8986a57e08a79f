"""Rectangles as SVG path data, few bytes each; what is too small to see is merged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

_SMALL = 3.0
"""Rectangles narrower or lower than this (pixels) are merged on a grid of one pixel."""
_FAINTEST = 0.04
"""A pixel is drawn when at least this share of it is covered."""

Box = tuple[float, float, float, float]
"""Left, top, width, height."""


def is_large(box: Box) -> bool:
    """Can the rectangle be told apart from its neighbours?"""
    return box[2] >= _SMALL and box[3] >= _SMALL


def merged(small: Mapping[str, list[Box]]) -> dict[str, list[Box]]:
    """Small boxes by kind as larger ones: each pixel goes to the kind that covers most of it."""
    every = [box for boxes in small.values() for box in boxes]
    if not every:
        return {}
    left = int(min(b[0] for b in every))
    top = int(min(b[1] for b in every))
    columns = int(max(b[0] + b[2] for b in every)) + 2 - left
    rows = int(max(b[1] + b[3] for b in every)) + 2 - top
    cover = np.zeros((len(small), rows, columns), np.float32)
    for plane, boxes in zip(cover, small.values(), strict=True):
        for box in boxes:
            _add(plane, box, left, top)
    winner = np.where(cover.max(axis=0) >= _FAINTEST, cover.argmax(axis=0), -1)
    return {kind: list(_rectangles(winner == n, left, top)) for n, kind in enumerate(small)}


def _add(plane: np.ndarray, box: Box, left: int, top: int) -> None:
    x, y, width, height = box[0] - left, box[1] - top, box[2], box[3]
    across = _shares(x, width)
    first = int(x)
    for row, share in enumerate(_shares(y, height), int(y)):
        if len(across) < 5:  # most are this narrow, and NumPy takes long to start
            for column, part in enumerate(across, first):
                plane[row, column] += share * part
        else:
            plane[row, first : first + len(across)] += share * np.array(across, np.float32)


def _shares(start: float, length: float) -> list[float]:
    """How much of each pixel from ``int(start)`` on is covered."""
    end = start + length
    first, last = int(start), int(end)
    if first == last:
        return [length]
    return [first + 1 - start, *[1.0] * (last - first - 1), end - last]


def _rectangles(mask: np.ndarray, left: int, top: int) -> Iterable[Box]:
    """Runs of a row, joined with equal runs of the rows below."""
    open_runs: dict[tuple[int, int], int] = {}
    for row in range(len(mask) + 1):
        runs = _runs(mask[row]) if row < len(mask) else set()
        for run in [r for r in open_runs if r not in runs]:
            start = open_runs.pop(run)
            yield left + run[0], top + start, run[1] - run[0], row - start
        for run in runs:
            open_runs.setdefault(run, row)


def _runs(row: np.ndarray) -> set[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], row.astype(np.int8), [0]))))
    return {(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)}


def path(boxes: Iterable[Box]) -> str:
    """Path data of closed rectangles."""
    return "".join(
        f"M{short(x)} {short(y)}h{short(w)}v{short(h)}h{short(-w)}z" for x, y, w, h in boxes
    )


def short(value: float) -> str:
    """A coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")
