"""Check a plan before it runs, without any of the planner's code.

Here are the claims that hold at all times: addresses that are aligned, inside the memory asked for
and apart from each other. ``verify_walk.py`` follows what the arena holds, instruction by
instruction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from layrubnet.engine.bulk import collector_paused
from layrubnet.engine.program import Program
from layrubnet.memory.plan import ALIGNMENT, Plan, Schedule
from layrubnet.memory.verify_walk import PlanError, Walk

__all__ = ["PlanError", "verify"]

_Span = tuple[int, int, str]


def verify(
    program: Program,
    plan: Plan,
    sections: Mapping[str, Sequence[str]],
    external: Collection[str] = (),
    base_scratch: int = 0,
) -> None:
    """Raise :class:`PlanError` if a schedule of ``plan`` does not do what ``program`` says.

    ``sections``: the program's sections that each schedule runs, in order. ``external``: buffers
    that live elsewhere. ``base_scratch``: bytes the device grants to every instruction.
    """
    _check_totals(plan, base_scratch)
    _check_persistent(program, plan, external)
    for name, schedule in plan.schedules.items():
        if name not in sections:
            raise PlanError(f"nobody knows what schedule {name!r} should do")
        _check_addresses(plan, schedule, f"schedule {name!r}")
        original = [i for s in sections[name] for i in program.sections.get(s, ())]
        with collector_paused():
            Walk(program, plan, schedule, external, f"schedule {name!r}").run(original)
    if plan.keeps_everything:
        _check_apart(plan)
    else:
        _check_kept_over_updates(plan, sections)


def _check_totals(plan: Plan, base_scratch: int) -> None:
    if plan.scratch_offset != plan.persistent_bytes + plan.arena_bytes:
        raise PlanError("the peak it claims is not the sum of its parts")
    if plan.scratch_bytes < base_scratch:
        raise PlanError("has less scratch than the device grants to every instruction")
    if plan.scratch_offset % ALIGNMENT:
        raise PlanError("its common scratch is not aligned")


def _check_persistent(program: Program, plan: Plan, external: Collection[str]) -> None:
    spans: list[_Span] = []
    for buffer in program.buffers.values():
        if not buffer.persistent or buffer.name in external:
            continue
        if buffer.name not in plan.persistent:
            raise PlanError(f"persistent buffer {buffer.name!r} has no address")
        begin = plan.persistent[buffer.name]
        spans.append((begin, begin + buffer.nbytes, buffer.name))
    _check_disjoint(spans)
    _check_inside(spans, 0, plan.persistent_bytes)


def _check_addresses(plan: Plan, schedule: Schedule, where: str) -> None:
    """Every transient buffer and every scratch is aligned and inside the arena."""
    spans = list(_spans(schedule))
    _check_inside(spans, plan.persistent_bytes, plan.scratch_offset, where)


def _check_inside(spans: Iterable[_Span], low: int, high: int, where: str = "") -> None:
    for begin, end, name in spans:
        if begin % ALIGNMENT:
            raise PlanError(f"the address of {name!r} is not aligned", where=where)
        if begin < low or end > high:
            raise PlanError(f"{name!r} lies outside its region", where=where)


def _check_disjoint(spans: list[_Span]) -> None:
    spans.sort()
    for (_, end, first), (begin, _, second) in pairwise(spans):
        if begin < end:
            raise PlanError(f"buffers {first!r} and {second!r} overlap")


def _spans(schedule: Schedule) -> Iterable[_Span]:
    for name, buffer in schedule.buffers.items():
        if name not in schedule.offsets:
            raise PlanError(f"buffer {name!r} has no address")
        begin = schedule.offsets[name]
        yield begin, begin + buffer.nbytes, name
    for position, begin in schedule.scratch.items():
        if position >= len(schedule.instructions):
            raise PlanError(f"scratch for an instruction {position} that is not there")
        yield begin, begin + schedule.instructions[position].scratch, f"scratch #{position}"


def _check_apart(plan: Plan) -> None:
    """Where everything is kept, schedules hand buffers on: one place each, the same in all."""
    places: dict[str, _Span] = {}
    for schedule in plan.schedules.values():
        for span in _spans(schedule):
            if places.setdefault(span[2], span) != span:
                raise PlanError(f"buffer {span[2]!r} moves between schedules")
    _check_disjoint(list(places.values()))


def _check_kept_over_updates(plan: Plan, sections: Mapping[str, Sequence[str]]) -> None:
    """A schedule without a forward may not write where kept buffers of a pass lie."""
    kept: list[_Span] = []
    other: list[_Span] = []
    for name, schedule in plan.schedules.items():
        if "forward" in sections[name]:
            kept += [s for s in _spans(schedule) if plan.kept is None or s[2] in plan.kept]
        else:
            other += _spans(schedule)
    for begin, end, name in other:
        for low, high, victim in kept:
            if begin < high and low < end:
                raise PlanError(f"{name!r} overwrites {victim!r}, which is to stay readable")
