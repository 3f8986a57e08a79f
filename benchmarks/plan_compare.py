"""Plan the published nets under every strategy and write ``docs/memory-table.md``.

    python benchmarks/plan_compare.py                    ten minutes
    python benchmarks/plan_compare.py --nets ResNet-1304,ResNet-1511 --output -
    python benchmarks/plan_compare.py --nets GoogLeNet,VGG-16 --output -

Nothing is run: the null device plans, the verifier checks every plan, times are predicted.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples" / "resnet")]

import nets  # noqa: E402
from plan_tables import write_tables  # noqa: E402

from layrubnet.devices import get_device  # noqa: E402
from layrubnet.engine.build import build_graph  # noqa: E402
from layrubnet.engine.graph import Graph  # noqa: E402
from layrubnet.engine.lower import LowerOptions, lower  # noqa: E402
from layrubnet.engine.program import Program  # noqa: E402
from layrubnet.memory.caffe_bytes import caffe_bytes  # noqa: E402
from layrubnet.memory.cost import GPU, CostModel, Figures  # noqa: E402
from layrubnet.memory.layrub_bytes import layrub_bytes  # noqa: E402
from layrubnet.memory.plan import Plan  # noqa: E402
from layrubnet.memory.planner import PlanOptions, make_plan, sections_of  # noqa: E402
from layrubnet.memory.simulate import simulate  # noqa: E402
from layrubnet.memory.strategies import STRATEGIES  # noqa: E402
from layrubnet.memory.verify import verify  # noqa: E402
from layrubnet.proto import SolverParameter  # noqa: E402
from layrubnet.solvers.rules import make_rule  # noqa: E402

ELEVEN = (
    "AlexNet", "GoogLeNet", "VGG-16", "ResNet-34", "ResNet-50", "ResNet-101", "ResNet-152",
    "ResNet-1001", "ResNet-1517", "WRN-28-10", "ResNet-56",
)  # fmt: skip
OTHERS = ("CaffeNet", "ResNet-18")
BRIEF = ("reuse", "hybrid", "min", "auto")
"""Strategies for the nets that are not among the eleven."""
AT_HYBRID = "auto, hybrid's memory"
OLD = Figures("kepler", flops=2.5e12, memory=200e9, to_host=10e9, from_host=10e9, launch=10e-6)
"""About a GPU of Layrub's time (Kepler generation, PCI Express 3)."""


@dataclass(frozen=True)
class Row:
    """One net under one strategy; bytes and seconds.

    ``features``: all device memory but ``weights`` (parameters, their gradients, histories).
    """

    strategy: str
    features: int
    weights: int
    host: int
    seconds: float
    old_seconds: float
    planning: float


@dataclass(frozen=True)
class Result:
    """One net: Caffe's bytes and Layrub's by their own accounting, and our rows."""

    net: str
    layers: int
    caffe_features: int
    caffe_weights: int
    layrub_features: int
    layrub_host: int
    rows: dict[str, Row]

    def saved(self, strategy: str) -> float:
        """Share of Caffe's bytes without weights that is saved."""
        return 1 - self.rows[strategy].features / self.caffe_features

    def saved_total(self, strategy: str) -> float:
        """Share of all of Caffe's bytes that is saved."""
        row = self.rows[strategy]
        return 1 - (row.features + row.weights) / (self.caffe_features + self.caffe_weights)

    def slower(self, strategy: str, *, old: bool = False) -> float:
        """Predicted time over that of ``reuse``, less one."""
        row, plain = self.rows[strategy], self.rows["reuse"]
        if old:
            return row.old_seconds / plain.old_seconds - 1
        return row.seconds / plain.seconds - 1


def compare(name: str, strategies: Sequence[str]) -> Result:
    """Plan one net under each of ``strategies``."""
    graph = build_graph(nets.make(name), "TRAIN")
    device = get_device("null")
    rule = make_rule(SolverParameter(type="SGD", base_lr=0.1, momentum=0.9))
    program = lower(graph, device.ops, rule=rule, options=LowerOptions(named_in_place=False))
    rows: dict[str, Row] = {}
    for strategy in strategies:
        if strategy == "caffe":  # in place where the net says so, as Caffe
            caffes = lower(graph, device.ops, rule=rule)
            rows[strategy] = _row(caffes, strategy, device.base_scratch, None)
        else:
            rows[strategy] = _row(program, strategy, device.base_scratch, None)
        print(f"{name:12} {rows[strategy]}", file=sys.stderr, flush=True)
    if "hybrid" in rows and "auto" in rows and name in ELEVEN:
        hybrid = rows["hybrid"]
        rows[AT_HYBRID] = _row(
            program, "auto", device.base_scratch, hybrid.features + hybrid.weights
        )
    return _result(name, graph, rows)


def _result(name: str, graph: Graph, rows: dict[str, Row]) -> Result:
    caffe, layrub = caffe_bytes(graph), layrub_bytes(graph)
    return Result(
        name,
        len(graph.nodes),
        caffe.data + caffe.diff + caffe.split_diff + caffe.internal + caffe.columns,
        caffe.params + caffe.param_diffs + caffe.history,
        layrub.features + layrub.columns,
        layrub.host,
        rows,
    )


def _row(program: Program, strategy: str, base_scratch: int, budget: int | None) -> Row:
    options = PlanOptions(strategy, budget, base_scratch=base_scratch, cost=CostModel(GPU))
    begin = time.process_time()
    plan = make_plan(program, options)
    planning = time.process_time() - begin
    sections = {n: (n,) for n in plan.schedules} if strategy == "caffe" else sections_of(plan)
    verify(program, plan, sections)
    kinds = ("param", "param_diff", "history")
    weights = sum(b.nbytes for b in program.buffers.values() if b.kind in kinds)
    return Row(
        strategy,
        plan.nbytes - weights,
        weights,
        plan.host_bytes,
        _seconds(plan, GPU),
        _seconds(plan, OLD),
        planning,
    )


def _seconds(plan: Plan, figures: Figures) -> float:
    passes = ("step_first",) if "step_first" in plan.schedules else ("forward", "backward")
    schedules = [plan.schedules[name] for name in (*passes, "update")]
    cost = CostModel(figures)
    return sum(simulate(s.instructions, s.buffers, cost).total for s in schedules)


def gap_to_the_best() -> tuple[float, float]:
    """Mean and largest share by which ``auto`` is slower than the best plan, on small nets."""
    from layrubnet.memory.auto import fastest_within
    from layrubnet.memory.strategies import fixed_decisions
    from tests.support.exact_plans import SMALL_NETS, Exact, iteration_of

    gaps = []
    for text in SMALL_NETS.values():
        oracle = Exact(iteration_of(text))
        plain = oracle.iteration.outline(fixed_decisions("reuse", oracle.iteration))
        for share in (0.8, 0.5, 0.2, 0.0):
            budget = oracle.smallest + int(share * (plain.bound - oracle.smallest))
            found = fastest_within(oracle.iteration, budget).outline.timing.total
            gaps.append(found / oracle.seconds(budget) - 1)
    return mean(gaps), max(gaps)


def main() -> None:
    """Read the arguments, compare, write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nets", default=",".join((*ELEVEN, *OTHERS)))
    parser.add_argument("--output", default=str(ROOT / "docs" / "memory-table.md"))
    options = parser.parse_args()
    results = [
        compare(name, STRATEGIES if name in ELEVEN else BRIEF) for name in options.nets.split(",")
    ]
    text = write_tables(
        [r for r in results if r.net in ELEVEN],
        [r for r in results if r.net not in ELEVEN],
        gap_to_the_best(),
        datetime.date.today().isoformat(),
    )
    if options.output == "-":
        print(text)
    else:
        Path(options.output).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
