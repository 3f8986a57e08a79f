"""Build the graph of a net from its NetParameter: values, shapes, parameters, who needs gradients.

The NetParameter has been upgraded and filtered for its phase before it comes here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from layrubnet.engine.bulk import collector_paused
from layrubnet.engine.contract import Contract, TensorType
from layrubnet.engine.gradients import mark_gradients
from layrubnet.engine.graph import Graph, Node, Param, Value
from layrubnet.engine.ignored import warn_ignored
from layrubnet.engine.layer import layer_class
from layrubnet.engine.sharing import ParamTable
from layrubnet.engine.splits import insert_splits, loss_weight
from layrubnet.errors import ContractError, NetError, nearest

Where = Callable[[str], str]


def build_graph(net: Any, phase: str, where: Where | None = None) -> Graph:
    """Return the :class:`Graph` of ``net`` in ``phase`` ("TRAIN" or "TEST").

    ``where(layer name)`` gives the place of a layer in its file for messages.
    """
    with collector_paused():
        return _Builder(net, phase, where or (lambda name: f"layer {name!r}")).build()


class _Builder:
    def __init__(self, net: Any, phase: str, where: Where) -> None:
        self.net = net
        self.phase = phase
        self.where = where
        self.values: dict[str, Value] = {}
        self.nodes: list[Node] = []
        self.params = ParamTable()
        self.readers: dict[int, str] = {}
        self.composites: dict[str, tuple[Param, ...]] = {}

    def build(self) -> Graph:
        layers = list(self.net.layer)
        if not layers:
            raise NetError("the net has no layers in this phase", where=self.net.name or "net")
        self._check_names(layers)
        layers = [self._with_auto_tops(spec) for spec in layers]
        warn_ignored(self.net, layers, self.where)
        self._check_producers(layers)
        for spec in insert_splits(layers):
            self._add(spec)
        graph = Graph(
            name=self.net.name,
            phase=self.phase,
            nodes=self.nodes,
            params=self.params.stored,
            source=self.net,
            force_backward=self.net.force_backward,
            composites=self.composites,
        )
        mark_gradients(graph)
        return graph

    # -- checks on the whole net -----------------------------------------------------------------

    def _check_names(self, layers: list[Any]) -> None:
        seen: set[str] = set()
        for spec in layers:
            if spec.name in seen:
                raise NetError(
                    f"two layers have the same name {spec.name!r}",
                    where=self.where(spec.name),
                    hint="weights are stored by layer name: give each layer its own",
                )
            seen.add(spec.name)

    def _with_auto_tops(self, spec: Any) -> Any:
        cls = layer_class(spec.type, self.where(spec.name))
        if cls.is_loss and not len(spec.top):
            copy = type(spec)()
            copy.CopyFrom(spec)
            copy.top.append(spec.name)
            return copy
        return spec

    def _check_producers(self, layers: list[Any]) -> None:
        producer: dict[str, str] = {}
        for spec in layers:
            for j, bottom in enumerate(spec.bottom):
                if bottom not in producer:
                    close = nearest(bottom, producer)
                    raise NetError(
                        f"Unknown bottom blob '{bottom}' (layer '{spec.name}', bottom index {j})",
                        where=self.where(spec.name),
                        hint=f"did you mean {close[0]!r}?"
                        if close
                        else f"no layer before it produces {bottom!r} in phase {self.phase}: "
                        "check include/exclude rules and the order of layers",
                    )
            for j, top in enumerate(spec.top):
                in_place = j < len(spec.bottom) and spec.bottom[j] == top
                if top in producer and not in_place:
                    raise NetError(
                        f"Top blob '{top}' produced by multiple sources: "
                        f"layers {producer[top]!r} and {spec.name!r}",
                        where=self.where(spec.name),
                        hint="keep one of them with an include { phase: ... } rule, or rename a top"
                        " (in place means top[i] == bottom[i] at the same index)",
                    )
                producer[top] = spec.name

    # -- one layer -------------------------------------------------------------------------------

    def _add(self, spec: Any) -> None:
        where = self.where(spec.name)
        cls = layer_class(spec.type, where)
        self._check_count(where, spec, "bottom", len(spec.bottom), cls.num_bottoms)
        self._check_count(where, spec, "top", len(spec.top), cls.num_tops)
        bottoms = tuple(self.values[name] for name in spec.bottom)
        layer = cls(spec, self.phase, where)
        self._check_single_reader(spec, bottoms, where)
        for value in bottoms:
            if value.type.extent and not layer.accepts_extent:
                raise NetError(
                    f"bottom {value.name!r} has a size known only at run time "
                    f"(from layer {value.type.extent!r}), which type {spec.type} does not accept",
                    where=where,
                    hint="put the layer before the one that selects, or use TEST-only layers",
                )
        expansion = layer.expand([v.type for v in bottoms])
        if expansion is not None:
            self._add_expansion(spec, expansion)
            return
        contract = layer.infer([v.type for v in bottoms])
        self._check_contract(where, spec, contract)
        tops = tuple(
            self._new_value(name, type_, j)
            for j, (name, type_) in enumerate(zip(spec.top, contract.tops, strict=True))
        )
        self.nodes.append(
            Node(
                layer=layer,
                contract=contract,
                bottoms=bottoms,
                tops=tops,
                params=self.params.add_layer(layer, contract, where),
                propagate=[False] * len(bottoms),
                loss_weights=tuple(loss_weight(spec, j) for j in range(len(tops))),
            )
        )

    def _add_expansion(self, spec: Any, expansion: Any) -> None:
        first = len(self.nodes)
        for inner in insert_splits(list(expansion.layers)):
            self._add(inner)
        by_name = {node.name: node for node in self.nodes[first:]}
        self.composites[spec.name] = tuple(
            by_name[inner].params[index] for inner, index in expansion.blobs
        )

    def _check_single_reader(self, spec: Any, bottoms: tuple[Value, ...], where: str) -> None:
        """Gradients of a value come from one reader; the sum over several is a Split's work."""
        for value in bottoms:
            reader = self.readers.setdefault(id(value), spec.name)
            # A composite counts as reader until the layer of its expansion that really reads.
            if reader != spec.name and not spec.name.startswith(f"{reader}/"):
                raise ContractError(
                    f"value {value.name!r} has two readers, {reader!r} and {spec.name!r}",
                    where=where,
                    hint="an expansion must put a Split where a value is read more than once",
                )
            self.readers[id(value)] = spec.name

    def _new_value(self, name: str, type_: TensorType, top: int) -> Value:
        previous = self.values.get(name)
        version = previous.version + 1 if previous else 0
        value = Value(name, version, type_, producer=len(self.nodes), top=top)
        self.values[name] = value
        return value

    def _check_count(
        self, where: str, spec: Any, what: str, count: int, allowed: tuple[int, int | None]
    ) -> None:
        low, high = allowed
        if count < low or (high is not None and count > high):
            expected = str(low) if low == high else f"{low} to {high}" if high else f">= {low}"
            raise NetError(
                f"{spec.type} layer has the wrong number of {what} blobs",
                where=where,
                expected=f"{expected} {what}(s)",
                got=f"{count}: {', '.join(getattr(spec, what)) or 'none'}",
            )

    def _check_contract(self, where: str, spec: Any, contract: Contract) -> None:
        if len(contract.tops) != len(spec.top):
            raise NetError(
                f"layer type {spec.type} declares {len(contract.tops)} tops",
                where=where,
                expected=f"{len(spec.top)} (as in the net)",
                got=len(contract.tops),
            )
        for j, type_ in enumerate(contract.tops):
            if any(dim < 0 for dim in type_.shape):
                raise NetError(
                    f"top {spec.top[j]!r} would have a negative size",
                    where=where,
                    got=type_.shape,
                    hint="the bottom is smaller than the kernel or crop",
                )
