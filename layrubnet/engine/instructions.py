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
        buffers = dict.fromkeys(o.buffer for o in operands if o is not None)
        if role in written:
            writes |= buffers
        if role not in written or (accumulate and role == "dw"):
            reads |= buffers
    writes |= dict.fromkeys(o.buffer for o in also_written)
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
