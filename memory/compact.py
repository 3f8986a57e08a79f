"""Exact compact forms: where a layer can leave a few bits for backward, and where that pays.

A layer's alternative (``program.Alternative``) rids backward of a value if nothing else in backward
reads that value. It costs next to nothing, so it goes before offloading, and before a repetition
that frees no more than the value itself holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from layrubnet.engine.program import Alternative, Instruction
from layrubnet.memory.rewrite import Choice

if TYPE_CHECKING:
    from layrubnet.memory.iteration import Iteration


def compact_forms(
    backward: Sequence[Instruction], alternatives: Mapping[str, Alternative]
) -> dict[str, Alternative]:
    """By buffer: the alternative after which no backward instruction reads it any more."""
    if not alternatives:
        return {}
    readers: dict[str, list[Instruction]] = {}
    for instruction in backward:
        for name in instruction.reads:
            readers.setdefault(name, []).append(instruction)
    found = {}
    for name, (reader, *others) in readers.items():
        alternative = alternatives.get(reader.target)
        if (
            alternative is not None
            and not others
            and reader.op == "backward_data"
            and name not in alternative.backward_data.reads
        ):
            found[name] = alternative
    return found


def with_compact(iteration: Iteration, choices: Mapping[str, Choice]) -> dict[str, Choice]:
    """``choices``, but the compact form for every value that no chosen repetition reads."""
    made = dict(choices)
    if iteration.compacts:
        repeated = (n for n, c in choices.items() if c is Choice.RECOMPUTE)
        wanted = {
            read
            for name in repeated
            for read in iteration.forward[iteration.by_name[name].writer].reads
        }
        made |= {n: Choice.COMPACT for n in iteration.compacts if n not in wanted}
    return made


def extras_offloaded(iteration: Iteration, choices: Mapping[str, Choice]) -> dict[str, Choice]:
    """``choices``, and what compact forms leave goes to the host."""
    compact = [iteration.compacts[n] for n, c in choices.items() if c is Choice.COMPACT]
    return {**choices, **{a.extra.name: Choice.OFFLOAD for a in compact}}
