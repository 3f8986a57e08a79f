"""One iteration of a program with a set of decisions: what it needs and how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from layrubnet.engine.program import Alternative, Buffer, Instruction
from layrubnet.memory.candidates import Candidate, forward_buffers
from layrubnet.memory.compact import compact_forms
from layrubnet.memory.copies import Pace
from layrubnet.memory.cost import CostModel, Remembered
from layrubnet.memory.lifetimes import Slot, peak, slots
from layrubnet.memory.placement import place
from layrubnet.memory.plan import Schedule
from layrubnet.memory.rewrite import Choice, Rewritten, rewrite
from layrubnet.memory.simulate import Timing, simulate
from layrubnet.memory.stretch import stretch


@dataclass(frozen=True)
class Iteration:
    """Forward and backward of a program, ready to be planned in one way or another.

    ``keep``: buffers that must be readable when it ends. ``base_scratch``: what every instruction
    has anyway. ``alternatives``: other forms of its instructions, by layer.
    """

    forward: tuple[Instruction, ...]
    backward: tuple[Instruction, ...]
    buffers: Mapping[str, Buffer]
    cost: CostModel
    keep: frozenset[str] = frozenset()
    base_scratch: int = 0
    alternatives: Mapping[str, Alternative] = field(default_factory=dict)

    @cached_property
    def values(self) -> list[Candidate]:
        """What forward makes, in order (kept buffers cannot be chosen and are left out)."""
        made = forward_buffers(self.forward, self.backward, self.buffers)
        return [c for c in made if c.name not in self.keep]

    @cached_property
    def candidates(self) -> list[Candidate]:
        """What waits between forward and backward."""
        return [c for c in self.values if c.first_backward >= 0]

    @cached_property
    def by_name(self) -> dict[str, Candidate]:
        """What forward makes, by name."""
        return {v.name: v for v in self.values}

    @cached_property
    def compacts(self) -> dict[str, Alternative]:
        """What waits and need not in a compact form, and the alternative that brings it."""
        found = compact_forms(self.backward, self.alternatives)
        return {
            n: a
            for n, a in found.items()
            if n in self.by_name and a.extra.nbytes < self.by_name[n].nbytes
        }

    @cached_property
    def costs(self) -> CostModel:
        """The cost model, with the instructions' times remembered."""
        return Remembered(self.cost.figures, self.cost.measured)

    def outline(self, decisions: Decisions) -> Outline:
        """The iteration with these decisions, without addresses yet."""
        room = decisions.room
        rewritten = rewrite(
            self.forward,
            self.backward,
            self.buffers,
            decisions.choices,
            decisions.pace if room is None else Pace(0, 0),
            self.costs,
            self.compacts,
        )
        found = self._slots(rewritten, decisions)
        if room is not None and rewritten.host:
            instructions = stretch(
                rewritten.instructions, found, rewritten.buffers, room, self.costs
            )
            rewritten = replace(rewritten, instructions=instructions)
            found = self._slots(rewritten, decisions)
        return Outline(self, decisions, rewritten, decisions.adjust(found, rewritten))

    def _slots(self, rewritten: Rewritten, decisions: Decisions) -> list[Slot]:
        return slots(
            rewritten.instructions,
            rewritten.buffers,
            keep=self.keep,
            base_scratch=self.base_scratch,
            share=decisions.share,
        )


@dataclass(frozen=True)
class Decisions:
    """What to do with each buffer; the rest is kept.

    ``room``: copies take as long as they like while no more than so many bytes are live; the
    ``pace`` then does not count.
    """

    choices: Mapping[str, Choice] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)
    share: bool = True
    """Results may be written over operands (where the contract allows)."""
    room: int | None = None

    def adjust(self, found: list[Slot], rewritten: Rewritten) -> list[Slot]:
        """A hook for strategies that give up some reuse; the general case changes nothing."""
        return found


@dataclass(frozen=True)
class Outline:
    """A planned iteration before placement."""

    iteration: Iteration
    decisions: Decisions
    rewritten: Rewritten
    slots: list[Slot]

    @cached_property
    def bound(self) -> int:
        """Bytes live at the fullest instruction."""
        return self._peak[0]

    @cached_property
    def fullest(self) -> int:
        """The position of that instruction."""
        return self._peak[1]

    @cached_property
    def _peak(self) -> tuple[int, int]:
        return peak(self.slots)

    @cached_property
    def timing(self) -> Timing:
        """Predicted seconds."""
        r = self.rewritten
        return simulate(r.instructions, r.buffers, self.iteration.costs)

    @cached_property
    def _places(self) -> tuple[list[int], int]:
        return place(self.slots)

    @property
    def height(self) -> int:
        """Bytes of the arena, once there are addresses."""
        return self._places[1]

    def placed(self, start: int = 0) -> tuple[Schedule, int]:
        """Give addresses from ``start`` on; return the schedule and the height of the arena."""
        offsets, height = self._places
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
