"""Shapes of data that is not there: a net can be planned on a machine without its data base.

Inside :func:`stand_ins`, data layers ask here: for a shape the user gave (by top), and for a guess
when their source cannot be opened. Outside, they get neither.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from layrubnet.errors import DataError, LayrubError

Shape = tuple[int, ...]


@dataclass
class StandIns:
    """``shapes``: by top, as given. ``notes``: what was guessed, for the report."""

    shapes: Mapping[str, Shape]
    notes: list[str] = field(default_factory=list)

    def named(self, tops: Sequence[str], batch: int) -> list[Shape] | None:
        """The given shapes for the tops of a data layer; those not named are labels, (N).

        None if no top is named. Axis 0 is the batch.
        """
        if not any(top in self.shapes for top in tops):
            return None
        size = next((self.shapes[top][0] for top in tops if top in self.shapes), batch)
        return [self.shapes.get(top, (size,)) for top in tops]

    def unknown(self, spec: Any, batch: int, error: LayrubError, where: str) -> DataError:
        """The error for a shape that nothing tells."""
        return DataError(
            f"the shape of the data is not known: {error.what.splitlines()[0]}",
            where=where,
            hint=f"--input-shape {spec.top[0]}={batch},3,224,224 (batch, channels, height, "
            "width) says it without the data",
        )

    def guess(self, spec: Any, batch: int, error: LayrubError, where: str) -> list[Shape]:
        """Image shapes from ``transform_param``; DataError, with what to give, if it says none."""
        transform = spec.transform_param
        size = (
            (transform.crop_size, transform.crop_size)
            if transform.crop_size
            else (transform.crop_h, transform.crop_w)
        )
        if not all(size):
            raise self.unknown(spec, batch, error, where)
        channels = len(transform.mean_value) if len(transform.mean_value) > 1 else 3
        channels = 1 if transform.force_gray else channels
        shape = (batch, channels, *size)
        text = ",".join(map(str, shape))
        self.notes.append(
            f"layer {spec.name!r}: no data here, so its shape is taken to be {text}\n"
            f"      (--input-shape {spec.top[0]}={text} says another)"
        )
        return [shape, (batch,)][: len(spec.top)]


_current: ContextVar[StandIns | None] = ContextVar("stand_ins", default=None)


def current() -> StandIns | None:
    """The stand-ins in force, or None outside planning."""
    return _current.get()


@contextlib.contextmanager
def stand_ins(shapes: Mapping[str, Shape]) -> Iterator[StandIns]:
    """Let data layers do without their data in this context."""
    made = StandIns(shapes)
    token = _current.set(made)
    try:
        yield made
    finally:
        _current.reset(token)
