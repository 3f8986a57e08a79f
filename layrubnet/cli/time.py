"""Measure how long each layer takes, forward and backward.

  layrubnet time net.prototxt
  layrubnet time net.prototxt --iterations 10 --json times.json
  layrubnet time net.prototxt --phase TEST
  layrubnet time net.prototxt --profile times.json    for the memory planner

One iteration more runs first, to warm up. Data are read as in training.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from dataclasses import asdict, dataclass
from time import perf_counter

from layrubnet.cli import common
from layrubnet.cli.parser import count
from layrubnet.engine.net import CompiledNet
from layrubnet.engine.program import Instruction
from layrubnet.files import atomic_write, check_writable
from layrubnet.memory import profile
from layrubnet.solvers.nets import places
from layrubnet.solvers.weights import load_weights

NAME = "time"
ALIASES: list[str] = []
USAGE = "layrubnet time NET [options]"
HELP = "time every layer of a net"


def configure(parser: argparse.ArgumentParser) -> None:
    common.add_model_flags(parser, weights="weights to load first")
    parser.add_argument(
        "-iterations", "--iterations", type=count, default=50, metavar="N",
        help="iterations to average (50)",
    )  # fmt: skip
    common.add_phase_flag(parser, "TRAIN", "the layers of this phase (TRAIN)")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to a file")
    parser.add_argument(
        "--profile",
        metavar="FILE",
        help="also write the time of each instruction, for --memory-profile",
    )
    common.add_state_flags(parser)
    common.add_device_flags(parser)


@dataclass
class LayerTime:
    """Average milliseconds and work of one layer."""

    name: str
    type: str
    forward_ms: float
    backward_ms: float
    forward_gflops: float
    backward_gflops: float


class _Clock:
    """An executor hook that adds up the time since the previous instruction, per layer."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.last = perf_counter()

    def __call__(self, instruction: Instruction) -> None:
        now = perf_counter()
        self.seconds[instruction.target] += now - self.last
        self.last = perf_counter()


def run(args: argparse.Namespace) -> int:
    stages = common.split_list(args.stage)
    source = common.load_net(
        common.model_path(args), args.phase, args.level, stages, args.allow_unknown_fields
    )
    device = common.chosen_device(args)
    weights = common.weights_paths(args)
    for path in (args.json, args.profile):
        if path:
            check_writable(path)
    net = CompiledNet(source.net, args.phase, device=device, where=places(source))
    try:
        if weights:
            load_weights(net, weights)
        rows, totals = measure(net, args.iterations)
        if args.profile:
            profile.measure(net, args.iterations).save(args.profile)
    finally:
        net.close()
    _print(rows, totals, args.iterations)
    if args.json:
        figures = {"iterations": args.iterations, "layers": [asdict(r) for r in rows], **totals}
        with atomic_write(args.json) as temporary:
            temporary.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def measure(net: CompiledNet, iterations: int) -> tuple[list[LayerTime], dict[str, float]]:
    """Run one warm-up and ``iterations`` timed iterations; return a row per layer and totals."""
    net.forward()
    net.backward()
    clocks = {"forward": _Clock(), "backward": _Clock()}
    totals = {"forward_ms": 0.0, "backward_ms": 0.0}
    for _ in range(iterations):
        for section, clock in clocks.items():
            clock.last = begin = perf_counter()
            (net.forward if section == "forward" else net.backward)(hook=clock)
            totals[f"{section}_ms"] += (perf_counter() - begin) * 1e3 / iterations
    rows = []
    for node in net.graph.nodes:
        flops = node.contract.flops
        milliseconds = [c.seconds[node.name] * 1e3 / iterations for c in clocks.values()]
        work = (flops.forward, flops.backward_data + flops.backward_weights)
        rows.append(LayerTime(node.name, node.layer.type, *milliseconds, *(w / 1e9 for w in work)))
    return rows, totals


def _print(rows: list[LayerTime], totals: dict[str, float], iterations: int) -> None:
    print("*** Benchmark begins ***")
    print(f"Testing for {iterations} iterations.")
    print("Average time per layer: ")
    for row in rows:
        print(f"{row.name:>10}\tforward: {row.forward_ms:.4g} ms.")
        print(f"{row.name:>10}\tbackward: {row.backward_ms:.4g} ms.")
    both = totals["forward_ms"] + totals["backward_ms"]
    print(f"Average Forward pass: {totals['forward_ms']:.4g} ms.")
    print(f"Average Backward pass: {totals['backward_ms']:.4g} ms.")
    print(f"Average Forward-Backward: {both:.4g} ms.")
    print(f"Total Time: {both * iterations:.4g} ms.")
    print("*** Benchmark ends ***")
    width = max(len(row.name) for row in rows)
    print(f"\n{'layer':<{width}}  {'type':<16} {'share':>6} {'GFLOP/s fwd':>12} {'bwd':>8}")
    for row in sorted(rows, key=lambda r: -(r.forward_ms + r.backward_ms)):
        share = (row.forward_ms + row.backward_ms) / both if both else 0
        forward = row.forward_gflops / row.forward_ms * 1e3 if row.forward_ms else 0
        backward = row.backward_gflops / row.backward_ms * 1e3 if row.backward_ms else 0
        print(f"{row.name:<{width}}  {row.type:<16} {share:6.1%} {forward:12.1f} {backward:8.1f}")
