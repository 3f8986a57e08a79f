"""The graph: layers and the values between them. Built by ``build.py``; holds no arrays.

A *blob* is a name in the prototxt; a *value* is what that name means at one moment. A layer that
works in place (top named like its bottom) makes a new version of the value, so "the data of
``conv1`` that ReLU reads" and "the data of ``conv1`` after ReLU" are never mixed up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from layrubnet.engine.contract import Contract, Shape, TensorType
from layrubnet.engine.layer import Layer


@dataclass(eq=False)
class Value:
    """One version of a blob: produced once, by top ``top`` of node ``producer``."""

    name: str
    version: int
    type: TensorType
    producer: int
    top: int
    needs_gradient: bool = False

    @property
    def label(self) -> str:
        """A unique readable name: the blob's, with ``@version`` from the second version on."""
        return f"{self.name}@{self.version}" if self.version else self.name


@dataclass(eq=False)
class Param:
    """One stored blob of parameters or statistics, owned by one layer, used by one or more.

    ``lr_mult``/``decay_mult`` as in Caffe; ``learnable`` index = position in Caffe's
    ``learnable_params`` (statistics included: solver histories count them).
    """

    name: str
    owner: str
    index: int
    shape: Shape
    kind: str
    filler: Any
    lr_mult: float = 1.0
    decay_mult: float = 1.0
    lr_given: bool = False
    decay_given: bool = False
    shared_name: str = ""
    users: list[tuple[str, int]] = field(default_factory=list)
    needs_gradient: bool = False
    chunk_axis: int | None = None


@dataclass(eq=False)
class Node:
    """One layer with its values. ``params[i]`` is the stored blob behind the layer's blob ``i``."""

    layer: Layer
    contract: Contract
    bottoms: tuple[Value, ...]
    tops: tuple[Value, ...]
    params: tuple[Param, ...] = ()
    propagate: list[bool] = field(default_factory=list)
    needs_backward: bool = False
    loss_weights: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        return self.layer.name


@dataclass(eq=False)
class Graph:
    """A net for one phase: nodes in execution order."""

    name: str
    phase: str
    nodes: list[Node]
    params: list[Param]
    source: Any
    force_backward: bool = False
    composites: dict[str, tuple[Param, ...]] = field(default_factory=dict)
    """Blobs of composite layers (expanded into several nodes), in file order."""

    def last_values(self) -> dict[str, Value]:
        """The last version of each blob, in order of first appearance."""
        found: dict[str, Value] = {}
        for node in self.nodes:
            for value in node.tops:
                found[value.name] = value
        return found

    def outputs(self) -> list[Value]:
        """Values that nothing reads: the net's outputs, sorted by name as Caffe does."""
        read = {id(b) for node in self.nodes for b in node.bottoms}
        left = [v for node in self.nodes for v in node.tops if id(v) not in read]
        return sorted(left, key=lambda v: v.name)

    def inputs(self) -> list[Value]:
        """Values of Input layers, in order."""
        return [v for node in self.nodes if node.layer.type == "Input" for v in node.tops]

    def layer_blobs(self) -> dict[str, tuple[Param, ...]]:
        """The blobs of each layer by the name files use (composites once), in order."""
        blobs: dict[str, tuple[Param, ...]] = {}
        for node in self.nodes:
            outer = node.name.split("/")[0]
            if outer in self.composites and node.name.startswith(f"{outer}/"):
                blobs.setdefault(outer, self.composites[outer])
            else:
                blobs[node.name] = node.params
        return blobs

    def blob_shapes(self) -> dict[str, tuple[Shape, ...]]:
        """The shapes in which each layer sees its blobs: a shared one may be stored otherwise."""
        own = {n.name: tuple(d.shape for d in n.contract.blobs) for n in self.nodes}
        return {
            name: own.get(name) or tuple(p.shape for p in params)
            for name, params in self.layer_blobs().items()
        }
