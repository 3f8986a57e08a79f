"""Accuracy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.errors import DataError, ShapeError
from tests.support.checks import check_no_allocation, make_net, probe
from tests.support.golden import GoldenCase

CASES = [
    "accuracy_ignore", "accuracy_perclass", "accuracy_spatial", "accuracy_ties", "accuracy_ties1",
    "accuracy_top1",
]  # fmt: skip


def accuracy(more: str = "") -> str:
    return (
        'layer { name: "l" type: "Accuracy" bottom: "x" bottom: "t" top: "a" top: "c"'
        f" accuracy_param {{ {more} }} }}"
    )


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    GoldenCase(name).check()


@given(
    m=st.integers(1, 6),
    c=st.integers(1, 5),
    s=st.integers(1, 3),
    ignore=st.sampled_from([None, 0]),
    data=st.data(),
)
@settings(max_examples=40, deadline=None)
def test_equals_a_loop(m: int, c: int, s: int, ignore: int | None, data: st.DataObject) -> None:
    top_k = data.draw(st.integers(1, c))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    x, labels = rng.integers(0, 4, (m, c, s)), rng.integers(0, c, (m, s))
    text = f"top_k: {top_k}" + ("" if ignore is None else f" ignore_label: {ignore}")
    net = probe(accuracy(text), {"x": x.shape, "t": labels.shape}, phase="TEST")
    net.data("x")[...], net.data("t")[...] = x, labels
    net.forward()
    right, count = np.zeros(c), np.zeros(c)
    for i, j in np.ndindex(m, s):
        label = labels[i, j]
        if label != ignore:
            count[label] += 1
            right[label] += (x[i, :, j] >= x[i, label, j]).sum() <= top_k
    np.testing.assert_allclose(net.data("a"), right.sum() / max(count.sum(), 1), rtol=1e-6)
    np.testing.assert_allclose(net.data("c"), right / np.maximum(count, 1), rtol=1e-6)


def test_nan_is_never_right() -> None:
    net = probe(accuracy(), {"x": (2, 3), "t": (2,)}, phase="TEST")
    net.data("x")[...] = [[np.nan] * 3, [0, 0, 1]]
    net.data("t")[...] = [0, 2]
    net.forward()
    assert net.data("a") == 0.5


def test_all_ignored_is_zero() -> None:
    net = probe(accuracy("ignore_label: 7"), {"x": (2, 3), "t": (2,)}, phase="TEST")
    net.data("t")[...] = 7
    net.forward()
    assert net.data("a") == 0


def test_label_out_of_range() -> None:
    net = probe(accuracy(), {"x": (2, 3), "t": (2,)}, phase="TEST")
    net.data("t")[...] = [0, 3]
    with pytest.raises(DataError, match="3 at element 1 of the batch"):
        net.forward()


def test_in_train_the_gradients_stay_as_they_are() -> None:
    inputs = (
        'layer { name: "i" type: "Input" top: "x" input_param { shape { dim: 3 dim: 4 } } }'
        'layer { name: "j" type: "Input" top: "t" input_param { shape { dim: 3 } } }'
    )
    loss = 'layer { name: "s" type: "SoftmaxWithLoss" bottom: "x" bottom: "t" top: "loss" }'
    diffs = []
    for text in (inputs + loss, inputs + loss + accuracy()):
        net = make_net(text, seeds=False)
        net.data("x")[...] = np.random.default_rng(0).normal(size=(3, 4))
        net.data("t")[...] = [0, 1, 3]
        net.forward()
        net.backward()
        diffs.append(np.array(net.diff("x")))
    np.testing.assert_array_equal(diffs[0], diffs[1])


def test_allocates_nothing() -> None:
    for shape, labels in (((256, 1000), (256,)), ((2, 5, 120, 130), (2, 120, 130))):
        net = probe(accuracy(), {"x": shape, "t": labels}, phase="TEST")
        net.data("x")[...] = np.random.default_rng(0).normal(size=shape)
        check_no_allocation(net)


def test_top_k_beyond_the_classes() -> None:
    with pytest.raises(ShapeError, match="top_k must be less than or equal"):
        probe(accuracy("top_k: 4"), {"x": (2, 3), "t": (2,)})
