"""Walk through a planned schedule with a map of the arena: which bytes hold which version of what.

The program says what every instruction must read: which buffer, in which version. The walk makes
sure that every read finds it, that nothing is overwritten while a copy uses it, and that each
instruction is the one the program wants, on the right operands; or a layer's alternative, which is
taken in forward and in backward or not at all.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from layrubnet.engine.program import Buffer, Instruction, Program, Slot
from layrubnet.errors import LayrubError
from layrubnet.memory.plan import Plan, Schedule

_COPIES = ("offload", "fetch")


class PlanError(LayrubError):
    """A plan would compute something wrong: a fault of the planner, never of the user."""


class Content(NamedTuple):
    """What some bytes hold: a version of a buffer of the program (0: from before the start)."""

    buffer: str
    version: int

    def __str__(self) -> str:
        return f"{self.buffer!r} version {self.version}"


class Memory:
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


_Span = tuple[int, int]


def _overlap(a: _Span, b: _Span) -> bool:
    return a[0] < b[1] and b[0] < a[1]


class Walk:
    """One schedule; ``run`` raises :class:`PlanError` at the first fault."""

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
        self.buffers: Mapping[str, Buffer] = {
            **program.buffers,
            **{a.extra.name: a.extra for a in program.alternatives.values()},
        }
        self.compact: set[str] = set()
        """Layers whose alternative ran in forward and not yet in backward."""
        self.spans = {
            n: (schedule.offsets[n], schedule.offsets[n] + b.nbytes)
            for n, b in schedule.buffers.items()
        }
        self.suited: set[tuple[str, str]] = set()
        self.memory = Memory()
        self.holds: dict[str, Content] = {}
        self.host: dict[str, Content] = {}
        self.versions: dict[str, int] = {}
        self.done: dict[str, dict[str, int]] = {}
        """By layer: the versions that its forward read and wrote."""
        self.flying: dict[str, str] = {}  # wait's name of a copy under way -> its instance
        self.busy: dict[str, str] = {}  # instance -> copy under way
        self.position = 0
        self.now: Instruction | None = None

    def fail(self, what: str) -> PlanError:
        """The error, with the place."""
        return PlanError(what, where=f"{self.where}, instruction {self.position} ({self.now})")

    def run(self, original: Sequence[Instruction]) -> None:
        """Walk through; ``original`` is what the program wants done, in order."""
        self._fill_from_outside(original)
        following = iter(original)
        forwards = {i.target: i for i in original if i.op == "forward"}
        for position, instruction in enumerate(self.schedule.instructions):
            self.position, self.now = position, instruction
            if instruction.op in _COPIES:
                self._copy(instruction)
            elif instruction.op == "wait":
                self._wait(instruction)
            elif instruction.op == "recompute":
                first = forwards.get(instruction.target)
                if first is None or not first.repeatable or first.target not in self.done:
                    raise self.fail("this cannot be computed again")
                self._compute(instruction, first, self.done[first.target])
            else:
                wanted = next(following, None)
                if wanted is None or (wanted.op, wanted.target) != (
                    instruction.op,
                    instruction.target,
                ):
                    raise self.fail(f"the program wants {wanted} here")
                self._compute(instruction, self._form(instruction, wanted), None)
        missing = next(following, None)
        if missing is not None:
            raise PlanError(f"the plan leaves out {missing}", where=self.where)
        if self.flying:
            raise PlanError(f"nobody waits for {sorted(self.flying)}", where=self.where)
        if self.compact:
            raise PlanError(
                f"compact forms without a use: {sorted(self.compact)}", where=self.where
            )
        self._check_kept()

    def _fill_from_outside(self, original: Sequence[Instruction]) -> None:
        """What is read before anything writes it was there before the schedule started."""
        written: set[str] = set()
        for instruction in original:
            for name in instruction.reads:
                if name in self.spans and name not in written:
                    written.add(name)
                    if self.memory.write(*self.spans[name], name):
                        raise PlanError(f"{name!r} overlaps another input", where=self.where)
                    self.holds[name] = Content(name, 0)
            written.update(instruction.writes)

    def _check_kept(self) -> None:
        for name in self.plan.kept or ():
            if name in self.spans:
                wanted = Content(name, self.versions.get(name, 0))
                if self.holds.get(name) != wanted:
                    raise PlanError(
                        f"{name!r} should stay readable and is overwritten", where=self.where
                    )

    def _form(self, instruction: Instruction, wanted: Instruction) -> Instruction:
        """What the program wants, or the alternative to it if that is what the plan runs."""
        alternative = self.program.alternatives.get(wanted.target)
        if alternative is None or wanted.op not in ("forward", "backward_data"):
            return wanted
        forward = wanted.op == "forward"
        other = alternative.forward if forward else alternative.backward_data
        taken = len(instruction.slots.get("saved", ())) == len(other.slots["saved"])
        if not forward and taken != (wanted.target in self.compact):
            raise self.fail("one form in forward, another in backward")
        if taken:
            (self.compact.add if forward else self.compact.remove)(wanted.target)
        return other if taken else wanted

    # -- computing -------------------------------------------------------------------------------

    def _compute(
        self, instruction: Instruction, wanted: Instruction, past: Mapping[str, int] | None
    ) -> None:
        """``past``: the versions that a recomputation must read and write again."""
        names = self._match(instruction, wanted)
        versions = self.versions if past is None else past
        reads = {n: self._read(names[n], n, versions.get(n, 0)) for n in wanted.reads}
        if past is None:
            for name in wanted.writes:
                self.versions[name] = self.versions.get(name, 0) + 1
            if wanted.op == "forward" and wanted.repeatable:
                operands = (*wanted.reads, *wanted.writes)
                before = {n: self.versions.get(n, 0) - (n in wanted.writes) for n in wanted.reads}
                self.done[wanted.target] = {n: self.versions.get(n, 0) for n in operands} | before
        writes = {n: self._target(names[n], n, past is not None) for n in wanted.writes}
        self._check_overlaps(wanted, reads, writes)
        self._check_scratch(instruction, [*reads.items(), *writes.items()])
        for name, span in writes.items():
            if span is not None:
                self._write(names[name], span, Content(name, versions.get(name, 0)))

    def _match(self, instruction: Instruction, wanted: Instruction) -> dict[str, str]:
        """The planned names of the program's buffers, if all else is as the program wants it."""
        operands = (*wanted.reads, *wanted.writes)
        if instruction is wanted:
            return {name: name for name in operands}
        mine = (*instruction.reads, *instruction.writes)
        names = dict(zip(operands, mine, strict=False))
        if (
            len(instruction.reads) != len(wanted.reads)
            or tuple(map(names.get, operands)) != mine
            or _details(instruction) != _details(wanted)
            or instruction.slots.keys() != wanted.slots.keys()
            or not all(_same(instruction.slots[r], s, names) for r, s in wanted.slots.items())
        ):
            raise self.fail(f"the program wants {wanted} here, with its operands")
        return names

    def _suits(self, mine: str, theirs: str) -> None:
        """Is the instance as large as the buffer it stands for, and of its type?"""
        has, wants = self.schedule.buffers[mine], self.buffers[theirs]
        if has is wants or (mine, theirs) in self.suited:
            return
        if (has.dtype, math.prod(has.shape)) != (wants.dtype, math.prod(wants.shape)):
            raise self.fail(f"{mine!r} ({has.dtype} {has.shape}) cannot hold {theirs!r}")
        self.suited.add((mine, theirs))

    def _read(self, mine: str, theirs: str, version: int) -> _Span | None:
        """Check that the instance holds that version; return where it lies."""
        span = self.spans.get(mine)
        if span is None:
            self._check_fixed(mine, theirs)
            if self.versions.get(theirs, 0) != version:
                raise self.fail(f"{theirs!r} has changed since this was first computed")
            return None
        self._suits(mine, theirs)
        if self.busy.get(mine, "").startswith("fetch"):
            raise self.fail(f"{mine!r} is still on its way")
        held = self.holds.get(mine)
        if held != (theirs, version):
            wants = Content(theirs, version)
            raise self.fail(f"needs {wants} in {mine!r}, which holds {held or 'nothing'}")
        return span

    def _target(self, mine: str, theirs: str, repeat: bool) -> _Span | None:
        span = self.spans.get(mine)
        if span is None:
            self._check_fixed(mine, theirs)
            if repeat:
                raise self.fail(f"a repetition writes {theirs!r}, which outlives the step")
            return None
        self._suits(mine, theirs)
        return span

    def _check_fixed(self, mine: str, theirs: str) -> None:
        """A buffer without a place in the arena is a persistent one, under its own name."""
        if mine not in self.plan.persistent and mine not in self.external:
            raise self.fail(f"buffer {mine!r} has no address")
        if mine != theirs:
            raise self.fail(f"uses {mine!r} instead of {theirs!r}")

    def _check_overlaps(
        self,
        wanted: Instruction,
        reads: Mapping[str, _Span | None],
        writes: Mapping[str, _Span | None],
    ) -> None:
        """A result may lie over an operand only where the program allows it, and then exactly."""
        results = [(name, span) for name, span in writes.items() if span is not None]
        for k, (name, span) in enumerate(results):
            for other, place in reads.items():
                if place is None or other == name or not _overlap(span, place):
                    continue
                if span != place or (name, other) not in wanted.shares:
                    raise self.fail(f"writes {name!r} over {other!r} while reading it")
            for other, place in results[:k]:
                if _overlap(span, place):
                    raise self.fail(f"its results {name!r} and {other!r} overlap")

    def _check_scratch(
        self, instruction: Instruction, operands: Sequence[tuple[str, _Span | None]]
    ) -> None:
        begin = self.schedule.scratch.get(self.position)
        if begin is None:
            if instruction.scratch > self.plan.scratch_bytes:
                raise self.fail("has less scratch than it needs")
            return
        # The device's own grant counts as well: an instruction may take that much in any case.
        span = (begin, begin + max(instruction.scratch, self.plan.scratch_bytes))
        if span[1] > self.plan.nbytes:
            raise self.fail("its scratch ends outside the memory")
        for name, place in operands:
            if place is not None and _overlap(span, place):
                raise self.fail(f"its scratch overlaps {name!r}")
        self._destroy(self.memory.write(*span, f"#{self.position}"))

    def _write(self, instance: str, span: _Span, content: Content) -> None:
        self._destroy(self.memory.write(*span, instance))
        if instance in self.busy:
            raise self.fail(f"writes {instance!r} while {self.busy[instance]} is under way")
        self.holds[instance] = content

    def _destroy(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self.busy:
                raise self.fail(f"writes over {name!r} while {self.busy[name]} is under way")
            self.holds.pop(name, None)

    # -- copies ----------------------------------------------------------------------------------

    def _copy(self, instruction: Instruction) -> None:
        name, op = instruction.target, instruction.op
        operands = instruction.reads if op == "offload" else instruction.writes
        if len(operands) != 1 or len(instruction.reads) + len(instruction.writes) != 1:
            raise self.fail("a copy has one operand")
        (instance,) = operands
        span = self.spans.get(instance)
        if span is None or name not in self.buffers:
            raise self.fail("copies something that has no place in the arena")
        self._suits(instance, name)
        if instance in self.busy or any(f"{other} {name}" in self.flying for other in _COPIES):
            raise self.fail(f"another copy of {name!r} is under way")
        if op == "offload":
            held = self.holds.get(instance)
            if held != (name, self.versions.get(name, 0)):
                raise self.fail(f"{instance!r} holds {held or 'nothing'}")
            if self.schedule.host.get(name, 0) < span[1] - span[0]:
                raise self.fail(f"no host memory for {name!r}")
            self.host[name] = held
        else:
            if name not in self.host:
                raise self.fail(f"{name!r} is not on the host")
            self._write(instance, span, self.host[name])
        self.flying[f"{op} {name}"] = instance
        self.busy[instance] = f"{op} {name}"

    def _wait(self, instruction: Instruction) -> None:
        instance = self.flying.pop(instruction.target, None)
        if instance is None:
            raise self.fail("waits for a copy that is not under way")
        del self.busy[instance]


def _details(instruction: Instruction) -> tuple[object, ...]:
    return instruction.scratch, instruction.accumulate, instruction.chunk, instruction.values


def _same(mine: Sequence[Slot], theirs: Sequence[Slot], names: Mapping[str, str]) -> bool:
    """Do planned operands look at the program's, under their planned names?"""
    if len(mine) != len(theirs):
        return False
    for a, b in zip(mine, theirs, strict=True):
        if a is None or b is None:
            if a is not b:
                return False
        elif names[b.buffer] != a.buffer or (
            a is not b and (a.shape, a.dtype, a.extent) != (b.shape, b.dtype, b.extent)
        ):
            return False
    return True
