"""Learning rate policies: pure functions of the solver's options and the iteration.

======================  ===================================================================
policy                  learning rate at iteration ``t``
======================  ===================================================================
fixed                   base_lr
step                    base_lr * gamma ^ floor(t / stepsize)
multistep               base_lr * gamma ^ k, k: how many stepvalues lie at or before t
exp                     base_lr * gamma ^ t
inv                     base_lr * (1 + gamma * t) ^ -power
poly                    base_lr * (1 - t / max_iter) ^ power
sigmoid                 base_lr / (1 + exp(-gamma * (t - stepsize)))
plateau (SSD)           base_lr * gamma ^ k, k: see :func:`plateau_step`
cosine (ours)           min_lr + (base_lr - min_lr) * (1 + cos(pi * t / max_iter)) / 2
======================  ===================================================================

``warmup_iter`` (or NVIDIA's ``rampup_interval``) lets the rate rise to what the policy says.
``min_lr`` is a floor of poly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from layrubnet.errors import PrototxtError, nearest

_WHERE = "solver"


def current_step(solver: Any, iteration: int, before: int) -> int:
    """The number of drops so far, which a snapshot stores; ``before``: as of the last iteration.

    Like Caffe, ``multistep`` advances by at most one per iteration, even past equal stepvalues.
    """
    if solver.lr_policy == "step":
        return iteration // int(solver.stepsize)
    if solver.lr_policy == "multistep":
        values = solver.stepvalue
        due = before < len(values) and iteration >= values[before]
        return before + 1 if due else before
    return before


@dataclass(frozen=True)
class Plateau:
    """The smallest smoothed loss so far, and the iteration of it or of the last drop since."""

    minimum: float = math.inf
    event: int = 0


def plateau_step(
    solver: Any, iteration: int, before: int, loss: float, seen: Plateau
) -> tuple[int, Plateau]:
    """Return the number of drops under ``plateau``, and what to remember.

    The rate drops when the smoothed loss has found no new minimum for ``plateau_winsize[k]``
    iterations since the last minimum or drop.
    """
    if loss < seen.minimum:
        seen = Plateau(loss, iteration)
    windows = solver.plateau_winsize
    if before < len(windows) and iteration - seen.event >= windows[before]:
        return before + 1, Plateau(seen.minimum, iteration)
    return before, seen


def learning_rate(solver: Any, iteration: int, step: int = 0) -> float:
    """The rate at ``iteration``; ``step`` is what :func:`current_step` returned for it."""
    rate = _POLICIES[solver.lr_policy](solver, iteration, step)
    return _warm_up(solver, iteration, rate)


def check_policy(solver: Any) -> None:
    """Raise PrototxtError for an unknown policy, or options that it cannot work with."""
    name = solver.lr_policy
    if name not in _POLICIES:
        close = nearest(name, _POLICIES)
        raise PrototxtError(
            f"Unknown learning rate policy: {name}" if name else "lr_policy is not set",
            where=_WHERE,
            expected=", ".join(_POLICIES),
            hint=f'did you mean "{close[0]}"?' if close else 'for a constant rate: "fixed"',
        )
    if not solver.HasField("base_lr"):
        raise PrototxtError("base_lr is not set", where=_WHERE, hint="for example base_lr: 0.01")
    if name == "step" and solver.stepsize <= 0:
        _refuse(name, "stepsize", "more than 0", solver.stepsize)
    if name in ("step", "multistep", "plateau", "exp", "inv", "sigmoid") and solver.gamma < 0:
        _refuse(name, "gamma", "0 or more", f"{solver.gamma:g}")
    if name in ("poly", "cosine") and solver.max_iter <= 0:
        _refuse(name, "max_iter", "more than 0", solver.max_iter)
    if name == "multistep" and list(solver.stepvalue) != sorted(solver.stepvalue):
        _refuse(name, "stepvalue", "rising numbers", list(solver.stepvalue))
    if name == "plateau" and any(window <= 0 for window in solver.plateau_winsize or [0]):
        _refuse(name, "plateau_winsize", "one or more, each more than 0", "0 or nothing")
    if solver.warmup_iter and solver.warmup_policy not in _WARM_UPS:
        close = nearest(solver.warmup_policy, _WARM_UPS)
        raise PrototxtError(
            f"Unknown warmup_policy: {solver.warmup_policy}",
            where=_WHERE,
            expected=", ".join(_WARM_UPS),
            hint=f'did you mean "{close[0]}"?' if close else "",
        )
    if solver.warmup_iter and solver.warmup_policy == "exp" and solver.warmup_start_lr <= 0:
        _refuse("exp warm-up", "warmup_start_lr", "more than 0", f"{solver.warmup_start_lr:g}")


def _refuse(policy: str, field: str, expected: str, got: object) -> None:
    raise PrototxtError(
        f"the learning rate policy {policy!r} cannot work with this {field}",
        where=_WHERE,
        expected=f"{field} {expected}",
        got=got,
    )


def _poly(solver: Any, t: int, step: int) -> float:
    # Steps past max_iter are possible in Caffe's Python interface; a power of them is not.
    left = max(1 - t / solver.max_iter, 0.0)
    return float(max(solver.base_lr * left**solver.power, solver.min_lr))


def _sigmoid(solver: Any, t: int, step: int) -> float:
    exponent = -solver.gamma * (t - solver.stepsize)
    return float(solver.base_lr / (1 + math.exp(min(exponent, 700.0))))


def _cosine(solver: Any, t: int, step: int) -> float:
    share = min(t / solver.max_iter, 1.0)
    low = solver.min_lr
    return float(low + (solver.base_lr - low) * (1 + math.cos(math.pi * share)) / 2)


def _drop(solver: Any, t: int, step: int) -> float:
    return float(solver.base_lr * solver.gamma**step)


_POLICIES: dict[str, Callable[[Any, int, int], float]] = {
    "fixed": lambda solver, t, step: float(solver.base_lr),
    "step": _drop,
    "multistep": _drop,
    "plateau": _drop,
    "exp": lambda solver, t, step: float(solver.base_lr * solver.gamma**t),
    "inv": lambda solver, t, step: float(solver.base_lr * (1 + solver.gamma * t) ** -solver.power),
    "poly": _poly,
    "sigmoid": _sigmoid,
    "cosine": _cosine,
}

_WARM_UPS: dict[str, Callable[[float, float, float], float]] = {
    "linear": lambda start, end, share: start + (end - start) * share,
    "exp": lambda start, end, share: start * (end / start) ** share,
    "constant": lambda start, end, share: start,
}


def _warm_up(solver: Any, iteration: int, rate: float) -> float:
    length, start, policy = solver.warmup_iter, solver.warmup_start_lr, solver.warmup_policy
    if not length:
        length, start, policy = solver.rampup_interval, solver.rampup_lr, "linear"
    if iteration >= length:
        return rate
    return _WARM_UPS[policy](start, rate, iteration / length)
