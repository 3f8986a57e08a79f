"""MemoryData's batches."""

from __future__ import annotations

import numpy as np
import pytest

from layrubnet.data import MemoryBatches
from layrubnet.errors import DataError

ROWS = np.arange(6 * 4, dtype=np.float32).reshape(6, 1, 2, 2)
LABELS = np.arange(6, dtype=np.float32)


def test_round_and_round() -> None:
    batches = MemoryBatches((2, 1, 2, 2))
    batches.set_arrays(ROWS, LABELS.reshape(6, 1, 1, 1))
    data, labels = np.empty((2, 1, 2, 2), np.float32), np.empty((2, 1, 1, 1), np.float32)
    for start in (0, 2, 4, 0, 2):
        assert batches.cursor == start
        batches.next_into(data, labels)
        np.testing.assert_array_equal(data, ROWS[start : start + 2])
        np.testing.assert_array_equal(labels.ravel(), LABELS[start : start + 2])
    batches.seek(0)
    batches.next_into(data)
    np.testing.assert_array_equal(data, ROWS[:2])


def test_other_dtypes_are_converted() -> None:
    batches = MemoryBatches((3, 1, 2, 2))
    batches.set_arrays(ROWS.astype(np.uint8), LABELS.astype(np.int64))
    data, labels = np.empty((3, 1, 2, 2), np.float32), np.empty(3, np.float32)
    batches.next_into(data, labels)
    np.testing.assert_array_equal(data, ROWS[:3])
    assert labels.tolist() == [0, 1, 2]


def test_refused() -> None:
    batches = MemoryBatches((4, 1, 2, 2), "layer 'data'")
    with pytest.raises(DataError, match="layer 'data': the MemoryData layer has no data"):
        batches.next_into(np.empty((4, 1, 2, 2), np.float32))
    with pytest.raises(DataError, match="multiple of batch_size"):
        batches.set_arrays(ROWS, LABELS)
    with pytest.raises(DataError, match="multiple of batch_size"):
        batches.set_arrays(ROWS[:0], LABELS[:0])
    with pytest.raises(DataError, match="wrong shape"):
        batches.set_arrays(ROWS[:, :, :1], LABELS)
    with pytest.raises(DataError, match="one label"):
        batches.set_arrays(ROWS[:4], LABELS)
    with pytest.raises(ValueError, match="multiples of 4"):
        batches.seek(2)
