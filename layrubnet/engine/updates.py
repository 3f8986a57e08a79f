"""Lower the solver's part of an iteration: norm -> clip -> normalise -> regularise -> update.

That is Caffe's order: clipping sees the sum over ``iter_size`` before it is divided, and weight
decay comes after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from layrubnet.engine.buffers import BufferTable
from layrubnet.engine.graph import Graph, Param
from layrubnet.engine.instructions import instruction
from layrubnet.engine.program import Instruction

LR, STEP = 0, 1
"""Slots of the planned ``scalars`` buffer that the solver sets before each update."""


class UpdateRule(Protocol):
    """A solver's update of one parameter; everything constant over the run lives here."""

    histories: int
    """History arrays per parameter."""
    clip_gradients: float
    """Largest L2 norm of all gradients; negative: no clipping."""
    iter_size: int
    weight_decay: float
    regularization_type: str
    """"L2" or "L1"."""

    def update(
        self, ops: Any, w: Any, dw: Any, history: Sequence[Any], scalars: Any, lr_mult: float
    ) -> None:
        """Update ``w`` and ``history`` in place; may use ``dw`` as scratch."""
        ...


def updated_params(graph: Graph) -> list[Param]:
    """Parameters that the solver moves: those with a learning rate.

    One that backward does not reach (``propagate_down: false`` above it) has a zero gradient and
    is still moved by weight decay and momentum, as in Caffe.
    """
    return [p for p in graph.params if p.kind == "param" and p.lr_mult != 0]


def lower_updates(graph: Graph, table: BufferTable, rule: UpdateRule) -> list[Instruction]:
    """The update section of the program."""
    params = updated_params(graph)
    out = [
        instruction("zero", p.name, {"y": (table.param_diff(p),)})
        for p in params
        if not p.needs_gradient
    ]
    if rule.clip_gradients >= 0:
        diffs = tuple(table.param_diff(p) for p in params if p.needs_gradient)
        out.append(instruction("norm", graph.name, {"x": diffs, "y": (table.norm(),)}))
    for param in params:
        diff, w = table.param_diff(param), table.param(param)
        if rule.clip_gradients >= 0:
            out.append(
                instruction(
                    "clip",
                    param.name,
                    {"x": (table.norm(), diff), "y": (diff,)},
                    values=(rule.clip_gradients,),
                )
            )
        if rule.iter_size > 1:
            out.append(
                instruction(
                    "normalise",
                    param.name,
                    {"x": (diff,), "y": (diff,)},
                    values=(1.0 / rule.iter_size,),
                )
            )
        decay = rule.weight_decay * param.decay_mult
        if decay:
            out.append(
                instruction(
                    "regularise", param.name, {"x": (w, diff), "y": (diff,)}, values=(decay,)
                )
            )
        history = table.history(param, rule.histories)
        out.append(
            instruction(
                "update",
                param.name,
                {"x": (table.scalars(), diff), "y": (w,), "history": history},
                written=("y", "history"),
                values=(param.lr_mult,),
            )
        )
    return out
