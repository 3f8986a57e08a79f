"""Change an iteration so that chosen buffers leave the device, or are computed again.

A chosen buffer dies after its last use in forward. In backward a second instance of it, named
``<buffer>~``, is fetched from the host or recomputed before the first use there. What a
recomputation reads is made available the same way, recursively. For a buffer in compact form two
instructions give way to their alternatives; it then dies as soon as nothing reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from layrubnet.engine.program import Alternative, Buffer, Instruction, Operand, Slot
from layrubnet.memory.copies import Pace, again, with_copies
from layrubnet.memory.cost import CostModel


class Choice(Enum):
    """What happens to a buffer between forward and backward."""

    KEEP = "keep"
    OFFLOAD = "offload"
    RECOMPUTE = "recompute"
    COMPACT = "compact"


@dataclass(frozen=True)
class Rewritten:
    """The instructions of a changed iteration, their transient buffers, and host copies."""

    instructions: tuple[Instruction, ...]
    buffers: Mapping[str, Buffer]
    host: Mapping[str, int]


def rewrite(
    forward: Sequence[Instruction],
    backward: Sequence[Instruction],
    buffers: Mapping[str, Buffer],
    choices: Mapping[str, Choice],
    pace: Pace,
    cost: CostModel,
    compacts: Mapping[str, Alternative] | None = None,
) -> Rewritten:
    """Return the iteration ``forward`` + ``backward`` with ``choices`` carried out.

    ``buffers``: the transient ones. Buffers without a choice are kept. ``compacts``: what can have
    a compact form, and the alternative that brings it.
    """
    if not choices:
        instructions = (*forward, *backward)
        return Rewritten(instructions, _used(instructions, buffers), {})
    taken = [a for n, a in (compacts or {}).items() if choices.get(n) is Choice.COMPACT]
    buffers = {**buffers, **{a.extra.name: a.extra for a in taken}}
    other = {(i.op, i.target): i for a in taken for i in (a.forward, a.backward_data)}
    builder = _Backward(forward, buffers, choices)
    for instruction in backward:
        builder.add(other.get((instruction.op, instruction.target), instruction))
    base = [*(other.get((i.op, i.target), i) for i in forward), *builder.out]
    instructions = with_copies(base, len(forward), builder.fetches, buffers, pace, cost)
    made = {**buffers, **builder.made}
    host = {name: buffers[name].nbytes for _, name in builder.fetches}
    return Rewritten(instructions, _used(instructions, made), host)


def _used(instructions: Iterable[Instruction], buffers: Mapping[str, Buffer]) -> dict[str, Buffer]:
    found: dict[str, Buffer] = {}
    for instruction in instructions:
        for name in (*instruction.reads, *instruction.writes):
            if name in buffers and name not in found:
                found[name] = buffers[name]
    return found


class _Backward:
    """Builds the new backward: recomputations in place, fetches by position."""

    def __init__(
        self,
        forward: Sequence[Instruction],
        buffers: Mapping[str, Buffer],
        choices: Mapping[str, Choice],
    ) -> None:
        self.buffers = buffers
        here = (Choice.KEEP, Choice.COMPACT)
        self.choices = {n: c for n, c in choices.items() if c not in here}
        self.writer = {n: i for i in forward for n in i.writes if n in self.choices}
        self.out: list[Instruction] = []
        self.fetches: list[tuple[int, str]] = []
        self.made: dict[str, Buffer] = {}
        self.available: set[str] = set()
        self._thrown_away = 0

    def add(self, instruction: Instruction) -> None:
        """Append a backward instruction, after all that it needs."""
        chosen = [name for name in instruction.reads if name in self.choices]
        for name in chosen:
            self._ensure(name)
        if chosen:
            instruction = renamed(instruction, {name: again(name) for name in chosen})
        self.out.append(instruction)

    def _ensure(self, wanted: str) -> None:
        stack = [(wanted, False)]
        while stack:
            name, inputs_there = stack.pop()
            if name in self.available:
                continue
            if self.choices[name] is Choice.OFFLOAD:
                self.fetches.append((len(self.out), name))
                self._make(name, again(name))
            elif inputs_there:
                self._recompute(name)
            else:
                stack.append((name, True))
                stack += [(r, False) for r in self.writer[name].reads if r in self.choices]

    def _recompute(self, name: str) -> None:
        instruction = self.writer[name]
        names = {read: again(read) for read in instruction.reads if read in self.choices}
        for written in instruction.writes:
            if self.choices.get(written) is Choice.RECOMPUTE and written not in self.available:
                names[written] = again(written)
                self._make(written, again(written))
            else:  # it is still there, or comes back from the host: this copy is not wanted
                self._thrown_away += 1
                names[written] = f"{written}~{self._thrown_away}"
                self.made[names[written]] = replace(self.buffers[written], name=names[written])
        self.out.append(renamed(instruction, names, "recompute"))

    def _make(self, name: str, instance: str) -> None:
        self.available.add(name)
        self.made[instance] = replace(self.buffers[name], name=instance)


def renamed(
    instruction: Instruction, names: Mapping[str, str], op: str | None = None
) -> Instruction:
    """The same instruction on other buffers (and with another ``op``)."""
    i = instruction
    return Instruction(
        op or i.op,
        i.target,
        {role: _swapped(slot, names) for role, slot in i.slots.items()},
        tuple([names.get(n, n) for n in i.reads]),
        tuple([names.get(n, n) for n in i.writes]),
        i.scratch,
        i.accumulate,
        i.chunk,
        i.values,
        i.flops,
        tuple([(names.get(w, w), names.get(r, r)) for w, r in i.shares]),
        i.repeatable,
    )


def _swapped(slot: tuple[Slot, ...], names: Mapping[str, str]) -> tuple[Slot, ...]:
    if not any(o is not None and o.buffer in names for o in slot):
        return slot
    return tuple(
        o
        if o is None or o.buffer not in names
        else Operand(names[o.buffer], o.shape, o.dtype, o.extent)
        for o in slot
    )
