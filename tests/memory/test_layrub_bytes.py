"""The original Layrub's memory: known nets, and what its gradients and Splits share."""

from __future__ import annotations

import pytest

from layrubnet.memory.layrub_bytes import layrub_bytes
from layrubnet.prototxt.text import read_net
from tests.support.example_nets import example_graph, graph_of
from tests.support.known_nets import CHEAP, DEEP, KNOWN

_MIB = 2**20
_BLOCKS = {"GoogLeNet": 9, "AlexNet": 4, "CaffeNet": 4, "VGG-16": 4}


def _check(name: str) -> None:
    known, found = KNOWN[name], layrub_bytes(example_graph(name))
    assert round(found.features / _MIB) == known.layrub_features
    assert round((found.total - found.vectors) / _MIB) == known.layrub
    assert round(found.host / _MIB) == known.host
    assert found.blocks == _BLOCKS.get(name, 5)


@pytest.mark.parametrize("name", CHEAP)
def test_known_nets(name: str) -> None:
    _check(name)


@pytest.mark.full
@pytest.mark.parametrize("name", DEEP)
def test_known_deep_nets(name: str) -> None:
    _check(name)


def test_tops_beyond_the_smallest_split_have_gradients_of_their_own() -> None:
    assert round(layrub_bytes(example_graph("GoogLeNet")).split_diff_own / _MIB) == 139
    assert layrub_bytes(example_graph("ResNet-50")).split_diff_own == 0


def test_a_chain_by_hand() -> None:
    """conv, relu, conv, loss on maps of 96 values."""
    conv = 'layer { name: "%s" type: "Convolution" bottom: "%s" top: "%s" convolution_param {' \
        " num_output: 3 kernel_size: 1 bias_term: false } }"  # fmt: skip
    net, _ = read_net(
        'layer { name: "x" type: "Input" top: "x" top: "t" input_param {'
        " shape { dim: 2 dim: 3 dim: 4 dim: 4 } shape { dim: 2 dim: 3 dim: 4 dim: 4 } } }"
        + conv % ("a", "x", "a")
        + 'layer { name: "r" type: "ReLU" bottom: "a" top: "a" }'
        + conv % ("b", "a", "b")
        + 'layer { name: "l" type: "EuclideanLoss" bottom: "b" bottom: "t" top: "l" }'
    )
    found = layrub_bytes(graph_of(net))
    one = 4 * 96
    # a: over its map; b: not, as EuclideanLoss is none of the types that write over their bottom.
    assert found.diff == one + 4
    assert found.internal_shared == 96  # ReLU's mask
    assert found.internal == one  # the loss keeps the difference
    assert found.params == found.history == 4 * 2 * 9
    assert found.offloaded_internals == 96
