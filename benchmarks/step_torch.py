"""Worker of ``train_step.py``: the same nets and the same step in PyTorch (eager)."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from nets import CLASSES, INPUTS
from stepping import serve
from torch import nn
from torch.nn import functional


def _layers(net: str) -> nn.Sequential:
    ceil = {"ceil_mode": True}
    if net == "lenet":
        return nn.Sequential(
            nn.Conv2d(1, 20, 5), nn.MaxPool2d(2, 2, **ceil), nn.Conv2d(20, 50, 5),
            nn.MaxPool2d(2, 2, **ceil), nn.Flatten(), nn.Linear(800, 500), nn.ReLU(inplace=True),
            nn.Linear(500, CLASSES),
        )  # fmt: skip
    return nn.Sequential(
        nn.Conv2d(3, 32, 5, padding=2), nn.MaxPool2d(3, 2, **ceil), nn.ReLU(inplace=True),
        nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(inplace=True), nn.AvgPool2d(3, 2, **ceil),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(inplace=True), nn.AvgPool2d(3, 2, **ceil),
        nn.Flatten(), nn.Linear(1024, 64), nn.Linear(64, CLASSES),
    )  # fmt: skip


def build(net: str) -> Callable[[], object]:
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    model = _layers(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=0.0005)
    shape = INPUTS[net]
    x = torch.randn(shape)
    label = torch.randint(0, CLASSES, shape[:1])

    def step() -> None:
        optimizer.zero_grad()
        functional.cross_entropy(model(x), label).backward()
        optimizer.step()

    return step


if __name__ == "__main__":
    serve(build)
