"""What a plan costs and saves, as figures: for the command line, for JSON, for messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from layrubnet.engine.program import Instruction
from layrubnet.memory.cost import CostModel
from layrubnet.memory.plan import Plan
from layrubnet.memory.simulate import simulate
from layrubnet.memory.timeline import KINDS, PERSISTENT, Timeline

EMPTY = "unused at that moment"


@dataclass(frozen=True)
class Figures:
    """One plan in numbers. Bytes and seconds; times are those of the cost model.

    ``device``: all device memory; ``weights``: parameters, their gradients and histories,
    and ``features`` the rest. ``host``: host memory for offloaded buffers. ``moved``: bytes copied
    to the host in one iteration (as many come back). ``peak_op``, ``peak_layer``: the fullest
    instruction (or what computes next, where that is a copy).
    ``parts``: what the device memory holds at that moment, in words; it adds up to ``device``.
    Where every buffer has a place for ever (strategy ``caffe``), ``parts`` are all places and
    ``peak_layer`` is the layer that has most.
    """

    strategy: str
    device: int
    weights: int
    features: int
    host: int
    moved: int
    seconds: float
    stall: float
    recompute: float
    peak_op: str
    peak_layer: str
    peak_position: int
    parts: Mapping[str, int] = field(default_factory=dict)


def measure(line: Timeline, cost: CostModel, micro_batches: int = 1) -> Figures:
    """The figures of a plan for an iteration of ``micro_batches``."""
    plan = line.plan
    passes = dict.fromkeys(("step_first", "forward", "backward", "update"), 1)
    if "step_first" in plan.schedules:
        passes["forward"] = passes["backward"] = 0
        passes["step_more"] = micro_batches - 1
    else:
        passes["forward"] = micro_batches
        passes["backward_accumulate"] = micro_batches - 1
    seconds = stall = recompute = 0.0
    for name, times in passes.items():
        schedule = plan.schedules.get(name)
        if schedule is not None and times:
            timing = simulate(schedule.instructions, schedule.buffers, cost)
            seconds += times * timing.total
            stall += times * timing.stall
            recompute += times * timing.recompute
    weights = sum(line.persistent.get(k, 0) for k in ("param", "param_diff", "history"))
    fullest = line.fullest
    where = line.computing(fullest)
    layer = _largest_layer(line) if plan.keeps_everything else where.target
    return Figures(
        strategy=plan.strategy,
        device=plan.nbytes,
        weights=weights,
        features=plan.nbytes - weights,
        host=plan.host_bytes,
        moved=micro_batches * sum(c.nbytes for c in line.copies if c.op == "offload"),
        seconds=seconds,
        stall=stall,
        recompute=recompute,
        peak_op="" if plan.keeps_everything else where.op,
        peak_layer=layer,
        peak_position=fullest,
        parts=places(line) if plan.keeps_everything else parts(line),
    )


def _largest_layer(line: Timeline) -> str:
    """The layer whose buffers take most."""
    totals: dict[str, int] = {}
    for life in line.lives:
        totals[life.layer] = totals.get(life.layer, 0) + life.nbytes
    return max(totals, key=lambda layer: totals[layer], default="")


def places(line: Timeline) -> dict[str, int]:
    """The places of a plan in which every buffer has one for ever, in words."""
    plan = line.plan
    found = {PERSISTENT.get(kind, kind): nbytes for kind, nbytes in line.persistent.items()}
    for life in line.lives:
        words = KINDS[life.kind]
        found[words] = found.get(words, 0) + life.nbytes
    found["scratch"] = plan.scratch_bytes
    return _with_rest(found, plan, "buffers of no use in a step, and alignment")


def parts(line: Timeline) -> dict[str, int]:
    """What device memory holds at the fullest instruction, in words; the parts add up to it."""
    plan, found = line.plan, {}
    for kind, nbytes in line.persistent.items():
        found[PERSISTENT.get(kind, kind)] = nbytes
    for kind, words in KINDS.items():
        now = int(line.in_use[kind][line.fullest]) if kind in line.in_use else 0
        if now:
            found[words] = now
    found["scratch"] = found.get("scratch", 0) + plan.scratch_bytes
    return _with_rest(found, plan, EMPTY)


def _with_rest(found: dict[str, int], plan: Plan, words: str) -> dict[str, int]:
    rest = plan.nbytes - sum(found.values())
    return {**found, words: rest} if rest else found


def as_json(line: Timeline, figures: Figures, cost: CostModel) -> dict[str, Any]:
    """The figures, every buffer with its place and time, and the instructions of one step."""
    program, plan = line.program, line.plan
    buffers = [
        {
            "name": life.name,
            "kind": KINDS[life.kind],
            "layer": life.layer,
            "bytes": life.nbytes,
            "offset": life.offset,
            "first": life.start,
            "last": life.end,
        }
        for life in line.lives
    ]
    persistent = [
        {
            "name": name,
            "kind": PERSISTENT.get(program.buffers[name].kind, program.buffers[name].kind),
            "layer": program.buffers[name].layer,
            "bytes": program.buffers[name].nbytes,
            "offset": offset,
        }
        for name, offset in plan.persistent.items()
    ]
    return {
        **asdict(figures),
        "arena": {"offset": plan.persistent_bytes, "bytes": plan.arena_bytes},
        "scratch": {"offset": plan.scratch_offset, "bytes": plan.scratch_bytes},
        "backward_starts": line.turn,
        "persistent_buffers": persistent,
        "buffers": buffers,
        "instructions": [_row(i, cost) for i in line.instructions],
        "update": [_row(i, cost) for i in _update(plan)],
    }


def _update(plan: Plan) -> tuple[Instruction, ...]:
    return plan.schedules["update"].instructions if "update" in plan.schedules else ()


def _row(instruction: Instruction, cost: CostModel) -> dict[str, Any]:
    return {
        "op": instruction.op,
        "target": instruction.target,
        "reads": list(instruction.reads),
        "writes": list(instruction.writes),
        "scratch": instruction.scratch,
        "seconds": cost.seconds(instruction),
    }


def largest(size: Callable[[int], int], budget: int, start: int, limit: int = 1 << 20) -> int:
    """The largest n >= 0 with ``size(n) <= budget``, for a ``size`` that grows with n.

    A straight line through two known sizes says where to look next, bisection guards it: nets
    grow almost linearly with the batch, so a handful of sizes is enough.
    """
    low, high = 0, limit + 1
    known: dict[int, int] = {}
    guess = max(1, start)
    while high - low > 1:
        known[guess] = size(guess)
        if known[guess] <= budget:
            low = guess
        else:
            high = guess
        guess = _next_guess(known, budget, low, high)
    return low


def _next_guess(known: Mapping[int, int], budget: int, low: int, high: int) -> int:
    middle = (low + high) // 2
    nearest = sorted(known, key=lambda n: abs(known[n] - budget))[:2]
    if len(nearest) < 2:
        (only,) = nearest
        middle = max(1, int(only * budget / max(1, known[only])))
    else:
        a, b = sorted(nearest)
        slope = (known[b] - known[a]) / (b - a)
        if slope > 0 and len(known) < 8:
            middle = a + int((budget - known[a]) // slope)
            middle += middle == low  # the line points at what fits already: is one more too many?
    return min(max(middle, low + 1), high - 1)
