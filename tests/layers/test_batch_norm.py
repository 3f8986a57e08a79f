"""BatchNorm."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.errors import NetError
from tests.layers.common import same_in_place
from tests.support.checks import check_gradients, check_no_allocation, probe, randomise
from tests.support.golden import GoldenCase

CASES = [
    "batchnorm_batch_in_test", "batchnorm_global_in_train", "batchnorm_test_inplace",
    "batchnorm_test_zero_factor", "batchnorm_train_2d", "batchnorm_train_3d",
    "batchnorm_train_frac", "batchnorm_train_inplace",
]  # fmt: skip

GLOBAL = "use_global_stats: true"


def layer(param: str = "", top: str = "y") -> str:
    return (
        f'layer {{ name: "l" type: "BatchNorm" bottom: "x" top: "{top}"'
        f" batch_norm_param {{ {param} }} }}"
    )


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    GoldenCase(name).check()


@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=5).map(tuple),
    fraction=st.sampled_from([0.0, 0.5, 0.999]),
)
@settings(max_examples=30, deadline=None)
def test_equals_the_formula(shape: tuple[int, ...], fraction: float) -> None:
    net = probe(layer(f"eps: 0.01 moving_average_fraction: {fraction}"), {"x": shape})
    randomise(net, np.random.default_rng(0), -3, 5)
    for i, value in enumerate((2.0, 3.0, 4.0)):
        net.set_blob("l", i, np.full(net.get_blob("l", i).shape, value))
    x = net.data("x").astype(np.float64)
    axes = (0, *range(2, len(shape))) if len(shape) > 1 else (0,)
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    net.forward()
    np.testing.assert_allclose(net.data("y"), (x - mean) / np.sqrt(var + 0.01), atol=1e-5)
    count = x.size // mean.size
    unbiased = var * (count / (count - 1) if count > 1 else 1)
    for i, (old, new) in enumerate(((2, mean), (3, unbiased), (4, np.ones(1)))):
        np.testing.assert_allclose(net.get_blob("l", i), old * fraction + new.ravel(), rtol=1e-5)


@pytest.mark.parametrize("shape", [(40, 3), (7, 2, 129, 130), (3, 400, 9, 9), (1, 3, 70000)])
def test_a_large_mean_does_not_spoil_the_variance(shape: tuple[int, ...]) -> None:
    net = probe(layer("moving_average_fraction: 0"), {"x": shape})
    rng = np.random.default_rng(0)
    net.data("x")[...] = rng.normal(1000, 1, shape)
    x = net.data("x").astype(np.float64)
    axes = (0, *range(2, len(shape)))
    net.forward()
    count = x.size // shape[1]
    np.testing.assert_allclose(net.get_blob("l", 1), x.var(axes) * count / (count - 1), rtol=2e-4)
    np.testing.assert_allclose(net.get_blob("l", 0), x.mean(axes), rtol=1e-6)
    assert np.abs(net.data("y").mean(axes)).max() < 1e-3


@pytest.mark.parametrize("param", ["eps: 0.1", GLOBAL])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 2, 2), (6,)])
def test_gradients(param: str, shape: tuple[int, ...]) -> None:
    net = probe(layer(param), {"x": shape})
    randomise(net, np.random.default_rng(1))
    for i, value in enumerate((2.0, 3.0, 4.0)):
        net.set_blob("l", i, np.full(net.get_blob("l", i).shape, value))
    check_gradients(net, ["x"])


# The shared check draws the stored blobs at random: a large eps keeps the variance positive.
@pytest.mark.parametrize("param", ["", f"{GLOBAL} eps: 100"])
def test_in_place_gives_the_same_bits(param: str) -> None:
    same_in_place(layer(param), {"x": (3, 4, 80, 70)})


@pytest.mark.parametrize("param", ["", GLOBAL])
@pytest.mark.parametrize("shape", [(128, 1024), (4, 64, 30, 30), (2, 2, 200, 200), (2, 60000, 2)])
def test_allocates_nothing(param: str, shape: tuple[int, ...]) -> None:
    net = probe(layer(param), {"x": shape})
    net.data("x")[...] = np.random.default_rng(0).normal(size=shape)
    check_no_allocation(net)


def test_test_phase_uses_what_train_stored() -> None:
    train = probe(layer(), {"x": (8, 3)})
    rng = np.random.default_rng(3)
    for _ in range(5):
        train.data("x")[...] = rng.normal(2, 3, (8, 3))
        train.forward()
    blobs = [train.get_blob("l", i) for i in range(3)]
    test = probe(layer(), {"x": (8, 3)}, phase="TEST", train=False)
    for i, blob in enumerate(blobs):
        test.set_blob("l", i, blob)
    test.data("x")[...] = train.data("x")
    test.forward()
    mean, variance = blobs[0] / blobs[2], blobs[1] / blobs[2]
    np.testing.assert_allclose(
        test.data("y"), (train.data("x") - mean) / np.sqrt(variance + 1e-5), rtol=1e-5, atol=1e-6
    )
    for i, blob in enumerate(blobs):
        np.testing.assert_array_equal(test.get_blob("l", i), blob)


def test_backward_leaves_the_statistics_alone() -> None:
    net = probe(layer(), {"x": (4, 2)})
    randomise(net, np.random.default_rng(0))
    net.forward()
    before = [net.get_blob("l", i) for i in range(3)]
    net.backward()
    net.backward(accumulate=True)
    for i, blob in enumerate(before):
        np.testing.assert_array_equal(net.get_blob("l", i), blob)


def test_empty_statistics_warn_once(caplog: pytest.LogCaptureFixture) -> None:
    net = probe(layer("eps: 4"), {"x": (2, 3)}, phase="TEST")
    net.data("x")[...] = 6
    with caplog.at_level(logging.WARNING, "layrubnet"):
        net.forward()
        net.forward()
    np.testing.assert_allclose(net.data("y"), 3)
    assert len(caplog.records) == 1
    assert "factor 0" in caplog.text


@pytest.mark.parametrize("field", ["scale_bias", "disable_variance"])
def test_dialects_are_refused(field: str) -> None:
    with pytest.raises(NetError, match=field):
        probe(layer(f"{field}: true"), {"x": (2, 3)})
