"""The program: a flat list of instructions over buffers. Data only; nothing here runs.

Instructions name the buffers they read and write; that is all the planner, the verifier and the
executor need. Which numbers come out is fixed here: no plan changes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from layrubnet.engine.contract import ITEM_BYTES, Shape
from layrubnet.engine.graph import Graph


@dataclass(frozen=True, slots=True)
class Buffer:
    """A piece of device memory.

    ``kind``: data, diff, saved, state, param, param_diff, history, scalars. ``persistent`` ones
    survive the iteration; ``fill`` is their initial value (``None``: set by the net).
    ``layer`` is the layer (or parameter) it belongs to, for reports.
    """

    name: str
    kind: str
    shape: Shape
    dtype: str = "float32"
    persistent: bool = False
    layer: str = ""
    fill: float | None = None

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class Operand:
    """A buffer seen with a shape; ``extent`` cuts axis 0 to a run-time extent."""

    buffer: str
    shape: Shape
    dtype: str = "float32"
    extent: str | None = None


Slot = Operand | None


@dataclass(frozen=True, slots=True)
class Instruction:
    """One step of a program.

    ``op`` is one of: load, forward, update_state, seed, zero, copy, fetch_loss, backward_weights,
    backward_data, accumulate, norm, clip, normalise, regularise, update. ``target`` is the layer
    (or, from ``norm`` on, the parameter) it works for. ``slots`` holds operands by role (x, y, w,
    dx, dy, dw, saved, state); ``reads``/``writes`` are the buffers, in full. ``shares``: pairs
    (written, read) that may be the same memory. ``repeatable``: running it again with the same
    inputs gives the same bits and changes nothing else.

    A memory plan adds ``offload`` (device to host), ``fetch`` (host to device), ``wait`` (for one
    of those, named by ``target``) and ``recompute`` (a forward once more).
    """

    op: str
    target: str
    slots: Mapping[str, tuple[Slot, ...]] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    scratch: int = 0
    accumulate: bool = False
    chunk: tuple[int, int] | None = None
    values: tuple[float, ...] = ()
    flops: float = 0.0
    shares: tuple[tuple[str, str], ...] = ()
    repeatable: bool = False

    def operands(self) -> Iterator[Operand]:
        """Every operand that is there."""
        for slot in self.slots.values():
            yield from (o for o in slot if o is not None)

    def __str__(self) -> str:
        more = "+" if self.accumulate else ""
        return f"{self.op}{more} {self.target}: {', '.join(self.reads)} -> {', '.join(self.writes)}"


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another form of two instructions of a layer with the same results, to be taken together.

    ``forward`` also writes ``extra``, and ``backward_data`` reads that instead of more.
    """

    forward: Instruction
    backward_data: Instruction
    extra: Buffer


SECTIONS = ("forward", "backward", "backward_accumulate", "update")
VARIANTS: Mapping[str, tuple[str, ...]] = {
    "single": ("forward", "backward", "update"),
    "first": ("forward", "backward"),
    "middle": ("forward", "backward_accumulate"),
    "last": ("forward", "backward_accumulate", "update"),
    "test": ("forward",),
}
"""The variants of an iteration: which sections run, in order, for each kind of micro-batch."""


@dataclass(frozen=True)
class Program:
    """A compiled net.

    ``sections`` hold the instructions; a *variant* (single, first, middle, last, test) is a
    sequence of sections. ``blob_data``/``blob_diff`` map a blob's name to the operand that holds
    its last version (what a user calls the blob). ``param_data``/``param_diff``/``history``: by
    parameter name. ``alternatives``: by layer; what they add is in no section and not in
    ``buffers``, since only a plan that takes them needs it.
    """

    graph: Graph
    buffers: Mapping[str, Buffer]
    sections: Mapping[str, tuple[Instruction, ...]]
    blob_data: Mapping[str, Operand]
    blob_diff: Mapping[str, Operand]
    param_data: Mapping[str, Operand]
    param_diff: Mapping[str, Operand]
    history: Mapping[str, tuple[Operand, ...]]
    alternatives: Mapping[str, Alternative] = field(default_factory=dict)

    def variant(self, name: str) -> tuple[Instruction, ...]:
        """The instructions of one iteration variant, in order."""
        return tuple(i for section in VARIANTS[name] for i in self.sections.get(section, ()))

    def listing(self, variant: str = "single") -> str:
        """The program as text, one instruction a line."""
        return "\n".join(f"{n:4d}  {i}" for n, i in enumerate(self.variant(variant)))
