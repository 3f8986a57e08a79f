"""Numbers that no solver can work with."""

from __future__ import annotations

import pytest

from layrubnet.errors import PrototxtError
from layrubnet.proto import SolverParameter
from layrubnet.prototxt.text import parse
from layrubnet.solvers.limits import check_max_iter, check_numbers


@pytest.mark.parametrize(
    "text",
    [
        "base_lr: nan",
        "base_lr: -0.1",
        "momentum: inf",
        "delta: nan",
        "clip_gradients: -inf",
        "max_iter: -1",
        "test_iter: [2, -1]",
        "test_interval: -5",
        "snapshot: -1",
        "average_loss: -1",
    ],
)
def test_refused(text: str) -> None:
    field = text.partition(":")[0]
    with pytest.raises(PrototxtError, match=f"solver: {field} has an impossible value"):
        check_numbers(parse(text, SolverParameter))


def test_accepted() -> None:
    text = (
        "base_lr: 0 max_iter: 0 test_iter: 0 display: 0 snapshot: 0 random_seed: -1 "
        "clip_gradients: -1 stepvalue: [5, 9] power: -1"
    )
    check_numbers(parse(text, SolverParameter))


def test_max_iter_must_be_said() -> None:
    with pytest.raises(PrototxtError, match="max_iter is not set"):
        check_max_iter(SolverParameter(base_lr=1))
    check_max_iter(SolverParameter(max_iter=0))
