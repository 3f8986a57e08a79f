"""The update rules against plain float64 formulas, and the options they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from layrubnet.devices.cpu.device import CpuDevice
from layrubnet.engine.updates import LR, STEP
from layrubnet.errors import PrototxtError
from layrubnet.solvers.rules import RULES, make_rule
from tests.solvers.support import linear_net, make_solver, solver_param
from tests.support.array_memory import count_array_memory
from tests.support.checks import check_no_allocation

Array = np.ndarray
SIZES = (1, 7, 16384, 40_000)


def sgd(g: Array, h: list[Array], lr: float, t: int) -> Array:
    h[0] = 0.9 * h[0] + lr * g
    return h[0]


def nesterov(g: Array, h: list[Array], lr: float, t: int) -> Array:
    old = h[0]
    h[0] = 0.9 * old + lr * g
    return 1.9 * h[0] - 0.9 * old


def adagrad(g: Array, h: list[Array], lr: float, t: int) -> Array:
    h[0] = h[0] + g**2
    return lr * g / (np.sqrt(h[0]) + 0.01)


def rmsprop(g: Array, h: list[Array], lr: float, t: int) -> Array:
    h[0] = 0.8 * h[0] + 0.2 * g**2
    return lr * g / (np.sqrt(h[0]) + 0.01)


def adadelta(g: Array, h: list[Array], lr: float, t: int) -> Array:
    h[0] = 0.9 * h[0] + 0.1 * g**2
    step = g * np.sqrt((h[1] + 0.01) / (h[0] + 0.01))
    h[1] = 0.9 * h[1] + 0.1 * step**2
    return lr * step


def adam(g: Array, h: list[Array], lr: float, t: int) -> Array:
    h[0] = 0.9 * h[0] + 0.1 * g
    h[1] = 0.95 * h[1] + 0.05 * g**2
    return lr * np.sqrt(1 - 0.95**t) / (1 - 0.9**t) * h[0] / (np.sqrt(h[1]) + 0.01)


FORMULAS: dict[str, tuple[str, Callable[..., Array]]] = {
    "SGD": ("momentum: 0.9", sgd),
    "Nesterov": ("momentum: 0.9", nesterov),
    "AdaGrad": ("delta: 0.01", adagrad),
    "RMSProp": ("delta: 0.01 rms_decay: 0.8", rmsprop),
    "AdaDelta": ("delta: 0.01 momentum: 0.9", adadelta),
    "Adam": ("delta: 0.01 momentum: 0.9 momentum2: 0.95", adam),
}


def cpu_ops() -> Any:
    """The CPU's operations with scratch memory of their own."""
    device = CpuDevice()
    memory = device.allocate(device.base_scratch)
    device.ops.scratch.bind(lambda at, shape, dtype: device.view(memory, at, shape, dtype))
    device.ops.scratch.reset(device.base_scratch)
    return device


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", sorted(RULES))
def test_formula(kind: str, size: int) -> None:
    options, formula = FORMULAS[kind]
    rule = make_rule(solver_param(f'type: "{kind}" {options}'))
    device = cpu_ops()
    rng = np.random.default_rng(size)
    w = rng.normal(size=size).astype(np.float32)
    histories = [np.zeros(size, np.float32) for _ in range(rule.histories)]
    scalars = np.zeros(8)
    want, kept = w.astype(np.float64), [h.astype(np.float64) for h in histories]
    for t in (1, 2, 3):
        g = rng.normal(size=size).astype(np.float32)
        scalars[LR], scalars[STEP] = 0.1 / t, t
        step = formula(g.astype(np.float64), kept, 0.1 / t * 2, t)
        want -= step
        device.ops.scratch.reset(device.base_scratch)
        dw = g.copy()
        rule.update(device.ops, w, dw, histories, scalars, 2.0)
        np.testing.assert_allclose(w, want, rtol=2e-5, atol=2e-6)
        # The step stays in dw, as Caffe's snapshot_diff has it.
        np.testing.assert_allclose(dw, step, rtol=2e-4, atol=2e-6)
        for got, wanted in zip(histories, kept, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6)


def test_norm_and_clipping() -> None:
    device = cpu_ops()
    xs = [np.full(40_000, 0.5, np.float32), np.full((3, 2), 2, np.float32)]
    norm = np.zeros(1)
    device.ops.global_norm(xs, norm)
    want = np.sqrt(40_000 * 0.25 + 6 * 4)
    assert norm[0] == pytest.approx(want, rel=1e-6)
    y = xs[1].copy()
    device.ops.clip_by_norm(y, norm, 1000.0)
    assert (y == 2).all()
    device.ops.clip_by_norm(y, norm, 10.0)
    np.testing.assert_allclose(y, 20 / want, rtol=1e-6)


@pytest.mark.parametrize("size", SIZES)
def test_weight_decay(size: int) -> None:
    device = cpu_ops()
    w = np.linspace(-1, 1, size).astype(np.float32)
    for kind, want in (("L2", 1 + 0.5 * w), ("L1", 1 + 0.5 * np.sign(w))):
        dw = np.ones(size, np.float32)
        device.ops.scratch.reset(device.base_scratch)
        device.ops.regularise(w, dw, 0.5, kind)
        np.testing.assert_allclose(dw, want, rtol=1e-6)


@pytest.mark.parametrize("kind", sorted(RULES))
def test_no_allocation(kind: str) -> None:
    options = FORMULAS[kind][0] + " clip_gradients: 1 weight_decay: 0.1 iter_size: 2"
    for decay in ("L1", "L2"):
        text = (
            f'type: "{kind}" {options} lr_policy: "fixed" base_lr: 0.1'
            f' regularization_type: "{decay}"'
        )
        solver, _ = make_solver(text, linear_net())
        solver.step(1)
        check_no_allocation(solver.net)


def test_large_update_stays_in_blocks() -> None:
    device = cpu_ops()
    rule = make_rule(solver_param('type: "AdaDelta" momentum: 0.9'))
    w, dw, h, s = (np.ones(1_000_000, np.float32) for _ in range(4))
    rule.update(device.ops, w, dw, (h, s), np.ones(8), 1.0)
    with count_array_memory() as memory:
        device.ops.scratch.reset(device.base_scratch)
        rule.update(device.ops, w, dw, (h, s), np.ones(8), 1.0)
    assert memory.peak <= 4096


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('type: "Adm"', ["Unknown solver type: Adm", '"Adam"']),
        ('type: "AdaGrad" momentum: 0.9', ["Momentum cannot be used with AdaGrad."]),
        ('type: "RMSProp" momentum: 0.9', ["Momentum cannot be used with RMSProp."]),
        ('type: "RMSProp" rms_decay: 1', ["rms_decay", "0 <= rms_decay < 1"]),
        ('type: "Adam" momentum: 1', ["momentum", "0 <= momentum < 1"]),
        ('type: "Adam" momentum2: -1', ["momentum2"]),
        ("iter_size: 0", ["iter_size", "1 or more"]),
        ('regularization_type: "L3"', ["regularization_type", '"L1" or "L2"', "L3"]),
    ],
)
def test_refusals(text: str, words: list[str]) -> None:
    with pytest.raises(PrototxtError) as caught:
        make_rule(solver_param(text))
    for word in words:
        assert word in str(caught.value)


def test_the_old_enum_chooses_the_rule() -> None:
    assert type(make_rule(solver_param("solver_type: NESTEROV"))) is RULES["Nesterov"]
