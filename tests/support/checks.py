"""Checks that every layer goes through: numeric gradients, and no allocation during a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from google.protobuf import text_format

from layrubnet.engine.net import CompiledNet
from layrubnet.engine.program import Instruction
from layrubnet.proto import NetParameter
from tests.support.array_memory import count_array_memory

LIMIT = 4096
"""Bytes of array data an instruction may allocate at its peak."""


def make_net(text: str, phase: str = "TRAIN", **options: Any) -> CompiledNet:
    """A net from prototxt text, without upgrades; gradients of outputs can be seeded."""
    param = text_format.Parse(text, NetParameter())
    param.force_backward = True
    return CompiledNet(param, phase, **{"seeds": True, "seed": 7, **options})


def probe(layer: str, inputs: Mapping[str, tuple[int, ...]], **options: Any) -> CompiledNet:
    """A net of Input layers (name -> shape) and one layer given as prototxt."""
    text = "".join(
        f'layer {{ name: "in_{name}" type: "Input" top: "{name}" input_param {{ shape {{ '
        + " ".join(f"dim: {d}" for d in shape)
        + " } } }\n"
        for name, shape in inputs.items()
    )
    return make_net(text + layer, **options)


def randomise(net: CompiledNet, rng: np.random.Generator, low: float = -1, high: float = 1) -> None:
    """Random inputs, parameters and seeds of output gradients."""
    for value in net.graph.inputs():
        target = net.data(value.name)
        target[...] = rng.uniform(low, high, target.shape)
    for param in net.graph.params:
        if param.kind == "param":
            target = net.param_data(param.name)
            target[...] = rng.uniform(-1, 1, target.shape)
    for value in net.graph.outputs():
        if value.name in net.program.blob_diff and value.name not in _losses(net):
            target = net.diff(value.name)
            target[...] = rng.uniform(-1, 1, target.shape)


def _losses(net: CompiledNet) -> set[str]:
    return {
        v.name
        for node in net.graph.nodes
        for v, w in zip(node.tops, node.loss_weights, strict=True)
        if w
    }


def check_gradients(
    net: CompiledNet,
    inputs: list[str],
    *,
    step: float = 1e-2,
    tolerance: float = 2e-2,
    samples: int = 12,
    seed: int = 3,
) -> None:
    """Compare backward with central differences of sum(seed * top) at sampled elements.

    ``inputs`` names the input blobs to check; every parameter with a gradient is checked too.
    Net values must already be set (``randomise``); random layers repeat their draws.
    """
    rng = np.random.default_rng(seed)
    seeds = {
        v.name: np.array(net.diff(v.name))
        for v in net.graph.outputs()
        if v.name in net.program.blob_diff
    }
    feeds = {v.name: np.array(net.data(v.name)) for v in net.graph.inputs()}
    states = {p.name: np.array(net.param_data(p.name)) for p in net.graph.params}

    def objective(target: str | None, moved: np.ndarray | None) -> float:
        for name, values in states.items():
            net.param_data(name)[...] = values
        for name, values in feeds.items():
            net.data(name)[...] = values
        if target is not None:
            (net.data(target) if target in feeds else net.param_data(target))[...] = moved
        net.forward(iteration=5)
        return sum(float((seeds[n].astype(np.float64) * net.data(n)).sum()) for n in seeds)

    objective(None, None)
    for name, values in seeds.items():
        net.diff(name)[...] = values
    net.backward()
    wanted = {n: np.array(net.diff(n)) for n in inputs}
    wanted |= {n: np.array(net.param_diff(n)) for n in net.program.param_diff}
    for name, gradient in wanted.items():
        base = feeds[name] if name in feeds else states[name]
        scale = max(float(np.abs(gradient).max(initial=0)), 1.0)
        for index in rng.permutation(base.size)[:samples]:
            position = np.unravel_index(index, base.shape)
            values = []
            for sign in (1, -1):
                moved = base.copy()
                moved[position] += sign * step
                values.append(objective(name, moved))
            numeric = (values[0] - values[1]) / (2 * step)
            assert abs(numeric - gradient[position]) <= tolerance * scale, (
                f"{name}{position}: numeric {numeric}, backward {gradient[position]}"
            )


def check_no_allocation(net: CompiledNet) -> None:
    """After a warm-up step, no instruction allocates more than 4 KiB of array data at its peak."""
    sections = [s for s in ("forward", "backward", "update") if s in net.program.sections]
    for section in sections:
        net.executor.run(section)
    worst: list[tuple[int, str]] = []
    with count_array_memory() as memory:

        def hook(instruction: Instruction) -> None:
            worst.append((memory.peak, f"{instruction.op} {instruction.target}"))
            memory.reset_peak()

        for section in sections:
            memory.reset_peak()
            net.executor.run(section, hook=hook)
    assert worst, "the net ran no instruction"
    over = [w for w in worst if w[0] > LIMIT]
    assert not over, f"array data allocated during a step (bytes, instruction): {over}"
