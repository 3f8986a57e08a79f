"""Plan the memory of a training: no device and no data needed.

  layrubnet plan net.prototxt                 peak, what is in it, time, savings
  layrubnet plan solver.prototxt --compare    one row per strategy
  layrubnet plan net.prototxt --memory-budget 6GiB  the fastest plan that fits,
                                              or the smallest budget that would
  layrubnet plan net.prototxt --batch 128 --iter-size 4
  layrubnet plan net.prototxt --svg plan.svg --html plan.html   the picture

Without its data base, a Data layer takes its shape from crop_size (and 3
channels), or from --input-shape data=64,3,224,224. Times are predicted from a
device's figures (--device-figures). A net without a solver is planned for SGD
with momentum. docs/memory.md explains strategies and pictures.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from layrubnet.cli import common
from layrubnet.cli.parser import count
from layrubnet.cli.plan_net import FIGURES, Job, input_shape, job
from layrubnet.errors import LayrubError
from layrubnet.files import atomic_write, check_writable
from layrubnet.memory.caffe_bytes import CaffeBytes, caffe_bytes
from layrubnet.memory.options import parse_budget
from layrubnet.memory.picture.page import page
from layrubnet.memory.picture.svg import draw
from layrubnet.memory.plan import Plan
from layrubnet.memory.planner import BudgetError
from layrubnet.memory.report import Figures, as_json, largest
from layrubnet.memory.report_text import size, summary, table
from layrubnet.memory.strategies import STRATEGIES, check_strategy
from layrubnet.memory.timeline import Timeline

NAME = "plan"
ALIASES: list[str] = []
USAGE = "layrubnet plan NET_OR_SOLVER [options]"
HELP = "plan the memory of a training: peak, savings, strategies, pictures"

_IN_PAGE = ("caffe", "reuse", "hybrid", "min")
"""What the page shows besides the chosen strategy."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="NET_OR_SOLVER", help="the prototxt to plan")
    memory = parser.add_argument_group("memory")
    memory.add_argument(
        "--memory",
        metavar="STRATEGY",
        help=f"{', '.join(STRATEGIES)} (auto, or what the solver says)",
    )
    memory.add_argument(
        "--memory-budget", metavar="SIZE", help="device memory there is: 6GiB, 750MB, 80%%"
    )
    memory.add_argument("--compare", action="store_true", help="plan every strategy, one row each")
    memory.add_argument("--batch", type=count, metavar="N", help="another batch size")
    memory.add_argument("--iter-size", type=count, metavar="K", help="micro-batches per iteration")
    memory.add_argument(
        "--input-shape",
        type=input_shape,
        action="append",
        default=[],
        metavar="TOP=N,C,H,W",
        help="the shape of a data top, instead of looking at the data",
    )
    memory.add_argument(
        "--device-figures",
        choices=sorted(FIGURES),
        default="gpu",
        help="whose speeds predict the time (gpu)",
    )
    output = parser.add_argument_group("output")
    output.add_argument("--json", metavar="FILE", help="write everything, instructions included")
    output.add_argument("--svg", metavar="FILE", help="draw the plan")
    output.add_argument("--html", metavar="FILE", help="an interactive page of several plans")
    output.add_argument("--verbose", action="store_true", help="list the instructions, too")
    common.add_state_flags(parser)


def run(args: argparse.Namespace) -> int:
    if not args.file:
        raise LayrubError("which net or solver?", hint="layrubnet plan net.prototxt")
    for path in (args.json, args.svg, args.html):
        if path:
            check_writable(path)
    work = job(args)
    strategy, budget = _wanted(args, work)
    for note in work.notes:
        print(f"note: {note}")
    net = work.graph.name or args.file
    print(f"{net}: {len(work.source.net.layer)} layers, batch size {work.batch_size}", end="")
    print(f", iter_size {work.micro_batches}\n" if work.micro_batches > 1 else "\n")
    plans: dict[str, Plan] = {}
    try:
        plans[strategy] = work.checked(strategy, budget)
    except BudgetError as error:
        raise _with_batch_hint(error, work, strategy, budget) from None
    others = STRATEGIES if args.compare else _IN_PAGE if args.html else ("caffe", "reuse")
    for name in others:
        if name not in plans:
            plans[name] = work.plan(name)
    lines = {name: work.timeline(plans[name]) for name in STRATEGIES if name in plans}
    figures = {name: work.measured(line) for name, line in lines.items()}
    bvlc = caffe_bytes(work.graph, histories=work.histories)
    fits = _largest_batch(work, strategy, budget) if budget is not None else None
    _print(args, lines[strategy], figures, bvlc, budget, fits)
    if args.json:
        _write(
            args.json,
            lambda: json.dumps(_everything(work, lines[strategy], figures, bvlc, budget, fits)),
        )
    title = f"{net}, batch {work.batch_size}"
    if args.svg:
        _write(args.svg, lambda: draw(lines[strategy], title, bvlc.total, budget))
    if args.html:
        shown = [(line, figures[name]) for name, line in lines.items()]
        _write(args.html, lambda: page(shown, title, strategy, bvlc.total, budget, work.cost))
    return 0


def _wanted(args: argparse.Namespace, work: Job) -> tuple[str, int | None]:
    """Strategy and budget: the command line goes before the solver; else ``auto``."""
    given = work.memory
    budget = parse_budget(args.memory_budget) if args.memory_budget else None
    if args.memory:
        return check_strategy(args.memory), budget
    if given is None:
        return "auto", budget
    return given.strategy, budget if budget is not None else given.budget


def _with_batch_hint(error: BudgetError, work: Job, strategy: str, budget: int | None) -> Exception:
    """The same refusal, with the batch size that would fit."""
    assert budget is not None
    fits = _largest_batch(work, strategy, budget)
    advice = (
        f"--batch {fits} is the largest that fits this budget"
        if fits
        else "not even a batch of one image fits this budget"
    )
    return BudgetError(f"{error}\n            {advice}")


def _largest_batch(work: Job, strategy: str, budget: int) -> int:
    """The largest batch size whose plan fits. ``auto`` can always do what ``min`` does."""
    name = "min" if strategy == "auto" else strategy
    return largest(
        lambda n: work.with_batch(n).plan(name).nbytes, budget, work.batch_size, limit=1 << 16
    )


def _print(
    args: argparse.Namespace,
    line: Timeline,
    figures: dict[str, Figures],
    bvlc: CaffeBytes,
    budget: int | None,
    fits: int | None,
) -> None:
    chosen = figures[line.plan.strategy]
    print("\n".join(summary(chosen, figures["reuse"], figures["caffe"], bvlc, args.device_figures)))
    if budget is not None:
        print(f"\nbudget          {size(budget)}: {size(budget - chosen.device)} to spare")
        print(f"                the largest batch that fits is {fits}")
    if args.compare:
        print("\n" + "\n".join(table(list(figures.values()), bvlc, budget)))
    if args.verbose:
        print("\ninstructions")
        for name, schedule in line.plan.schedules.items():
            print(f"  {name}")
            print("\n".join(f"  {n:5d}  {i}" for n, i in enumerate(schedule.instructions)))
    for what, path in (("JSON", args.json), ("picture", args.svg), ("page", args.html)):
        if path:
            print(f"\n{what}: {path}", end="")
    if args.json or args.svg or args.html:
        print()


def _everything(
    work: Job,
    line: Timeline,
    figures: dict[str, Figures],
    bvlc: CaffeBytes,
    budget: int | None,
    fits: int | None,
) -> dict[str, Any]:
    categories = {k: v for k, v in asdict(bvlc).items() if k != "layers"}
    return {
        "net": work.graph.name,
        "batch_size": work.batch_size,
        "iter_size": work.micro_batches,
        "device_figures": work.figures,
        "budget": budget,
        "largest_batch": fits,
        "notes": list(work.notes),
        "caffe": {**categories, "features": bvlc.features, "total": bvlc.total},
        "plan": as_json(line, figures[line.plan.strategy], work.cost),
        "strategies": {name: asdict(f) for name, f in figures.items()},
    }


def _write(path: str, text: Callable[[], str]) -> None:
    with atomic_write(path) as temporary:
        temporary.write_text(text() + "\n", encoding="utf-8")
