"""Batches of a data layer: which records, in which order, prepared ahead in a thread.

Records are numbered for ever: record ``i`` is the ``i % n``-th of the data base, and of ``world``
ranks, rank ``i % world`` receives it (Caffe's rule). A *cursor* is such a number: the first
record, of all ranks together, that has not been given out. It is all that a snapshot needs, since
nothing random depends on anything but ``i``.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layrubnet.data.datum import decode_datum
from layrubnet.data.prefetch import Prefetcher
from layrubnet.data.records import RecordSource
from layrubnet.data.transform import Transformer
from layrubnet.errors import DataError

DRAW_SKIP = 1
"""The draw that ``rand_skip`` uses; crop and mirror use draw 0."""


class Batches:
    """The endless sequence of batches that one data layer of one rank receives.

    ``prefetch`` is the number of batches prepared ahead in one background thread (0: none, each
    is made when asked for); it never changes a bit. The source is closed with the batches.
    """

    def __init__(
        self,
        source: RecordSource,
        transformer: Transformer,
        batch_size: int,
        *,
        prefetch: int = 4,
        rand_skip: int = 0,
        force_color: bool = False,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        """``force_color`` is data_param's ``force_encoded_color``.

        Test nets have rank 0 of 1: every rank tests on everything, as in Caffe. ``rand_skip`` > 0
        starts at a record below it, chosen by the transformer's seed: the same on all ranks.
        """
        if batch_size < 1:
            raise DataError("batch_size must be 1 or more", where=source.path, got=batch_size)
        if not 0 <= rank < world:
            raise ValueError(f"rank {rank} of {world}")
        color = force_color or transformer.force_color
        if color and transformer.force_gray:
            raise DataError("colour and grey are both forced", where=source.path)
        self._reader = _Reader(source, transformer, color, rank, world)
        self._depth = prefetch
        self._step = batch_size * world
        self._cursor = transformer.draw(0, DRAW_SKIP)[0] % rand_skip if rand_skip else 0
        image = self._reader.read(self._cursor + rank)[0]
        self.shape = (batch_size, *transformer.output_shape(*image.shape))
        """(N, C, H, W) of a batch, inferred from the first record as in Caffe."""
        self._running: list[Prefetcher] = []  # at most one; shared with the finalizer
        # Also at exit: the thread has to end before the interpreter and the data base do.
        self._finalizer = weakref.finalize(self, _release, self._running, source)

    @property
    def cursor(self) -> int:
        """The position of the batch that :meth:`next_into` gives next."""
        return self._cursor

    def seek(self, cursor: int) -> None:
        """Continue at a position that :attr:`cursor` had, here or in another run."""
        if cursor < 0:
            raise ValueError(f"a cursor is not negative, got {cursor}")
        _stop(self._running)
        self._cursor = cursor

    def next_into(
        self, data: NDArray[np.float32], labels: NDArray[np.float32] | None = None
    ) -> None:
        """Write the next batch into ``data`` (N, C, H, W) and ``labels`` (N).

        Raises :class:`DataError` naming the data base and the key of a bad record; the cursor
        then stays where it is.
        """
        if data.shape != self.shape or (labels is not None and labels.shape != self.shape[:1]):
            raise ValueError(f"a batch has the shape {self.shape}, got {data.shape}")
        if not self._finalizer.alive:
            raise ValueError("the batches are closed")
        if self._depth == 0:
            self._reader.fill(self._cursor, data, labels)
        else:
            self._take(data, labels)
        self._cursor += self._step

    def close(self) -> None:
        """Stop the thread and close the source; closing twice is harmless."""
        self._finalizer()

    def _take(self, data: NDArray[np.float32], labels: NDArray[np.float32] | None) -> None:
        if not self._running:
            self._running.append(
                Prefetcher(self._reader.fill, self.shape, self._cursor, self._step, self._depth)
            )
        try:
            self._running[0].next_into(data, labels)
        except BaseException:
            # A failed one is spent; after an interrupt, whether the batch was taken is unknown.
            _stop(self._running)
            raise


@dataclass(frozen=True)
class _Reader:
    """Makes batches. Apart from :class:`Batches`, so that the thread does not keep that alive."""

    source: RecordSource
    transformer: Transformer
    force_color: bool
    rank: int
    world: int

    def read(self, record: int) -> tuple[NDArray[Any], int, str]:
        """Return array, label and a name for error messages of the numbered record."""
        key, raw = self.source.get(record % len(self.source))
        where = f"{self.source.path} key {key.decode('utf-8', 'backslashreplace')!r}"
        force_gray = self.transformer.force_gray
        array, label = decode_datum(raw, where, self.force_color, force_gray)
        return array, label, where

    def fill(
        self, cursor: int, data: NDArray[np.float32], labels: NDArray[np.float32] | None
    ) -> None:
        for position, out in enumerate(data):
            record = cursor + self.rank + position * self.world
            array, label, where = self.read(record)
            self.transformer.transform_into(out, array, record, where)
            if labels is not None:
                labels[position] = label


def _stop(running: list[Prefetcher]) -> None:
    while running:
        running.pop().stop()


def _release(running: list[Prefetcher], source: RecordSource) -> None:
    _stop(running)
    source.close()
