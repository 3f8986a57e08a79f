"""Which buffer holds which value: aliases and in-place layers resolved at compile time.

Views (Reshape, Flatten, Split) share the buffer of their bottom. A layer that the net declares in
place shares it too, where its contract allows that and nobody reads the overwritten version later;
otherwise the new version gets a buffer of its own, and the result is the same.
"""

from __future__ import annotations

from layrubnet.engine.contract import Saved, Shape, StateDecl
from layrubnet.engine.graph import Graph, Node, Param, Value
from layrubnet.engine.program import Buffer, Operand
from layrubnet.engine.rewrites import later_readers

COUNTERS = "counters"
SCALARS = "scalars"
LOSS = "loss"
NORM = "norm"
SCALAR_COUNT = 8
COUNTER_COUNT = 4


class BufferTable:
    """Hands out operands and collects the buffers behind them."""

    def __init__(self, graph: Graph, *, train: bool, in_place: bool = True) -> None:
        self.graph = graph
        self._named_in_place = in_place
        self.buffers: dict[str, Buffer] = {}
        self.histories: dict[str, tuple[Operand, ...]] = {}
        self._outputs = {id(v) for v in graph.outputs()}
        self._data_root: dict[int, Value] = {}
        self._diff_root: dict[int, Value] = {}
        self._diff_values: dict[int, Value] = {}
        # Instructions ask for the same operands again and again.
        self._data: dict[int, Operand] = {}
        self._diffs: dict[tuple[int, bool], Operand] = {}
        self._params: dict[tuple[int, str, Shape], Operand] = {}
        self._assign(train)
        last = graph.last_values()
        self._filled = {id(self._data_root[id(v)]) for v in graph.inputs()}
        self._filled |= {id(self._data_root[id(last[v.name])]) for v in graph.inputs()}

    def _assign(self, train: bool) -> None:
        readers = later_readers(self.graph, train)
        groups: dict[int, list[Value]] = {}
        for n, node in enumerate(self.graph.nodes):
            for j, value in enumerate(node.tops):
                root = value
                alias = node.contract.alias.get(j)
                if alias is not None:
                    root = self._data_root[id(node.bottoms[alias.bottom])]
                    if alias.diff:
                        self._diff_root[id(value)] = self._diff(node.bottoms[alias.bottom])
                elif (source := self._in_place(node, j)) is not None:
                    old = self._data_root[id(source)]
                    if not any(readers.after(v, n) for v in groups[id(old)]):
                        root = old
                if (target := self._in_place_diff(node, j)) is not None:
                    self._diff_root[id(value)] = self._diff(target)
                self._data_root[id(value)] = root
                groups.setdefault(id(root), []).append(value)

    def _diff(self, value: Value) -> Value:
        return self._diff_root.get(id(value), value)

    def _in_place(self, node: Node, top: int) -> Value | None:
        bottom = node.contract.inplace.get(top) if self._named_in_place else None
        if bottom is None or node.bottoms[bottom].name != node.tops[top].name:
            return None
        return node.bottoms[bottom]

    def _in_place_diff(self, node: Node, top: int) -> Value | None:
        if not self._named_in_place:
            return None
        for bottom, over in node.contract.inplace_diff.items():
            if over == top and node.bottoms[bottom].name == node.tops[top].name:
                return node.bottoms[bottom]
        return None

    # -- buffers by role -------------------------------------------------------------------------

    def _buffer(self, buffer: Buffer) -> str:
        self.buffers.setdefault(buffer.name, buffer)
        return buffer.name

    def data(self, value: Value) -> Operand:
        """The data of a value."""
        if (made := self._data.get(id(value))) is not None:
            return made
        root = self._data_root[id(value)]
        producer = self.graph.nodes[root.producer]
        name = self._buffer(
            Buffer(
                f"{root.label}.data",
                "data",
                root.type.shape,
                root.type.dtype,
                # What the user fills (the last version of the name, which forward copies to the
                # first) stays until the user fills it again.
                persistent=id(root) in self._filled and not self._named_in_place,
                layer=producer.name,
            )
        )
        made = Operand(name, value.type.shape, value.type.dtype, value.type.extent)
        self._data[id(value)] = made
        return made

    def diff(self, value: Value, *, fill: float | None = None) -> Operand:
        """The gradient of a value; with ``fill`` it persists and can be set from outside."""
        key = (id(value), fill is None)
        if (made := self._diffs.get(key)) is not None:
            return made
        self._diff_values[id(value)] = value
        root = self._diff(value)
        owner = self.graph.nodes[root.producer].name
        name = self._buffer(
            Buffer(
                f"{root.label}.diff",
                "diff",
                root.type.shape,
                root.type.dtype,
                persistent=fill is not None,
                layer=owner,
                fill=fill,
            )
        )
        made = Operand(name, value.type.shape, value.type.dtype, value.type.extent)
        self._diffs[key] = made
        return made

    def is_output(self, value: Value) -> bool:
        """Nothing reads the value."""
        return id(value) in self._outputs

    def blob_diffs(self) -> dict[str, Operand]:
        """The gradient of the last version of each blob, where the program has one."""
        last = self.graph.last_values()
        found = {v.name: v for v in self._diff_values.values() if last[v.name] is v}
        return {name: self.diff(value) for name, value in found.items()}

    def param(self, param: Param, shape: Shape | None = None) -> Operand:
        """A parameter or statistic, seen with a sharing layer's shape."""
        key = (id(param), "param", shape or param.shape)
        if (made := self._params.get(key)) is not None:
            return made
        name = self._buffer(
            Buffer(f"{param.name}.param", "param", param.shape, persistent=True, layer=param.owner)
        )
        made = self._params[key] = Operand(name, key[-1])
        return made

    def param_diff(self, param: Param, shape: Shape | None = None) -> Operand:
        """The gradient of a parameter; it survives the micro-batches of an iteration."""
        key = (id(param), "param_diff", shape or param.shape)
        if (made := self._params.get(key)) is not None:
            return made
        name = self._buffer(
            Buffer(
                f"{param.name}.param_diff",
                "param_diff",
                param.shape,
                persistent=True,
                layer=param.owner,
                fill=0.0,
            )
        )
        made = self._params[key] = Operand(name, key[-1])
        return made

    def temporary_diff(self, node: Node, index: int, shape: Shape) -> Operand:
        """Where a layer that cannot accumulate puts its weight gradient first."""
        name = self._buffer(
            Buffer(f"{node.name}/{index}.partial_diff", "param_diff", shape, layer=node.name)
        )
        return Operand(name, shape)

    def history(self, param: Param, count: int) -> tuple[Operand, ...]:
        """The solver's histories of a parameter."""
        made = tuple(
            Operand(
                self._buffer(
                    Buffer(
                        f"{param.name}.history{k}",
                        "history",
                        param.shape,
                        persistent=True,
                        layer=param.owner,
                        fill=0.0,
                    )
                ),
                param.shape,
            )
            for k in range(count)
        )
        self.histories[param.name] = made
        return made

    def saved(self, node: Node, saved: Saved) -> Operand:
        """An extra result kept for backward."""
        name = self._buffer(
            Buffer(f"{node.name}.{saved.name}", "saved", saved.shape, saved.dtype, layer=node.name)
        )
        return Operand(name, saved.shape, saved.dtype)

    def state(self, node: Node, state: StateDecl) -> Operand:
        """A value that outlives the iteration."""
        name = self._buffer(
            Buffer(
                f"{node.name}.{state.name}.state",
                "state",
                state.shape,
                state.dtype,
                persistent=True,
                layer=node.name,
                fill=state.value,
            )
        )
        return Operand(name, state.shape, state.dtype)

    def _scalars(self, name: str, count: int, dtype: str) -> Operand:
        made = Buffer(name, "scalars", (count,), dtype, persistent=True, fill=0.0)
        return Operand(self._buffer(made), (count,), dtype)

    def counters(self) -> Operand:
        """uint32: iteration, micro-batch, rank, spare."""
        return self._scalars(COUNTERS, COUNTER_COUNT, "uint32")

    def scalars(self) -> Operand:
        """float64: what the solver sets each step (learning rate, step number, ...)."""
        return self._scalars(SCALARS, SCALAR_COUNT, "float64")

    def norm(self) -> Operand:
        """float64: the L2 norm of all gradients."""
        return self._scalars(NORM, 1, "float64")

    def loss(self) -> Operand:
        """float64: the weighted sum of the losses."""
        return self._scalars(LOSS, 1, "float64")
