"""One iteration of a program with a set of decisions: what it needs and how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from layrubnet.engine.program import Buffer, Instruction
from layrubnet.memory.candidates import Candidate, forward_buffers
from layrubnet.memory.cost import CostModel
from layrubnet.memory.lifetimes import Slot, peak, slots
from layrubnet.memory.placement import place
from layrubnet.memory.plan import Schedule
from layrubnet.memory.rewrite import Choice, Pace, Rewritten, rewrite
from layrubnet.memory.simulate import Timing, simulate


@dataclass(frozen=True)
class Iteration:
    """Forward and backward of a program, ready to be planned in one way or another.

    ``keep``: buffers that must be readable when it ends. ``base_scratch``: what every instruction
    has anyway.
    """

    forward: tuple[Instruction, ...]
    backward: tuple[Instruction, ...]
    buffers: Mapping[str, Buffer]
    cost: CostModel
    keep: frozenset[str] = frozenset()
    base_scratch: int = 0

    @cached_property
    def values(self) -> list[Candidate]:
        """What forward makes, in order (kept buffers cannot be chosen and are left out)."""
        made = forward_buffers(self.forward, self.backward, self.buffers)
        return [c for c in made if c.name not in self.keep]

    @cached_property
    def candidates(self) -> list[Candidate]:
        """What waits between forward and backward."""
        return [c for c in self.values if c.first_backward >= 0]

    def outline(self, decisions: Decisions) -> Outline:
        """The iteration with these decisions, without addresses yet."""
        rewritten = rewrite(
            self.forward,
            self.backward,
            self.buffers,
            decisions.choices,
            decisions.pace,
            self.cost,
        )
        found = slots(
            rewritten.instructions,
            rewritten.buffers,
            keep=self.keep,
            base_scratch=self.base_scratch,
            share=decisions.share,
        )
        return Outline(self, rewritten, decisions.adjust(found, rewritten))


@dataclass(frozen=True)
class Decisions:
    """What to do with each buffer; the rest is kept."""

    choices: Mapping[str, Choice] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)
    share: bool = True
    """Results may be written over operands (where the contract allows)."""

    def adjust(self, found: list[Slot], rewritten: Rewritten) -> list[Slot]:
        """A hook for strategies that give up some reuse; the general case changes nothing."""
        return found


@dataclass(frozen=True)
class Outline:
    """A planned iteration before placement."""

    iteration: Iteration
    rewritten: Rewritten
    slots: list[Slot]

    @cached_property
    def bound(self) -> int:
        """Bytes live at the fullest instruction."""
        return peak(self.slots)[0]

    @cached_property
    def fullest(self) -> int:
        """The position of that instruction."""
        return peak(self.slots)[1]

    @cached_property
    def timing(self) -> Timing:
        """Predicted seconds."""
        r = self.rewritten
        return simulate(r.instructions, r.buffers, self.iteration.cost)

    def placed(self, start: int = 0) -> tuple[Schedule, int]:
        """Give addresses from ``start`` on; return the schedule and the height of the arena."""
        offsets, height = place(self.slots)
        addresses: dict[str, int] = {}
        scratch: dict[int, int] = {}
        for slot, offset in zip(self.slots, offsets, strict=True):
            for name in slot.names:
                if name.startswith("#"):
                    scratch[int(name[1:])] = start + offset
                else:
                    addresses[name] = start + offset
        schedule = Schedule(
            self.rewritten.instructions,
            self.rewritten.buffers,
            addresses,
            scratch,
            self.rewritten.host,
            self.bound,
        )
        return schedule, height
