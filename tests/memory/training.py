"""Train a small net under a memory plan, and compare what is left, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from google.protobuf import text_format

from layrubnet.engine.executor import Executor
from layrubnet.engine.net import CompiledNet
from layrubnet.engine.updates import LR, STEP
from layrubnet.memory.options import MemoryOptions
from layrubnet.memory.plan import Plan
from layrubnet.memory.planner import PlanOptions, make_plan
from layrubnet.proto import NetParameter, SolverParameter
from layrubnet.solvers.rules import make_rule

CLASSES = 3
ITERATIONS = 3


@dataclass(frozen=True)
class Training:
    """How to train: a solver's fields, and micro-batches per iteration (its ``iter_size``)."""

    iter_size: int = 1
    solver: Mapping[str, Any] = field(
        default_factory=lambda: {"type": "SGD", "momentum": 0.9, "weight_decay": 0.01}
    )
    debug: bool = True
    """Fill dead memory with NaN."""

    def net(self, text: str, memory: MemoryOptions) -> CompiledNet:
        """The net, ready to train."""
        rule = make_rule(SolverParameter(base_lr=0.05, iter_size=self.iter_size, **self.solver))
        param = text_format.Parse(text, NetParameter())
        net = CompiledNet(param, "TRAIN", rule=rule, seed=5, memory=memory)
        net.executor.debug = self.debug
        return net


def feed(net: CompiledNet, rng: np.random.Generator) -> None:
    """New values for every Input; those called ``label...`` are classes."""
    for value in net.graph.inputs():
        target = net.data(value.name)
        if value.name.startswith("label"):
            target[...] = rng.integers(0, CLASSES, target.shape)
        else:
            target[...] = rng.normal(size=target.shape)


Result = dict[str, bytes]


def train(
    text: str,
    memory: MemoryOptions | str = "caffe",
    training: Training | None = None,
    *,
    before: Callable[[CompiledNet], None] | None = None,
) -> Result:
    """Train 3 iterations; everything that is left (and each loss and output) as bytes by name."""
    if isinstance(memory, str):
        memory = MemoryOptions(memory)
    training = training or Training()
    net = training.net(text, memory)
    if before is not None:
        before(net)
    try:
        return _run(net, training)
    finally:
        net.close()


def _run(net: CompiledNet, training: Training) -> Result:
    rng = np.random.default_rng(11)
    found: Result = {}
    for iteration in range(ITERATIONS):
        for micro_batch in range(training.iter_size):
            feed(net, rng)
            loss = net.step(iteration=iteration, micro_batch=micro_batch)
            found[f"loss {iteration}.{micro_batch}"] = np.float64(loss).tobytes()
            for name, values in net.output_values().items():
                found[f"output {name} {iteration}.{micro_batch}"] = values.tobytes()
        net.executor.set_scalar(LR, 0.05)
        net.executor.set_scalar(STEP, iteration + 1)
        net.update()
    kept = ("param", "param_diff", "history", "state")
    for name, buffer in net.program.buffers.items():
        if buffer.persistent and buffer.kind in kept:
            found[name] = net.device.download(net.executor.persistent[name]).tobytes()
    return found


def differences(got: Result, wanted: Result) -> list[str]:
    """Names of what is not the same in both."""
    return [n for n in got.keys() | wanted.keys() if got.get(n) != wanted.get(n)]


def budgets(text: str, training: Training, count: int = 3) -> list[int]:
    """Budgets between the smallest plan of ``auto`` and what plain reuse needs."""
    net = training.net(text, MemoryOptions("reuse"))
    high = net.plan.nbytes
    low = make_plan(
        net.program,
        PlanOptions("min", micro_batches=training.iter_size, base_scratch=net.device.base_scratch),
    ).nbytes
    net.close()
    low = min(low, high)
    return sorted({low + (high - low) * k // count for k in range(count + 1)})


def use_plan(net: CompiledNet, plan: Plan) -> None:
    """Let a net run by another plan of its program; nobody checks it."""
    old = net.executor
    net.plan = plan
    net.executor = Executor(net.program, plan, net.device, seed=net.seed, rule=net.rule)
    net.executor.debug = old.debug
    for name, array in old.persistent.items():
        net.executor.persistent[name][...] = array
    old.close()
