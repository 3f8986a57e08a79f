"""Caffe's own memory accounting: known nets, and each layer's rule on a small net."""

from __future__ import annotations

from typing import Any

import pytest

from layrubnet.memory.caffe_bytes import CaffeBytes, LayerBytes, caffe_bytes
from layrubnet.prototxt.text import read_net
from tests.support.example_nets import example_graph, graph_of
from tests.support.known_nets import CHEAP, DEEP, KNOWN

_MIB = 2**20


def _check(name: str) -> None:
    known, found = KNOWN[name], caffe_bytes(example_graph(name))
    for category in ("data", "diff", "split_diff", "internal", "columns"):
        got = getattr(found, category)
        assert round(got / _MIB) == getattr(known, category), category
        assert got == sum(getattr(row, category) for row in found.layers), category
    assert round(found.params / _MIB, 1) == known.params
    assert round(3 * found.params / _MIB) == known.three_params
    assert found.param_diffs == found.history == found.params
    assert round((found.total - found.vectors) / _MIB) == known.total
    assert found.vectors < 0.01 * found.total
    assert found.prefetch == 0


@pytest.mark.parametrize("name", CHEAP)
def test_known_nets(name: str) -> None:
    _check(name)


@pytest.mark.full
@pytest.mark.parametrize("name", DEEP)
def test_known_deep_nets(name: str) -> None:
    _check(name)


def _account(body: str, phase: str = "TRAIN", **options: Any) -> CaffeBytes:
    """An input x of 2 x 4 x 6 x 6 (288 values), a 1x1 convolution to 4 maps, then ``body``."""
    text = """
        layer { name: "x" type: "Input" top: "x" top: "t" input_param {
          shape { dim: 2 dim: 4 dim: 6 dim: 6 } shape { dim: 2 dim: 4 dim: 6 dim: 6 } } }
        layer { name: "c" type: "Convolution" bottom: "x" top: "c"
          convolution_param { num_output: 4 kernel_size: 1 } }
    """
    return caffe_bytes(graph_of(read_net(text + body)[0], phase), **options)


def _row(found: CaffeBytes, name: str) -> LayerBytes:
    return next(row for row in found.layers if row.name == name)


LOSS = ' layer { name: "l" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "l" }'
MAP = 4 * 288


@pytest.mark.parametrize(
    ("layer", "tops", "internal", "columns", "vectors"),
    [
        ('type: "ReLU" top: "y"', 2, 0, 0, 0),
        ('type: "BatchNorm" top: "y"', 2, 2, 0, 4 * (4 + 4 + 2 + 36 + 8)),
        ('type: "Scale" top: "y"', 2, 0, 0, 4 * (8 + 36)),
        ('type: "Scale" top: "y" scale_param { bias_term: true }', 2, 0, 0, 4 * (8 + 36 + 36)),
        ('type: "Bias" top: "y"', 2, 0, 0, 4 * 36),
        ('type: "PReLU" top: "y"', 2, 0, 0, 4 * 2 * 144),
        ('type: "LRN" top: "y"', 2, 1, 0, 0),
        ('type: "LRN" top: "y" lrn_param { norm_region: WITHIN_CHANNEL }', 2, 8, 0, 0),
        ('type: "Dropout" top: "y"', 2, 1, 0, 0),
        ('type: "Softmax" top: "y"', 2, 0, 0, 4 * (4 + 72)),
        ('type: "Pooling" top: "y" pooling_param { kernel_size: 3 pad: 1 }', 2, 1, 0, 0),
        ('type: "Pooling" top: "y" pooling_param { pool: AVE kernel_size: 3 pad: 1 }', 2, 0, 0, 0),
        (
            'type: "Convolution" top: "y" convolution_param { num_output: 4'
            " kernel_size: 3 pad: 1 }",
            2, 0, 4 * 4 * 9 * 36, 4 * 36,
        ),
        (
            'type: "Convolution" top: "y" convolution_param { num_output: 4 group: 2'
            " kernel_size: 3 pad: 1 bias_term: false }",
            2, 0, 4 * 4 * 9 * 36, 0,
        ),
        (
            'type: "Deconvolution" top: "y" convolution_param { num_output: 4 kernel_size: 3'
            " pad: 1 bias_term: false }",
            2, 0, 4 * 4 * 9 * 36, 0,
        ),
    ],
)  # fmt: skip
def test_a_layer(layer: str, tops: int, internal: int, columns: int, vectors: int) -> None:
    row = _row(_account(f'layer {{ name: "y" bottom: "c" {layer} }}' + LOSS), "y")
    assert row.data + row.diff == tops * MAP
    assert row.internal == internal * MAP
    assert row.columns == columns
    assert row.vectors == vectors


@pytest.mark.parametrize(
    ("kind", "internal"),
    [("ReLU", 0), ("BatchNorm", 3), ("Scale", 1), ("PReLU", 1), ("Dropout", 1)],
)
def test_a_layer_in_place(kind: str, internal: int) -> None:
    row = _row(
        _account(
            f'layer {{ name: "y" type: "{kind}" bottom: "c" top: "c" }}'
            + LOSS.replace('"y"', '"c"')
        ),
        "y",
    )
    assert row.data == row.diff == 0
    assert row.internal == internal * MAP


def test_splits_share_data_and_have_gradients_of_their_own() -> None:
    found = _account('layer { name: "y" type: "Eltwise" bottom: "c" bottom: "c" top: "y" }' + LOSS)
    split = _row(found, "c_c_0_split")
    assert (split.data, split.diff, split.split_diff) == (0, 0, 2 * MAP)
    assert (found.data, found.diff) == (4 * MAP + 4, 2 * MAP + 4)


def test_eltwise_max_keeps_indices() -> None:
    layer = 'layer { name: "y" type: "Eltwise" bottom: "c" bottom: "x" top: "y" %s }'
    param = "eltwise_param { operation: MAX }"
    assert _row(_account(layer % "" + LOSS), "y").internal == 0
    assert _row(_account(layer % param + LOSS), "y").internal == MAP


def test_views_share_both() -> None:
    found = _account(
        'layer { name: "f" type: "Flatten" bottom: "c" top: "f" }'
        'layer { name: "y" type: "Reshape" bottom: "f" top: "y"'
        " reshape_param { shape { dim: 2 dim: 4 dim: 6 dim: 6 } } }" + LOSS
    )
    assert (found.data, found.diff) == (3 * MAP + 4, MAP + 4)


def test_without_training() -> None:
    found = _account('layer { name: "y" type: "ReLU" bottom: "c" top: "y" }', "TEST", histories=0)
    assert found.diff == found.split_diff == found.param_diffs == found.history == 0
    assert found.total == 4 * MAP + found.vectors + 4 * (16 + 4)


def test_losses_and_histories() -> None:
    found = _account('layer { name: "y" type: "ReLU" bottom: "c" top: "y" }' + LOSS, histories=2)
    assert _row(found, "l").internal == MAP
    assert found.history == 2 * found.params == 2 * 4 * 20
    assert _row(found, "l").features == MAP + 8
