"""Philox4x32-10: counter-based random numbers, the only randomness used after initialisation.

A block of four 32-bit words is a pure function of a 128-bit counter and a 64-bit key, so a
number belongs to a *place* (this record, this element of this iteration) and not to the order
in which threads or devices happen to run. Salmon et al., "Parallel random numbers: as easy as
1, 2, 3" (SC 2011) define the function; the tests hold its published vectors.

One round, on the counter ``c`` with key ``k`` (``hi``, ``lo``: halves of a 64-bit product)::

    c' = (hi(M1 c2) ^ c1 ^ k0,  lo(M1 c2),  hi(M0 c0) ^ c3 ^ k1,  lo(M0 c0))
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

M0, M1 = 0xD2511F53, 0xCD9E8D57  # multipliers
W0, W1 = 0x9E3779B9, 0xBB67AE85  # what the key grows by, each round
ROUNDS = 10
MASK = 0xFFFFFFFF

# Zero-dimensional arrays: a Python integer would be converted anew in each of 100 calls a chunk.
_M0, _M1, _MASK, _HALF = (np.asarray(value, np.uint64) for value in (M0, M1, MASK, 32))

SCRATCH_ROWS = 6
"""Rows of 64-bit words that :func:`fill_uint32` works in: four of state, two of products."""

SCRATCH_WORDS = SCRATCH_ROWS * 4096
"""A scratch size (in 64-bit words) whose chunks stay in a core's cache."""


def philox_words(counter: Sequence[int], key: Sequence[int]) -> tuple[int, int, int, int]:
    """Return one block as Python integers: the fastest way to a few numbers."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        p0, p1 = M0 * c0, M1 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK, (p0 >> 32) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + W0) & MASK, (k1 + W1) & MASK
    return c0, c1, c2, c3


def philox4x32(counter: NDArray[np.uint32], key: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the blocks of many counters: ``uint32[..., 4]`` and ``uint32[2]`` to ``[..., 4]``."""
    counter = np.asarray(counter, dtype=np.uint32)
    if counter.ndim == 0 or counter.shape[-1] != 4:
        raise ValueError(f"a counter has 4 words, got an array of shape {counter.shape}")
    work = np.empty((SCRATCH_ROWS, counter.size // 4), dtype=np.uint64)
    work[:4] = counter.reshape(-1, 4).T
    _rounds(work, int(key[0]), int(key[1]))
    return np.ascontiguousarray(work[:4].T).astype(np.uint32).reshape(counter.shape)


def fill_uint32(
    out: NDArray[np.uint32],
    key: Sequence[int],
    stream: Sequence[int],
    scratch: NDArray[np.uint64],
    first: int = 0,
) -> None:
    """Fill the flat array ``out`` with the words ``first, first + 1, ...`` of one stream.

    Word ``j`` of a stream is word ``j % 4`` of the block with counter ``(j // 4, *stream)``, so
    any part of a stream can be made on its own; ``first`` must be a multiple of 4. ``stream``
    holds the three upper counter words. Nothing is allocated: the work is done in ``scratch``
    (flat, at least ``SCRATCH_ROWS`` words, best ``SCRATCH_WORDS``), chunk by chunk.
    """
    if first % 4 or first < 0:
        raise ValueError(f"a stream is read from a multiple of 4, not from {first}")
    chunk = scratch.size // SCRATCH_ROWS
    if chunk == 0:
        raise ValueError(f"the scratch holds {scratch.size} of {SCRATCH_ROWS} words")
    block = first // 4
    if block + -(-out.size // 4) > MASK + 1:
        raise ValueError("a stream has 2**34 words at most")
    work = scratch[: chunk * SCRATCH_ROWS].reshape(SCRATCH_ROWS, chunk)
    for start in range(0, out.size, 4 * chunk):
        part = out[start : start + 4 * chunk]
        rows = work[:, : -(-part.size // 4)]
        # Counting up by a running sum: NumPy's arange cannot write into an existing array.
        rows[4].fill(1)
        rows[4, 0] = block
        np.add.accumulate(rows[4], out=rows[0])
        for row, word in zip(rows[1:4], stream, strict=True):
            row.fill(word)
        _rounds(rows, *key)
        for word in range(4):
            target = part[word::4]
            np.copyto(target, rows[word, : target.size], casting="unsafe")
        block += chunk


def _rounds(work: NDArray[np.uint64], k0: int, k1: int) -> None:
    """Turn counters into random blocks: rows 0 to 3 in place, rows 4 and 5 as working space.

    The words are kept in 64 bits throughout: a mixed-width ufunc would go through hidden buffers.
    """
    c0, c1, c2, c3, p0, p1 = work
    for _ in range(ROUNDS):
        np.multiply(c0, _M0, out=p0)
        np.multiply(c2, _M1, out=p1)
        np.right_shift(p1, _HALF, out=c0)
        np.bitwise_xor(c0, c1, out=c0)
        np.bitwise_xor(c0, k0, out=c0)
        np.bitwise_and(p1, _MASK, out=c1)
        np.right_shift(p0, _HALF, out=c2)
        np.bitwise_xor(c2, c3, out=c2)
        np.bitwise_xor(c2, k1, out=c2)
        np.bitwise_and(p0, _MASK, out=c3)
        k0, k1 = (k0 + W0) & MASK, (k1 + W1) & MASK
