"""Worker of ``memory_cpu.py``: trains one net under one memory strategy and reports figures.

It prints one line of JSON when the net is ready and has trained twice, then answers each line
``steps N`` with the seconds of one step, by the clock and of processor time. The figures:
``planned`` bytes, ``anon``: anonymous resident memory (RssAnon of /proc/self/status) at its peak,
above what the process had before the net's memory was there, ``host`` bytes in the offload file.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from layrubnet.engine.executor import Executor
from layrubnet.engine.net import CompiledNet
from layrubnet.engine.updates import LR
from layrubnet.errors import LayrubError
from layrubnet.memory.options import MemoryOptions, parse_budget
from layrubnet.proto import SolverParameter
from layrubnet.solvers.rules import make_rule

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "resnet"))

import nets
from net_writer import Source


def resident(field: str = "RssAnon") -> int:
    """Bytes of this process by a field of /proc/self/status."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"/proc/self/status has no {field}")


class Measured(CompiledNet):
    """Notes what is resident just before the net gets its memory."""

    before = 0

    def _lender(self, share: CompiledNet | None, memory: MemoryOptions) -> Executor | None:
        gc.collect()
        self.before = resident()
        return super()._lender(share, memory)


def build(arguments: argparse.Namespace) -> Measured:
    """The net of the command line, ready to train."""
    param = nets.make(arguments.net, batch=arguments.batch, source=Source(arguments.data or ""))
    solver = SolverParameter(type="SGD", base_lr=0.01, momentum=0.9, weight_decay=0.0005)
    budget = parse_budget(arguments.budget) if arguments.budget else None
    memory = MemoryOptions(arguments.strategy, budget, offload_dir=arguments.offload_dir)
    net = Measured(param, "TRAIN", rule=make_rule(solver), memory=memory)
    rng = np.random.default_rng(0)
    for value in net.graph.inputs():
        target = net.data(value.name)
        if value.name == "label":
            target[...] = rng.integers(0, 10, target.shape)
        else:
            for image in target:
                image[...] = rng.standard_normal(image.shape, np.float32)
    net.executor.set_scalar(LR, 0.01)
    return net


def stepper(net: Measured, peak: dict[str, int]) -> Callable[[int], tuple[float, float]]:
    """A function that runs some steps and returns the seconds of each, by two clocks."""

    def run(count: int) -> tuple[float, float]:
        begin, busy = time.perf_counter(), time.process_time()
        for iteration in range(count):
            net.step(iteration=iteration)
            net.update()
        seconds = (
            (time.perf_counter() - begin) / count,
            (time.process_time() - busy) / count,
        )
        peak["anon"] = max(peak["anon"], resident() - net.before)
        return seconds

    return run


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("net")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--strategy", default="caffe")
    parser.add_argument("--budget")
    parser.add_argument("--offload-dir")
    parser.add_argument("--data")
    arguments = parser.parse_args()
    try:
        net = build(arguments)
    except LayrubError as error:
        print(error, file=sys.stderr)
        return 1
    peak = {"anon": 0}
    run = stepper(net, peak)
    run(2)
    figures: dict[str, Any] = {
        "planned": net.plan.nbytes,
        "anon": peak["anon"],
        "host": net.plan.host_bytes,
        "size": resident("VmSize"),
        "loss": net.executor.loss,
    }
    print(json.dumps(figures), flush=True)
    for line in sys.stdin:
        print(*run(int(line.split()[1])), flush=True)
    net.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
