"""MemoryData: batches of arrays that the user has in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from layrubnet.errors import DataError


class MemoryBatches:
    """Hands out the rows of two arrays, batch by batch and round and round.

    Until :meth:`set_arrays` is called, :meth:`next_into` raises. As in Caffe the number of rows
    is a multiple of the batch size, and the arrays are referred to, not copied, if they have
    float32 values (later changes of them show).
    """

    def __init__(self, shape: tuple[int, int, int, int], where: str = "MemoryData") -> None:
        self.shape = shape
        """(N, C, H, W) of a batch."""
        self._where = where
        self._data: NDArray[np.float32] | None = None
        self._labels: NDArray[np.float32] | None = None
        self._cursor = 0

    def set_arrays(self, data: NDArray[Any], labels: NDArray[Any]) -> None:
        """Take rows of shape (C, H, W), with a label each, and start at the first."""
        data, labels = np.asarray(data), np.asarray(labels)
        expected = self.shape[1:]
        if data.ndim != 4 or data.shape[1:] != expected:
            raise DataError(
                "the array of data has the wrong shape",
                where=self._where,
                expected="(rows, {}, {}, {}): channels, height, width".format(*expected),
                got=str(data.shape),
            )
        if labels.size != len(data) or labels.shape[:1] != (len(data),):
            raise DataError(
                "there must be one label for each row of data",
                where=self._where,
                expected=f"shape ({len(data)},) or ({len(data)}, 1, 1, 1)",
                got=str(labels.shape),
            )
        if len(data) == 0 or len(data) % self.shape[0]:
            raise DataError(
                "the number of rows must be a multiple of batch_size",
                where=self._where,
                expected=f"a multiple of {self.shape[0]}",
                got=f"{len(data)} rows",
            )
        self._data = data.astype(np.float32, copy=False)
        self._labels = labels.astype(np.float32, copy=False).reshape(-1)
        self._cursor = 0

    @property
    def cursor(self) -> int:
        """The number of the row that the next batch begins with."""
        return self._cursor

    def seek(self, cursor: int) -> None:
        """Continue at a row that :attr:`cursor` had."""
        if cursor < 0 or cursor % self.shape[0]:
            raise ValueError(f"batches begin at multiples of {self.shape[0]}, not at {cursor}")
        self._cursor = cursor

    def next_into(
        self, data: NDArray[np.float32], labels: NDArray[np.float32] | None = None
    ) -> None:
        """Copy the next batch into ``data`` (N, C, H, W) and ``labels`` (N values)."""
        if self._data is None or self._labels is None:
            raise DataError(
                "the MemoryData layer has no data",
                where=self._where,
                hint="call set_input_arrays (or set_arrays) before the first forward",
            )
        start = self._cursor % len(self._data)
        rows = slice(start, start + self.shape[0])
        np.copyto(data, self._data[rows])
        if labels is not None:
            np.copyto(labels, self._labels[rows].reshape(labels.shape))
        self._cursor = (start + self.shape[0]) % len(self._data)
