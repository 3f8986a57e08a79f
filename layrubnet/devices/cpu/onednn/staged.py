"""A primitive on plain arrays: operands that it wants in another layout are copied in scratch."""

from __future__ import annotations

from collections.abc import Mapping

from layrubnet.devices.cpu.onednn.binding import SCRATCHPAD, Call, Handle, OneDnn
from layrubnet.devices.scratch import ScratchAllocator

_FROM, _TO = 1, 17
_ALIGNMENT = 64


def address(array: object) -> int:
    """Where the data of a contiguous array are."""
    return int(array.__array_interface__["data"][0])  # type: ignore[attr-defined]


class Staged:
    """``inputs`` and ``outputs`` say which plain layout each argument of a primitive has outside.

    ``take`` scratch once per instruction; ``load`` inputs, ``run``, ``store`` outputs, as often as
    needed. An argument that is used as it lies costs nothing to load or store.
    """

    def __init__(
        self,
        dnn: OneDnn,
        descriptor: Handle,
        inputs: Mapping[int, Handle],
        outputs: Mapping[int, Handle],
    ) -> None:
        self._dnn, self._descriptor = dnn, descriptor
        self._plain = {**inputs, **outputs}
        self._layouts = {a: dnn.layout(descriptor, a) for a in self._plain}
        self._staged = {
            a: dnn.nbytes(inner)
            for a, inner in self._layouts.items()
            if not dnn.same(inner, self._plain[a])
        }
        # Some copies need a scratchpad, too; they take turns with the primitive.
        self._copies = {
            a: dnn.reorder(self._plain[a], self._layouts[a])
            if a in inputs
            else dnn.reorder(self._layouts[a], self._plain[a])
            for a in self._staged
        }
        pads = [descriptor, *self._copies.values()]
        self._pad_bytes = max(dnn.nbytes(dnn.scratchpad(d)) for d in pads)
        sizes = [*self._staged.values(), self._pad_bytes]
        self.nbytes = sum(-(-n // _ALIGNMENT) * _ALIGNMENT for n in sizes)
        self._call: Call | None = None
        self._copiers: dict[int, Call] = {}

    def describe(self) -> str:
        """The kernel, and which arguments are copied."""
        return f"{self._dnn.implementation(self._descriptor)} {sorted(self._staged)}"

    def take(self, scratch: ScratchAllocator) -> None:
        """Take the scratch of this instruction; compile at the first time."""
        if self._call is None:
            self._compile()
        self._inner = {a: address(scratch(n, "uint8")) for a, n in self._staged.items()}
        self._pad = address(scratch(self._pad_bytes, "uint8"))

    def _compile(self) -> None:
        def call(descriptor: Handle, layouts: Mapping[int, Handle]) -> Call:
            pad = self._dnn.scratchpad(descriptor)
            return Call(self._dnn, descriptor, {**layouts, SCRATCHPAD: pad})

        self._call = call(self._descriptor, self._layouts)
        for a, descriptor in self._copies.items():
            ends = {end: self._dnn.layout(descriptor, end) for end in (_FROM, _TO)}
            self._copiers[a] = call(descriptor, ends)

    def load(self, argument: int, where: int) -> int:
        """Copy an input to its place in scratch; return where the primitive finds it."""
        if argument not in self._staged:
            return where
        inner = self._inner[argument]
        self._copiers[argument]({_FROM: where, _TO: inner, SCRATCHPAD: self._pad})
        return inner

    def place(self, argument: int, where: int) -> int:
        """Where the primitive should write an output that is to end at ``where``."""
        return self._inner.get(argument, where)

    def run(self, addresses: Mapping[int, int]) -> None:
        """Run the primitive on arguments at these addresses (from ``load`` and ``place``)."""
        assert self._call is not None
        self._call({**addresses, SCRATCHPAD: self._pad})

    def store(self, argument: int, where: int) -> None:
        """Copy an output from its place in scratch, if it is not there already."""
        if argument in self._staged:
            inner = self._inner[argument]
            self._copiers[argument]({_FROM: inner, _TO: where, SCRATCHPAD: self._pad})
