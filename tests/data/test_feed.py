"""Batches: the same bits with any prefetching, exact positions, ranks, and clean ends."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.data import Batches, Transformer, encode_datum, open_records, write_lmdb
from layrubnet.errors import DataError
from layrubnet.proto import TRAIN, TransformationParameter

COUNT, BATCH = 11, 3
Make = Callable[..., Batches]


class Listed:
    """Records in a list."""

    path = "list"

    def __init__(self, values: list[bytes]) -> None:
        self.values = values
        self.closed = False

    def __len__(self) -> int:
        return len(self.values)

    def get(self, index: int) -> tuple[bytes, bytes]:
        return b"%08d" % index, self.values[index]

    def close(self) -> None:
        self.closed = True


def images() -> list[bytes]:
    rng = np.random.default_rng(1)
    return [encode_datum(rng.integers(0, 256, (2, 6, 6), np.uint8), i) for i in range(COUNT)]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    write_lmdb(tmp_path / "db", ((b"%08d" % i, raw) for i, raw in enumerate(images())))
    return tmp_path / "db"


@pytest.fixture
def make(db: Path) -> Iterator[Make]:
    opened: list[Batches] = []

    def make(seed: int = 1, **options: Any) -> Batches:
        param = TransformationParameter(crop_size=4, mirror=True, scale=0.5)
        batches = Batches(open_records(db), Transformer(param, TRAIN, seed), BATCH, **options)
        opened.append(batches)
        return batches

    yield make
    for batches in opened:
        batches.close()


def take(batches: Batches, count: int) -> list[tuple[bytes, list[float]]]:
    data, labels = np.empty(batches.shape, np.float32), np.empty(batches.shape[0], np.float32)
    taken = []
    for _ in range(count):
        batches.next_into(data, labels)
        taken.append((data.tobytes(), labels.tolist()))
    return taken


def test_shape_and_order(make: Make) -> None:
    batches = make()
    assert batches.shape == (BATCH, 2, 4, 4)
    labels = [label for _, batch in take(batches, 8) for label in batch]
    assert labels == [float(i % COUNT) for i in range(24)]


@pytest.mark.parametrize("prefetch", [1, 4])
def test_prefetching_changes_no_bit(make: Make, prefetch: int) -> None:
    assert take(make(prefetch=0), 9) == take(make(prefetch=prefetch), 9)


def test_the_seed_matters(make: Make) -> None:
    assert take(make(), 3) == take(make(), 3)
    assert take(make(), 3) != take(make(seed=2), 3)


def test_another_round_is_augmented_anew(make: Make) -> None:
    taken = take(make(), 2 * COUNT)
    assert taken[0][1] == taken[COUNT][1]
    assert taken[0][0] != taken[COUNT][0]


@pytest.mark.parametrize("prefetch", [0, 1, 4])
def test_the_cursor_is_the_consumers(make: Make, prefetch: int) -> None:
    batches = make(prefetch=prefetch)
    assert batches.cursor == 0
    before = take(batches, 5)
    assert batches.cursor == 15
    after = take(batches, 5)
    resumed = make(prefetch=4)
    resumed.seek(15)
    assert resumed.cursor == 15
    assert take(resumed, 5) == after
    batches.seek(0)
    assert take(batches, 10) == before + after


@settings(max_examples=25, deadline=None)
@given(
    rest=st.integers(0, 12), prefetch=st.sampled_from([0, 1, 3]), moves=st.lists(st.integers(0, 9))
)
def test_any_seek_resumes_exactly(rest: int, prefetch: int, moves: list[int]) -> None:
    param = TransformationParameter(crop_size=3, mirror=True)
    straight = Batches(Listed(images()), Transformer(param, TRAIN, 7), 2, prefetch=0)
    expected = take(straight, 25)
    batches = Batches(Listed(images()), Transformer(param, TRAIN, 7), 2, prefetch=prefetch)
    for move in [*moves, rest]:
        batches.seek(2 * move)
        assert take(batches, 2) == expected[move : move + 2]
    batches.close()


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_share_the_records(make: Make, world: int) -> None:
    one = make(prefetch=0)
    everything = {}
    for record in range(world * BATCH * 4):
        one.seek(record)
        data, labels = take(one, 1)[0]
        everything[record] = (data[: len(data) // BATCH], labels[0])
    for rank in range(world):
        batches = make(rank=rank, world=world)
        records = range(rank, world * BATCH * 4, world)
        got = []
        for data, labels in take(batches, 4):
            size = len(data) // BATCH
            got += [(data[i * size : (i + 1) * size], labels[i]) for i in range(BATCH)]
        assert got == [everything[record] for record in records]
        assert batches.cursor == world * BATCH * 4


def test_rand_skip_starts_elsewhere_alike_on_all_ranks(make: Make) -> None:
    starts = {make(seed=seed, rand_skip=5).cursor for seed in range(40)}
    assert starts == set(range(5))
    batches = make(seed=3, rand_skip=5)
    assert batches.cursor == make(seed=3, rand_skip=5, rank=1, world=2).cursor
    assert take(batches, 1)[0][1][0] == float(batches.cursor - BATCH)


@pytest.mark.parametrize("prefetch", [0, 1, 4])
def test_a_bad_record_is_named_when_its_batch_is_due(prefetch: int) -> None:
    values = images()
    values[7] = b"\xff\xff\xff"
    batches = Batches(
        Listed(values), Transformer(TransformationParameter(), TRAIN), BATCH, prefetch=prefetch
    )
    take(batches, 2)
    for _ in range(2):
        with pytest.raises(DataError, match="list key '00000007': the record is not a Datum"):
            take(batches, 1)
        assert batches.cursor == 6
    batches.seek(9)
    assert take(batches, 1)[0][1] == [9, 10, 0]
    batches.close()


def test_grey_among_colour_is_named() -> None:
    color, grey = np.zeros((3, 4, 4), np.uint8), np.zeros((1, 4, 4), np.uint8)
    values = [encode_datum(color, 0, "png"), encode_datum(grey, 1, "png")]

    def batches(**fields: Any) -> Batches:
        transformer = Transformer(TransformationParameter(**fields), TRAIN)
        return Batches(Listed(values), transformer, 2, prefetch=0)

    with pytest.raises(DataError, match=r"key '00000001'.*channels") as caught:
        take(batches(), 1)
    assert "force_color" in caught.value.hint
    assert batches(force_color=True).shape == (2, 3, 4, 4)
    take(batches(force_color=True), 1)
    assert batches(force_gray=True).shape == (2, 1, 4, 4)
    take(batches(force_gray=True), 1)


def test_closing_ends_the_thread_and_the_source() -> None:
    source = Listed(images())
    batches = Batches(source, Transformer(TransformationParameter(), TRAIN), BATCH)
    take(batches, 1)
    thread = batches._running[0]._thread
    assert thread.is_alive()
    batches.close()
    batches.close()
    assert not thread.is_alive()
    assert source.closed
    with pytest.raises(ValueError, match="closed"):
        take(batches, 1)


def test_forgotten_batches_end_too() -> None:
    source = Listed(images())
    batches = Batches(source, Transformer(TransformationParameter(), TRAIN), BATCH)
    take(batches, 1)
    thread = batches._running[0]._thread
    del batches
    gc.collect()
    assert not thread.is_alive()
    assert source.closed


def test_an_interrupted_wait_loses_no_batch() -> None:
    """Ctrl-C while waiting: the next call continues with the batch that was due."""

    class Slow(Listed):
        def get(self, index: int) -> tuple[bytes, bytes]:
            time.sleep(0.001)
            return super().get(index)

    batches = Batches(Slow(images()), Transformer(TransformationParameter(), TRAIN), BATCH)
    take(batches, 1)
    prefetcher = batches._running[0]
    prefetcher.next_into = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)  # type: ignore
    with pytest.raises(KeyboardInterrupt):
        take(batches, 1)
    assert take(batches, 1)[0][1] == [3, 4, 5]
    batches.close()


def test_labels_are_optional(make: Make) -> None:
    batches = make()
    first = np.empty(batches.shape, np.float32)
    batches.next_into(first)
    assert first.tobytes() == take(make(prefetch=0), 1)[0][0]


def test_misuse_is_refused(make: Make, db: Path) -> None:
    batches = make()
    with pytest.raises(ValueError, match="shape"):
        batches.next_into(np.empty((1, 2, 4, 4), np.float32))
    with pytest.raises(ValueError, match="negative"):
        batches.seek(-1)
    with pytest.raises(ValueError, match="rank 2"):
        make(rank=2, world=2)
    transformer = Transformer(TransformationParameter(), TRAIN)
    with pytest.raises(DataError, match="batch_size"):
        Batches(open_records(db), transformer, 0)
    grey = Transformer(TransformationParameter(force_gray=True), TRAIN)
    with pytest.raises(DataError, match="both forced"):
        Batches(open_records(db), grey, 1, force_color=True)
