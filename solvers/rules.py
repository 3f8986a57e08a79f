"""The six solvers of Caffe as update rules, and the checks of their options.

The formulas are those of :mod:`layrubnet.devices.cpu.update`. Where ``delta`` stands is Caffe's
choice: outside the root for AdaGrad, RMSProp and Adam, inside for AdaDelta, whose decay is
``momentum``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layrubnet.errors import PrototxtError, nearest
from layrubnet.solvers.limits import check_numbers, warn_unsupported

_WHERE = "solver"


class Rule:
    """What all rules share; see :class:`layrubnet.engine.updates.UpdateRule`."""

    histories: int = 1

    def __init__(self, solver: Any) -> None:
        self.clip_gradients = float(solver.clip_gradients)
        self.iter_size = int(solver.iter_size)
        self.weight_decay = float(solver.weight_decay)
        self.regularization_type = str(solver.regularization_type)
        self.momentum = float(solver.momentum)
        self.delta = float(solver.delta)
        if self.iter_size < 1:
            _refuse(solver, "iter_size", "1 or more", self.iter_size)
        if self.regularization_type not in ("L1", "L2"):
            _refuse(solver, "regularization_type", '"L1" or "L2"', self.regularization_type)
        self.check(solver)

    def check(self, solver: Any) -> None:
        """Raise PrototxtError for options that this rule cannot work with."""

    def update(
        self, ops: Any, w: Any, dw: Any, history: Sequence[Any], scalars: Any, lr_mult: float
    ) -> None:
        """Update ``w`` and ``history`` in place; ``dw`` becomes the step that was taken."""
        raise NotImplementedError


class SGD(Rule):
    """Gradient descent with momentum."""

    def update(
        self, ops: Any, w: Any, dw: Any, history: Sequence[Any], scalars: Any, lr_mult: float
    ) -> None:
        ops.sgd_update(w, dw, history[0], scalars, lr_mult, self.momentum)


class Nesterov(Rule):
    """Nesterov's accelerated gradient, in Caffe's form."""

    def update(
        self, ops: Any, w: Any, dw: Any, history: Sequence[Any], scalars: Any, lr_mult: float
    ) -> None:
        ops.nesterov_update(w, dw, history[0], scalars, lr_mult, self.momentum)


class AdaGrad(Rule):
    """Steps divided by the root of the sum of all squared gradients."""

    def check(self, solver: Any) -> None:
        _no_momentum(solver)

    def update(
        self, ops: Any, w: Any, dw: Any, history: Sequence[Any], scalars: Any, lr_mult: float
    ) -> None:
        ops.adagrad_update(w, dw, history[0], scalars, lr_mult, self.delta)


class RMSProp(Rule):
    """Steps divided by the root of a running mean of squared gradients."""

    def check(self, solver: Any) -> None:
        _no_momentum(solver)
        self.rms_decay = float(solver.rms_decay)
        if not 0 <= self.rms_decay < 1:
            _refuse(solver, "rms_decay", "0 <= rms_decay < 1", f"{self.rms_decay:g}")

    def update(
        self, ops: Any, w: Any, dw: Any, history: Sequence[Any], scalars: Any, lr_mult: float
    ) -> None:
        ops.rmsprop_update(w, dw, history[0], scalars, lr_mult, self.rms_decay, self.delta)


class AdaDelta(Rule):
    """Steps scaled by the ratio of running means: of squared steps, of squared gradients."""

    histories = 2

    def update(
        self, ops: Any, w: Any, dw: Any, history: Sequence[Any], scalars: Any, lr_mult: float
    ) -> None:
        h, s = history
        ops.adadelta_update(w, dw, h, s, scalars, lr_mult, self.momentum, self.delta)


class Adam(Rule):
    """Steps from running means of the gradient and its square, corrected for their start at 0."""

    histories = 2

    def check(self, solver: Any) -> None:
        self.momentum2 = float(solver.momentum2)
        for field in ("momentum", "momentum2"):
            value = getattr(solver, field)
            if not 0 <= value < 1:
                _refuse(solver, field, f"0 <= {field} < 1", f"{value:g}")

    def update(
        self, ops: Any, w: Any, dw: Any, history: Sequence[Any], scalars: Any, lr_mult: float
    ) -> None:
        m, v = history
        ops.adam_update(w, dw, m, v, scalars, lr_mult, self.momentum, self.momentum2, self.delta)


RULES: dict[str, type[Rule]] = {
    "SGD": SGD,
    "Nesterov": Nesterov,
    "AdaGrad": AdaGrad,
    "RMSProp": RMSProp,
    "AdaDelta": AdaDelta,
    "Adam": Adam,
}


def make_rule(solver: Any) -> Rule:
    """Return the rule of an (upgraded) SolverParameter's ``type``."""
    check_numbers(solver)
    warn_unsupported(solver)
    cls = RULES.get(solver.type)
    if cls is None:
        close = nearest(solver.type, RULES)
        raise PrototxtError(
            f"Unknown solver type: {solver.type}",
            where=_WHERE,
            expected=", ".join(RULES),
            hint=f'did you mean "{close[0]}"?' if close else "",
        )
    return cls(solver)


def _no_momentum(solver: Any) -> None:
    if solver.momentum:
        raise PrototxtError(
            f"Momentum cannot be used with {solver.type}.",
            where=_WHERE,
            expected="momentum 0, or not given",
            got=f"{solver.momentum:g}",
            hint='remove momentum, or choose type "Adam"',
        )


def _refuse(solver: Any, field: str, expected: str, got: object) -> None:
    raise PrototxtError(
        f"{solver.type} cannot work with this {field}",
        where=_WHERE,
        expected=expected,
        got=got,
    )
