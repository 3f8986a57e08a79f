"""Walk arrays of shape (outer, channels, inner) in pieces that fit the cache."""

from __future__ import annotations

from collections.abc import Iterator

from layrubnet.devices.cpu.blocks import BLOCK

Tile = tuple[slice, slice, slice]


def tiles(shape: tuple[int, int, int]) -> Iterator[Tile]:
    """Yield index triples that cover ``shape`` in memory order, each of at most BLOCK elements.

    A tile takes whole inner rows where they fit, then whole channels, then several outer ones, so
    that small channels do not make small pieces.
    """
    outer, channels, inner = shape
    if not outer * channels * inner:
        return
    width = min(inner, BLOCK)
    height = min(channels, BLOCK // width) if width == inner else 1
    depth = min(outer, BLOCK // (width * height)) if height == channels and width == inner else 1
    for n in range(0, outer, depth):
        for c in range(0, channels, height):
            for i in range(0, inner, width):
                yield (
                    slice(n, min(n + depth, outer)),
                    slice(c, min(c + height, channels)),
                    slice(i, min(i + width, inner)),
                )


def tile_shape(tile: Tile) -> tuple[int, int, int]:
    """The extents of a tile."""
    n, c, i = tile
    return n.stop - n.start, c.stop - c.start, i.stop - i.start
