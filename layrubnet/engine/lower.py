"""Lower a graph to a program: instructions with explicit reads and writes.

All numeric choices are made here (which formula, which chunk, overwrite or accumulate), so that
no later decision about memory can change a bit of the result.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from layrubnet.engine.buffers import BufferTable
from layrubnet.engine.bulk import collector_paused
from layrubnet.engine.contract import Needs
from layrubnet.engine.graph import Graph, Node
from layrubnet.engine.instructions import instruction
from layrubnet.engine.layer_instructions import LayerInstructions
from layrubnet.engine.program import (
    Alternative,
    Buffer,
    Instruction,
    Operand,
    Program,
    Slot,
)
from layrubnet.engine.updates import UpdateRule, lower_updates


@dataclass(frozen=True)
class LowerOptions:
    """``seeds``: gradients of outputs without a loss can be set from outside (pycaffe) instead of
    being zero. ``weight_chunks``: produce each weight gradient in so many pieces along its
    declared chunk axis (1: whole). ``named_in_place``: a layer that the net declares in place
    shares its bottom's buffer; without it every value has its own, and a plan decides."""

    seeds: bool = False
    weight_chunks: int = 1
    named_in_place: bool = True


def lower(
    graph: Graph,
    ops: Any,
    *,
    train: bool = True,
    rule: UpdateRule | None = None,
    options: LowerOptions | None = None,
) -> Program:
    """Return the program of ``graph`` on a device with these ``ops``.

    ``train``: emit backward; ``rule``: the solver's update (``None``: no update section).
    """
    with collector_paused():
        return _Lowering(graph, ops, options or LowerOptions()).run(train, rule)


class _Lowering:
    def __init__(self, graph: Graph, ops: Any, options: LowerOptions) -> None:
        self.graph = graph
        self.options = options
        self.backward_data: dict[str, Instruction] = {}
        self.alternatives: dict[str, Alternative] = {}
        self.scratch = {node.name: node.layer.prepare(ops) for node in graph.nodes}

    def run(self, train: bool, rule: UpdateRule | None) -> Program:
        table = self.table = BufferTable(
            self.graph, train=train, in_place=self.options.named_in_place
        )
        self.make = LayerInstructions(table, self.scratch)
        sections: dict[str, tuple[Instruction, ...]] = {"forward": tuple(self._forward())}
        if train:
            sections["backward"] = tuple(self._backward(first=True))
            sections["backward_accumulate"] = tuple(self._backward(first=False))
        if rule is not None:
            sections["update"] = tuple(lower_updates(self.graph, table, rule))
        return Program(
            graph=self.graph,
            buffers=table.buffers,
            sections=sections,
            blob_data={n: table.data(v) for n, v in self.graph.last_values().items()},
            blob_diff=table.blob_diffs(),
            param_data={p.name: table.param(p) for p in self.graph.params},
            param_diff={
                p.name: table.param_diff(p) for p in self.graph.params if train and p.needs_gradient
            },
            history=table.histories,
            alternatives=self.alternatives,
        )

    # -- forward ---------------------------------------------------------------------------------

    def _forward(self) -> list[Instruction]:
        out: list[Instruction] = []
        last = self.graph.last_values()
        for node in self.graph.nodes:
            if node.contract.loads:
                out.append(self.make.make("load", node, y=self.make.tops(node)))
            elif node.layer.type == "Input":
                out += self._inputs(node, last)
            elif not self._pure_view(node):
                out.append(self._forward_instruction(node))
            if node.contract.update_state is not None:
                out.append(self._update_state(node))
        losses = [
            (self.table.data(v), w)
            for node in self.graph.nodes
            for v, w in zip(node.tops, node.loss_weights, strict=True)
            if w
        ]
        if losses:
            loss = self.table.loss()
            out.append(
                instruction(
                    "fetch_loss",
                    self.graph.name,
                    {"x": tuple(o for o, _ in losses), "y": (loss,)},
                    values=tuple(w for _, w in losses),
                )
            )
        return out

    def _inputs(self, node: Node, last: dict[str, Any]) -> list[Instruction]:
        """An input that a later layer overwrites in name only is copied from the named blob."""
        copies = []
        for value in node.tops:
            source, target = self.table.data(last[value.name]), self.table.data(value)
            if source.buffer != target.buffer:
                copies.append(instruction("copy", node.name, {"x": (source,), "y": (target,)}))
        return copies

    def _pure_view(self, node: Node) -> bool:
        return bool(node.tops) and all(j in node.contract.alias for j in range(len(node.tops)))

    def _forward_instruction(self, node: Node, extra: Slot = None) -> Instruction:
        needs = node.contract.forward_needs
        everything = Needs(
            bottoms=tuple(range(len(node.bottoms))),
            blobs=tuple(range(len(node.params))),
            state=tuple(s.name for s in node.contract.state),
        )
        return self.make.make(
            "forward",
            node,
            needs=needs or everything,
            y=self.make.tops(node),
            write_saved=True,
            extra=extra,
        )

    def _update_state(self, node: Node) -> Instruction:
        needs = node.contract.update_state
        assert needs is not None
        return self.make.make("update_state", node, needs=needs, write_state=True)

    # -- backward --------------------------------------------------------------------------------

    def _backward(self, *, first: bool) -> list[Instruction]:
        out: list[Instruction] = []
        written: set[str] = set()
        for node in reversed(self.graph.nodes):
            out += self._seeds(node)
            if not node.needs_backward:
                continue
            out += self._backward_weights(node, written, first)
            if any(node.propagate):
                if self._pure_diff_view(node):
                    self._share_diffs(node)
                else:
                    # Gradients of values are the same whether those of parameters accumulate.
                    if node.name not in self.backward_data:
                        self.backward_data[node.name] = self._backward_data(node)
                        self._alternative(node)
                    out.append(self.backward_data[node.name])
        return out

    def _share_diffs(self, node: Node) -> None:
        """A view has no instruction, but its gradients have names and may be set from outside."""
        self._top_diffs(node)
        for value, wanted in zip(node.bottoms, node.propagate, strict=True):
            if wanted:
                self.table.diff(value)

    def _seeds(self, node: Node) -> list[Instruction]:
        """The gradient of a loss is its weight (set from outside under `seeds`)."""
        if not node.needs_backward:
            return []
        out = []
        for value, weight in zip(node.tops, node.loss_weights, strict=True):
            if weight and not self.options.seeds:
                diff = self.table.diff(value)
                out.append(instruction("seed", node.name, {"y": (diff,)}, values=(weight,)))
        return out

    def _pure_diff_view(self, node: Node) -> bool:
        aliases = node.contract.alias
        return bool(aliases) and all(
            any(a.diff and a.bottom == j for a in aliases.values())
            for j, wanted in enumerate(node.propagate)
            if wanted
        )

    def _top_diffs(self, node: Node) -> tuple[Slot, ...]:
        """The gradients that arrive; with no arriving one, a zero that can be set from outside."""
        seeds = self.options.seeds
        diffs: list[Slot] = []
        for value, weight in zip(node.tops, node.loss_weights, strict=True):
            if weight:
                diffs.append(self.table.diff(value, fill=weight if seeds else None))
            elif value.needs_gradient:
                diffs.append(self.table.diff(value))
            elif seeds and self.table.is_output(value):
                diffs.append(self.table.diff(value, fill=0.0))
            else:
                diffs.append(None)
        if node.tops and all(d is None for d in diffs):
            diffs[0] = self.table.diff(node.tops[0], fill=0.0)
        return tuple(diffs)

    def _alternative(self, node: Node) -> None:
        """The layer's compact form; without one where how much of a top counts is known late."""
        compact = node.contract.compact
        if compact is None or any(v.type.extent for v in node.tops):
            return
        saved = compact.saved
        name = f"{node.name}.{saved.name}"
        buffer = Buffer(name, "saved", saved.shape, saved.dtype, layer=node.name)
        extra = Operand(name, saved.shape, saved.dtype)
        self.alternatives[node.name] = Alternative(
            self._forward_instruction(node, extra),
            self._backward_data(node, compact.backward_data, extra),
            buffer,
        )

    def _backward_data(
        self, node: Node, needs: Needs | None = None, extra: Slot = None
    ) -> Instruction:
        needs = needs or node.contract.backward_data
        assert needs is not None
        return self.make.make(
            "backward_data",
            node,
            needs=needs,
            dy=self._top_diffs(node),
            dx=tuple(
                self.table.diff(v) if p else None
                for v, p in zip(node.bottoms, node.propagate, strict=True)
            ),
            extra=extra,
        )

    def _backward_weights(self, node: Node, written: set[str], first: bool) -> list[Instruction]:
        needs = node.contract.backward_weights
        wanted = [p for p in node.params if p.needs_gradient and p.kind == "param"]
        if needs is None or not wanted:
            return []
        accumulate = not first or any(p.name in written for p in wanted)
        fresh = [p for p in wanted if first and p.name not in written]
        out: list[Instruction] = []
        targets: list[Slot] = [
            self.table.param_diff(p, shape=node.contract.blobs[i].shape)
            if p.needs_gradient
            else None
            for i, p in enumerate(node.params)
        ]
        if accumulate and not node.contract.accumulates:
            out += self._through_temporaries(node, needs, targets)
        else:
            if accumulate and fresh:
                # One instruction either overwrites or accumulates: zero what is new.
                out += [
                    instruction("zero", node.name, {"y": (self.table.param_diff(p),)})
                    for p in fresh
                ]
            out += self._weight_chunks(node, needs, targets, accumulate)
        written.update(p.name for p in wanted)
        return out

    def _through_temporaries(
        self, node: Node, needs: Needs, targets: Sequence[Slot]
    ) -> list[Instruction]:
        temporaries = tuple(
            self.table.temporary_diff(node, i, t.shape) if t is not None else None
            for i, t in enumerate(targets)
        )
        made = [self._weights(node, needs, temporaries, False, None)]
        for target, temporary in zip(targets, temporaries, strict=True):
            if target is not None and temporary is not None:
                made.append(
                    instruction(
                        "accumulate",
                        node.name,
                        {"x": (temporary, target), "y": (target,)},
                    )
                )
        return made

    def _weight_chunks(
        self, node: Node, needs: Needs, targets: Sequence[Slot], accumulate: bool
    ) -> list[Instruction]:
        decl = node.contract.blobs[0]
        pieces = self.options.weight_chunks
        if decl.chunk_axis is None or pieces <= 1 or targets[0] is None:
            return [self._weights(node, needs, tuple(targets), accumulate, None)]
        extent = decl.shape[decl.chunk_axis]
        bounds = sorted({extent * k // pieces for k in range(pieces + 1)})
        return [
            self._weights(node, needs, tuple(targets), accumulate, (begin, end), last=end == extent)
            for begin, end in itertools.pairwise(bounds)
        ]

    def _weights(
        self,
        node: Node,
        needs: Needs,
        targets: tuple[Slot, ...],
        accumulate: bool,
        chunk: tuple[int, int] | None,
        last: bool = True,
    ) -> Instruction:
        if chunk is not None and not last:
            targets = (targets[0], *([None] * (len(targets) - 1)))
        return self.make.make(
            "backward_weights",
            node,
            needs=needs,
            dy=self._top_diffs(node),
            dw=targets,
            accumulate=accumulate,
            chunk=chunk,
        )
