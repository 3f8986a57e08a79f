"""Which passes of a convolution oneDNN computes, and how many images at a time.

Fixed rules of the shapes and of the processor's vector width, so that a net gets the same numbers
in every run. They come from measurements (docs/performance.md), copies between layouts included:

* pointwise convolutions are matrix products of values as they lie: copies never pay;
* forward and backward_data of all others: oneDNN is faster, up to 8 times (depthwise);
* backward_weights: with AVX-512 oneDNN; narrower, oneDNN only where few weights are reused often.
"""

from __future__ import annotations

import math

from layrubnet.devices.geometry import ConvGeometry

CHUNK_BYTES = 2 << 20
"""Copies of a chunk of images take about this much, so that they stay in the cache."""
FEW_WEIGHTS = 48 * 1024
MANY_CELLS = 25
LARGE_STRIDE = 3


def supported(g: ConvGeometry) -> bool:
    """Does oneDNN have such convolutions at all?"""
    return 1 <= len(g.kernel) <= 3 and g.batch > 0


def use_forward(g: ConvGeometry) -> bool:
    """forward and backward_data by oneDNN?"""
    return math.prod(g.kernel) > 1 or _depthwise(g)


def use_weights(g: ConvGeometry, wide: bool) -> bool:
    """backward_weights by oneDNN? ``wide``: the processor has AVX-512."""
    if _depthwise(g):
        return True
    if math.prod(g.kernel) == 1:
        return False
    if wide:
        return True
    # Single channels are padded to a whole vector; large strides leave its kernels starving.
    if g.channels == g.group or max(g.stride) > LARGE_STRIDE:
        return False
    small = math.prod(g.weight_shape) <= FEW_WEIGHTS
    return small or g.group > 1 or math.prod(g.kernel) >= MANY_CELLS


def _depthwise(g: ConvGeometry) -> bool:
    return g.group > 1 and g.channels == g.group == g.outputs


def images_at_once(g: ConvGeometry) -> int:
    """As many images as fit the bytes of a chunk, in chunks of nearly equal size.

    Weights, or their gradient, pass through the cache once per chunk: where they are larger than
    ``CHUNK_BYTES``, a chunk may be as large as they are.
    """
    per_image = 4 * (g.channels * math.prod(g.size) + g.outputs * g.positions)
    limit = max(CHUNK_BYTES, 4 * math.prod(g.weight_shape))
    most = max(1, limit // max(per_image, 1))
    chunks = -(-g.batch // most)
    return -(-g.batch // chunks)
