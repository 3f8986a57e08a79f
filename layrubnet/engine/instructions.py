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
) -> Instruction:
    """Make an instruction; reads and writes follow from the slots (``written``: roles)."""
    writes = {o.buffer: None for role in written for o in slots.get(role, ()) if o is not None}
    writes.update({o.buffer: None for o in also_written})
    reads = {
        o.buffer: None
        for role, operands in slots.items()
        if role not in written or (accumulate and role == "dw")
        for o in operands
        if o is not None
    }
    return Instruction(
        op,
        target,
        {k: v for k, v in slots.items() if v},
        tuple(reads),
        tuple(writes),
        scratch,
        accumulate,
        chunk,
        values,
        flops,
    )
