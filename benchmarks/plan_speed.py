"""How the time of planning grows with depth: from a built graph to addresses, on one core.

    python benchmarks/plan_speed.py
    python benchmarks/plan_speed.py --strategies hybrid,auto --layers 500,2000

Seconds are processor time of lowering and planning together; the verifier is timed apart. The last
lines fit ``seconds = a * layers ** growth``: n log n looks like a growth a little above 1.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "resnet"))

import nets

from layrubnet.devices import get_device
from layrubnet.engine.build import build_graph
from layrubnet.engine.graph import Graph
from layrubnet.engine.lower import LowerOptions, lower
from layrubnet.memory.cost import GPU, CostModel
from layrubnet.memory.planner import PlanOptions, make_plan, sections_of
from layrubnet.memory.verify import verify
from layrubnet.proto import SolverParameter
from layrubnet.solvers.rules import make_rule

BATCH = 32
LAYERS_PER_BLOCK = 14
"""Caffe's layers of a bottleneck block, Splits included."""


def graph_of(layers: int) -> Graph:
    """A bottleneck ResNet of about so many layers; as in ResNet-1517 stage 3 is the deepest."""
    blocks = max(4, round(layers / LAYERS_PER_BLOCK))
    second = max(1, round(blocks / 6))
    stages = (3, second, max(1, blocks - second - 6), 3)
    return build_graph(nets.make("resnet", blocks=stages, batch=BATCH), "TRAIN")


def timed(graph: Graph, strategy: str) -> tuple[float, float, float, int]:
    """Seconds of lowering, planning, verifying; bytes of the arena."""
    device: Any = get_device("null")
    rule = make_rule(SolverParameter(type="SGD", base_lr=0.1, momentum=0.9))
    options = PlanOptions(strategy, base_scratch=device.base_scratch, cost=CostModel(GPU))
    clock = [time.process_time()]
    program = lower(graph, device.ops, rule=rule, options=LowerOptions(named_in_place=False))
    clock.append(time.process_time())
    plan = make_plan(program, options)
    clock.append(time.process_time())
    verify(program, plan, sections_of(plan))
    clock.append(time.process_time())
    lowering, planning, verifying = (b - a for a, b in pairwise(clock))
    return lowering, planning, verifying, plan.arena_bytes


def growth(layers: Sequence[int], seconds: Sequence[float]) -> float:
    """The exponent of a power law, by least squares of the logarithms."""
    x, y = [math.log(n) for n in layers], [math.log(s) for s in seconds]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - mean_x) ** 2 for a in x)


def main() -> None:
    """Plan nets of growing depth and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strategies", default="reuse,hybrid,recompute,sublinear,min")
    parser.add_argument("--layers", default="625,1250,2500,5000,10000")
    options = parser.parse_args()
    counts: list[int] = []
    totals: dict[str, list[float]] = {s: [] for s in options.strategies.split(",")}
    print(f"{'layers':>7} {'strategy':10} {'lower':>7} {'plan':>7} {'sum':>7} {'verify':>7}  arena")
    for wanted in map(int, options.layers.split(",")):
        graph = graph_of(wanted)
        counts.append(len(graph.nodes))
        for strategy, seconds in totals.items():
            lowering, planning, verifying, arena = timed(graph, strategy)
            seconds.append(lowering + planning)
            print(
                f"{len(graph.nodes):7} {strategy:10} {lowering:6.2f}s {planning:6.2f}s "
                f"{seconds[-1]:6.2f}s {verifying:6.2f}s  {arena / 2**20:,.0f} MiB",
                flush=True,
            )
    if len(counts) > 1:
        for strategy, seconds in totals.items():
            print(f"{strategy}: time grows as layers ** {growth(counts, seconds):.2f}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(f"memory of this process at its peak: {memory:,.0f} MiB")


if __name__ == "__main__":
    main()
