"""Dropout: Caffe's rule, the draw's independence of everything but its place, both phases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.devices.cpu import dropout
from layrubnet.engine.net import CompiledNet
from layrubnet.errors import NetError
from layrubnet.philox import philox4x32
from tests.layers.common import same_in_place
from tests.support.checks import check_gradients, check_no_allocation, probe, randomise
from tests.support.golden import GoldenCase, assert_close


def layer(ratio: float = 0.3, name: str = "p", top: str = "y") -> str:
    return (
        f'layer {{ name: "{name}" type: "Dropout" bottom: "x" top: "{top}"'
        f" dropout_param {{ dropout_ratio: {ratio} }} }}"
    )


def ones(net: CompiledNet, iteration: int | None = None, micro_batch: int = 0) -> np.ndarray:
    """The top for a bottom of ones."""
    net.data("x")[...] = 1
    net.forward(iteration=iteration, micro_batch=micro_batch)
    return np.array(net.data("y"))


@pytest.mark.parametrize("name", ["dropout_test", "dropout_test_inplace"])
def test_caffe(name: str) -> None:
    GoldenCase(name).check()


def test_caffe_in_training() -> None:
    """Caffe's mask is its own: what it did with a mask is checked with the mask it drew."""
    case = GoldenCase("dropout_train")
    x, y, dy, dx = (case.arrays[f"s0.{k}"] for k in ("in.x", "top.y", "topdiff.y", "bottomdiff.x"))
    assert (x != 0).all()
    kept = y != 0
    net = case.net
    net.data("x")[...] = x
    net.forward()
    ours = net.data("y") != 0
    both = kept & ours
    assert both.any()
    assert_close(np.where(both, net.data("y"), 0), np.where(both, y, 0), "top")
    net.diff("y")[...] = dy
    net.backward()
    assert_close(np.where(both, net.diff("x"), 0), np.where(both, dx, 0), "bottom diff")
    assert not net.diff("x")[~ours].any()
    assert abs(ours.mean() - kept.mean()) < 0.1


def test_the_draw_is_the_stated_function() -> None:
    """Unit j is kept when word j of its Philox stream exceeds ratio * 2^32."""
    net = probe(layer(0.3), {"x": (3, 7)}, rank=2, seed=11)
    got = ones(net, iteration=5, micro_batch=4)
    key = net.executor._key(net.graph.nodes[-1])
    counter = np.zeros((6, 4), np.uint32)
    counter[:, 0], counter[:, 1], counter[:, 2] = np.arange(6), 5, 4 | 2 << 16
    words = philox4x32(counter, np.array(key, np.uint32)).ravel()[:21].reshape(3, 7)
    factor = np.float32(1 / (1 - float(np.float32(0.3))))
    assert (got == np.where(words > np.float32(0.3) * 2.0**32, factor, 0)).all()


def test_what_the_draw_depends_on() -> None:
    def mask(
        seed: int = 1, rank: int = 0, name: str = "p", iteration: int = 0, micro_batch: int = 0
    ) -> bytes:
        net = probe(layer(0.5, name=name), {"x": (100,)}, seed=seed, rank=rank)
        return ones(net, iteration, micro_batch).tobytes()

    base = mask()
    assert mask() == base
    changed = [
        mask(seed=2), mask(rank=1), mask(name="q"), mask(iteration=1), mask(micro_batch=1),
    ]  # fmt: skip
    assert base not in changed
    assert len(set(changed)) == len(changed)


def test_successive_steps_draw_anew_and_the_share_is_right() -> None:
    net = probe(layer(0.2), {"x": (200, 200)})
    first, second = ones(net), ones(net)
    assert (first != second).any()
    assert abs((first != 0).mean() - 0.8) < 0.01
    assert first.max() == pytest.approx(1.25)


@settings(max_examples=25, deadline=None)
@given(size=st.integers(1, 300), block=st.integers(1, 200))
def test_the_block_size_changes_no_bit(size: int, block: int) -> None:
    net = probe(layer(0.5), {"x": (size,)})
    whole = ones(net, iteration=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dropout, "BLOCK", block)
        assert (ones(net, iteration=3) == whole).all()


@pytest.mark.parametrize("phase", ["TRAIN", "TEST"])
def test_gradients(phase: str) -> None:
    net = probe(layer(0.3), {"x": (4, 6)}, phase=phase)
    randomise(net, np.random.default_rng(1))
    check_gradients(net, ["x"])


def test_in_place_gives_the_same_bits() -> None:
    same_in_place(layer(0.3), {"x": (4, 50)})


@pytest.mark.parametrize("phase", ["TRAIN", "TEST"])
def test_no_allocation(phase: str) -> None:
    text = layer(0.3) + 'layer { name: "t" type: "TanH" bottom: "y" top: "z" }'
    check_no_allocation(probe(text, {"x": (3, 20001)}, phase=phase))


def test_training_keeps_no_mask() -> None:
    net = probe(layer(0.3), {"x": (4, 6)})
    assert not [b for b in net.program.buffers.values() if b.kind == "saved"]


def test_testing_costs_nothing() -> None:
    net = probe(layer(0.3), {"x": (4, 6)}, phase="TEST")
    assert [n for n, b in net.program.buffers.items() if b.kind == "data"] == ["x.data"]
    assert not any(i.target == "p" for i in net.program.variant("first"))
    assert (ones(net) == 1).all()


def test_a_dropped_nan_is_dropped() -> None:
    net = probe(layer(0.5), {"x": (64,)})
    kept = ones(net, iteration=1) != 0
    net.data("x")[...] = np.nan
    net.forward(iteration=1)
    assert (np.isnan(net.data("y")) == kept).all()


def test_a_ratio_of_0_drops_nothing() -> None:
    assert (ones(probe(layer(0), {"x": (4,)})) == 1).all()


@pytest.mark.parametrize("ratio", [1, -0.5, 1.5])
def test_a_ratio_outside_is_refused(ratio: float) -> None:
    with pytest.raises(NetError, match="dropout_ratio must lie between 0 and 1"):
        probe(layer(ratio), {"x": (4,)})
