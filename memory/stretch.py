"""Use spare memory to keep copies from holding up the computation.

Given an iteration whose copies are waited for on the spot (the least memory), each wait for an
offload moves later and each fetch moves earlier, until the copy is done or the memory between is
needed: nothing ever exceeds the ``room``. One walk forward for the offloads and, by the same rule
with time reversed, one walk backward for the fetches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from layrubnet.engine.program import Buffer, Instruction
from layrubnet.memory.cost import CostModel
from layrubnet.memory.lifetimes import Slot
from layrubnet.memory.plan import aligned

_Timed = list[tuple[Instruction, int]]
"""Instructions with the bytes live at each."""


def profile(slots: Iterable[Slot], count: int) -> list[int]:
    """Bytes live at each of ``count`` instructions."""
    changes = [0] * (count + 1)
    for slot in slots:
        changes[slot.start] += slot.nbytes
        changes[slot.end + 1] -= slot.nbytes
    return list(accumulate(changes[:count]))


def stretch(
    instructions: Sequence[Instruction],
    slots: Iterable[Slot],
    buffers: Mapping[str, Buffer],
    room: int,
    cost: CostModel,
) -> tuple[Instruction, ...]:
    """Return the same instructions with copies that take as much time as ``room`` bytes allow."""
    live = profile(slots, len(instructions))
    later = _later_waits(list(zip(instructions, live, strict=True)), buffers, room, cost)
    return tuple(_earlier_fetches(later, buffers, room, cost))


class _Queue:
    """Copies under way, first in, first out, and the time of the computation beside them."""

    def __init__(self, op: str, buffers: Mapping[str, Buffer], cost: CostModel) -> None:
        self.op, self.buffers, self.cost = op, buffers, cost
        self.now = self.free = 0.0
        self.nbytes = 0
        self.names: set[str] = set()
        self._copies: deque[tuple[Instruction, str, int, float]] = deque()

    def start(self, instruction: Instruction, name: str) -> None:
        """Let the copy of ``name`` begin; ``instruction`` is what will end it."""
        nbytes = self.buffers[name].nbytes
        self.free = max(self.free, self.now) + self.cost.copy_seconds(self.op, nbytes)
        self._copies.append((instruction, name, aligned(nbytes), self.free))
        self.nbytes += aligned(nbytes)
        self.names.add(name)

    def finished(self, live: int, room: int, needed: str | None) -> list[Instruction]:
        """End what is done, what must make room for ``live`` bytes, and all up to ``needed``."""
        ended = []
        while self._copies and (
            self._copies[0][3] <= self.now or live + self.nbytes > room or needed in self.names
        ):
            instruction, name, nbytes, done = self._copies.popleft()
            self.now = max(self.now, done)
            self.nbytes -= nbytes
            self.names.discard(name)
            ended.append(instruction)
        return ended

    def rest(self) -> list[Instruction]:
        """What is still under way at the end."""
        return [copy[0] for copy in self._copies]


def _later_waits(
    timed: _Timed, buffers: Mapping[str, Buffer], room: int, cost: CostModel
) -> _Timed:
    queue = _Queue("offload", buffers, cost)
    waits = {i.target.removeprefix("offload "): i for i, _ in timed if _waits_for(i, "offload")}
    out: _Timed = []
    for instruction, live in timed:
        if _waits_for(instruction, "offload"):
            continue
        needed = instruction.target if instruction.op == "fetch" else None
        before = queue.nbytes
        for wait in queue.finished(live, room, needed):
            out.append((wait, live + before))
        out.append((instruction, live + queue.nbytes))
        if instruction.op == "offload":
            queue.start(waits[instruction.target], instruction.target)
        queue.now += cost.seconds(instruction)
    out += [(wait, queue.nbytes) for wait in queue.rest()]
    return out


def _earlier_fetches(
    timed: _Timed, buffers: Mapping[str, Buffer], room: int, cost: CostModel
) -> Iterable[Instruction]:
    queue = _Queue("fetch", buffers, cost)
    fetches = {i.target: i for i, _ in timed if i.op == "fetch"}
    out: list[Instruction] = []
    for instruction, live in reversed(timed):
        if instruction.op == "fetch":
            continue
        waited = instruction.target.removeprefix("offload ")
        needed = waited if _waits_for(instruction, "offload") else None
        out += queue.finished(live, room, needed)
        out.append(instruction)
        if _waits_for(instruction, "fetch"):
            name = instruction.target.removeprefix("fetch ")
            queue.start(fetches[name], name)
        queue.now += cost.seconds(instruction)
    return reversed(out + queue.rest())


def _waits_for(instruction: Instruction, op: str) -> bool:
    return instruction.op == "wait" and instruction.target.startswith(f"{op} ")
