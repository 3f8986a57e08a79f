"""Put the copies of an iteration, and the waits for them, between its instructions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from layrubnet.engine.program import Buffer, Instruction, Operand
from layrubnet.memory.cost import CostModel


@dataclass(frozen=True)
class Pace:
    """How early copies are waited for and started, in instructions.

    ``lag``: how many instructions an offload may run beside before its memory is needed back;
    ``lead``: how many before its use a fetch starts. ``None``: as many as the copy needs by the
    cost model, so that nothing stalls.
    """

    lag: int | None = None
    lead: int | None = None


def again(buffer: str) -> str:
    """The name of a buffer's second instance."""
    return f"{buffer}~"


_Inserted = dict[int, list[tuple[int, Instruction]]]
"""Before the instruction with this index: (rank among those inserted there, instruction)."""


def with_copies(
    base: Sequence[Instruction],
    turn: int,
    fetches: Sequence[tuple[int, str]],
    buffers: Mapping[str, Buffer],
    pace: Pace,
    cost: CostModel,
) -> tuple[Instruction, ...]:
    """Offload after the last use in forward, fetch before the first in backward, wait for both.

    ``turn``: where backward begins; ``fetches``: where in backward each buffer is needed.
    """
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
    return tuple(_merge(base, inserted))


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
        if index in inserted:
            for _, instruction in sorted(inserted[index], key=lambda item: item[0]):
                yield instruction
        if index < len(base):
            yield base[index]
