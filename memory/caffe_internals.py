"""What BVLC Caffe's layers keep beside their blobs: one rule per layer type, in elements.

Every element takes 4 bytes, indices and masks too. A rule returns

* ``maps``: buffers as large as feature maps. They exist from the first iteration to the last.
* ``columns``: the matrix that im2col fills; each convolution owns one.
* ``vectors``: the small ones: multipliers of ones, statistics per channel.

============================  ==================================================================
Convolution, Deconvolution    columns C k / group * group x output places of one image (none for
                              1x1 with stride 1 and no padding); ones per output place (bias)
InnerProduct                  ones per row (bias)
BatchNorm                     temp and x_norm (a map each); in place a gradient of x_norm as well
Scale                         in place: a copy of the bottom
PReLU                         in place: a copy of the bottom; two arrays of one image's size
Pooling                       MAX: an index per output (unless the mask is a top)
LRN                           across channels: the scales (a map). Within: an inner net of split,
                              square, pool, power, product: 3 maps, and 5 for gradients
Dropout                       TRAIN: the mask
Eltwise                       MAX: an index per output
Softmax                       a value per place
SoftmaxWithLoss               the probabilities, and what Softmax keeps
SigmoidCrossEntropyLoss       the sigmoids
EuclideanLoss, Contrastive    the differences (Contrastive: and their squares)
============================  ==================================================================

A type without a rule is taken to keep nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from layrubnet.engine.graph import Node


class Internals(NamedTuple):
    """Elements that one layer keeps for itself."""

    maps: int = 0
    columns: int = 0
    vectors: int = 0


def internals(node: Node, phase: str) -> Internals:
    """What Caffe's layer of the type of ``node`` keeps in a net of ``phase``."""
    rule = _RULES.get(node.layer.type)
    return rule(node, phase) if rule else Internals()


def works_in_place(node: Node) -> bool:
    """The first top is the first bottom, by name."""
    return bool(node.bottoms and node.tops) and node.bottoms[0].name == node.tops[0].name


def _count(node: Node) -> int:
    return node.bottoms[0].type.count


def _convolution(node: Node, phase: str) -> Internals:
    p, weight = node.layer.spec.convolution_param, node.params[0].shape
    axis = p.axis % len(node.bottoms[0].type.shape)
    transposed = node.layer.type == "Deconvolution"
    top = math.prod(node.tops[0].type.shape[axis + 1 :])
    places = math.prod(node.bottoms[0].type.shape[axis + 1 :]) if transposed else top
    plain = set(weight[2:]) <= {1} and set(p.stride) <= {1} and set(p.pad) <= {0}
    plain = plain and max(p.stride_h, p.stride_w, 1) == 1 and max(p.pad_h, p.pad_w) == 0
    columns = 0 if plain else math.prod(weight[1:]) * p.group * places
    return Internals(columns=columns, vectors=top if p.bias_term else 0)


def _inner_product(node: Node, phase: str) -> Internals:
    p = node.layer.spec.inner_product_param
    rows = node.tops[0].type.count // p.num_output
    return Internals(vectors=rows if p.bias_term else 0)


def _batch_norm(node: Node, phase: str) -> Internals:
    shape = node.bottoms[0].type.shape
    samples, channels = shape[0], shape[1] if len(shape) > 1 else 1
    size = _count(node) // (samples * channels)
    # mean, variance; ones per sample and per place; sums per sample and channel
    vectors = 2 * channels + samples + size + samples * channels
    learning = works_in_place(node) and node.needs_backward
    return Internals((3 if learning else 2) * _count(node), vectors=vectors)


def _scale(node: Node, phase: str) -> Internals:
    p, shape = node.layer.spec.scale_param, node.bottoms[0].type.shape
    if len(node.bottoms) > 1:
        scale = node.bottoms[1].type.shape
        axis = 0 if scale == shape else p.axis % len(shape)
    else:
        scale, axis = node.params[0].shape, p.axis % len(shape)
    outer, dim = math.prod(shape[:axis]), math.prod(scale)
    inner = _count(node) // (outer * dim)
    vectors = outer * dim + max(outer, inner) + (inner if p.bias_term else 0)
    return Internals(_count(node) if works_in_place(node) else 0, vectors=vectors)


def _bias(node: Node, phase: str) -> Internals:
    shape = node.bottoms[0].type.shape
    bias = node.bottoms[1].type.shape if len(node.bottoms) > 1 else node.params[0].shape
    axis = node.layer.spec.bias_param.axis % len(shape)
    return Internals(vectors=math.prod(shape[axis + len(bias) :]))


def _prelu(node: Node, phase: str) -> Internals:
    image = _count(node) // node.bottoms[0].type.shape[0]
    return Internals(_count(node) if works_in_place(node) else 0, vectors=2 * image)


def _pooling(node: Node, phase: str) -> Internals:
    p = node.layer.spec.pooling_param
    indexed = p.pool == p.MAX and len(node.tops) == 1
    return Internals(node.tops[0].type.count if indexed else 0)


def _lrn(node: Node, phase: str) -> Internals:
    p = node.layer.spec.lrn_param
    if p.norm_region != p.WITHIN_CHANNEL:
        return Internals(_count(node))
    return Internals((8 if node.needs_backward else 3) * _count(node))


def _dropout(node: Node, phase: str) -> Internals:
    return Internals(_count(node) if phase == "TRAIN" else 0)


def _eltwise(node: Node, phase: str) -> Internals:
    p = node.layer.spec.eltwise_param
    return Internals(node.tops[0].type.count if p.operation == p.MAX else 0)


def _softmax(node: Node, phase: str) -> Internals:
    shape = node.bottoms[0].type.shape
    classes = shape[node.layer.spec.softmax_param.axis % len(shape)]
    return Internals(vectors=classes + _count(node) // classes)


def _softmax_loss(node: Node, phase: str) -> Internals:
    return _softmax(node, phase)._replace(maps=_count(node))


def _bottom(node: Node, phase: str) -> Internals:
    return Internals(_count(node))


def _contrastive(node: Node, phase: str) -> Internals:
    rows = node.bottoms[0].type.shape[0]
    return Internals(2 * _count(node), vectors=rows + _count(node) // rows)


_RULES: dict[str, Callable[[Node, str], Internals]] = {
    "Convolution": _convolution,
    "Deconvolution": _convolution,
    "InnerProduct": _inner_product,
    "BatchNorm": _batch_norm,
    "Scale": _scale,
    "Bias": _bias,
    "PReLU": _prelu,
    "Pooling": _pooling,
    "LRN": _lrn,
    "Dropout": _dropout,
    "Eltwise": _eltwise,
    "Softmax": _softmax,
    "SoftmaxWithLoss": _softmax_loss,
    "SoftmaxLoss": _softmax_loss,
    "SigmoidCrossEntropyLoss": _bottom,
    "EuclideanLoss": _bottom,
    "ContrastiveLoss": _contrastive,
}
