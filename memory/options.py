"""What a user asks of the memory planner, from a solver file, a flag or an argument."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import Any

from layrubnet.errors import LayrubError
from layrubnet.memory.strategies import check_strategy

_UNITS = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {f"{k}b": v for k, v in _UNITS.items() if k in "kmgt" and k}
_UNITS |= {f"{k}i{b}": 2 ** (10 * n) for n, k in enumerate("kmgt", 1) for b in ("b", "")}


@dataclass(frozen=True)
class MemoryOptions:
    """``strategy``: a name of ``strategies.py``; ``budget``: bytes of device memory or None;
    ``keep``: blobs that stay readable after a step; ``offload_dir``: folder for the CPU's file;
    ``profile``: file of measured times to plan by (``profile.py``)."""

    strategy: str = "caffe"
    budget: int | None = None
    keep: tuple[str, ...] = ()
    offload_dir: str | None = None
    profile: str | None = None

    def __post_init__(self) -> None:
        check_strategy(self.strategy)


def parse_budget(text: str) -> int:
    """Bytes of ``"6GiB"``, ``"750MB"``, ``"80%"`` (of the machine's memory) or plain bytes."""
    match = re.fullmatch(r"\s*([\d.]+)\s*(%|[a-zA-Z]*)\s*", text)
    unit = match[2].lower() if match else ""
    try:
        number = float(match[1]) if match else -1.0
    except ValueError:
        number = -1.0
    if match is None or number <= 0 or (unit != "%" and unit not in _UNITS):
        raise LayrubError(
            f"{text!r} is no amount of memory",
            expected="a number with a unit, as 6GiB, 750MB or 80%",
        )
    if unit == "%":
        return int(number / 100 * machine_memory())
    return int(number * _UNITS[unit])


def machine_memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_options(
    memory: MemoryOptions | str | None = None, budget: str | int | None = None
) -> MemoryOptions:
    """Options from an argument: a strategy's name, options, or None for everything kept.

    A budget without a strategy means ``auto``.
    """
    amount = parse_budget(budget) if isinstance(budget, str) else budget
    if isinstance(memory, MemoryOptions):
        return replace(memory, budget=amount) if amount is not None else memory
    if memory is None:
        memory = "caffe" if amount is None else "auto"
    return MemoryOptions(memory, amount)


def solver_memory(param: Any) -> MemoryOptions | None:
    """Options from a solver's ``memory_param`` (None without one)."""
    if not param.HasField("memory_param"):
        return None
    given = param.memory_param
    return MemoryOptions(
        given.strategy,
        parse_budget(given.budget) if given.budget else None,
        tuple(given.exclude_blob),
        given.offload_dir or None,
        given.profile or None,
    )


def asked_in_net(net: Any, phase: str) -> MemoryOptions:
    """Options from a net's own ``mem_param`` (a fork's field); without it everything is kept.

    ``optimize_train``/``optimize_test`` mean ``reuse``; ``exclude_blob`` names blobs to keep.
    """
    given = net.mem_param
    wanted = given.optimize_train if phase == "TRAIN" else given.optimize_test
    return MemoryOptions("reuse", keep=tuple(given.exclude_blob)) if wanted else MemoryOptions()
