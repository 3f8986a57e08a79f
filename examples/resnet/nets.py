"""The catalogue: nets and their solvers by name.

>>> net_param = make("ResNet-50", batch=16)
>>> net_param = make("resnet", blocks=(3, 30, 48, 8))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import residual
from classic import alexnet, googlenet, vgg16
from net_writer import Source

from layrubnet.proto import SolverParameter

PUBLISHED = (
    "AlexNet",
    "CaffeNet",
    "GoogLeNet",
    "VGG-16",
    *(f"ResNet-{depth}" for depth in (*residual.BASIC_BLOCKS, *residual.BOTTLENECK_BLOCKS)),
    "WRN-28-10",
    *(f"ResNet-{depth}" for depth in residual.CIFAR_DEPTHS),
)
"""Names of the nets in the papers; other depths and widths work as well."""


@dataclass(frozen=True)
class Recipe:
    """How to write a net (``write(batch=, classes=, source=)``), and its usual training."""

    write: Callable[..., Any]
    batch: int
    classes: int
    rate: float
    decay: float
    solver: str = "SGD"
    iter_size: int = 1
    steps: tuple[int, ...] = ()


_IMAGENET = Recipe(vgg16, 32, 1000, 0.1, 1e-4, steps=(300_000, 600_000))
_CIFAR = Recipe(vgg16, 100, 10, 0.1, 1e-4, steps=(32_000, 48_000))


def _with(recipe: Recipe, write: Callable[..., Any], **changes: Any) -> Recipe:
    return Recipe(**{**recipe.__dict__, "write": write, **changes})


_CLASSIC = {
    "alexnet": _with(_IMAGENET, alexnet, batch=256, rate=0.01, decay=5e-4),
    "caffenet": _with(
        _IMAGENET, partial(alexnet, pool_first=True), batch=256, rate=0.01, decay=5e-4
    ),
    "vgg-16": _with(_IMAGENET, vgg16, batch=64, rate=0.01, decay=5e-4),
    "googlenet": _with(_IMAGENET, googlenet, rate=0.01, decay=2e-4),
}


def recipe(name: str, blocks: Sequence[int] = ()) -> Recipe:
    """The recipe for ``name`` (case does not matter); an unknown name raises ValueError.

    ``blocks``: four numbers, the blocks per stage of a bottleneck ResNet, where ``name`` is
    ``resnet``.
    """
    key = name.lower()
    if key in _CLASSIC:
        return _CLASSIC[key]
    if key == "resnet" and len(blocks) == 4 and min(blocks) > 0:
        return _imagenet_resnet(tuple(blocks), residual.bottleneck)
    if found := re.fullmatch(r"resnet-(\d+)", key):
        return _resnet(int(found[1]))
    if found := re.fullmatch(r"wrn-(\d+)-(\d+)", key):
        write = partial(residual.wide_resnet, int(found[1]), int(found[2]))
        return _with(_CIFAR, write, batch=128, decay=5e-4, solver="Nesterov")
    raise ValueError(
        f"no net is called {name!r}; there are {', '.join(PUBLISHED)}, WRN-d-k, ResNet-N, "
        "and resnet with four numbers of blocks"
    )


def _resnet(depth: int) -> Recipe:
    if depth in residual.BASIC_BLOCKS:
        return _imagenet_resnet(residual.BASIC_BLOCKS[depth], residual.basic)
    if depth in residual.CIFAR_DEPTHS:
        return _with(_CIFAR, partial(residual.cifar_resnet, depth))
    return _imagenet_resnet(residual.bottleneck_blocks(depth), residual.bottleneck)


def _imagenet_resnet(blocks: tuple[int, ...], block: residual.Block) -> Recipe:
    write = partial(residual.imagenet_resnet, blocks, block=block)
    return _with(_IMAGENET, write, iter_size=2 if 10 < sum(blocks) <= 50 else 1)


def make(
    name: str,
    *,
    batch: int | None = None,
    classes: int | None = None,
    blocks: Sequence[int] = (),
    source: Source | None = None,
) -> Any:
    """The NetParameter of the net ``name``; batch and classes default to the papers'."""
    found = recipe(name, blocks)
    batch = found.batch if batch is None else batch
    classes = found.classes if classes is None else classes
    if batch < 1 or classes < 1:
        raise ValueError(f"batch and classes are at least 1, not {batch} and {classes}")
    return found.write(batch=batch, classes=classes, source=source or Source())


def make_solver(name: str, net_file: str, *, blocks: Sequence[int] = ()) -> Any:
    """The SolverParameter that usually trains the net ``name``, written to ``net_file``."""
    found = recipe(name, blocks)
    solver = SolverParameter(
        net=net_file,
        type=found.solver,
        base_lr=found.rate,
        lr_policy="multistep",
        gamma=0.1,
        stepvalue=found.steps,
        max_iter=found.steps[-1] + found.steps[0],
        momentum=0.9,
        weight_decay=found.decay,
        display=20,
        snapshot=10_000,
        snapshot_prefix=re.sub(r"\W+", "_", name.lower()),
    )
    if found.iter_size != 1:
        solver.iter_size = found.iter_size
    return solver
