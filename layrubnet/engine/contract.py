"""What a layer declares about itself.

The graph, the program, the memory planner and the gradient exchange see nothing else of a layer.
All of it is computed without arrays, from the shapes of the bottoms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Shape = tuple[int, ...]

ITEM_BYTES = {
    "float32": 4,
    "float16": 2,
    "float64": 8,
    "uint8": 1,
    "bool": 1,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
}


@dataclass(frozen=True)
class TensorType:
    """The type of a value: shape, element type, layout.

    ``extent`` names a run-time extent: axis 0 of the shape is then an upper bound, and the arrays
    that layers receive are cut to the extent the producing layer set (Filter, DetectionOutput).
    ``layout`` is ``"plain"`` (row-major, as Caffe's blobs) unless a device packs the value.
    """

    shape: Shape
    dtype: str = "float32"
    layout: str = "plain"
    extent: str | None = None

    @property
    def count(self) -> int:
        """The number of elements (1 for a scalar, shape ``()``)."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes in the plain layout."""
        return self.count * ITEM_BYTES[self.dtype]

    def with_shape(self, *shape: int) -> TensorType:
        """The same type with another shape (the extent is kept)."""
        return replace(self, shape=tuple(shape))


@dataclass(frozen=True)
class BlobDecl:
    """One of a layer's blobs, in the order Caffe's files hold them.

    ``kind`` is ``"param"`` (learned; has a gradient) or ``"state"`` (saved in the weights file but
    only ever written by ``update_state``: BatchNorm's sums). ``chunk_axis``: the axis along which
    ``backward_weights`` can produce the gradient piece by piece (how many is a numeric choice).
    """

    name: str
    shape: Shape
    filler: Any = None
    kind: str = "param"
    chunk_axis: int | None = None


@dataclass(frozen=True)
class StateDecl:
    """A value that outlives the iteration and is no blob (a recurrent carry, a counter)."""

    name: str
    shape: Shape
    dtype: str = "float32"
    value: float = 0.0


@dataclass(frozen=True)
class Saved:
    """An extra result of ``forward`` that a later instruction reads (a mask, statistics).

    It is always there in forward, in a program without backward as well.
    """

    name: str
    shape: Shape
    dtype: str = "float32"


@dataclass(frozen=True)
class Needs:
    """Which data an instruction reads, by index; ``saved`` and ``state`` by name.

    The gradients of the tops are always there for a backward instruction and are not listed.
    """

    bottoms: tuple[int, ...] = ()
    tops: tuple[int, ...] = ()
    blobs: tuple[int, ...] = ()
    saved: tuple[str, ...] = ()
    state: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compact:
    """An exact short form of what backward reads: a plan may choose it.

    Forward can also write ``saved``; then the gradient of the bottoms needs ``backward_data``
    instead, and is the same to the bit. The layer sees which form runs by
    ``"<name>" in io.saved``.
    """

    saved: Saved
    backward_data: Needs


@dataclass(frozen=True)
class Alias:
    """Top data is a view of the data of ``bottom``; with ``diff`` the gradients share as well."""

    bottom: int = 0
    diff: bool = True


@dataclass(frozen=True)
class Flops:
    """Floating-point operations of each instruction, for the cost model."""

    forward: float = 0.0
    backward_data: float = 0.0
    backward_weights: float = 0.0


@dataclass(frozen=True)
class Contract:
    """Everything the engine knows about one layer with given bottoms.

    =====================  ====================================================================
    tops                   types of the tops
    blobs                  parameters and saved statistics (:class:`BlobDecl`)
    saved, state           extras kept for backward; values kept across iterations
    compact                an exact short form of what ``backward_data`` reads (:class:`Compact`)
    forward_needs          what forward reads (``None``: every bottom, blob and state)
    backward_data          what the gradient of the bottoms needs; ``None``: not differentiable
    backward_weights       what the gradient of the blobs needs; ``None``: nothing to learn
    update_state           what the state update reads; ``None``: no such instruction
    alias                  tops that are views of a bottom; if all are, forward is no instruction
    inplace                top index -> bottom index whose place forward may take
    inplace_diff           bottom index -> top index whose gradient's place backward may take
    no_gradient            bottoms that never get a gradient (labels)
    accumulates            backward_weights honours ``io.accumulate`` itself
    random                 draws random numbers (recomputation repeats them by their counter)
    repeatable             forward may run again (recomputation) and gives the same
    loads                  the host fills the tops (data layers): ``load`` instead of forward
    flops                  cost model
    =====================  ====================================================================
    """

    tops: tuple[TensorType, ...]
    blobs: tuple[BlobDecl, ...] = ()
    saved: tuple[Saved, ...] = ()
    state: tuple[StateDecl, ...] = ()
    compact: Compact | None = None
    forward_needs: Needs | None = None
    backward_data: Needs | None = None
    backward_weights: Needs | None = None
    update_state: Needs | None = None
    alias: Mapping[int, Alias] = field(default_factory=dict)
    inplace: Mapping[int, int] = field(default_factory=dict)
    inplace_diff: Mapping[int, int] = field(default_factory=dict)
    no_gradient: tuple[int, ...] = ()
    accumulates: bool = False
    random: bool = False
    repeatable: bool = True
    loads: bool = False
    flops: Flops = Flops()


@dataclass(frozen=True)
class Scratch:
    """Bytes of temporary memory each instruction of a layer may take from ``ops.scratch``."""

    forward: int = 0
    backward_data: int = 0
    backward_weights: int = 0
    update_state: int = 0
