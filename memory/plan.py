"""The plan: an offset in one arena for every buffer of a program."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from layrubnet.engine.program import Program

ALIGNMENT = 64
"""Bytes; one cache line, and enough for any vector instruction on the CPU."""


@dataclass(frozen=True)
class Plan:
    """Offsets in bytes. Scratch is one region shared by all instructions (only one runs)."""

    offsets: Mapping[str, int]
    scratch_offset: int
    scratch_bytes: int
    nbytes: int
    persistent_bytes: int

    @property
    def peak(self) -> int:
        """Bytes of the whole arena."""
        return self.nbytes


def aligned(nbytes: int) -> int:
    """``nbytes`` rounded up to the alignment (a buffer of no bytes still gets an address)."""
    return max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)


def keep_everything(
    program: Program, base_scratch: int = 0, external: Collection[str] = ()
) -> Plan:
    """Give every buffer a place of its own for ever, persistent ones first: Caffe's way.

    ``base_scratch``: bytes of scratch the device grants to every instruction. ``external``:
    buffers that live elsewhere (shared with another net) and get no place here.
    """
    offsets: dict[str, int] = {}
    top = 0
    for persistent in (True, False):
        for buffer in program.buffers.values():
            if buffer.persistent is persistent and buffer.name not in external:
                offsets[buffer.name] = top
                top += aligned(buffer.nbytes)
        if persistent:
            persistent_bytes = top
    wanted = max((i.scratch for section in program.sections.values() for i in section), default=0)
    scratch = aligned(max(wanted, base_scratch))
    return Plan(offsets, top, scratch, top + scratch, persistent_bytes)
