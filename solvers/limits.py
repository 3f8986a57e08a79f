"""Which numbers a solver can work with, whatever its type and policy."""

from __future__ import annotations

import logging
import math
from typing import Any

from layrubnet.errors import PrototxtError

_NOT_NEGATIVE = (
    "base_lr",
    "max_iter",
    "display",
    "average_loss",
    "snapshot",
    "keep_snapshots",
    "test_interval",
    "test_iter",
    "momentum",
    "weight_decay",
    "warmup_iter",
    "rampup_interval",
)

_LATER = ("comm_param", "precision", "batch_scope")
"""Fields that the schema has for what this version does not do yet."""

_log = logging.getLogger("layrubnet")


def warn_unsupported(solver: Any) -> None:
    """Log a warning for each option that is set and has no effect in this version."""
    plain = type(solver)()
    for field in _LATER:
        if getattr(solver, field) != getattr(plain, field):
            _log.warning("solver: the option %s is not supported yet and ignored", field)


def check_numbers(solver: Any) -> None:
    """Raise PrototxtError for a NaN or infinity, and for a field that cannot be negative.

    ``test_iter: 0`` and ``max_iter: 0`` are in public files (no tests; tests only) and stay legal.
    """
    for field, value in solver.ListFields():
        kind = field.cpp_type
        if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
            for number in _listed(value):
                if not math.isfinite(number):
                    _refuse(field.name, "a finite number", f"{number:g}")
        if field.name in _NOT_NEGATIVE:
            for number in _listed(value):
                if number < 0:
                    _refuse(field.name, "0 or more", f"{number:g}")


def check_max_iter(solver: Any) -> None:
    """Raise PrototxtError if the solver does not say how long to train."""
    if not solver.HasField("max_iter"):
        raise PrototxtError(
            "max_iter is not set", where="solver", hint="for example max_iter: 1000"
        )


def _listed(value: Any) -> list[float]:
    return [value] if isinstance(value, (int, float)) else list(value)


def _refuse(field: str, expected: str, got: str) -> None:
    raise PrototxtError(
        f"{field} has an impossible value", where="solver", expected=expected, got=got
    )
