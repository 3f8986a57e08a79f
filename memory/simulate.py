"""Predict the time of a schedule: one compute queue and a copy queue in each direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layrubnet.engine.program import Buffer, Instruction
from layrubnet.memory.cost import CostModel


@dataclass(frozen=True)
class Timing:
    """Seconds: of the whole schedule, of computing, of waiting for copies, of each copy queue."""

    total: float
    compute: float
    recompute: float
    stall: float
    to_host: float
    from_host: float


def simulate(
    instructions: Sequence[Instruction], buffers: Mapping[str, Buffer], cost: CostModel
) -> Timing:
    """Run the queues on paper.

    A copy starts when its queue is free and the computation has come to where it was issued; a
    ``wait`` holds the computation up until that copy is done: what that costs is the stall. What
    copies slow the computation down (``Figures.drag``) counts as computing.
    """
    now = compute = again = stall = 0.0
    drag = cost.figures.drag
    free = {"offload": 0.0, "fetch": 0.0}
    busy = {"offload": 0.0, "fetch": 0.0}
    done: dict[str, float] = {}
    for instruction in instructions:
        op = instruction.op
        if op in free:
            buffer = instruction.reads[0] if op == "offload" else instruction.writes[0]
            took = cost.copy_seconds(op, buffers[buffer].nbytes)
            free[op] = max(free[op], now) + took
            busy[op] += took
            now += took * drag
            compute += took * drag
            done[f"{op} {instruction.target}"] = free[op]
        elif op == "wait":
            late = max(0.0, done[instruction.target] - now)
            stall += late
            now += late
        else:
            took = cost.seconds(instruction)
            now += took
            compute += took
            if op == "recompute":
                again += took
    return Timing(now, compute, again, stall, busy["offload"], busy["fetch"])
