"""Who reads a value, and when: decides whether a layer may write over its bottom."""

from __future__ import annotations

from collections.abc import Iterable

from layrubnet.engine.contract import Needs
from layrubnet.engine.graph import Graph, Node, Value


class Readers:
    """Forward positions at which each value is read, and whether backward reads it."""

    def __init__(self) -> None:
        self._last_forward: dict[int, int] = {}
        self._backward: set[int] = set()

    def read_forward(self, value: Value, position: int) -> None:
        self._last_forward[id(value)] = position

    def read_backward(self, values: Iterable[Value]) -> None:
        self._backward.update(id(v) for v in values)

    def after(self, value: Value, position: int) -> bool:
        """Is ``value`` read by an instruction later than the forward at ``position``?"""
        return id(value) in self._backward or self._last_forward.get(id(value), -1) > position


def later_readers(graph: Graph, train: bool) -> Readers:
    """Collect every read of every value in the program of ``graph``."""
    readers = Readers()
    for n, node in enumerate(graph.nodes):
        needs = node.contract.forward_needs
        for j, value in enumerate(node.bottoms):
            if needs is None or j in needs.bottoms:
                readers.read_forward(value, n)
        if node.contract.update_state is not None:
            # It runs just after the layer's own forward, and before the next layer's.
            _read_after_forward(readers, node, node.contract.update_state)
        for value, weight in zip(node.tops, node.loss_weights, strict=True):
            if weight:
                readers.read_forward(value, len(graph.nodes))
        if train and node.needs_backward:
            for part in (node.contract.backward_data, node.contract.backward_weights):
                if part is not None:
                    readers.read_backward(_values(node, part))
    return readers


def _read_after_forward(readers: Readers, node: Node, needs: Needs) -> None:
    # Reading a bottom after forward forbids that this very layer overwrites it.
    readers.read_backward(node.bottoms[j] for j in needs.bottoms)


def _values(node: Node, needs: Needs) -> list[Value]:
    return [node.bottoms[j] for j in needs.bottoms] + [node.tops[j] for j in needs.tops]
