"""Make the instructions of one layer from its contract: slots, reads, writes, what may share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from layrubnet.engine.buffers import BufferTable
from layrubnet.engine.contract import Needs, Scratch
from layrubnet.engine.graph import Node, Value
from layrubnet.engine.instructions import instruction
from layrubnet.engine.program import Instruction, Operand, Slot

NOTHING = Needs()


class LayerInstructions:
    """Makes instructions over the buffers of ``table``; ``scratch``: bytes by layer."""

    def __init__(self, table: BufferTable, scratch: Mapping[str, Scratch]) -> None:
        self.table, self.scratch = table, scratch

    def tops(self, node: Node) -> tuple[Slot, ...]:
        """The data of a layer's tops."""
        return tuple(self.table.data(v) for v in node.tops)

    def param_slot(self, node: Node, index: int) -> Operand:
        """A blob of a layer, in the shape that this layer sees."""
        return self.table.param(node.params[index], shape=node.contract.blobs[index].shape)

    def make(
        self,
        op: str,
        node: Node,
        *,
        needs: Needs = NOTHING,
        y: tuple[Slot, ...] | None = None,
        dx: tuple[Slot, ...] = (),
        dy: tuple[Slot, ...] = (),
        dw: tuple[Slot, ...] = (),
        write_saved: bool = False,
        write_state: bool = False,
        accumulate: bool = False,
        chunk: tuple[int, int] | None = None,
        extra: Slot = None,
    ) -> Instruction:
        """Return an instruction of a layer; what it reads follows from ``needs``.

        Given slots are written (``dy`` is read); ``extra``: what a compact form saves, behind the
        other extras.
        """
        table, contract = self.table, node.contract
        states = [i for i, p in enumerate(node.params) if p.kind == "state"] if write_state else []
        slots: dict[str, tuple[Slot, ...]] = {
            "x": _pick(node.bottoms, needs.bottoms, table.data),
            "y": y if y is not None else _pick(node.tops, needs.tops, table.data),
            "w": tuple(
                self.param_slot(node, i) if i in needs.blobs or i in states else None
                for i in range(len(node.params))
            ),
            "dx": dx,
            "dy": dy,
            "dw": dw,
            "saved": tuple(
                table.saved(node, s) if write_saved or s.name in needs.saved else None
                for s in contract.saved
            ),
            "state": tuple(
                table.state(node, s) if write_state or s.name in needs.state else None
                for s in contract.state
            ),
        }
        if extra is not None:
            slots["saved"] = (*slots["saved"], extra)
        if contract.random and op in ("forward", "backward_data"):
            slots["counters"] = (table.counters(),)
        written = ["dx", "dw"]
        written += ["y"] if y is not None else []
        written += ["saved"] if write_saved else []
        written += ["state"] if write_state else []
        scratch: Scratch = self.scratch[node.name]
        return instruction(
            op,
            node.name,
            slots,
            written=tuple(written),
            also_written=tuple(self.param_slot(node, i) for i in states),
            scratch=getattr(scratch, op, 0),
            flops=getattr(contract.flops, op, 0.0),
            accumulate=accumulate,
            chunk=chunk,
            shares=self._shares(op, node, slots),
            repeatable=op == "forward" and contract.repeatable,
        )

    def _shares(
        self, op: str, node: Node, slots: Mapping[str, tuple[Slot, ...]]
    ) -> tuple[tuple[str, str], ...]:
        """Which results may take the place of which operands, by the layer's contract."""
        if op == "forward":
            pairs = [("y", top, "x", bottom) for top, bottom in node.contract.inplace.items()]
        elif op == "backward_data":
            pairs = [("dx", b, "dy", t) for b, t in node.contract.inplace_diff.items()]
        else:
            return ()
        found = []
        for to, i, source, j in pairs:
            written, read = slots[to][i], slots[source][j]
            if written is None or read is None:
                continue
            # A layer that reads one buffer twice (through a Split) would find half of it written.
            others = (o for slot in slots.values() for o in slot if o is not None)
            if sum(o.buffer == read.buffer for o in others) == 1:
                found.append((written.buffer, read.buffer))
        return tuple(found)


def _pick(
    values: Sequence[Value], wanted: Sequence[int], make: Callable[[Value], Operand]
) -> tuple[Slot, ...]:
    """The operands of the wanted values, None in place of the others."""
    if not wanted:
        return (None,) * len(values)
    return tuple(make(value) if j in wanted else None for j, value in enumerate(values))
