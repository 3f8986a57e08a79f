"""Learning rates as functions of the iteration, and options that no policy can work with."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layrubnet.errors import PrototxtError
from layrubnet.solvers.policies import (
    Plateau,
    check_policy,
    current_step,
    learning_rate,
    plateau_step,
)
from tests.solvers.support import solver_param


def rates(text: str, count: int) -> list[float]:
    """The rates of the first iterations, stepping as the solver does."""
    param = solver_param(text)
    check_policy(param)
    step, found = 0, []
    for t in range(count):
        step = current_step(param, t, step)
        found.append(learning_rate(param, t, step))
    return found


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ('lr_policy: "fixed" base_lr: 0.5', [0.5, 0.5, 0.5, 0.5]),
        ('lr_policy: "step" base_lr: 1 gamma: 0.5 stepsize: 2', [1, 1, 0.5, 0.5]),
        ('lr_policy: "exp" base_lr: 1 gamma: 0.5', [1, 0.5, 0.25, 0.125]),
        ('lr_policy: "inv" base_lr: 1 gamma: 1 power: 2', [1, 1 / 4, 1 / 9, 1 / 16]),
        ('lr_policy: "poly" base_lr: 1 power: 2 max_iter: 4', [1, 9 / 16, 1 / 4, 1 / 16, 0, 0]),
        ('lr_policy: "poly" base_lr: 1 power: 1 max_iter: 4 min_lr: 0.375', [1, 0.75, 0.5, 0.375]),
        (
            'lr_policy: "sigmoid" base_lr: 1 gamma: 2 stepsize: 1',
            [1 / (1 + math.exp(-2 * (t - 1))) for t in range(3)],
        ),
        ('lr_policy: "cosine" base_lr: 1 max_iter: 2', [1, 0.5, 0, 0]),
    ],
)
def test_formulas(text: str, want: list[float]) -> None:
    assert rates(text, len(want)) == pytest.approx(want)


def test_multistep_drops_once_per_iteration() -> None:
    text = 'lr_policy: "multistep" base_lr: 1 gamma: 0.5 stepvalue: 1 stepvalue: 1 stepvalue: 4'
    assert rates(text, 6) == [1, 0.5, 0.25, 0.25, 0.125, 0.125]


def test_step_continues_from_a_snapshot() -> None:
    param = solver_param('lr_policy: "step" base_lr: 1 gamma: 0.1 stepsize: 10')
    assert current_step(param, 35, 0) == 3


@pytest.mark.parametrize(
    ("policy", "want"), [("linear", [0.5, 0.75, 1]), ("constant", [0.5, 0.5, 1])]
)
def test_warm_up(policy: str, want: list[float]) -> None:
    text = 'lr_policy: "fixed" base_lr: 1 warmup_iter: 2 warmup_start_lr: 0.5'
    assert rates(f'{text} warmup_policy: "{policy}"', 3) == want


def test_exponential_and_nvidias_warm_up() -> None:
    text = 'lr_policy: "fixed" base_lr: 1 warmup_iter: 2 warmup_start_lr: 0.25'
    assert rates(f'{text} warmup_policy: "exp"', 3) == pytest.approx([0.25, 0.5, 1])
    nvidia = 'lr_policy: "fixed" base_lr: 1 rampup_interval: 4 rampup_lr: 0'
    assert rates(nvidia, 5) == [0, 0.25, 0.5, 0.75, 1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('lr_policy: "stepp" base_lr: 1', ["Unknown learning rate policy: stepp", '"step"']),
        ("base_lr: 1", ["lr_policy is not set", "fixed"]),
        ('lr_policy: "fixed"', ["base_lr is not set"]),
        ('lr_policy: "step" base_lr: 1 gamma: 0.1', ["stepsize"]),
        ('lr_policy: "sigmoid" base_lr: 1 gamma: -1', ["gamma", "0 or more", "-1"]),
        ('lr_policy: "exp" base_lr: 1 gamma: -1', ["gamma"]),
        ('lr_policy: "poly" base_lr: 1 power: 1', ["max_iter"]),
        ('lr_policy: "multistep" base_lr: 1 stepvalue: 5 stepvalue: 3', ["stepvalue", "rising"]),
        ('lr_policy: "plateau" base_lr: 1 gamma: 0.5', ["plateau_winsize"]),
        (
            'lr_policy: "fixed" base_lr: 1 warmup_iter: 2 warmup_policy: "linea"',
            ["Unknown warmup_policy: linea", '"linear"'],
        ),
        (
            'lr_policy: "fixed" base_lr: 1 warmup_iter: 2 warmup_policy: "exp"',
            ["warmup_start_lr", "more than 0"],
        ),
    ],
)
def test_refusals(text: str, words: list[str]) -> None:
    with pytest.raises(PrototxtError) as caught:
        check_policy(solver_param(text))
    for word in words:
        assert word in str(caught.value)


def test_plateau() -> None:
    param = solver_param(
        'lr_policy: "plateau" base_lr: 1 gamma: 0.5 plateau_winsize: 2 plateau_winsize: 3'
    )
    check_policy(param)
    losses = [5, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3]
    step, seen, found = 0, Plateau(), []
    for t, loss in enumerate(losses):
        step, seen = plateau_step(param, t, step, loss, seen)
        found.append(learning_rate(param, t, step))
    # No new minimum at 2 and 3: a drop at 3. The next minimum at 4; three more: a drop at 7.
    assert found == [1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25]


@given(st.floats(0, 5, width=32), st.integers(-10_000, 10_000), st.integers(0, 1_000_000))
def test_sigmoid_stays_between_zero_and_base_lr(gamma: float, stepsize: int, t: int) -> None:
    param = solver_param(f'lr_policy: "sigmoid" base_lr: 1 gamma: {gamma} stepsize: {stepsize}')
    assert 0 <= learning_rate(param, t) <= 1
