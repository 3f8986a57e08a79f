"""SoftmaxWithLoss."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.engine.net import CompiledNet
from layrubnet.errors import DataError, NetError, ShapeError
from tests.support.checks import check_gradients, check_no_allocation, probe, randomise
from tests.support.golden import GoldenCase

CASES = [
    "softmaxloss_all_ignored", "softmaxloss_axis2", "softmaxloss_axisneg", "softmaxloss_basic",
    "softmaxloss_extreme", "softmaxloss_full", "softmaxloss_none", "softmaxloss_normalize_true",
    "softmaxloss_valid", "softmaxloss_weight",
]  # fmt: skip


def loss(more: str = "", tops: str = 'top: "loss"') -> str:
    return f'layer {{ name: "l" type: "SoftmaxWithLoss" bottom: "x" bottom: "t" {tops} {more} }}'


def labelled(
    more: str = "",
    shape: tuple[int, ...] = (4, 3),
    labels: object = (0, 1, 2, 0),
    tops: str = 'top: "loss"',
) -> CompiledNet:
    net = probe(loss(more, tops), {"x": shape, "t": np.shape(labels)})
    randomise(net, np.random.default_rng(0))
    net.data("t")[...] = labels
    return net


def reference(x: np.ndarray, labels: np.ndarray, ignore: int | None, weights: list[float]):  # type: ignore[no-untyped-def]
    """Sum of losses and number of labels that count, one by one; x is (M, C, S)."""
    total, count = 0.0, 0
    for m, s in np.ndindex(x.shape[0], x.shape[2]):
        label = int(labels[m, s])
        if label == ignore:
            continue
        column = x[m, :, s].astype(np.float64)
        total -= (column[label] - np.log(np.exp(column).sum())) * weights[label]
        count += 1
    return total, count


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    GoldenCase(name).check()


@given(
    m=st.integers(1, 4),
    c=st.integers(1, 5),
    s=st.integers(1, 4),
    ignore=st.sampled_from([None, 0, 255]),
    mode=st.sampled_from(["VALID", "FULL", "BATCH_SIZE", "NONE"]),
    weighted=st.booleans(),
    seed=st.integers(0, 1000),
)
@settings(max_examples=40, deadline=None)
def test_equals_a_loop(
    m: int, c: int, s: int, ignore: int | None, mode: str, weighted: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    weights = [float(w) for w in rng.integers(1, 5, c)] if weighted else []
    param = f"normalization: {mode} " + "".join(f"class_weight: {w} " for w in weights)
    if ignore is not None:
        param += f"ignore_label: {ignore}"
    labels = rng.integers(0, c, (m, s))
    labels[rng.random((m, s)) < 0.3] = 0 if ignore is None else ignore
    net = labelled(f"loss_param {{ {param} }}", (m, c, s), labels)
    total, count = reference(np.array(net.data("x")), labels, ignore, weights or [1.0] * c)
    divisor = {"VALID": count, "FULL": m * s, "BATCH_SIZE": m, "NONE": 1}[mode]
    assert net.forward() == pytest.approx(total / max(1, divisor), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    "more",
    ["", "loss_weight: 3", "loss_param { class_weight: [1, 2, 3] normalization: NONE }",
     "loss_param { ignore_label: 1 }"],
)  # fmt: skip
def test_gradients(more: str) -> None:
    net = labelled(more, (2, 3, 2), [[0, 2], [1, 1]])
    check_gradients(net, ["x"])


def test_gradients_through_both_tops() -> None:
    net = labelled("", (3, 4), [0, 3, 1], tops='top: "loss" top: "prob"')
    net.diff("prob")[...] = np.random.default_rng(4).uniform(-1, 1, (3, 4))
    check_gradients(net, ["x"])
    np.testing.assert_allclose(net.data("prob").sum(1), 1, rtol=1e-6)


def test_the_second_top_changes_nothing() -> None:
    nets = [labelled(tops=t) for t in ('top: "loss"', 'top: "loss" top: "p"')]
    nets[1].diff("p")[...] = 0
    assert nets[0].forward() == nets[1].forward()
    for net in nets:
        net.backward()
    np.testing.assert_array_equal(nets[0].diff("x"), nets[1].diff("x"))


def test_everything_ignored_gives_zero_even_from_nan() -> None:
    net = labelled("loss_param { ignore_label: 2 }", labels=[2, 2, 2, 2])
    net.data("x")[...] = np.nan
    assert net.forward() == 0
    net.backward()
    np.testing.assert_array_equal(net.diff("x"), 0)


def test_spellings_of_class_weights() -> None:
    for text in (
        "loss_param { class_weighting: [1, 2, 3] weight_by_label_freqs: true }",
        "loss_param { class_loss_weights: [1, 2, 3] }",
        "softmax_param { class_weight: [1, 2, 3] }",
    ):
        assert labelled(text).forward() == labelled("loss_param {class_weight: [1,2,3]}").forward()
    off = labelled("loss_param { class_weighting: [1, 2, 3] }")
    assert off.forward() == labelled().forward()


@pytest.mark.parametrize("label", [3, -1, 255, np.nan, np.inf])
def test_label_out_of_range(label: float) -> None:
    net = labelled(labels=[0, 1, label, 0])
    with pytest.raises(DataError) as error:
        net.forward()
    message = str(error.value)
    assert f"{label:g} at element 2 of the batch" in message
    assert "from 0 to 2, as there are 3 classes" in message
    assert "'l'" in message
    assert "num_output" in message


def test_label_out_of_range_in_an_image() -> None:
    net = labelled("", (2, 3, 2, 2), [[[0, 1], [2, 0]], [[0, 0], [9, 0]]])
    with pytest.raises(DataError, match=r"9 at element 6 \(sample 1, position 2\)"):
        net.forward()


def test_the_ignored_label_may_be_out_of_range() -> None:
    net = labelled("loss_param { ignore_label: -1 }", labels=[0, 1, -1, 0])
    assert np.isfinite(net.forward())
    net.data("t")[3] = 255
    with pytest.raises(DataError, match="255 at element 3"):
        net.forward()


def test_fractions_are_truncated_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    net, whole = labelled(labels=[0, 1.7, 2, -0.5]), labelled(labels=[0, 1, 2, 0])
    with caplog.at_level(logging.WARNING, "layrubnet"):
        values = [net.forward(), net.forward()]
    assert values == [whole.forward()] * 2
    assert len(caplog.records) == 1
    assert "truncated" in caplog.text


def test_allocates_nothing() -> None:
    for more, shape, labels, tops in (
        ("", (256, 1000), np.arange(256), ""),
        ("loss_param { ignore_label: 1 }", (2, 5, 120, 130), np.ones((2, 120, 130)), ""),
        ("loss_param { class_weight: [1, 2, 3] }", (500, 3, 40), np.ones((500, 40)), 'top: "p"'),
    ):
        net = labelled(more, shape, labels, 'top: "loss" ' + tops)
        check_no_allocation(net)


def test_forward_only() -> None:
    net = probe(loss(), {"x": (2, 3), "t": (2,)}, phase="TEST", train=False)
    assert net.forward() == pytest.approx(np.log(3))


@pytest.mark.parametrize(
    ("inputs", "more", "kind", "message"),
    [
        ({"x": (4, 3), "t": (5,)}, "", ShapeError, "Number of labels must match"),
        ({"x": (4, 3), "t": (4,)}, "softmax_param { axis: 2 }", ShapeError, "axis is out of range"),
        ({"x": (4, 3), "t": (4,)}, "loss_param { class_weight: 1 }", NetError, "once per class"),
        (
            {"x": (4, 3), "t": (4,)},
            "loss_param { class_weight: [1, 2, 3] class_loss_weights: [1, 2, 4] }",
            NetError,
            "given twice",
        ),
        ({"x": (4, 3), "t": (4,)}, "loss_param { label_smoothing: 0.1 }", NetError, "smoothing"),
        ({"x": (4, 3), "t": (4,)}, "softmax_param { hard_ratio: 0.5 }", NetError, "hard_ratio"),
    ],
)
def test_nonsense(
    inputs: dict[str, tuple[int, ...]], more: str, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        probe(loss(more), inputs)
