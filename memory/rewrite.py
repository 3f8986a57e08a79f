"""Change an iteration so that chosen buffers leave the device, or are computed again.

A chosen buffer dies after its last use in forward. In backward a second instance of it, named
``<buffer>~``, is fetched from the host or recomputed before the first use there. What a
recomputation reads is made available the same way, recursively.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from layrubnet.engine.program import Buffer, Instruction, Operand, Slot
from layrubnet.memory.cost import CostModel


class Choice(Enum):
    """What happens to a buffer between forward and backward."""

    KEEP = "keep"
    OFFLOAD = "offload"
    RECOMPUTE = "recompute"


@dataclass(frozen=True)
class Pace:
    """How early copies are waited for and started, in instructions.

    ``lag``: how many instructions an offload may run beside before its memory is needed back;
    ``lead``: how many before its use a fetch starts. ``None``: as many as the copy needs by the
    cost model, so that nothing stalls.
    """

    lag: int | None = None
    lead: int | None = None


@dataclass(frozen=True)
class Rewritten:
    """The instructions of a changed iteration, their transient buffers, and host copies."""

    instructions: tuple[Instruction, ...]
    buffers: Mapping[str, Buffer]
    host: Mapping[str, int]


def again(buffer: str) -> str:
    """The name of a buffer's second instance."""
    return f"{buffer}~"


def rewrite(
    forward: Sequence[Instruction],
    backward: Sequence[Instruction],
    buffers: Mapping[str, Buffer],
    choices: Mapping[str, Choice],
    pace: Pace,
    cost: CostModel,
) -> Rewritten:
    """Return the iteration ``forward`` + ``backward`` with ``choices`` carried out.

    ``buffers``: the transient ones. Buffers without a choice are kept.
    """
    if not choices:
        instructions = (*forward, *backward)
        return Rewritten(instructions, _used(instructions, buffers), {})
    builder = _Backward(forward, buffers, choices)
    for instruction in backward:
        builder.add(instruction)
    base = [*forward, *builder.out]
    inserted = _copies(base, len(forward), builder.fetches, buffers, pace, cost)
    instructions = tuple(_merge(base, inserted))
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
        self.choices = {n: c for n, c in choices.items() if c is not Choice.KEEP}
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
        self.out.append(replace(renamed(instruction, names), op="recompute"))

    def _make(self, name: str, instance: str) -> None:
        self.available.add(name)
        self.made[instance] = replace(self.buffers[name], name=instance)


def renamed(instruction: Instruction, names: Mapping[str, str]) -> Instruction:
    """The same instruction on other buffers."""

    def swap(slot: Slot) -> Slot:
        if slot is None or slot.buffer not in names:
            return slot
        return Operand(names[slot.buffer], slot.shape, slot.dtype, slot.extent)

    return replace(
        instruction,
        slots={role: tuple(swap(s) for s in slot) for role, slot in instruction.slots.items()},
        reads=tuple(names.get(n, n) for n in instruction.reads),
        writes=tuple(names.get(n, n) for n in instruction.writes),
        shares=tuple((names.get(w, w), names.get(r, r)) for w, r in instruction.shares),
    )


# -- copies --------------------------------------------------------------------------------------

_Inserted = dict[int, list[tuple[int, Instruction]]]
"""Before the instruction with this index: (rank among those inserted there, instruction)."""


def _copies(
    base: Sequence[Instruction],
    turn: int,
    fetches: Sequence[tuple[int, str]],
    buffers: Mapping[str, Buffer],
    pace: Pace,
    cost: CostModel,
) -> _Inserted:
    """Offloads after the last use in forward, fetches before the first in backward, waits."""
    wanted = {name for _, name in fetches}
    last_use: dict[str, int] = {}
    for position in range(turn):
        for name in (*base[position].reads, *base[position].writes):
            if name in wanted:
                last_use[name] = position
    clock = _clock(base, cost) if pace.lag is None or pace.lead is None else []
    inserted: _Inserted = {}

    def insert(index: int, rank: int, instruction: Instruction) -> None:
        inserted.setdefault(index, []).append((rank, instruction))

    free = 0.0
    out_of_the_way: dict[str, int] = {}
    for name, position in sorted(last_use.items(), key=lambda item: item[1]):
        insert(position + 1, 1, _copy("offload", name, buffers[name]))
        if pace.lag is None:
            free = max(free, clock[position + 1]) + cost.copy_seconds(
                "offload", buffers[name].nbytes
            )
            until = _first_at(clock, free, position + 1)
        else:
            until = position + 1 + pace.lag
        until = min(until, turn)
        out_of_the_way[name] = until
        insert(until, 2 if until == position + 1 else 0, _wait("offload", name, name))
    limit = float("inf")
    for offset, name in sorted(fetches, reverse=True):
        needed = turn + offset
        if pace.lead is None:
            begin = min(limit, clock[needed]) - cost.copy_seconds("fetch", buffers[name].nbytes)
            limit = begin
            index = _last_at(clock, begin)
        else:
            index = needed - pace.lead
        index = min(max(index, turn if pace.lead is not None else 0, out_of_the_way[name]), needed)
        insert(index, 3, _copy("fetch", name, buffers[name]))
        insert(needed, 4, _wait("fetch", name, again(name)))
    return inserted


def _clock(base: Sequence[Instruction], cost: CostModel) -> list[float]:
    """The time at which each instruction starts if nothing ever waits; one more for the end."""
    times = [0.0]
    for instruction in base:
        times.append(times[-1] + cost.seconds(instruction))
    return times


def _first_at(clock: Sequence[float], time: float, start: int) -> int:
    """The first index from ``start`` on that begins at or after ``time``."""
    return min(bisect_left(clock, time, lo=start), len(clock) - 1)


def _last_at(clock: Sequence[float], time: float) -> int:
    """The last index that begins at or before ``time`` (0 if none does)."""
    return max(0, bisect_right(clock, time) - 1)


def _copy(op: str, name: str, buffer: Buffer) -> Instruction:
    operand = Operand(name if op == "offload" else again(name), buffer.shape, buffer.dtype)
    if op == "offload":
        return Instruction(op, name, {"x": (operand,)}, reads=(operand.buffer,))
    return Instruction(op, name, {"y": (operand,)}, writes=(operand.buffer,))


def _wait(op: str, name: str, buffer: str) -> Instruction:
    # Reading the buffer here holds its memory until the copy is done.
    return Instruction("wait", f"{op} {name}", reads=(buffer,))


def _merge(base: Sequence[Instruction], inserted: _Inserted) -> Iterable[Instruction]:
    for index in range(len(base) + 1):
        for _, instruction in sorted(inserted.get(index, ()), key=lambda item: item[0]):
            yield instruction
        if index < len(base):
            yield base[index]
