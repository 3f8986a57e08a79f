"""One array per blob name, also where the engine keeps several versions of it.

A layer in place makes a new version of its blob, and where backward still needs the old one, the
two have buffers of their own. In Caffe there is one array. That shows only when a net runs in part
(``start``, ``end``) or when gradients are read: then the named array and the version that the run
touches are copied into one another here.
"""

from __future__ import annotations

from collections.abc import Mapping

from layrubnet.engine.graph import Node, Value
from layrubnet.engine.net import CompiledNet
from layrubnet.engine.program import Operand


class Versions:
    """Copies between a blob's named array and its versions, for partial runs."""

    def __init__(self, net: CompiledNet) -> None:
        self._net = net
        self._data = self._separate(_data_operands(net), net.program.blob_data)
        self._diff = self._separate(_diff_operands(net), net.program.blob_diff)

    def _separate(
        self, found: dict[int, Operand], named: Mapping[str, Operand]
    ) -> dict[int, Operand]:
        """The versions whose buffer is not the one of their blob's name."""
        return {
            id(value): found[id(value)]
            for node in self._net.graph.nodes
            for value in node.tops
            if id(value) in found
            and value.name in named
            and found[id(value)].buffer != named[value.name].buffer
        }

    def before_forward(self, first: int, last: int) -> None:
        """What the layers from ``first`` to ``last`` read from outside is what the names hold."""
        inside = self._net.graph.nodes[first : last + 1]
        made = {id(v) for node in inside for v in node.tops}
        for value in (v for node in inside for v in node.bottoms if id(v) not in made):
            self._copy(self._data, value, self._net.program.blob_data, into_named=False)

    def after_forward(self, first: int, last: int) -> None:
        """The names hold the last versions that the layers from ``first`` to ``last`` made."""
        nodes = self._net.graph.nodes[first : last + 1]
        for value in {v.name: v for node in nodes for v in node.tops}.values():
            self._copy(self._data, value, self._net.program.blob_data, into_named=True)

    def before_backward(self, first: int, last: int) -> None:
        """Gradients that reach the layers from outside are those under the names."""
        inside = self._net.graph.nodes[first : last + 1]
        read = {id(v) for node in inside for v in node.bottoms}
        for value in (v for node in inside for v in node.tops if id(v) not in read):
            self._copy(self._diff, value, self._net.program.blob_diff, into_named=False)

    def after_backward(self, first: int, last: int) -> None:
        """The names hold the gradients of the first versions that the layers read."""
        nodes = reversed(self._net.graph.nodes[first : last + 1])
        for value in {v.name: v for node in nodes for v in node.bottoms}.values():
            self._copy(self._diff, value, self._net.program.blob_diff, into_named=True)

    def _copy(
        self,
        table: dict[int, Operand],
        value: Value,
        names: Mapping[str, Operand],
        *,
        into_named: bool,
    ) -> None:
        operand = table.get(id(value))
        if operand is None:
            return
        version = self._net.executor.array(operand)
        array = self._net.executor.array(names[value.name])
        source, target = (version, array) if into_named else (array, version)
        self._net.device.ops.copy(source, target)


def _data_operands(net: CompiledNet) -> dict[int, Operand]:
    """Where the data of each version is, as far as instructions and views tell."""
    written: dict[str, tuple[Operand | None, ...]] = {}
    for instruction in net.program.sections["forward"]:
        if instruction.op in ("load", "forward", "copy"):
            written[instruction.target] = instruction.slots.get("y", ())
    found: dict[int, Operand] = {}
    for node in net.graph.nodes:
        for top, value in enumerate(node.tops):
            operand = _top_operand(net, node, top, written, found)
            if operand is not None:
                found[id(value)] = operand
    return found


def _top_operand(
    net: CompiledNet,
    node: Node,
    top: int,
    written: dict[str, tuple[Operand | None, ...]],
    found: dict[int, Operand],
) -> Operand | None:
    alias = node.contract.alias.get(top)
    if alias is not None:
        source = found.get(id(node.bottoms[alias.bottom]))
        value = node.tops[top]
        return source and Operand(source.buffer, value.type.shape, value.type.dtype)
    operands = written.get(node.name, ())
    if node.layer.type == "Input" and len(operands) != len(node.tops):
        return net.program.blob_data[node.tops[top].name]
    return operands[top] if top < len(operands) else None


def _diff_operands(net: CompiledNet) -> dict[int, Operand]:
    """Where the gradient of each version is, as far as backward has one."""
    nodes = {node.name: node for node in net.graph.nodes}
    found: dict[int, Operand] = {}
    for instruction in net.program.sections.get("backward", ()):
        if instruction.op not in ("backward_data", "backward_weights"):
            continue
        node = nodes[instruction.target]
        for role, values in (("dy", node.tops), ("dx", node.bottoms)):
            slot = instruction.slots.get(role, ())
            for value, operand in zip(values, slot, strict=False):
                if operand is not None:
                    found[id(value)] = operand
    return found
