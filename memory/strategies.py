"""The strategies a user can name, each as decisions about an iteration's buffers.

=============  ==================================================================================
caffe          everything keeps its place for ever (see ``plan.keep_everything``)
reuse          lifetimes only: a place is free for others as soon as its content is dead
intra          Layrub within a layer: a gradient lies over the activation it belongs to
inter          Layrub between layers: feature maps leave after forward, return before backward
hybrid         Layrub: both
vdnn           only what convolutions read is offloaded
recompute      what cheap layers made from kept values is made again, or kept in compact form
sublinear      what crosses about sqrt(n) cuts is kept, the rest is made again, all of it
min            the smallest peak there is, whatever it costs
auto           the fastest mixture within a budget; without one, the smallest peak that costs no
               more than 5 % time (see ``auto.py``)
=============  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from layrubnet.engine.program import Instruction
from layrubnet.errors import LayrubError, nearest
from layrubnet.memory.candidates import Candidate
from layrubnet.memory.checkpoints import best_checkpoints
from layrubnet.memory.compact import extras_offloaded, with_compact
from layrubnet.memory.copies import Pace
from layrubnet.memory.iteration import Decisions, Iteration
from layrubnet.memory.lifetimes import Slot
from layrubnet.memory.rewrite import Choice, Rewritten
from layrubnet.memory.settle import MANY

STRATEGIES = (
    "caffe", "reuse", "intra", "inter", "hybrid", "vdnn", "recompute", "sublinear", "min", "auto",
)  # fmt: skip

CHEAP = 10
"""A layer is cheap to repeat when it does at most so many operations per element it writes."""
_EASY = 0.7
"""With so little of the peak to themselves, the copies of a large net find addresses at once."""
ONE_STEP = Pace(lag=1, lead=1)


def check_strategy(name: str) -> str:
    """Return ``name`` if it is a strategy; otherwise an error with the nearest one."""
    if name in STRATEGIES:
        return name
    close = nearest(name, STRATEGIES)
    raise LayrubError(
        f"unknown memory strategy {name!r}",
        expected=", ".join(STRATEGIES),
        hint=f"did you mean {close[0]!r}?" if close else "",
    )


def fixed_decisions(name: str, iteration: Iteration) -> Decisions:
    """The decisions of a strategy that needs no search."""
    return _MAKERS[name](iteration)


def _reuse(iteration: Iteration) -> Decisions:
    return Decisions()


def _offloaded(found: list[Candidate]) -> dict[str, Choice]:
    return {c.name: Choice.OFFLOAD for c in found}


def _inter(iteration: Iteration) -> Decisions:
    return LayrubDecisions(_offloaded(iteration.candidates), ONE_STEP, own_gradients=True)


def _hybrid(iteration: Iteration) -> Decisions:
    return Decisions(_offloaded(iteration.candidates), ONE_STEP)


def _intra(iteration: Iteration) -> Decisions:
    return LayrubDecisions({}, over_activations=True)


def _vdnn(iteration: Iteration) -> Decisions:
    by_convolution = {
        name for i in iteration.backward if i.op == "backward_weights" for name in i.reads
    }
    return Decisions(
        _offloaded([c for c in iteration.candidates if c.name in by_convolution]), ONE_STEP
    )


def cheap_recomputes(iteration: Iteration) -> dict[str, Choice]:
    """Values that cheap layers can make again from what is kept anyway.

    Walks forward: a value can be rebuilt if all that its layer reads is persistent, waits for
    backward itself, or can be rebuilt in at most four steps. What is better off in a compact form
    does not wait.
    """
    buffers, forward = iteration.buffers, iteration.forward
    waiting = {c.name for c in iteration.candidates} - _better_compact(iteration)
    depth: dict[str, int] = {}
    chosen: dict[str, Choice] = {}
    for value in iteration.values:
        writer = forward[value.writer]
        if not value.repeatable or not _is_cheap(writer, iteration):
            continue
        inputs = [r for r in writer.reads if r in buffers]
        rebuilt = [depth[r] for r in inputs if r in depth]
        if not all(r in waiting or r in depth for r in inputs) or not inputs:
            continue
        steps = 1 + max(rebuilt, default=0)
        if steps > 4:
            continue
        depth[value.name] = steps
        chosen[value.name] = Choice.RECOMPUTE
    return chosen


def _better_compact(iteration: Iteration) -> set[str]:
    """Values whose compact form frees as much as the cheap repetitions that read them would."""
    if not iteration.compacts:
        return set()
    saved = dict.fromkeys(iteration.compacts, 0)
    for value in iteration.candidates:
        writer = iteration.forward[value.writer]
        if value.repeatable and _is_cheap(writer, iteration):
            for read in saved.keys() & set(writer.reads):
                saved[read] += value.nbytes
    return {n for n, nbytes in saved.items() if nbytes <= iteration.by_name[n].nbytes}


def _is_cheap(writer: Instruction, iteration: Iteration) -> bool:
    written = sum(iteration.buffers[n].nbytes for n in writer.writes if n in iteration.buffers)
    return writer.flops <= CHEAP * written / 4


def _recompute(iteration: Iteration) -> Decisions:
    return Decisions(with_compact(iteration, cheap_recomputes(iteration)))


def _sublinear(iteration: Iteration) -> Decisions:
    return Decisions(with_compact(iteration, best_checkpoints(iteration)))


def _min(iteration: Iteration) -> Decisions:
    """Offload everything at once and fetch at the last moment, or repeat what is cheap.

    Copies may then take what time they can get without raising the peak.
    """
    repeated = cheap_recomputes(iteration)
    moved = _offloaded([c for c in iteration.candidates if c.name not in repeated])
    everything = _offloaded(iteration.candidates)
    options = [{**moved, **repeated}, everything]
    if iteration.compacts:
        compact = [with_compact(iteration, choices) for choices in options]
        options = [everything, *(extras_offloaded(iteration, choices) for choices in compact)]
    outlines = [iteration.outline(Decisions(choices, Pace(0, 0))) for choices in options]
    best = min(outlines, key=lambda o: (o.bound, o.timing.total))
    room = best.bound if len(best.slots) < MANY else int(best.bound * _EASY)
    return Decisions(best.decisions.choices, room=room)


_MAKERS: dict[str, Callable[[Iteration], Decisions]] = {
    "reuse": _reuse,
    "intra": _intra,
    "inter": _inter,
    "hybrid": _hybrid,
    "vdnn": _vdnn,
    "recompute": _recompute,
    "sublinear": _sublinear,
    "min": _min,
}


@dataclass(frozen=True)
class LayrubDecisions(Decisions):
    """Layrub's passes taken one at a time.

    ``over_activations`` (intra alone): every buffer keeps its place, except that a gradient takes
    that of its activation where it can. ``own_gradients`` (inter alone): feature maps share
    places, gradients keep theirs.
    """

    over_activations: bool = False
    own_gradients: bool = False

    def adjust(self, found: list[Slot], rewritten: Rewritten) -> list[Slot]:
        last = len(rewritten.instructions) - 1
        if self.over_activations:
            found = _lay_over(found)
        for slot in found:
            gradient = any(n.endswith(".diff") for n in slot.names)
            scratch = slot.names[0].startswith("#")
            if not scratch and (self.over_activations or (self.own_gradients and gradient)):
                slot.start, slot.end = 0, last
        return found


def _lay_over(found: list[Slot]) -> list[Slot]:
    """Join the slot of each gradient with that of its activation, if the latter is dead by then."""
    by_name = {name: slot for slot in found for name in slot.names}
    gone: set[int] = set()
    for slot in found:
        for name in list(slot.names):
            activation = by_name.get(name.removesuffix(".diff") + ".data")
            if (
                name.endswith(".diff")
                and activation is not None
                and activation is not slot
                and id(slot) not in gone
                and activation.end < slot.start
                and activation.nbytes >= slot.nbytes
            ):
                activation.end = slot.end
                activation.names += slot.names
                gone.add(id(slot))
    return [slot for slot in found if id(slot) not in gone]
