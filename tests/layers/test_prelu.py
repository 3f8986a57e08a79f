"""PReLU: Caffe's values, gradients of slope and data, in place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.devices.cpu import tiles
from layrubnet.errors import ShapeError
from tests.layers.common import both_ways, same_in_place
from tests.support.checks import check_gradients, check_no_allocation, probe, randomise
from tests.support.golden import GoldenCase

GOLDEN = [
    "prelu_2d", "prelu_channel", "prelu_default_filler", "prelu_inplace", "prelu_shared_inplace",
]  # fmt: skip
LAYERS = [
    'layer { name: "p" type: "PReLU" bottom: "x" top: "y" }',
    'layer { name: "p" type: "PReLU" bottom: "x" top: "y" prelu_param { channel_shared: true } }',
]


@pytest.mark.parametrize("name", GOLDEN)
def test_caffe(name: str) -> None:
    GoldenCase(name).check()


def test_the_slopes_start_at_a_quarter() -> None:
    assert probe(LAYERS[0], {"x": (2, 3)}).get_blob("p", 0).tolist() == [0.25] * 3
    assert probe(LAYERS[1], {"x": (2, 3)}).get_blob("p", 0).tolist() == 0.25


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 4), (2, 3, 2, 3)])
def test_gradients(layer: str, shape: tuple[int, ...]) -> None:
    net = probe(layer, {"x": shape})
    randomise(net, np.random.default_rng(1))
    x = net.data("x")
    x[...] = np.where(np.abs(x) < 0.05, 0.5, x)
    check_gradients(net, ["x"])


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("shape", [(3, 20000), (3, 2, 30000), (20, 50, 40)])
def test_no_allocation(layer: str, shape: tuple[int, ...]) -> None:
    check_no_allocation(probe(layer, {"x": shape}))


@pytest.mark.parametrize("layer", LAYERS)
def test_in_place_gives_the_same_bits(layer: str) -> None:
    same_in_place(layer, {"x": (3, 4, 5)})


@pytest.mark.parametrize("layer", LAYERS)
def test_without_backward_and_in_test_phase(layer: str) -> None:
    both_ways(layer, {"x": (3, 4)})


def test_in_place_without_backward_takes_no_second_buffer() -> None:
    net = probe(LAYERS[0].replace('"y"', '"x"'), {"x": (3, 4)}, train=False, phase="TEST")
    assert [n for n, b in net.program.buffers.items() if b.kind == "data"] == ["x.data"]


def test_accumulation() -> None:
    net = probe(LAYERS[0], {"x": (3, 4)})
    randomise(net, np.random.default_rng(1))
    net.forward()
    net.backward()
    once = np.array(net.param_diff("p/0"))
    net.backward(accumulate=True)
    np.testing.assert_allclose(net.param_diff("p/0"), 2 * once, rtol=1e-6)


def test_one_axis_is_refused() -> None:
    with pytest.raises(ShapeError, match="Number of axes of bottom blob must be >=2"):
        probe(LAYERS[0], {"x": (3,)})


@settings(max_examples=40, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 9)),
    block=st.integers(1, 30),
)
def test_tiles_cover_everything_once_in_order(shape: tuple[int, int, int], block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles, "BLOCK", block)
        numbers = np.arange(np.prod(shape)).reshape(shape)
        seen = [numbers[t] for t in tiles.tiles(shape)]
        assert all(s.size <= block for s in seen)
        assert [s.shape for s in seen] == [tiles.tile_shape(t) for t in tiles.tiles(shape)]
        flat = np.concatenate([s.ravel() for s in seen])
        assert flat.tolist() == list(range(numbers.size))
