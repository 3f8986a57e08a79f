"""What an instruction costs: measured milliseconds where there are some, arithmetic otherwise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from layrubnet.engine.contract import ITEM_BYTES
from layrubnet.engine.program import Instruction


@dataclass(frozen=True)
class Figures:
    """Speeds of a device: floating-point operations, memory, and copies to and from the host.

    All per second; ``launch`` is seconds that every instruction takes besides. ``drag`` is the
    share of a copy's time by which it slows down the computation beside it: none where an engine
    of its own copies, but a CPU's cores share the memory. The defaults are those of a data-centre
    GPU on PCI Express 3; the CPU's were measured on one thread.
    """

    name: str = "gpu"
    flops: float = 10e12
    memory: float = 500e9
    to_host: float = 12e9
    from_host: float = 12e9
    launch: float = 5e-6
    drag: float = 0.0


GPU = Figures()
CPU = Figures("cpu", flops=40e9, memory=4e9, to_host=2e9, from_host=2.5e9, launch=20e-6, drag=0.5)


def operand_bytes(instruction: Instruction) -> int:
    """Bytes an instruction reads and writes."""
    return sum(
        math.prod(o.shape) * ITEM_BYTES[o.dtype]
        for slot in instruction.slots.values()
        for o in slot
        if o is not None
    )


@dataclass
class CostModel:
    """Seconds of instructions and copies.

    ``measured``: seconds by (op, target), from a profiled iteration; it goes before arithmetic.
    """

    figures: Figures = GPU
    measured: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def seconds(self, instruction: Instruction) -> float:
        """Seconds of one instruction; a recomputation costs what the forward does."""
        op = "forward" if instruction.op == "recompute" else instruction.op
        if op in ("offload", "fetch", "wait"):
            return 0.0
        known = self.measured.get((op, instruction.target))
        if known is not None:
            return known
        figures = self.figures
        busy = max(instruction.flops / figures.flops, operand_bytes(instruction) / figures.memory)
        return busy + figures.launch

    def copy_seconds(self, op: str, nbytes: int) -> float:
        """Seconds of an offload or a fetch."""
        speed = self.figures.to_host if op == "offload" else self.figures.from_host
        return nbytes / speed + self.figures.launch


@dataclass
class Remembered(CostModel):
    """A cost model for the instructions of one program, each worked out once."""

    known: dict[tuple[object, ...], float] = field(default_factory=dict)

    def seconds(self, instruction: Instruction) -> float:
        """As :meth:`CostModel.seconds`."""
        op = "forward" if instruction.op == "recompute" else instruction.op
        if op in ("forward", "backward_data", "backward_weights"):
            # A compact form has an operand more among the extras.
            extras = len(instruction.slots.get("saved", ()))
            key: tuple[object, ...] = (op, instruction.target, instruction.chunk, extras)
        else:
            key = (op, instruction.target, instruction.writes)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = super().seconds(instruction)
        return found
