"""Preparing batches ahead of their use: one thread and a ring of buffers that are made once."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Fill = Callable[[int, NDArray[np.float32], NDArray[np.float32]], None]
"""Writes the batch at a cursor into arrays of data and labels."""


class Prefetcher:
    """Runs ``fill(start), fill(start + step), ...`` in a thread, ``depth`` batches ahead."""

    def __init__(
        self, fill: Fill, shape: tuple[int, ...], start: int, step: int, depth: int
    ) -> None:
        self._fill = fill
        self._ring = [
            (np.empty(shape, np.float32), np.empty(shape[0], np.float32)) for _ in range(depth)
        ]
        self._free: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._ready: queue.SimpleQueue[tuple[int, BaseException | None]] = queue.SimpleQueue()
        for slot in range(depth):
            self._free.put(slot)
        self._stopping = False
        self._thread = threading.Thread(
            target=self._run, args=(start, step), name="layrubnet-prefetch", daemon=True
        )
        self._thread.start()

    def next_into(self, data: NDArray[np.float32], labels: NDArray[np.float32] | None) -> None:
        """Copy the next batch out, waiting for it if need be.

        What went wrong in the thread is raised here, in its turn; the prefetcher is then spent.
        """
        slot, error = self._ready.get()
        if error is not None:
            raise error
        ready_data, ready_labels = self._ring[slot]
        np.copyto(data, ready_data)
        if labels is not None:
            np.copyto(labels, ready_labels)
        self._free.put(slot)

    def stop(self) -> None:
        """End the thread; at most the batch that it is making is still finished."""
        self._stopping = True
        self._free.put(-1)  # only wakes the thread
        if threading.current_thread() is not self._thread:  # garbage may be collected in it
            self._thread.join()

    def _run(self, cursor: int, step: int) -> None:
        while True:
            slot = self._free.get()
            if self._stopping:
                return
            try:
                self._fill(cursor, *self._ring[slot])
            except BaseException as error:
                self._ready.put((slot, error))
                return
            self._ready.put((slot, None))
            cursor += step
