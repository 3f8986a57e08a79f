"""Fillers: the distributions of Caffe, from an own generator."""

from __future__ import annotations

import json

import numpy as np
import pytest
from google.protobuf import text_format

from layrubnet.engine.fillers import fill, generator
from layrubnet.errors import NetError
from layrubnet.proto import FillerParameter
from tests.support.golden import find_case


def made(text: str, shape: tuple[int, ...], seed: int = 1) -> np.ndarray:
    filler = text_format.Parse(text, FillerParameter())
    return fill(filler, shape, generator(seed, "w"))


def test_moments_are_caffes() -> None:
    rows = json.loads(find_case("filler_statistics.json").read_text())["fillers"]
    assert rows
    for row in rows:
        shape = tuple(row["shape"])
        values = made(f'type: "{row["type"]}" {row["params"]}', shape).astype(np.float64)
        assert values.shape == shape
        n = values.size
        spread = max(row["std"], 1e-6)
        assert abs(values.mean() - row["mean"]) < 6 * spread / np.sqrt(n) + 1e-3 * spread, row
        assert abs(values.std() - row["std"]) < 0.1 * spread, row


def test_fan_in_counts_everything_but_the_first_axis() -> None:
    bound = np.sqrt(3 / 784)
    values = made('type: "xavier"', (10, 784))
    assert 0.98 * bound < np.abs(values).max() <= bound
    out = made('type: "xavier" variance_norm: FAN_OUT', (10, 784))
    assert np.abs(out).max() <= np.sqrt(3 / 10)
    assert np.abs(out).max() > bound


def test_bilinear_weights_interpolate() -> None:
    kernel = made('type: "bilinear"', (2, 1, 4, 4))[0, 0]
    np.testing.assert_allclose(kernel, np.outer([0.25, 0.75, 0.75, 0.25], [0.25, 0.75, 0.75, 0.25]))
    with pytest.raises(NetError, match="square kernels"):
        made('type: "bilinear"', (2, 1, 4, 5))


def test_positive_unitball_rows_sum_to_one() -> None:
    values = made('type: "positive_unitball"', (5, 3, 2))
    np.testing.assert_allclose(values.reshape(5, -1).sum(1), 1, rtol=1e-6)
    assert (values >= 0).all()


def test_sparse_gaussian_keeps_few() -> None:
    values = made('type: "gaussian" std: 1 sparse: 2', (20, 1000))
    assert 0.06 < (values != 0).mean() < 0.14


def test_same_seed_same_bits_other_name_other_bits() -> None:
    filler = text_format.Parse('type: "gaussian" std: 1', FillerParameter())
    a, b = (fill(filler, (50,), generator(7, "conv1/0")) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert (a != fill(filler, (50,), generator(7, "conv2/0"))).any()
    assert (a != fill(filler, (50,), generator(8, "conv1/0"))).any()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('type: "xaver"', "Unknown filler name: xaver"),
        ('type: "uniform" sparse: 3', "Sparsity is only supported"),
    ],
)
def test_mistakes_are_explained(text: str, message: str) -> None:
    with pytest.raises(NetError, match=message):
        made(text, (3, 4))
