"""What is global in pycaffe: the random seed, the device and the log."""

from __future__ import annotations

import logging
import secrets
import sys

from layrubnet.errors import DeviceError
from layrubnet.observe.log import add_handler

TRAIN, TEST = 0, 1


class _Seed:
    """The seed for the next net: given once, then counted on, so that nets differ."""

    def __init__(self) -> None:
        self.next: int | None = None

    def take(self) -> int:
        if self.next is None:
            return secrets.randbits(31)
        self.next += 1
        return self.next - 1


_seed = _Seed()


def set_random_seed(seed: int) -> None:
    """Make parameters and random draws of the nets opened from now on repeatable."""
    _seed.next = int(seed)


def next_seed() -> int:
    """The seed for a new net."""
    return _seed.take()


def given_seed(own: int) -> int | None:
    """The seed for a new solver; None leaves it its own (or, without one, a fresh one)."""
    return None if own >= 0 or _seed.next is None else next_seed()


def set_mode_cpu() -> None:
    """Run on the CPU, as everything does."""


def set_mode_gpu() -> None:
    """Refused: there is no GPU device yet."""
    raise DeviceError(
        "set_mode_gpu: this version computes on the CPU only",
        hint="call caffe.set_mode_cpu() instead",
    )


def set_device(device: int) -> None:
    """Choose a GPU. Refused as :func:`set_mode_gpu` is."""
    raise DeviceError(
        f"set_device({device}): this version computes on the CPU only",
        hint="leave set_device out and call caffe.set_mode_cpu()",
    )


def init_log(level: int = 0) -> None:
    """Show what solvers say on stderr, in Caffe's words; ``level``: 0 all, 1 warnings, 2 errors.

    Unlike in Caffe, solvers are silent before.
    """
    add_handler(sys.stderr, (logging.INFO, logging.WARNING, logging.ERROR)[min(level, 2)])
