"""Find where the first NaN or infinity came from, and say so."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from layrubnet.engine.graph import Node
from layrubnet.engine.net import CompiledNet
from layrubnet.engine.program import Instruction
from layrubnet.errors import NonFiniteError

LOSS_FLOOR = 87.3365
"""-ln(FLT_MIN): what SoftmaxWithLoss gives for a true class of probability 0."""

_CHECKED = ("y", "dx", "dw", "w", "state", "history")
"""Roles of operands. What a layer saves for its own backward may well hold an infinity."""

_HINT = "lower base_lr, warm it up (warmup_iter) or set clip_gradients; check the data's scale"
_DATA_HINT = "check transform_param (scale, mean) and the values in the data"


def looks_like_floor(loss: float) -> bool:
    """Whether the loss is the value that a diverged softmax gets stuck at."""
    return abs(loss - LOSS_FLOOR) < 1e-3


class FiniteCheck:
    """An executor's hook that raises :class:`NonFiniteError` after the first bad instruction."""

    def __init__(self, net: CompiledNet, iteration: int) -> None:
        self.net, self.iteration = net, iteration

    def __call__(self, instruction: Instruction) -> None:
        for role in _CHECKED:
            for operand in instruction.slots.get(role, ()):
                if operand is None or operand.buffer not in instruction.writes:
                    continue
                values = self.net.device.download(self.net.executor.array(operand))
                if values.dtype.kind == "f" and not np.isfinite(values).all():
                    self._fail(instruction, operand.buffer, values)

    def _fail(self, instruction: Instruction, name: str, values: Any) -> None:
        node = next((n for n in self.net.graph.nodes if n.name == instruction.target), None)
        kind = f" ({node.layer.type})" if node else ""
        what = f"layer {node.name!r}{kind}" if node else f"parameter {instruction.target!r}"
        bad = self._bad_param(node) if node else None
        blame = f"; its parameter {bad!r} was already" if bad else ""
        raise NonFiniteError(
            f"iteration {self.iteration}: {what} is the first with a value that is not finite, "
            f"in {_blob(instruction, name, node)}{blame}",
            where=node.layer.where if node else "",
            expected=f"finite numbers after the instruction '{instruction.op}'",
            got=describe(values),
            hint=_DATA_HINT if instruction.op == "load" else _HINT,
        )

    def _bad_param(self, node: Node) -> str | None:
        for param in node.params:
            if not np.isfinite(self.net.device.download(self.net.param_data(param.name))).all():
                return param.name
        return None


def _blob(instruction: Instruction, buffer: str, node: Node | None) -> str:
    """What users call the buffer: a blob of the net, or a parameter."""
    if node is not None:
        for role, values, what in (
            ("y", node.tops, "blob"),
            ("dx", node.bottoms, "the gradient of blob"),
        ):
            operands = instruction.slots.get(role, ())
            for operand, value in zip(operands, values, strict=False):
                if operand is not None and operand.buffer == buffer:
                    return f"{what} {value.name!r}"
    stem, _, kind = buffer.rpartition(".")
    if kind == "param_diff":
        return f"the gradient of parameter {stem!r}"
    return f"parameter {stem!r}" if kind == "param" else f"{buffer!r}"


def describe(values: Any) -> str:
    """How many values are bad, and how large the others are."""
    finite = values[np.isfinite(values)]
    nans = int(np.isnan(values).sum())
    infinite = values.size - finite.size - nans
    largest = f"{np.abs(finite).max():g}" if finite.size else "none"
    return (
        f"{nans} NaN and {infinite} infinite of {values.size} values; "
        f"largest finite magnitude: {largest}"
    )


def explain_loss(loss: float, net: CompiledNet, iteration: int) -> None:
    """Raise :class:`NonFiniteError` for a loss that is not finite, naming the first bad layer.

    The forward pass is repeated on the same batch (random draws repeat as well) and checked after
    every instruction.
    """
    if math.isfinite(loss):
        return
    if not net.plan.keeps_everything:
        raise NonFiniteError(
            f"iteration {iteration}: the loss is {loss:g}",
            hint="--check-finite finds the layer (this memory plan no longer holds the batch)",
        )
    check = FiniteCheck(net, iteration)
    for instruction in net.program.sections["forward"]:
        if instruction.op == "load":
            check(instruction)
    loading = {node.name for node in net.data_nodes()}
    again = frozenset(name for name in net.layer_names if name not in loading)
    net.executor.run("forward", layers=again, hook=check)
    raise NonFiniteError(
        f"iteration {iteration}: the loss is {loss:g}, though every blob is finite",
        hint="the weighted sum of the losses overflows; check loss_weight",
    )
