"""Philox4x32-10: the published vectors, and that every way to a word gives the same word."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.philox import (
    SCRATCH_ROWS,
    SCRATCH_WORDS,
    fill_uint32,
    philox4x32,
    philox_words,
)

WORD = st.integers(0, 2**32 - 1)

VECTORS = [  # counter, key, block: the known answers published with the Random123 library
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]  # fmt: skip


def words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "block"), VECTORS)
def test_published_vectors(counter: str, key: str, block: str) -> None:
    assert list(philox_words(words(counter), words(key))) == words(block)
    array = philox4x32(np.array(words(counter), np.uint32), np.array(words(key), np.uint32))
    assert array.dtype == np.uint32
    assert array.tolist() == words(block)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(WORD, WORD, WORD, WORD), max_size=5), WORD, WORD)
def test_arrays_agree_with_single_blocks(
    counters: list[tuple[int, int, int, int]], k0: int, k1: int
) -> None:
    array = philox4x32(np.array(counters, np.uint32).reshape(-1, 4), np.array([k0, k1], np.uint32))
    assert [tuple(row) for row in array.tolist()] == [philox_words(c, (k0, k1)) for c in counters]


@settings(max_examples=50, deadline=None)
@given(
    key=st.tuples(WORD, WORD),
    stream=st.tuples(WORD, WORD, WORD),
    size=st.integers(0, 200),
    blocks=st.integers(1, 40),
    first=st.integers(0, 50),
)
def test_a_stream_does_not_depend_on_chunks_or_start(
    key: tuple[int, int], stream: tuple[int, int, int], size: int, blocks: int, first: int
) -> None:
    first *= 4
    out = np.full(size, 7, np.uint32)
    fill_uint32(out, key, stream, np.empty(SCRATCH_ROWS * blocks, np.uint64), first)
    expected = [philox_words((j // 4, *stream), key)[j % 4] for j in range(first, first + size)]
    assert out.tolist() == expected


def test_filling_allocates_nothing() -> None:
    out = np.empty(100_001, np.uint32)
    scratch = np.empty(SCRATCH_WORDS, np.uint64)
    fill_uint32(out, (1, 2), (3, 4, 5), scratch)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        fill_uint32(out, (1, 2), (3, 4, 5), scratch)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak < 4096


def test_words_look_uniform() -> None:
    out = np.empty(1 << 16, np.uint32)
    fill_uint32(out, (5, 0), (0, 0, 0), np.empty(SCRATCH_WORDS, np.uint64))
    assert abs(out.mean() / 2**32 - 0.5) < 0.005
    bits = np.unpackbits(out.view(np.uint8)).reshape(-1, 32).mean(axis=0)
    assert np.abs(bits - 0.5).max() < 0.02


def test_misuse_is_refused() -> None:
    out, scratch = np.empty(8, np.uint32), np.empty(SCRATCH_WORDS, np.uint64)
    with pytest.raises(ValueError, match="multiple of 4"):
        fill_uint32(out, (0, 0), (0, 0, 0), scratch, first=2)
    with pytest.raises(ValueError, match="2\\*\\*34"):
        fill_uint32(out, (0, 0), (0, 0, 0), scratch, first=2**34 - 4)
    with pytest.raises(ValueError, match="scratch"):
        fill_uint32(out, (0, 0), (0, 0, 0), scratch[:3])
    with pytest.raises(ValueError, match="4 words"):
        philox4x32(np.zeros((3, 2), np.uint32), np.zeros(2, np.uint32))
