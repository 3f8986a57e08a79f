"""Plan a program: strategy and budget in, addresses out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil

from layrubnet.engine.bulk import collector_paused
from layrubnet.engine.program import Buffer, Program
from layrubnet.errors import LayrubError
from layrubnet.memory.auto import AIM, fastest_within, smallest_for_free
from layrubnet.memory.candidates import transient
from layrubnet.memory.cost import CPU, CostModel
from layrubnet.memory.iteration import Decisions, Iteration, Outline
from layrubnet.memory.plan import Plan, aligned, keep_everything, place_persistent
from layrubnet.memory.settle import settle
from layrubnet.memory.strategies import check_strategy, fixed_decisions


class BudgetError(LayrubError):
    """No plan fits the budget."""


@dataclass(frozen=True)
class PlanOptions:
    """How to plan. ``budget``: bytes of device memory for everything (None: no limit).

    ``keep``: buffers that stay readable after the step. ``micro_batches``: ``iter_size``; with
    more than one, the later ones add to the weight gradients and are planned by themselves.
    """

    strategy: str = "reuse"
    budget: int | None = None
    keep: frozenset[str] = frozenset()
    micro_batches: int = 1
    cost: CostModel = field(default_factory=lambda: CostModel(CPU))
    base_scratch: int = 0


def make_plan(program: Program, options: PlanOptions, external: Collection[str] = ()) -> Plan:
    """Return a plan of ``program``; :class:`BudgetError` if it cannot fit the budget."""
    with collector_paused():
        return _planned(program, options, external)


def _planned(program: Program, options: PlanOptions, external: Collection[str]) -> Plan:
    strategy = check_strategy(options.strategy)
    if strategy == "caffe":
        plan = keep_everything(program, options.base_scratch, external)
        _check_budget(plan.nbytes, options.budget, program)
        return plan
    persistent, persistent_bytes = place_persistent(program, external)
    scratch = aligned(options.base_scratch)
    fixed = persistent_bytes + scratch
    arena = None if options.budget is None else options.budget - fixed
    buffers = transient(program.buffers, tuple(external))
    schedules = {}
    height = 0
    for name, iteration in _iterations(program, buffers, options):
        outline = _outline(iteration, strategy, arena, fixed, program)
        schedule, top = outline.placed(persistent_bytes)
        schedules[name] = schedule
        height = max(height, top)
    readable = frozenset(persistent) | frozenset(external) | _kept(program, options)
    plan = Plan(
        strategy,
        persistent,
        schedules,
        persistent_bytes,
        height,
        persistent_bytes + height,
        scratch,
        readable,
    )
    _check_budget(plan.nbytes, options.budget, program)
    return plan


def _kept(program: Program, options: PlanOptions) -> frozenset[str]:
    """Buffers that can be read after a step: what was asked for, and the net's outputs."""
    outputs = {program.blob_data[v.name].buffer for v in program.graph.outputs()}
    return options.keep | outputs


_SECTIONS = {
    "step_first": ("forward", "backward"),
    "step_more": ("forward", "backward_accumulate"),
}


def sections_of(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The program's sections that each schedule of a plan runs, in order."""
    return {name: _SECTIONS.get(name, (name,)) for name in plan.schedules}


def _iterations(
    program: Program, buffers: Mapping[str, Buffer], options: PlanOptions
) -> Iterable[tuple[str, Iteration]]:
    sections = program.sections
    keep = options.keep | {program.blob_data[v.name].buffer for v in program.graph.outputs()}

    def iteration(name: str) -> Iteration:
        first, *second = _SECTIONS.get(name, (name,))
        return Iteration(
            sections[first],
            sections[second[0]] if second else (),
            buffers,
            options.cost,
            keep,
            options.base_scratch,
            program.alternatives,
        )

    names = ["forward"]
    if "backward" in sections:  # empty where nothing learns; a step runs forward all the same
        names.append("step_first")
        if options.micro_batches > 1:
            names.append("step_more")
    if "update" in sections:
        names.append("update")
    for name in names:
        yield name, iteration(name)


def _outline(
    iteration: Iteration, strategy: str, arena: int | None, fixed: int, program: Program
) -> Outline:
    if not iteration.backward:
        return iteration.outline(Decisions())
    if strategy != "auto":
        outline = iteration.outline(fixed_decisions(strategy, iteration))
        return settle(outline, int(outline.bound * (1 + AIM)))
    if arena is None:
        return smallest_for_free(iteration)
    found = fastest_within(iteration, arena)
    if not found.fits:
        need = fixed + found.outline.height
        where = found.outline.rewritten.instructions[found.outline.fullest]
        raise BudgetError(
            "the net cannot be trained in this much memory",
            where=program.graph.name or "memory plan",
            # Rounded up: the number in brackets, given as the budget, is enough.
            expected=f"a budget of at least {need} bytes ({ceil(need * 10 / 2**20) / 10:.1f} MiB)",
            got=f"{fixed + arena} bytes ({(fixed + arena) / 2**20:.1f} MiB)",
            hint=f"the peak is at {where.op} of layer {where.target!r}; lower batch_size "
            "(iter_size makes up for it)",
        )
    return found.outline


def _check_budget(needed: int, budget: int | None, program: Program) -> None:
    if budget is not None and needed > budget:
        raise BudgetError(
            "the plan of this strategy is larger than the budget",
            where=program.graph.name or "memory plan",
            expected=f"at most {budget} bytes ({budget / 2**20:.1f} MiB)",
            got=f"{needed} bytes ({needed / 2**20:.1f} MiB)",
            hint="strategy auto looks for a plan that fits",
        )
