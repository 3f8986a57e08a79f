"""Planted faults: changes of a plan, each of which would compute something wrong.

A mutation takes a plan and a random generator, and returns the changed plan, or None where the
plan has nothing of the kind.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace

from layrubnet.engine.program import Buffer, Instruction, Operand
from layrubnet.memory.plan import Plan, Schedule
from layrubnet.memory.rewrite import renamed

Mutation = Callable[[Plan, random.Random], Plan | None]
PASS = "step_first"
MUTATIONS: dict[str, Mutation] = {}
COPIES = ("offload", "fetch", "wait")


def mutation(change: Mutation) -> Mutation:
    """Register a planted fault."""
    MUTATIONS[change.__name__] = change
    return change


def changed(plan: Plan, **fields: object) -> Plan:
    """The plan with another pass."""
    schedule = replace(plan.schedules[PASS], **fields)  # type: ignore[arg-type]
    return replace(plan, schedules={**plan.schedules, PASS: schedule})


def places(schedule: Schedule, *ops: str) -> list[int]:
    """Positions of instructions with these operations."""
    return [p for p, i in enumerate(schedule.instructions) if i.op in ops]


def edited(plan: Plan, instructions: Iterable[Instruction]) -> Plan:
    """The plan with other instructions; scratch stays with its instruction."""
    old = plan.schedules[PASS]
    new = tuple(instructions)
    by_instruction = {id(old.instructions[p]): offset for p, offset in old.scratch.items()}
    scratch = {p: by_instruction[id(i)] for p, i in enumerate(new) if id(i) in by_instruction}
    return changed(plan, instructions=new, scratch=scratch)


def without(plan: Plan, position: int) -> Plan:
    """The plan without one instruction."""
    old = plan.schedules[PASS].instructions
    return edited(plan, old[:position] + old[position + 1 :])


def moved(plan: Plan, position: int, to: int) -> Plan:
    """The plan with one instruction at another place of what is left."""
    rest = list(plan.schedules[PASS].instructions)
    instruction = rest.pop(position)
    rest.insert(to, instruction)
    return edited(plan, rest)


def _drop(*ops: str) -> Mutation:
    def change(plan: Plan, rng: random.Random) -> Plan | None:
        found = places(plan.schedules[PASS], *ops)
        return without(plan, rng.choice(found)) if found else None

    return change


MUTATIONS["drop_wait"] = _drop("wait")
MUTATIONS["drop_offload"] = _drop("offload")
MUTATIONS["drop_fetch"] = _drop("fetch")
MUTATIONS["drop_recompute"] = _drop("recompute")
MUTATIONS["drop_forward"] = _drop("forward")
MUTATIONS["drop_backward"] = _drop("backward_data", "backward_weights")


def _pair(schedule: Schedule, rng: random.Random, op: str) -> tuple[int, int] | None:
    """Positions of a copy and of its wait."""
    found = places(schedule, op)
    if not found:
        return None
    start = rng.choice(found)
    name = f"{op} {schedule.instructions[start].target}"
    waits = [p for p in places(schedule, "wait") if schedule.instructions[p].target == name]
    return start, waits[0]


@mutation
def fetch_before_offload_is_done(plan: Plan, rng: random.Random) -> Plan | None:
    schedule = plan.schedules[PASS]
    pair = _pair(schedule, rng, "offload")
    if pair is None:
        return None
    target = schedule.instructions[pair[0]].target
    fetch = next(p for p in places(schedule, "fetch") if schedule.instructions[p].target == target)
    return moved(plan, fetch, pair[1])


@mutation
def fetch_too_late(plan: Plan, rng: random.Random) -> Plan | None:
    pair = _pair(plan.schedules[PASS], rng, "fetch")
    return moved(plan, pair[0], pair[1]) if pair else None


@mutation
def wait_too_late(plan: Plan, rng: random.Random) -> Plan | None:
    """The wait for a fetch comes after the first reader."""
    schedule = plan.schedules[PASS]
    pair = _pair(schedule, rng, "fetch")
    if pair is None:
        return None
    (instance,) = schedule.instructions[pair[0]].writes
    reader = next(
        p
        for p in range(pair[1] + 1, len(schedule.instructions))
        if instance in schedule.instructions[p].reads and schedule.instructions[p].op != "wait"
    )
    return moved(plan, pair[1], reader)


@mutation
def offload_too_early(plan: Plan, rng: random.Random) -> Plan | None:
    """The offload comes before what it copies is made."""
    schedule = plan.schedules[PASS]
    pair = _pair(schedule, rng, "offload")
    if pair is None:
        return None
    (name,) = schedule.instructions[pair[0]].reads
    writer = next(p for p, i in enumerate(schedule.instructions) if name in i.writes)
    return moved(plan, pair[0], writer)


@mutation
def offload_of_another(plan: Plan, rng: random.Random) -> Plan | None:
    """A host slot gets the content of another buffer."""
    schedule = plan.schedules[PASS]
    found = places(schedule, "offload")
    if len(found) < 2:
        return None
    one, other = rng.sample(found, 2)
    instructions = list(schedule.instructions)
    instructions[one] = replace(instructions[one], target=instructions[other].target)
    return edited(plan, instructions)


@mutation
def small_host_slot(plan: Plan, rng: random.Random) -> Plan | None:
    host = dict(plan.schedules[PASS].host)
    if not host:
        return None
    name = rng.choice(sorted(host))
    host[name] -= 1
    return changed(plan, host=host)


def _used(schedule: Schedule) -> list[str]:
    return sorted(schedule.offsets.keys() & schedule.buffers.keys())


@mutation
def shrink_buffer(plan: Plan, rng: random.Random) -> Plan | None:
    buffers = dict(plan.schedules[PASS].buffers)
    name = rng.choice([n for n in _used(plan.schedules[PASS]) if buffers[n].shape])
    shape = buffers[name].shape
    buffers[name] = replace(buffers[name], shape=(max(0, shape[0] - 1), *shape[1:]))
    return changed(plan, buffers=buffers)


@mutation
def another_type(plan: Plan, rng: random.Random) -> Plan | None:
    buffers = dict(plan.schedules[PASS].buffers)
    name = rng.choice([n for n in _used(plan.schedules[PASS]) if buffers[n].dtype == "float32"])
    buffers[name] = replace(buffers[name], dtype="int32")
    return changed(plan, buffers=buffers)


def _together(schedule: Schedule, rng: random.Random) -> tuple[str, str] | None:
    """Two buffers that one instruction reads."""
    pairs = []
    for instruction in schedule.instructions:
        read = [n for n in instruction.reads if n in schedule.offsets]
        pairs += [(a, b) for a in read for b in read if a != b]
    return rng.choice(pairs) if pairs else None


@mutation
def overlap_operands(plan: Plan, rng: random.Random) -> Plan | None:
    schedule = plan.schedules[PASS]
    pair = _together(schedule, rng)
    if pair is None:
        return None
    return changed(plan, offsets={**schedule.offsets, pair[0]: schedule.offsets[pair[1]]})


@mutation
def overlap_result(plan: Plan, rng: random.Random) -> Plan | None:
    """A result lies over an operand that the program does not let it replace."""
    schedule = plan.schedules[PASS]
    pairs = [
        (w, r)
        for i in schedule.instructions
        for w in i.writes
        for r in i.reads
        if w != r
        and {w, r} <= schedule.offsets.keys()
        and (w, r) not in i.shares
        and schedule.offsets[w] != schedule.offsets[r]
    ]
    if not pairs:
        return None
    written, read = rng.choice(pairs)
    return changed(plan, offsets={**schedule.offsets, written: schedule.offsets[read]})


@mutation
def overlap_shifted(plan: Plan, rng: random.Random) -> Plan | None:
    """A result that may replace its operand lies over it, but not exactly."""
    schedule = plan.schedules[PASS]
    pairs = [
        (w, r)
        for i in schedule.instructions
        for w, r in i.shares
        if {w, r} <= schedule.offsets.keys() and schedule.buffers[r].nbytes > 64
    ]
    if not pairs:
        return None
    written, read = rng.choice(pairs)
    return changed(plan, offsets={**schedule.offsets, written: schedule.offsets[read] + 64})


@mutation
def misaligned(plan: Plan, rng: random.Random) -> Plan | None:
    schedule = plan.schedules[PASS]
    name = rng.choice(_used(schedule))
    return changed(plan, offsets={**schedule.offsets, name: schedule.offsets[name] + 4})


@mutation
def outside_the_arena(plan: Plan, rng: random.Random) -> Plan | None:
    schedule = plan.schedules[PASS]
    name = rng.choice(_used(schedule))
    place = rng.choice([0, plan.scratch_offset])
    if place == plan.persistent_bytes:
        return None
    return changed(plan, offsets={**schedule.offsets, name: place})


@mutation
def persistent_overlap(plan: Plan, rng: random.Random) -> Plan | None:
    one, other = rng.sample(sorted(plan.persistent), 2)
    return replace(plan, persistent={**plan.persistent, one: plan.persistent[other]})


@mutation
def smaller_peak(plan: Plan, rng: random.Random) -> Plan | None:
    return replace(plan, arena_bytes=plan.arena_bytes - 64, scratch_offset=plan.scratch_offset - 64)


@mutation
def smaller_claim(plan: Plan, rng: random.Random) -> Plan | None:
    return replace(plan, arena_bytes=plan.arena_bytes - 64)


@mutation
def less_scratch(plan: Plan, rng: random.Random) -> Plan | None:
    return replace(plan, scratch_bytes=plan.scratch_bytes - 64)


@mutation
def scratch_over_operand(plan: Plan, rng: random.Random) -> Plan | None:
    schedule = plan.schedules[PASS]
    found = [
        (p, n)
        for p in schedule.scratch
        for n in (*schedule.instructions[p].reads, *schedule.instructions[p].writes)
        if n in schedule.offsets
    ]
    if not found:
        return None
    position, name = rng.choice(found)
    return changed(plan, scratch={**schedule.scratch, position: schedule.offsets[name]})


@mutation
def forgotten_scratch(plan: Plan, rng: random.Random) -> Plan | None:
    schedule = plan.schedules[PASS]
    if not schedule.scratch:
        return None
    gone = rng.choice(sorted(schedule.scratch))
    return changed(plan, scratch={p: o for p, o in schedule.scratch.items() if p != gone})


@mutation
def swap_instructions(plan: Plan, rng: random.Random) -> Plan | None:
    """Two neighbours change places, one of which makes what the other reads."""
    instructions = plan.schedules[PASS].instructions
    pairs = [
        p
        for p in range(len(instructions) - 1)
        if set(instructions[p].writes) & set(instructions[p + 1].reads)
    ]
    position = rng.choice(pairs)
    return moved(plan, position, position + 1)


@mutation
def recompute_order(plan: Plan, rng: random.Random) -> Plan | None:
    """A repetition comes before the one that makes its operand."""
    instructions = plan.schedules[PASS].instructions
    again = [p for p, i in enumerate(instructions) if i.op == "recompute"]
    pairs = [
        (p, q)
        for p in again
        for q in again
        if p < q and set(instructions[p].writes) & set(instructions[q].reads)
    ]
    if not pairs:
        return None
    first, second = rng.choice(pairs)
    return moved(plan, second, first)


@mutation
def recompute_before_forward(plan: Plan, rng: random.Random) -> Plan | None:
    found = places(plan.schedules[PASS], "recompute")
    return moved(plan, rng.choice(found), 0) if found else None


@mutation
def recompute_of_the_unrepeatable(plan: Plan, rng: random.Random) -> Plan | None:
    found = places(plan.schedules[PASS], "recompute")
    if not found:
        return None
    instructions = list(plan.schedules[PASS].instructions)
    position = rng.choice(found)
    instructions.insert(position, replace(instructions[position], target="nobody"))
    return edited(plan, instructions)


def _another(schedule: Schedule, name: str, rng: random.Random) -> Buffer | None:
    """A buffer of the same size and type."""
    like = schedule.buffers[name]
    same = [
        b
        for n, b in sorted(schedule.buffers.items())
        if n.rstrip("~") != name.rstrip("~") and (b.nbytes, b.dtype) == (like.nbytes, like.dtype)
    ]
    return rng.choice(same) if same else None


def _computing(schedule: Schedule, rng: random.Random) -> tuple[int, str, Buffer] | None:
    found = [
        (p, n)
        for p, i in enumerate(schedule.instructions)
        if i.op not in COPIES
        for n in i.reads
        if n in schedule.buffers
    ]
    for position, name in rng.sample(found, len(found)):
        other = _another(schedule, name, rng)
        if other is not None and other.name not in schedule.instructions[position].reads:
            return position, name, other
    return None


@mutation
def rename_operand(plan: Plan, rng: random.Random) -> Plan | None:
    """An instruction reads another buffer, and says so."""
    schedule = plan.schedules[PASS]
    choice = _computing(schedule, rng)
    if choice is None:
        return None
    position, name, other = choice
    instructions = list(schedule.instructions)
    instructions[position] = renamed(instructions[position], {name: other.name})
    return exchanged(plan, instructions)


@mutation
def rename_slot(plan: Plan, rng: random.Random) -> Plan | None:
    """An instruction reads another buffer than it says."""
    schedule = plan.schedules[PASS]
    choice = _computing(schedule, rng)
    if choice is None:
        return None
    position, name, other = choice
    instruction = schedule.instructions[position]
    slots = {
        role: tuple(
            Operand(other.name, o.shape, o.dtype) if o is not None and o.buffer == name else o
            for o in slot
        )
        for role, slot in instruction.slots.items()
    }
    instructions = list(schedule.instructions)
    instructions[position] = replace(instruction, slots=slots)
    return exchanged(plan, instructions)


def exchanged(plan: Plan, instructions: list[Instruction]) -> Plan:
    """The plan with one instruction replaced by another at the same position."""
    return changed(plan, instructions=tuple(instructions))


@mutation
def overwrite_instead_of_add(plan: Plan, rng: random.Random) -> Plan | None:
    instructions = list(plan.schedules[PASS].instructions)
    found = places(plan.schedules[PASS], "backward_weights")
    if not found:
        return None
    position = rng.choice(found)
    old = instructions[position]
    instructions[position] = replace(old, accumulate=not old.accumulate)
    return exchanged(plan, instructions)


@mutation
def other_values(plan: Plan, rng: random.Random) -> Plan | None:
    instructions = list(plan.schedules[PASS].instructions)
    position = next(p for p, i in enumerate(instructions) if i.op in ("seed", "fetch_loss"))
    instructions[position] = replace(instructions[position], values=(2.0,))
    return exchanged(plan, instructions)


@mutation
def overwritten_output(plan: Plan, rng: random.Random) -> Plan | None:
    """A buffer that is to stay readable shares its place with one that lives later."""
    schedule = plan.schedules[PASS]
    kept = [n for n in sorted(plan.kept or ()) if n in schedule.buffers]
    last = next(
        (n for i in reversed(schedule.instructions) for n in i.writes if n in schedule.offsets),
        None,
    )
    if not kept or last is None or last in kept:
        return None
    return changed(plan, offsets={**schedule.offsets, rng.choice(kept): schedule.offsets[last]})


def _plain(schedule: Schedule, instruction: Instruction) -> Instruction:
    """The usual form of one half of a compact ReLU."""
    slots = {role: slot for role, slot in instruction.slots.items() if role != "saved"}
    if instruction.op == "forward":
        writes = tuple(n for n in instruction.writes if not n.endswith(".positive"))
        return replace(instruction, slots=slots, writes=writes)
    forward = next(
        i for i in schedule.instructions if (i.op, i.target) == ("forward", instruction.target)
    )
    (gradient,) = (o for o in slots["dy"] if o is not None)
    y = forward.slots["y"]
    return replace(
        instruction,
        slots={**slots, "y": y},
        reads=(y[0].buffer, gradient.buffer),  # type: ignore[union-attr]
    )


def _half_compact(op: str) -> Mutation:
    def change(plan: Plan, rng: random.Random) -> Plan | None:
        schedule = plan.schedules[PASS]
        found = [
            p
            for p in places(schedule, op)
            for n in (*schedule.instructions[p].reads, *schedule.instructions[p].writes)
            if n.rstrip("~").endswith(".positive")
        ]
        if not found:
            return None
        position = rng.choice(found)
        instructions = list(schedule.instructions)
        instructions[position] = _plain(schedule, instructions[position])
        return exchanged(plan, instructions)

    return change


MUTATIONS["compact_in_backward_only"] = _half_compact("forward")
MUTATIONS["compact_in_forward_only"] = _half_compact("backward_data")


# -- changes that may be harmless ----------------------------------------------------------------


def shifted(plan: Plan, rng: random.Random) -> Plan:
    """A copy, a wait or a repetition a little earlier or later."""
    schedule = plan.schedules[PASS]
    found = places(schedule, *COPIES, "recompute")
    if not found:
        return displaced(plan, rng)
    position = rng.choice(found)
    to = max(0, min(len(schedule.instructions) - 1, position + rng.choice([-3, -2, -1, 1, 2, 3])))
    return moved(plan, position, to)


def displaced(plan: Plan, rng: random.Random) -> Plan:
    """A buffer at another address."""
    schedule = plan.schedules[PASS]
    name = rng.choice(_used(schedule))
    room = plan.arena_bytes - schedule.buffers[name].nbytes
    place = plan.persistent_bytes + rng.randrange(0, room // 64 + 1) * 64
    return changed(plan, offsets={**schedule.offsets, name: place})
