"""Make instructions: what one reads and writes follows from its operands' roles."""

from __future__ import annotations

from collections.abc import Mapping

from layrubnet.engine.program import Instruction, Operand, Slot


def instruction(
    op: str,
    target: str,
    slots: Mapping[str, tuple[Slot, ...]],
    *,
    written: tuple[str, ...] = ("y",),
    also_written: tuple[Operand, ...] = (),
    scratch: int = 0,
    flops: float = 0.0,
    accumulate: bool = False,
    chunk: tuple[int, int] | None = None,
    values: tuple[float, ...] = (),
    shares: tuple[tuple[str, str], ...] = (),
    repeatable: bool = False,
) -> Instruction:
    """Make an instruction; reads and writes follow from the slots (``written``: roles)."""
    reads: dict[str, None] = {}
    writes: dict[str, None] = {}
    given: dict[str, tuple[Slot, ...]] = {}
    for role, operands in slots.items():
        if not operands:
            continue
        given[role] = operands
        result = role in written
        read = not result or (accumulate and role == "dw")
        for operand in operands:
            if operand is not None:
                if result:
                    writes[operand.buffer] = None
                if read:
                    reads[operand.buffer] = None
    for operand in also_written:
        writes[operand.buffer] = None
    return Instruction(
        op,
        target,
        given,
        tuple(reads),
        tuple(writes),
        scratch,
        accumulate,
        chunk,
        values,
        flops,
        shares,
        repeatable,
    )
