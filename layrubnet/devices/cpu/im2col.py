"""Unroll convolution windows into columns and add columns back, for several images at once.

The images are the *last* axis of every buffer here: a row of a window is then one contiguous run
of (width * images) numbers, so that the copies are long even where feature maps are small.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import as_strided

from layrubnet.devices.cpu.blocks import Array
from layrubnet.devices.geometry import ConvGeometry


def images_last(x: Array) -> Array:
    """View (images, channels, \\*size) as (channels, \\*size, images)."""
    return x.transpose(*range(1, x.ndim), 0)


def inside(g: ConvGeometry, padded: Array) -> Array:
    """The part of a padded buffer (channels, \\*padded, images) that is no padding."""
    cut = tuple(slice(p, p + s) for p, s in zip(g.pad, g.size, strict=True))
    return padded[(slice(None), *cut)]


def window_view(g: ConvGeometry, padded: Array) -> Array:
    """View a padded buffer as (channels, \\*kernel, \\*out_size, images): overlapping windows."""
    channel, *space, image = padded.strides
    inner = [s * d for s, d in zip(space, g.dilation, strict=True)]
    outer = [s * t for s, t in zip(space, g.stride, strict=True)]
    shape = (padded.shape[0], *g.kernel, *g.out_size, padded.shape[-1])
    return as_strided(padded, shape, (channel, *inner, *outer, image))


def im2col(g: ConvGeometry, padded: Array, columns: Array) -> None:
    """columns[c, k, o, n] = padded[c, o * stride + k * dilation, n]"""
    view = window_view(g, padded)
    np.copyto(columns.reshape(view.shape), view)


def col2im(g: ConvGeometry, columns: Array, padded: Array) -> None:
    """padded[c, i, n] = sum over (k, o) with o * stride + k * dilation = i of columns[c, k, o, n]

    Added offset by offset of the kernel, in row-major order.
    """
    padded.fill(0)
    view = window_view(g, padded)
    values = columns.reshape(view.shape)
    for cell in _cells(g):
        target = view[cell]
        np.add(target, values[cell], out=target)


def _cells(g: ConvGeometry) -> Iterator[tuple[slice | int, ...]]:
    """The cells of the kernel, row-major, as indices after the channel axis."""
    for cell in itertools.product(*(range(k) for k in g.kernel)):
        yield (slice(None), *cell)
