"""Copies and recomputations in an iteration: what is inserted, and where."""

from __future__ import annotations

import pytest

from layrubnet.memory.copies import Pace
from layrubnet.memory.iteration import Decisions, Iteration, Outline
from layrubnet.memory.rewrite import Choice
from layrubnet.memory.strategies import fixed_decisions
from tests.memory.planning import iteration_of, known_program


@pytest.fixture(scope="module")
def iteration() -> Iteration:
    return iteration_of(known_program("ResNet-50"))


def offloaded(iteration: Iteration, pace: Pace | None = None, room: int | None = None) -> Outline:
    choices = {c.name: Choice.OFFLOAD for c in iteration.candidates}
    return iteration.outline(Decisions(choices, pace or Pace(0, 0), room=room))


def computations(outline: Outline) -> list[tuple[str, str]]:
    copies = ("offload", "fetch", "wait", "recompute")
    return [(i.op, i.target) for i in outline.rewritten.instructions if i.op not in copies]


def test_without_choices_nothing_changes(iteration: Iteration) -> None:
    outline = iteration.outline(Decisions())
    assert outline.rewritten.instructions == (*iteration.forward, *iteration.backward)
    assert not outline.rewritten.host


@pytest.mark.parametrize("strategy", ["hybrid", "vdnn", "recompute", "sublinear", "min"])
def test_the_program_itself_stays_in_order(iteration: Iteration, strategy: str) -> None:
    outline = iteration.outline(fixed_decisions(strategy, iteration))
    assert computations(outline) == computations(iteration.outline(Decisions()))


def test_every_copy_is_waited_for_once_and_in_order(iteration: Iteration) -> None:
    for outline in (offloaded(iteration), offloaded(iteration, room=1 << 30)):
        seen: dict[str, list[str]] = {}
        for i in outline.rewritten.instructions:
            if i.op in ("offload", "fetch"):
                seen.setdefault(i.target, []).append(i.op)
            elif i.op == "wait":
                op, name = i.target.split(" ", 1)
                seen[name].append(f"wait {op}")
        assert set(seen) == {c.name for c in iteration.candidates}
        order = ["offload", "wait offload", "fetch", "wait fetch"]
        assert all(steps == order for steps in seen.values())


def test_spare_room_is_kept_and_makes_plans_faster(iteration: Iteration) -> None:
    tight = offloaded(iteration)
    before = tight.timing.total
    for share in (1.0, 1.5, 3.0):
        room = int(share * tight.bound)
        outline = offloaded(iteration, room=room)
        assert tight.bound <= outline.bound <= room
        assert outline.timing.total <= before * 1.001
        before = outline.timing.total
    assert before < 0.9 * tight.timing.total


def test_no_room_is_the_least_memory(iteration: Iteration) -> None:
    tight = offloaded(iteration)
    outline = offloaded(iteration, room=0)
    assert outline.bound == tight.bound


def test_nothing_is_computed_again_twice(iteration: Iteration) -> None:
    outline = iteration.outline(fixed_decisions("sublinear", iteration))
    written = [n for i in outline.rewritten.instructions if i.op == "recompute" for n in i.writes]
    assert written
    assert len(written) == len(set(written))
