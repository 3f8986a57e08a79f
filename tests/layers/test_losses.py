"""SigmoidCrossEntropyLoss, EuclideanLoss, ContrastiveLoss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.engine.net import CompiledNet
from layrubnet.errors import ShapeError
from tests.support.checks import check_gradients, check_no_allocation, probe, randomise
from tests.support.golden import GoldenCase

CASES = [
    "contrastive_default", "contrastive_legacy", "contrastive_margin", "euclidean_2d",
    "euclidean_weight", "sigmoidce_basic", "sigmoidce_full", "sigmoidce_none",
    "sigmoidce_normalize", "sigmoidce_soft", "sigmoidce_valid", "sigmoidce_weight",
]  # fmt: skip

Shape = tuple[int, ...]


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    GoldenCase(name).check()


def sigmoid_net(shape: Shape, param: str = "", more: str = "") -> CompiledNet:
    text = f"""layer {{ name: "l" type: "SigmoidCrossEntropyLoss" bottom: "x" bottom: "t"
      top: "loss" loss_param {{ {param} }} {more} }}"""
    net = probe(text, {"x": shape, "t": shape})
    randomise(net, np.random.default_rng(0), -3, 3)
    net.data("t")[...] = np.random.default_rng(1).integers(0, 2, shape)
    return net


@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple),
    mode=st.sampled_from(["VALID", "FULL", "BATCH_SIZE", "NONE"]),
    ignore=st.sampled_from([None, 255, -1]),
)
@settings(max_examples=30, deadline=None)
def test_sigmoid_equals_the_formula(shape: Shape, mode: str, ignore: int | None) -> None:
    text = f"normalization: {mode}" + ("" if ignore is None else f" ignore_label: {ignore}")
    net = sigmoid_net(shape, text)
    if ignore is not None:
        net.data("t").reshape(-1)[::3] = ignore
    x, t = net.data("x").astype(np.float64), net.data("t").astype(np.float64)
    counts = t != (np.inf if ignore is None else ignore)
    p = 1 / (1 + np.exp(-x))
    with np.errstate(all="ignore"):
        loss = np.where(counts, -(t * np.log(p) + (1 - t) * np.log(1 - p)), 0).sum()
    modes = {"VALID": counts.sum(), "FULL": t.size, "BATCH_SIZE": shape[0], "NONE": 1}
    divisor = max(1, modes[mode])
    assert net.forward() == pytest.approx(loss / divisor, rel=1e-5, abs=1e-6)
    net.backward()
    np.testing.assert_allclose(net.diff("x"), np.where(counts, p - t, 0) / divisor, atol=1e-6)


@pytest.mark.parametrize("param", ["", "ignore_label: 1", "normalize: true"])
def test_sigmoid_gradients(param: str) -> None:
    check_gradients(sigmoid_net((3, 4), param, "loss_weight: 2"), ["x"])


def test_sigmoid_never_overflows() -> None:
    net = sigmoid_net((2, 2))
    net.data("x")[...] = [[1e30, -1e30], [1e30, -1e30]]
    net.data("t")[...] = [[1, 0], [1, 0]]
    assert net.forward() == 0
    net.backward()
    np.testing.assert_array_equal(net.diff("x"), 0)


def test_sigmoid_ignored_elements_may_be_nan() -> None:
    net = sigmoid_net((2, 2), "ignore_label: 255")
    net.data("x")[...] = np.nan
    net.data("t")[...] = 255
    assert net.forward() == 0
    net.backward()
    np.testing.assert_array_equal(net.diff("x"), 0)


EUCLIDEAN = 'layer { name: "l" type: "EuclideanLoss" bottom: "a" bottom: "b" top: "loss" }'


@given(shape=st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple))
@settings(max_examples=20, deadline=None)
def test_euclidean_equals_the_formula(shape: Shape) -> None:
    net = probe(EUCLIDEAN, {"a": shape, "b": shape})
    randomise(net, np.random.default_rng(0))
    difference = net.data("a").astype(np.float64) - net.data("b")
    assert net.forward() == pytest.approx((difference**2).sum() / 2 / shape[0], rel=1e-5)
    net.backward()
    np.testing.assert_allclose(net.diff("a"), difference / shape[0], atol=1e-6)
    np.testing.assert_array_equal(net.diff("b"), -net.diff("a"))


def test_euclidean_gradients() -> None:
    net = probe(EUCLIDEAN, {"a": (3, 4), "b": (3, 4)})
    randomise(net, np.random.default_rng(0))
    check_gradients(net, ["a", "b"])


def contrastive_net(shape: Shape, param: str = "") -> CompiledNet:
    text = f"""layer {{ name: "l" type: "ContrastiveLoss" bottom: "a" bottom: "b" bottom: "s"
      top: "loss" contrastive_loss_param {{ {param} }} }}"""
    net = probe(text, {"a": shape, "b": shape, "s": shape[:1]})
    randomise(net, np.random.default_rng(0))
    net.data("s")[...] = np.arange(shape[0]) % 2
    return net


@given(
    shape=st.lists(st.integers(1, 6), min_size=2, max_size=3).map(tuple),
    margin=st.sampled_from([0.5, 1.0, 3.0]),
    legacy=st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_contrastive_equals_a_loop(shape: Shape, margin: float, legacy: bool) -> None:
    net = contrastive_net(shape, f"margin: {margin} legacy_version: {str(legacy).lower()}")
    a, b, s = (net.data(n).astype(np.float64) for n in ("a", "b", "s"))
    total = 0.0
    for n in range(shape[0]):
        square = ((a[n] - b[n]) ** 2).sum()
        apart = max(margin - square, 0) if legacy else max(margin - np.sqrt(square), 0) ** 2
        total += square if s[n] else apart
    assert net.forward() == pytest.approx(total / 2 / shape[0], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("param", ["margin: 3", "margin: 9 legacy_version: true", "margin: 0.1"])
def test_contrastive_gradients(param: str) -> None:
    check_gradients(contrastive_net((6, 4), param), ["a", "b"])


def test_contrastive_pairs_beyond_the_margin_get_exactly_zero() -> None:
    net = contrastive_net((2, 3))
    net.data("a")[0] = np.inf
    with np.errstate(invalid="ignore"):
        net.forward()
        net.backward()
    np.testing.assert_array_equal(net.diff("a")[0], 0)
    assert net.diff("a")[1].any()


def test_equal_pairs_give_no_nan() -> None:
    net = contrastive_net((2, 3))
    net.data("b")[...] = net.data("a")
    net.forward()
    net.backward()
    np.testing.assert_array_equal(net.diff("a"), 0)


def test_allocate_nothing() -> None:
    check_no_allocation(sigmoid_net((40, 1000), "ignore_label: 255 normalization: VALID"))
    check_no_allocation(probe(EUCLIDEAN, {"a": (40, 1000), "b": (40, 1000)}))
    for shape in ((5000, 8), (4, 50000), (100, 300)):
        for param in ("margin: 2", "legacy_version: true"):
            check_no_allocation(contrastive_net(shape, param))


@pytest.mark.parametrize("kind", ["SigmoidCrossEntropyLoss", "EuclideanLoss"])
def test_forward_only(kind: str) -> None:
    text = f'layer {{ name: "l" type: "{kind}" bottom: "a" bottom: "b" top: "loss" }}'
    net = probe(text, {"a": (2, 3), "b": (2, 3)}, phase="TEST", train=False)
    assert net.forward() == pytest.approx(0 if kind == "EuclideanLoss" else 3 * np.log(2))


@pytest.mark.parametrize(
    ("kind", "shapes", "message"),
    [
        ("SigmoidCrossEntropyLoss", [(2, 3), (2, 4)], "must have the same count"),
        ("EuclideanLoss", [(2, 3), (3, 2)], "must have the same dimension"),
        ("EuclideanLoss", [(2, 3), (2, 4)], "must have the same dimension"),
        ("ContrastiveLoss", [(2, 3), (2, 4), (2,)], "must have the same shape"),
        ("ContrastiveLoss", [(2, 3), (2, 3), (3,)], "one label for each pair"),
    ],
)
def test_nonsense(kind: str, shapes: list[Shape], message: str) -> None:
    names = "abc"[: len(shapes)]
    bottoms = " ".join(f'bottom: "{n}"' for n in names)
    text = f'layer {{ name: "l" type: "{kind}" {bottoms} top: "loss" }}'
    with pytest.raises(ShapeError, match=message):
        probe(text, dict(zip(names, shapes, strict=True)))
