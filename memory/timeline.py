"""What lies where and when: a plan read back as lifetimes, for reports and pictures.

Works from the instructions and addresses alone, as the verifier does, so that what it shows is
what will run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from layrubnet.engine.program import Buffer, Instruction, Program
from layrubnet.memory.lifetimes import accesses
from layrubnet.memory.plan import Plan, Schedule

KINDS = {
    "feature": "feature maps",
    "gradient": "gradients",
    "saved": "saved extras",
    "fetched": "fetched back",
    "recomputed": "recomputed",
    "scratch": "scratch",
    "other": "other",
}
"""Kinds of what lies in the arena, with the words for them, in the order of legends."""

PERSISTENT = {
    "param": "parameters",
    "param_diff": "weight gradients",
    "history": "solver history",
    "data": "input batches",
    "state": "statistics",
    "scalars": "scalars",
}
"""Kinds of what survives an iteration."""

_OF_BUFFER = {"data": "feature", "diff": "gradient", "saved": "saved"}


@dataclass(slots=True)
class Life:
    """A buffer's stay at its place: from instruction ``start`` to ``end``, both included.

    ``counted``: the first instruction at which it adds to the memory in use (one after ``start``
    for a result written over its operand's last use would count twice). ``alone``: no other
    buffer ever uses this place.
    """

    name: str
    kind: str
    layer: str
    start: int
    end: int
    offset: int
    nbytes: int
    counted_end: int = 0
    alone: bool = False

    @property
    def origin(self) -> str:
        """The buffer's name in the program (a second instance has a ``~``)."""
        return self.name.partition("~")[0]


@dataclass(frozen=True, slots=True)
class Copy:
    """A transfer: issued at instruction ``start``, waited for at ``end``."""

    op: str
    buffer: str
    nbytes: int
    start: int
    end: int


@dataclass(frozen=True)
class Timeline:
    """One step of a plan. ``turn``: the first instruction of backward."""

    program: Program
    plan: Plan
    instructions: Sequence[Instruction]
    turn: int
    lives: list[Life]
    copies: list[Copy]
    persistent: dict[str, int] = field(default_factory=dict)

    @cached_property
    def in_use(self) -> dict[str, np.ndarray]:
        """Bytes in the arena that hold something needed, by kind, at each instruction."""
        curves = {kind: np.zeros(len(self.instructions) + 1, np.int64) for kind in KINDS}
        for life in self.lives:
            curve = curves[life.kind]
            curve[life.start] += life.nbytes
            curve[life.counted_end + 1] -= life.nbytes
        return {kind: np.cumsum(c)[:-1] for kind, c in curves.items() if c.any()}

    @cached_property
    def total_in_use(self) -> np.ndarray:
        """The sum of :attr:`in_use` over the kinds."""
        curves = list(self.in_use.values())
        return np.sum(curves, axis=0) if curves else np.zeros(len(self.instructions), np.int64)

    @cached_property
    def fullest(self) -> int:
        """The instruction at which most is in use, one that computes if there is such a one."""
        if not self.instructions:
            return 0
        most = np.flatnonzero(self.total_in_use == self.total_in_use.max())
        return next((int(n) for n in most if self.computes(int(n))), int(most[0]))

    def computes(self, position: int) -> bool:
        """Is the instruction neither a copy nor a wait for one?"""
        return self.instructions[position].op not in ("offload", "fetch", "wait")

    def computing(self, position: int) -> Instruction:
        """The first instruction from here on that computes (the last one, if none does)."""
        after = range(position, len(self.instructions))
        return self.instructions[next((n for n in after if self.computes(n)), -1)]


def timeline(program: Program, plan: Plan) -> Timeline:
    """Read one step (forward and backward) of ``plan`` back."""
    schedule = _whole_step(plan)
    own = {id(i) for i in program.sections["forward"]}
    own |= {id(a.forward) for a in program.alternatives.values()}
    instructions = schedule.instructions
    turn = 1 + max((n for n, i in enumerate(instructions) if id(i) in own), default=-1)
    persistent: dict[str, int] = {}
    for name in plan.persistent:
        kind = program.buffers[name].kind
        persistent[kind] = persistent.get(kind, 0) + program.buffers[name].nbytes
    lives = _lives(schedule, plan)
    return Timeline(program, plan, instructions, turn, lives, _copies(schedule), persistent)


def _whole_step(plan: Plan) -> Schedule:
    """The schedule of one step; strategy ``caffe`` has one per section, with equal addresses."""
    if "step_first" in plan.schedules:
        return plan.schedules["step_first"]
    parts = [plan.schedules[n] for n in ("forward", "backward") if n in plan.schedules]
    first = parts[0]
    together = tuple(i for part in parts for i in part.instructions)
    return Schedule(together, first.buffers, first.offsets, first.scratch)


def _lives(schedule: Schedule, plan: Plan) -> list[Life]:
    instructions, buffers = schedule.instructions, schedule.buffers
    fetched = {w for i in instructions if i.op == "fetch" for w in i.writes}
    last = len(instructions) - 1
    lives = []
    for name, (start, end) in accesses(instructions, buffers).items():
        held = plan.kept is not None and name in plan.kept
        kind = "fetched" if name in fetched else _kind(buffers[name])
        lives.append(
            Life(
                name,
                kind,
                buffers[name].layer,
                start,
                last if held else end,
                schedule.offsets[name],
                buffers[name].nbytes,
            )
        )
    for position, offset in schedule.scratch.items():
        i = instructions[position]
        lives.append(Life("scratch", "scratch", i.target, position, position, offset, i.scratch))
    _count_once(lives, instructions)
    _mark_alone(lives)
    return lives


def _kind(buffer: Buffer) -> str:
    return "recomputed" if "~" in buffer.name else _OF_BUFFER.get(buffer.kind, "other")


def _count_once(lives: list[Life], instructions: Sequence[Instruction]) -> None:
    """Where a result is written over its operand, both are there in that instruction: count one."""
    by_name = {life.name: life for life in lives}
    for life in lives:
        life.counted_end = life.end
    for position, instruction in enumerate(instructions):
        for written, read in instruction.shares:
            new, old = by_name.get(written), by_name.get(read)
            if new and old and new.offset == old.offset and old.end == new.start == position:
                old.counted_end = position - 1


def _mark_alone(lives: list[Life]) -> None:
    """Find the buffers whose addresses no other one uses, in one sweep over the addresses."""
    ordered = sorted(lives, key=lambda life: life.offset)
    below = 0
    for n, life in enumerate(ordered):
        above = ordered[n + 1].offset if n + 1 < len(ordered) else life.offset + life.nbytes
        life.alone = below <= life.offset and above >= life.offset + life.nbytes
        below = max(below, life.offset + life.nbytes)


def _copies(schedule: Schedule) -> list[Copy]:
    found = []
    started: dict[str, tuple[int, Instruction]] = {}
    for position, i in enumerate(schedule.instructions):
        if i.op in ("offload", "fetch"):
            started[f"{i.op} {i.target}"] = (position, i)
        elif i.op == "wait" and i.target in started:
            begun, copy = started.pop(i.target)
            nbytes = schedule.buffers[(*copy.reads, *copy.writes)[0]].nbytes
            found.append(Copy(copy.op, copy.target, nbytes, begun, position))
    return found
