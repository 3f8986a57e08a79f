"""When each transient buffer holds something that is still needed, and who may share a place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from layrubnet.engine.program import Buffer, Instruction
from layrubnet.memory.plan import aligned


@dataclass(slots=True)
class Slot:
    """A place needed from instruction ``start`` to ``end`` (both included) by some buffers.

    Usually one buffer; several where an instruction writes its result over its operand.
    """

    start: int
    end: int
    nbytes: int
    names: list[str]


def accesses(
    instructions: Sequence[Instruction], buffers: Mapping[str, Buffer]
) -> dict[str, list[int]]:
    """First and last position of each buffer, as ``[first, last]``.

    A buffer that is read before anything writes it was filled from outside: it lives from the
    beginning.
    """
    spans: dict[str, list[int]] = {}
    for position, instruction in enumerate(instructions):
        for name in instruction.reads:
            if name in buffers:
                span = spans.get(name)
                if span is None:
                    spans[name] = [0, position]
                else:
                    span[1] = position
        for name in instruction.writes:
            if name in buffers:
                span = spans.get(name)
                if span is None:
                    spans[name] = [position, position]
                else:
                    span[1] = position
    return spans


def slots(
    instructions: Sequence[Instruction],
    buffers: Mapping[str, Buffer],
    *,
    keep: Iterable[str] = (),
    base_scratch: int = 0,
    share: bool = True,
) -> list[Slot]:
    """The places a schedule needs: lifetimes merged where results may overwrite operands.

    ``keep``: buffers to hold until the end. Scratch beyond ``base_scratch`` is a place for one
    instruction, named ``#<position>``.
    """
    spans = accesses(instructions, buffers)
    last = len(instructions) - 1
    for name in keep:
        if name in spans:
            spans[name][1] = last
    made = {
        name: Slot(start, end, aligned(buffers[name].nbytes), [name])
        for name, (start, end) in spans.items()
    }
    if share:
        _merge(instructions, made)
    found = list({id(slot): slot for slot in made.values()}.values())
    for position, instruction in enumerate(instructions):
        if instruction.scratch > base_scratch:
            size = aligned(instruction.scratch)
            found.append(Slot(position, position, size, [f"#{position}"]))
    return found


def _merge(instructions: Sequence[Instruction], made: dict[str, Slot]) -> None:
    """Join a result with the operand it may overwrite, if that operand dies there."""
    for position, instruction in enumerate(instructions):
        for written, read in instruction.shares:
            new, old = made.get(written), made.get(read)
            if (
                new is not None
                and old is not None
                and new is not old
                and old.end == position
                and new.start == position
                and new.nbytes == old.nbytes
            ):
                old.end = new.end
                old.names += new.names
                for name in new.names:
                    made[name] = old


def peak(slots_: Iterable[Slot]) -> tuple[int, int]:
    """Bytes at the fullest instruction, and its position: no placement can need less."""
    changes: dict[int, int] = {}
    for slot in slots_:
        changes[slot.start] = changes.get(slot.start, 0) + slot.nbytes
        changes[slot.end + 1] = changes.get(slot.end + 1, 0) - slot.nbytes
    now = best = where = 0
    for position in sorted(changes):
        now += changes[position]
        if now > best:
            best, where = now, position
    return best, where
