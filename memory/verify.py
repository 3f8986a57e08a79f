"""Check a plan before it runs, without any of the planner's code.

The program says what every instruction must read: which buffer, in which version. The checker
walks the planned instructions with a map of the arena (which bytes hold which version of what)
and makes sure that every read finds it, that nothing is overwritten while a copy uses it, and
that the sizes are what the plan claims.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from layrubnet.engine.program import Instruction, Program
from layrubnet.errors import LayrubError
from layrubnet.memory.plan import Plan, Schedule

_COPIES = ("offload", "fetch")
_ADDED = (*_COPIES, "wait", "recompute")


class PlanError(LayrubError):
    """A plan would compute something wrong: a fault of the planner, never of the user."""


@dataclass(frozen=True)
class Content:
    """What some bytes hold: a version of a buffer of the program."""

    buffer: str
    version: int


def verify(
    program: Program,
    plan: Plan,
    sections: Mapping[str, Sequence[str]],
    external: Collection[str] = (),
) -> None:
    """Raise :class:`PlanError` if a schedule of ``plan`` does not do what ``program`` says.

    ``sections``: the program's sections that each schedule runs, in order.
    """
    _check_persistent(program, plan, external)
    for name, schedule in plan.schedules.items():
        original = [i for s in sections[name] for i in program.sections.get(s, ())]
        _Walk(program, plan, schedule, external, f"schedule {name!r}").run(original)


def _check_persistent(program: Program, plan: Plan, external: Collection[str]) -> None:
    spans = []
    for buffer in program.buffers.values():
        if not buffer.persistent or buffer.name in external:
            continue
        if buffer.name not in plan.persistent:
            raise PlanError(f"persistent buffer {buffer.name!r} has no address")
        begin = plan.persistent[buffer.name]
        spans.append((begin, begin + buffer.nbytes, buffer.name))
    spans.sort()
    for (_, end, first), (begin, _, second) in pairwise(spans):
        if begin < end:
            raise PlanError(f"persistent buffers {first!r} and {second!r} overlap")
    if spans and spans[-1][1] > plan.persistent_bytes:
        raise PlanError(f"persistent buffer {spans[-1][2]!r} reaches into the arena")


class _Memory:
    """Byte ranges of the arena in use, sorted by address, never overlapping."""

    def __init__(self) -> None:
        self.begins: list[int] = []
        self.ranges: list[tuple[int, int, str]] = []  # begin, end, name of the instance

    def write(self, begin: int, end: int, name: str) -> list[str]:
        """Put an instance there; return the names of what it destroyed."""
        k = bisect_left(self.begins, begin)
        if k and self.ranges[k - 1][1] > begin:
            k -= 1
        last = k
        gone = []
        while last < len(self.ranges) and self.ranges[last][0] < end:
            gone.append(self.ranges[last][2])
            last += 1
        self.begins[k:last] = [begin]
        self.ranges[k:last] = [(begin, end, name)]
        return [other for other in gone if other != name]


class _Walk:
    def __init__(
        self,
        program: Program,
        plan: Plan,
        schedule: Schedule,
        external: Collection[str],
        where: str,
    ) -> None:
        self.program, self.plan, self.schedule, self.where = program, plan, schedule, where
        self.external = external
        self.memory = _Memory()
        self.holds: dict[str, Content] = {}
        self.host: dict[str, Content] = {}
        self.versions: dict[str, int] = {}
        self.flying: dict[str, str] = {}  # wait's name of a copy under way -> its instance
        self.busy: dict[str, str] = {}  # instance -> copy under way

    def fail(self, position: int, instruction: Instruction, what: str) -> PlanError:
        return PlanError(what, where=f"{self.where}, instruction {position} ({instruction})")

    def run(self, original: Sequence[Instruction]) -> None:
        """Walk through; ``original`` is what the program wants done, in order."""
        following = iter(original)
        repeated = {(i.op, i.target): i for i in original}
        for position, instruction in enumerate(self.schedule.instructions):
            if instruction.op in _COPIES:
                self._copy(position, instruction)
            elif instruction.op == "wait":
                self._wait(position, instruction)
            elif instruction.op == "recompute":
                first = repeated.get(("forward", instruction.target))
                if first is None or not first.repeatable:
                    raise self.fail(position, instruction, "this cannot be computed again")
                self._compute(position, instruction, first, repeat=True)
            else:
                wanted = next(following, None)
                if wanted is None or (wanted.op, wanted.target) != (
                    instruction.op,
                    instruction.target,
                ):
                    raise self.fail(position, instruction, f"the program wants {wanted} here")
                self._compute(position, instruction, wanted, repeat=False)
        missing = next(following, None)
        if missing is not None:
            raise PlanError(f"the plan leaves out {missing}", where=self.where)
        if self.flying:
            raise PlanError(f"nobody waits for {sorted(self.flying)}", where=self.where)

    # -- instructions ----------------------------------------------------------------------------

    def _compute(
        self, position: int, instruction: Instruction, wanted: Instruction, *, repeat: bool
    ) -> None:
        for mine, theirs in zip(instruction.reads, wanted.reads, strict=True):
            self._read(position, instruction, mine, theirs, repeat=repeat)
        self._check_scratch(position, instruction)
        overwritten: list[str] = []
        for mine, theirs in zip(instruction.writes, wanted.writes, strict=True):
            if not repeat:
                self.versions[theirs] = self.versions.get(theirs, 0) + 1
            overwritten += self._write(position, instruction, mine, theirs)
        allowed = set(instruction.shares)
        operands = set(instruction.reads)
        for name in overwritten:
            if name not in operands:
                continue
            if not any((written, name) in allowed for written in instruction.writes):
                raise self.fail(position, instruction, f"writes over {name!r} while reading it")

    def _transient(self, name: str) -> bool:
        return name in self.schedule.offsets

    def _span(self, position: int, instruction: Instruction, name: str) -> tuple[int, int]:
        if name not in self.schedule.buffers or name not in self.schedule.offsets:
            raise self.fail(position, instruction, f"buffer {name!r} has no address")
        begin = self.schedule.offsets[name]
        end = begin + self.schedule.buffers[name].nbytes
        if begin < self.plan.persistent_bytes or end > self.plan.scratch_offset:
            raise self.fail(position, instruction, f"buffer {name!r} lies outside the arena")
        return begin, end

    def _read(
        self, position: int, instruction: Instruction, mine: str, theirs: str, *, repeat: bool
    ) -> None:
        if not self._transient(mine):
            if mine != theirs:
                raise self.fail(position, instruction, f"reads {mine!r} instead of {theirs!r}")
            self._check_persistent_read(position, instruction, mine, repeat=repeat)
            return
        self._span(position, instruction, mine)
        if self.busy.get(mine, "").startswith("fetch"):
            raise self.fail(position, instruction, f"{mine!r} is still on its way")
        expected = Content(theirs, self.versions.get(theirs, 0))
        if expected.version == 0 and mine == theirs and mine not in self.holds:
            return  # filled from outside before the step
        held = self.holds.get(mine)
        if held != expected:
            raise self.fail(
                position, instruction, f"needs {expected} in {mine!r}, which holds {held}"
            )

    def _check_persistent_read(
        self, position: int, instruction: Instruction, name: str, *, repeat: bool
    ) -> None:
        if name not in self.plan.persistent and name not in self.external:
            raise self.fail(position, instruction, f"buffer {name!r} has no address")
        if repeat and self.versions.get(name, 0):
            raise self.fail(
                position, instruction, f"{name!r} has changed since this was first computed"
            )

    def _write(self, position: int, instruction: Instruction, mine: str, theirs: str) -> list[str]:
        if not self._transient(mine):
            if mine != theirs:
                raise self.fail(position, instruction, f"writes {mine!r} instead of {theirs!r}")
            return []
        begin, end = self._span(position, instruction, mine)
        gone = self.memory.write(begin, end, mine)
        self._destroy(position, instruction, gone)
        if mine in self.busy:
            raise self.fail(position, instruction, f"{mine!r} is in use by {self.busy[mine]}")
        self.holds[mine] = Content(theirs, self.versions.get(theirs, 0))
        return gone

    def _destroy(self, position: int, instruction: Instruction, names: Sequence[str]) -> None:
        for name in names:
            if name in self.busy:
                raise self.fail(
                    position,
                    instruction,
                    f"writes over {name!r} while {self.busy[name]} is under way",
                )
            self.holds.pop(name, None)

    def _check_scratch(self, position: int, instruction: Instruction) -> None:
        offset = self.schedule.scratch.get(position)
        if offset is None:
            if instruction.scratch > self.plan.scratch_bytes:
                raise self.fail(position, instruction, "has less scratch than it needs")
            return
        end = offset + instruction.scratch
        if offset < self.plan.persistent_bytes or end > self.plan.scratch_offset:
            raise self.fail(position, instruction, "its scratch lies outside the arena")
        gone = self.memory.write(offset, end, f"#{position}")
        for name in (*instruction.reads, *instruction.writes):
            if name in gone:
                raise self.fail(position, instruction, f"its scratch overlaps {name!r}")
        self._destroy(position, instruction, gone)

    def _copy(self, position: int, instruction: Instruction) -> None:
        name = instruction.target
        if instruction.op == "offload":
            (instance,) = instruction.reads
            self._span(position, instruction, instance)
            held = self.holds.get(instance)
            if held is None or held != Content(name, self.versions.get(name, 0)):
                raise self.fail(position, instruction, f"{instance!r} holds {held}")
            self.host[name] = held
            if self.schedule.host.get(name, 0) < self.schedule.buffers[instance].nbytes:
                raise self.fail(position, instruction, f"no host memory for {name!r}")
        else:
            (instance,) = instruction.writes
            begin, end = self._span(position, instruction, instance)
            if f"offload {name}" in self.flying:
                raise self.fail(position, instruction, f"{name!r} has not reached the host yet")
            if name not in self.host:
                raise self.fail(position, instruction, f"{name!r} is not on the host")
            self._destroy(position, instruction, self.memory.write(begin, end, instance))
            self.holds[instance] = self.host[name]
        key = f"{instruction.op} {name}"
        self.flying[key] = instance
        self.busy[instance] = key

    def _wait(self, position: int, instruction: Instruction) -> None:
        instance = self.flying.pop(instruction.target, None)
        if instance is None:
            raise self.fail(position, instruction, "waits for a copy that is not under way")
        del self.busy[instance]
