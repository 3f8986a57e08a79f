"""Errors that a user can act on.

Every error that a user's input can cause derives from :class:`LayrubError`; the command line
prints it without a traceback. The message has up to four parts, always in this order::

    net.prototxt:41:3 layer 'conv1': the bottom has the wrong number of axes
      expected: 4 axes (N, C, H, W)
      got:      2 axes (64, 800)
      hint:     put a Reshape layer before it
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class LayrubError(Exception):
    """A mistake in the user's input: what and where, expected/got, and one hint."""

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        expected: object = None,
        got: object = None,
        hint: str = "",
    ) -> None:
        lines = [f"{where}: {what}" if where else what]
        if expected is not None:
            lines.append(f"  expected: {expected}")
        if got is not None:
            lines.append(f"  got:      {got}")
        if hint:
            lines.append(f"  hint:     {hint}")
        super().__init__("\n".join(lines))
        self.what = what
        self.where = where
        self.hint = hint


class PrototxtError(LayrubError):
    """A prototxt file cannot be read, or says something contradictory."""


class NetError(LayrubError):
    """The layers of a net do not fit together."""


class ShapeError(NetError):
    """A shape does not suit the layer that receives it."""


class DataError(LayrubError):
    """A data source is missing, damaged or holds something else than the net expects."""


class WeightsError(LayrubError):
    """A weights file or a snapshot cannot be used with this net."""


class ContractError(LayrubError):
    """A layer does something that its contract does not declare."""


class NonFiniteError(LayrubError):
    """A value became NaN or infinite during training."""


class DeviceError(LayrubError):
    """A device is missing, or cannot do what was asked."""


class OutOfMemory(DeviceError):
    """A device does not have the memory that a plan needs: ``nbytes``."""

    def __init__(self, what: str, nbytes: int, **parts: Any) -> None:
        super().__init__(what, **parts)
        self.nbytes = nbytes


class MissingDependency(LayrubError):
    """An optional package is needed and not installed."""


def nearest(name: str, known: Iterable[str], count: int = 1) -> list[str]:
    """Return up to ``count`` known names that look most like ``name`` (case ignored)."""
    by_folded = {k.lower(): k for k in known}
    close = difflib.get_close_matches(name.lower(), by_folded, n=count, cutoff=0.6)
    return [by_folded[c] for c in close]
