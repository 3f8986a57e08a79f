"""The base class of every layer, and the registry of layer types.

A layer file holds, in this order: docstring (formula, shapes, example, differences from Caffe),
``setup`` (read the parameters), ``infer`` (the contract), ``forward``, ``backward_data``,
``backward_weights``, ``update_state``. Layers own no arrays: all they touch comes through ``io``.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from layrubnet.engine.contract import Contract, Scratch, TensorType
from layrubnet.errors import NetError, ShapeError, nearest

if TYPE_CHECKING:
    from layrubnet.engine.io import IO

ENTRY_POINTS = "layrubnet.layers"


@dataclass(frozen=True)
class Expansion:
    """A composite layer as a sub-graph.

    ``layers``: LayerParameters whose names start with ``<layer>/``; they read each of the
    composite's bottoms once and produce its tops by name, without reading those (a Split inside
    serves several readers). ``blobs``: for each blob of the composite in file order, the (inner
    layer name, blob index) that owns it.
    """

    layers: tuple[Any, ...]
    blobs: tuple[tuple[str, int], ...] = ()


class Layer:
    """One layer of a net. Subclass, declare, register::

    @layrubnet.register("Twice")
    class Twice(layrubnet.Layer):
        def infer(self, bottoms):
            return Contract(tops=(bottoms[0],), backward_data=Needs())

        def forward(self, ops, io):
            io.y[0][...] = 2 * io.x[0]

        def backward_data(self, ops, io):
            io.dx[0][...] = 2 * io.dy[0]
    """

    num_bottoms: ClassVar[tuple[int, int | None]] = (1, 1)
    """Smallest and largest number of bottoms (``None``: no limit)."""
    num_tops: ClassVar[tuple[int, int | None]] = (1, 1)
    is_loss: ClassVar[bool] = False
    """Top 0 gets loss_weight 1 unless the net says otherwise, and may be left unnamed."""
    accepts_extent: ClassVar[bool] = False
    """Bottoms may have a run-time extent on axis 0."""
    fork_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that Caffe lacks and this type reads, or messages all of whose such fields it reads:
    ``("loss_param.class_weight", "pooling_param")``. Any other one that is set is warned of."""

    def __init__(self, spec: Any, phase: str, where: str = "") -> None:
        self.spec = spec
        self.name: str = spec.name
        self.type: str = spec.type
        self.phase = phase
        self.where = where or f"layer {spec.name!r}"
        self.setup()

    def setup(self) -> None:
        """Read and check ``self.spec``; called once, before any shape is known."""

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        """Return the contract for bottoms of these types, without touching any array."""
        raise NetError("the layer type defines no infer()", where=self.where)

    def expand(self, bottoms: Sequence[TensorType]) -> Expansion | None:
        """Return the sub-graph of a composite layer, or ``None`` for a plain one."""
        return None

    def prepare(self, ops: Any) -> Scratch:
        """Make numeric choices on a device (algorithms, chunk sizes); return scratch bytes."""
        return Scratch()

    def forward(self, ops: Any, io: IO) -> None:
        """Write every top (and saved extra) from the bottoms."""
        raise NetError("the layer type defines no forward()", where=self.where)

    def backward_data(self, ops: Any, io: IO) -> None:
        """Write the gradient of every wanted bottom: ``io.dx[i]``, overwriting it."""
        raise NetError("the layer type defines no backward_data()", where=self.where)

    def backward_weights(self, ops: Any, io: IO) -> None:
        """Write the gradient of every wanted blob: ``io.dw[i]``."""
        raise NetError("the layer type defines no backward_weights()", where=self.where)

    def update_state(self, ops: Any, io: IO) -> None:
        """Advance what outlives the iteration; once per micro-batch, never on recomputation."""
        raise NetError("the layer type defines no update_state()", where=self.where)

    # -- data layers (contracts with ``loads``) only ---------------------------------------------

    def open(self, *, seed: int, rank: int = 0, world: int = 1) -> None:
        """Open the source and start reading ahead, as rank ``rank`` of ``world``."""

    def load(self, ops: Any, io: IO) -> None:
        """Fill the tops ``io.y`` with the next batch."""
        raise NetError("the layer type defines no load()", where=self.where)

    def cursor(self) -> dict[str, int]:
        """The exact position in the data, for snapshots."""
        return {}

    def seek(self, cursor: dict[str, int]) -> None:
        """Continue from a position that :meth:`cursor` gave."""

    def close(self) -> None:
        """Stop reading and release the source."""

    # -- help for subclasses -----------------------------------------------------------------

    def axis(self, axis: int, axes: int, *, end: bool = False) -> int:
        """Return ``axis`` counted from the front; it must lie in ``[-axes, axes)`` (or = axes)."""
        limit = axes + 1 if end else axes
        resolved = axis + limit if axis < 0 else axis
        if not 0 <= resolved < limit:
            raise ShapeError(
                "the axis is out of range",
                where=self.where,
                expected=f"an axis from {-limit} to {limit - 1} for a bottom with {axes} axes",
                got=axis,
            )
        return resolved

    def bad_shape(self, what: str, *, expected: object, got: object, hint: str = "") -> ShapeError:
        """A shape error of this layer, ready to raise."""
        return ShapeError(what, where=self.where, expected=expected, got=got, hint=hint)


_TYPES: dict[str, type[Layer]] = {}
_L = TypeVar("_L", bound=type[Layer])


def register(*names: str) -> Callable[[_L], _L]:
    """Class decorator: make a layer type known under one or more ``type:`` names.

    A later registration of the same name replaces the earlier one, so that a user's own file can
    override a built-in type.
    """

    def add(cls: _L) -> _L:
        for name in names:
            _TYPES[name] = cls
        return cls

    return add


def _load_types() -> None:
    import layrubnet.layers  # noqa: F401  (registers the built-in types)

    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        if entry.name not in _TYPES:
            _TYPES[entry.name] = entry.load()


def layer_types() -> list[str]:
    """The names of all known layer types."""
    _load_types()
    return sorted(_TYPES)


def layer_class(type_name: str, where: str = "") -> type[Layer]:
    """Return the class of a layer type; an unknown one is an error naming the nearest known."""
    if type_name not in _TYPES:
        _load_types()
    if type_name not in _TYPES:
        close = nearest(type_name, _TYPES, 3)
        raise NetError(
            f"Unknown layer type: {type_name}",
            where=where,
            hint=(f"did you mean {' or '.join(close)}? " if close else "")
            + "`layrubnet check --layers` lists the known types; "
            "--import FILE adds those of a Python file",
        )
    return _TYPES[type_name]
