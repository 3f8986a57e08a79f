"""Time the passes of typical convolutions with each CPU engine, and show which one nets get.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/conv_engines.py [--rounds 5]

Engines take turns within a round; the table shows medians of the processor time of the thread, so
it is meant for one thread. The rules in ``layrubnet/devices/cpu/onednn/choice.py`` come from here.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from unittest import mock

import numpy as np

from layrubnet.devices.cpu.convolution import ConvPlan
from layrubnet.devices.cpu.device import CpuDevice
from layrubnet.devices.cpu.onednn import choice
from layrubnet.devices.cpu.onednn.convolution import OneDnnConvPlan
from layrubnet.devices.geometry import ConvGeometry

# batch, channels, outputs, size, kernel, stride, pad, group
LAYERS = {
    "LeNet conv1": (64, 1, 20, 28, 5, 1, 0, 1),
    "LeNet conv2": (64, 20, 50, 12, 5, 1, 0, 1),
    "CIFAR conv1": (100, 3, 32, 32, 5, 1, 2, 1),
    "CIFAR conv2": (100, 32, 32, 16, 5, 1, 2, 1),
    "CIFAR conv3": (100, 32, 64, 8, 5, 1, 2, 1),
    "AlexNet conv1": (16, 3, 96, 227, 11, 4, 0, 1),
    "AlexNet conv2": (16, 96, 256, 27, 5, 1, 2, 2),
    "AlexNet conv3": (16, 256, 384, 13, 3, 1, 1, 1),
    "AlexNet conv5": (16, 384, 256, 13, 3, 1, 1, 2),
    "VGG conv1_2": (2, 64, 64, 224, 3, 1, 1, 1),
    "VGG conv3_1": (4, 128, 256, 56, 3, 1, 1, 1),
    "VGG conv5_1": (8, 512, 512, 14, 3, 1, 1, 1),
    "ResNet conv1": (8, 3, 64, 224, 7, 2, 3, 1),
    "ResNet 1x1": (16, 256, 64, 56, 1, 1, 0, 1),
    "ResNet 3x3": (16, 64, 64, 56, 3, 1, 1, 1),
    "ResNet 3x3/2": (16, 128, 128, 56, 3, 2, 1, 1),
    "ResNet 3x3 512": (16, 512, 512, 7, 3, 1, 1, 1),
    "depthwise": (16, 64, 64, 56, 3, 1, 1, 64),
}
PASSES = ("forward", "backward_data", "backward_weights")
Plan = ConvPlan | OneDnnConvPlan


def geometry(name: str) -> ConvGeometry:
    """The convolution of a name in ``LAYERS``."""
    batch, channels, outputs, size, kernel, stride, pad, group = LAYERS[name]
    out = (size + 2 * pad - kernel) // stride + 1
    sizes = [(n, n) for n in (size, out, kernel, stride, pad, 1)]
    return ConvGeometry(batch, channels, outputs, *sizes, group)


def plans(device: CpuDevice, g: ConvGeometry) -> tuple[Plan, Plan, Plan]:
    """NumPy's plan, oneDNN's wherever it can, and the one that nets get."""
    numpy_plan, chosen = (device.ops.conv_plan(g, library=used) for used in (False, True))
    with (
        mock.patch.object(choice, "use_forward", return_value=True),
        mock.patch.object(choice, "use_weights", return_value=True),
    ):
        # Plans are shared between layers of one geometry: another device makes a new one.
        fresh = CpuDevice()
        fresh.ops.scratch = device.ops.scratch
        return numpy_plan, fresh.ops.conv_plan(g), chosen


def measure(device: CpuDevice, g: ConvGeometry, rounds: int) -> list[str]:
    """One cell per pass: NumPy / oneDNN, a star at the engine that nets get."""
    numpy_plan, onednn_plan, chosen = plans(device, g)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((g.batch, g.channels, *g.size), np.float32)
    w = rng.standard_normal(g.weight_shape, np.float32)
    dy = rng.standard_normal((g.batch, g.outputs, *g.out_size), np.float32)
    b, y, dx, dw = np.zeros(g.outputs, np.float32), dy.copy(), x.copy(), w.copy()
    calls: dict[str, Callable[[Plan], None]] = {
        "forward": lambda plan: plan.forward(x, w, b, y),
        "backward_data": lambda plan: plan.backward_data(dy, w, dx),
        "backward_weights": lambda plan: plan.backward_weights(x, dy, dw, False),
    }
    scratch = device.ops.scratch
    most = max(getattr(p.scratch, name) for p in (numpy_plan, onednn_plan) for name in PASSES)
    memory = device.allocate(most)
    scratch.bind(lambda offset, shape, dtype: device.view(memory, offset, shape, dtype))
    cells = []
    for name in PASSES:
        times: list[list[float]] = [[], []]
        for _ in range(rounds + 1):
            for i, plan in enumerate((numpy_plan, onednn_plan)):
                scratch.reset(most)
                begin = time.thread_time()
                calls[name](plan)
                times[i].append((time.thread_time() - begin) * 1e3)
        medians = [statistics.median(t[1:]) for t in times]
        used = name in chosen.uses if isinstance(chosen, OneDnnConvPlan) else False
        marks = (" ", "*") if used else ("*", " ")
        cells.append(" ".join(f"{m:8.2f}{mark}" for m, mark in zip(medians, marks, strict=True)))
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    device = CpuDevice()
    print(device.describe())
    print(f"{'NumPy, oneDNN (ms)':<19}" + "".join(f"{name:<21}" for name in PASSES))
    for name in LAYERS:
        print(f"{name:<19}" + "  ".join(measure(device, geometry(name), args.rounds)), flush=True)


if __name__ == "__main__":
    main()
