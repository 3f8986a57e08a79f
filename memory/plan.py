"""The plan: an address for every buffer of a program, and the instructions as they will run.

A plan is data: it can be printed, drawn, compared, and checked by ``verify.py`` before it runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from layrubnet.engine.program import Buffer, Instruction, Program

ALIGNMENT = 64
"""Bytes; one cache line, and enough for any vector instruction on the CPU."""


@dataclass(frozen=True)
class Schedule:
    """One runnable list of instructions with the address of every transient buffer.

    ``buffers`` are the transient ones, those that a plan added included. ``scratch``: offset of
    the scratch of the instruction with this index, where it is not the common one. ``host``: bytes
    of each host copy by buffer name.
    """

    instructions: tuple[Instruction, ...]
    buffers: Mapping[str, Buffer]
    offsets: Mapping[str, int]
    scratch: Mapping[int, int] = field(default_factory=dict)
    host: Mapping[str, int] = field(default_factory=dict)
    lower_bound: int = 0


@dataclass(frozen=True)
class Plan:
    """Where everything lies: persistent buffers, then the arena of transient ones, then scratch.

    ``schedules`` by name: the program's sections when everything is kept, whole passes
    (``step_first``, ``step_more``, ``forward``, ``update``) otherwise; each has the whole arena to
    itself. Offsets are bytes from the start of the one allocation of ``nbytes``.
    """

    strategy: str
    persistent: Mapping[str, int]
    schedules: Mapping[str, Schedule]
    persistent_bytes: int
    arena_bytes: int
    scratch_offset: int
    scratch_bytes: int
    kept: frozenset[str] | None = None
    """Buffers that can be read after a step; None: all."""

    def readable(self, buffer: str) -> bool:
        """Can the buffer be read after a step?"""
        return self.kept is None or buffer in self.kept

    @property
    def nbytes(self) -> int:
        """Bytes of device memory, all of it."""
        return self.scratch_offset + self.scratch_bytes

    @property
    def host_bytes(self) -> int:
        """Bytes of host memory (or file) for offloaded buffers."""
        return max((sum(s.host.values()) for s in self.schedules.values()), default=0)

    @property
    def keeps_everything(self) -> bool:
        """Every blob can be read at any time."""
        return self.strategy == "caffe"


def aligned(nbytes: int) -> int:
    """``nbytes`` rounded up to the alignment (a buffer of no bytes still gets an address)."""
    return max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)


def place_persistent(program: Program, external: Collection[str]) -> tuple[dict[str, int], int]:
    """Addresses of what survives an iteration, one after the other, and their total."""
    offsets: dict[str, int] = {}
    top = 0
    for buffer in program.buffers.values():
        if buffer.persistent and buffer.name not in external:
            offsets[buffer.name] = top
            top += aligned(buffer.nbytes)
    return offsets, top


def keep_everything(
    program: Program, base_scratch: int = 0, external: Collection[str] = ()
) -> Plan:
    """Give every buffer a place of its own for ever: Caffe's way (strategy ``caffe``).

    ``base_scratch``: bytes of scratch the device grants to every instruction. ``external``:
    buffers that live elsewhere (shared with another net) and get no place here.
    """
    persistent, persistent_bytes = place_persistent(program, external)
    transient = {
        b.name: b for b in program.buffers.values() if not b.persistent and b.name not in external
    }
    offsets: dict[str, int] = {}
    top = persistent_bytes
    for buffer in transient.values():
        offsets[buffer.name] = top
        top += aligned(buffer.nbytes)
    wanted = max((i.scratch for s in program.sections.values() for i in s), default=0)
    schedules = {
        name: Schedule(section, transient, offsets) for name, section in program.sections.items()
    }
    return Plan(
        "caffe",
        persistent,
        schedules,
        persistent_bytes,
        top - persistent_bytes,
        top,
        aligned(max(wanted, base_scratch)),
    )
