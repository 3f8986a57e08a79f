"""Which buffers a plan may offload or recompute, and what each decision would cost and free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layrubnet.engine.program import Buffer, Instruction


@dataclass(frozen=True)
class Candidate:
    """A buffer that forward writes and backward reads.

    ``last_forward``/``first_backward``: positions (in forward, in backward) between which it only
    waits. ``repeatable``: the instruction that writes it can run again.
    """

    name: str
    nbytes: int
    writer: int
    last_forward: int
    first_backward: int
    repeatable: bool


def transient(buffers: Mapping[str, Buffer], external: Sequence[str] = ()) -> dict[str, Buffer]:
    """The buffers that need not survive the iteration."""
    return {n: b for n, b in buffers.items() if not b.persistent and n not in external}


def candidates(
    forward: Sequence[Instruction], backward: Sequence[Instruction], buffers: Mapping[str, Buffer]
) -> list[Candidate]:
    """Buffers that wait between forward and backward, in the order in which forward makes them."""
    return [c for c in forward_buffers(forward, backward, buffers) if c.first_backward >= 0]


def forward_buffers(
    forward: Sequence[Instruction], backward: Sequence[Instruction], buffers: Mapping[str, Buffer]
) -> list[Candidate]:
    """Every transient buffer that exactly one forward instruction writes, and backward none.

    ``first_backward`` is -1 where backward does not read it. Buffers with a run-time extent are
    left out: how much of them counts is known only when they are made.
    """
    writers: dict[str, list[int]] = {}
    last: dict[str, int] = {}
    for position, instruction in enumerate(forward):
        for name in instruction.writes:
            writers.setdefault(name, []).append(position)
            last[name] = position
        for name in instruction.reads:
            last[name] = position
    first: dict[str, int] = {}
    written_later = {n for i in backward for n in i.writes}
    for position, instruction in enumerate(backward):
        for name in instruction.reads:
            first.setdefault(name, position)
    stretchy = {o.buffer for i in forward for o in i.operands() if o.extent is not None}
    moving = _changing_state(forward, backward, buffers)
    found = []
    for name, positions in writers.items():
        if name not in buffers or len(positions) > 1 or name in written_later or name in stretchy:
            continue
        writer = forward[positions[0]]
        found.append(
            Candidate(
                name,
                buffers[name].nbytes,
                positions[0],
                last[name],
                first.get(name, -1),
                writer.repeatable and not any(r in moving for r in writer.reads),
            )
        )
    return found


def _changing_state(
    forward: Sequence[Instruction], backward: Sequence[Instruction], buffers: Mapping[str, Buffer]
) -> set[str]:
    """Persistent buffers that the iteration itself writes: a repetition would see them changed."""
    return {n for part in (forward, backward) for i in part for n in i.writes if n not in buffers}
