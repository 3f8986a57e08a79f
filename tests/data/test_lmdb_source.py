"""The LMDB source: any order of reading, sharing, damage; writing in one piece."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import lmdb
import numpy as np
import pytest

from layrubnet.data import LmdbSource, RecordSource, open_records, write_lmdb
from layrubnet.errors import DataError
from tests.support.shared import SHARED

COUNT = 1000


def record(index: int) -> tuple[bytes, bytes]:
    return b"%08d" % index, b"value %d" % index


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "db"
    assert write_lmdb(path, map(record, range(COUNT))) == COUNT
    return path


@pytest.fixture
def source(db: Path) -> Iterator[RecordSource]:
    source = open_records(db)
    yield source
    source.close()


def test_in_order_and_around(source: RecordSource) -> None:
    assert len(source) == COUNT
    for index in [*range(COUNT), 0, 1, 2]:
        assert source.get(index) == record(index)


def test_in_any_order(source: RecordSource) -> None:
    order = np.random.default_rng(3).integers(0, COUNT, 300)
    for index in [COUNT - 1, 0, 999, 511, 512, 513, 255, 256, *order.tolist()]:
        assert source.get(index) == record(index)


@pytest.mark.parametrize("stride", [2, 3, 300])
def test_a_ranks_share(source: RecordSource, stride: int) -> None:
    for index in range(1, COUNT, stride):
        assert source.get(index) == record(index)


def test_outside_is_refused(source: RecordSource) -> None:
    for index in (-1, COUNT):
        with pytest.raises(IndexError):
            source.get(index)


def test_two_sources_share_one_file(db: Path) -> None:
    first, second = open_records(db), open_records(db)
    assert first.get(5) == record(5)
    first.close()
    first.close()
    assert second.get(6) == record(6)
    second.close()
    third = open_records(db)
    assert third.get(COUNT - 1) == record(COUNT - 1)
    third.close()


def test_another_thread_may_go_on(source: RecordSource) -> None:
    source.get(3)
    seen: list[tuple[bytes, bytes]] = []
    thread = threading.Thread(target=lambda: seen.append(source.get(4)))
    thread.start()
    thread.join()
    assert seen == [record(4)]


def test_a_single_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "one.mdb"
    env = lmdb.open(str(path), subdir=False, lock=False)
    with env.begin(write=True) as txn:
        txn.put(b"k", b"v")
    env.close()
    source = open_records(path)
    assert (len(source), source.get(0)) == (1, (b"k", b"v"))
    source.close()


def test_a_read_only_folder_gets_no_lock_file(db: Path) -> None:
    open_records(db).close()
    assert [p.name for p in db.iterdir()] == ["data.mdb"]


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere.*does not exist") as caught:
        open_records(tmp_path / "nowhere")
    assert "relative to" in str(caught.value)


def test_empty(tmp_path: Path) -> None:
    lmdb.open(str(tmp_path / "db"), lock=False).close()
    with pytest.raises(DataError, match="no records"):
        open_records(tmp_path / "db")


def test_a_folder_of_other_things(tmp_path: Path) -> None:
    (tmp_path / "cat.jpg").touch()
    with pytest.raises(DataError, match="not an LMDB") as caught:
        open_records(tmp_path)
    assert "cat.jpg" in str(caught.value)


def test_a_leveldb_comes_with_a_recipe(tmp_path: Path) -> None:
    (tmp_path / "CURRENT").write_text("MANIFEST-000002\n")
    with pytest.raises(DataError, match="LevelDB") as caught:
        open_records(tmp_path)
    assert "plyvel" in caught.value.hint
    assert "write_lmdb" in caught.value.hint


def test_a_truncated_file_does_not_kill_the_process(db: Path) -> None:
    file = db / "data.mdb"
    with file.open("r+b") as f:
        f.truncate(file.stat().st_size - 4096)
    with pytest.raises(DataError, match="truncated"):
        open_records(db)


def test_a_file_of_something_else(db: Path) -> None:
    (db / "data.mdb").write_bytes(b"no data base at all" * 1000)
    with pytest.raises(DataError, match="cannot be read"):
        open_records(db)


def test_the_file_stays_small_and_the_map_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("layrubnet.data.lmdb_source._FIRST_MAP_SIZE", 1 << 16)
    value = bytes(range(256)) * 8
    assert write_lmdb(tmp_path / "db", ((b"%05d" % i, value) for i in range(2500))) == 2500
    source = LmdbSource(tmp_path / "db")
    assert len(source) == 2500
    assert source.get(2499) == (b"02499", value)
    source.close()
    assert (tmp_path / "db" / "data.mdb").stat().st_size < 4 * 2500 * len(value)


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    def records() -> Iterator[tuple[bytes, bytes]]:
        yield record(0)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_lmdb(tmp_path / "db", records())
    with pytest.raises(DataError, match="comes twice"):
        write_lmdb(tmp_path / "db", [record(0), record(0)])
    with pytest.raises(DataError, match="cannot be stored"):
        write_lmdb(tmp_path / "db", [(b"", b"value")])
    with pytest.raises(DataError, match="no records"):
        write_lmdb(tmp_path / "db", [])
    assert list(tmp_path.iterdir()) == []


def test_overwriting_is_asked_for(db: Path) -> None:
    with pytest.raises(DataError, match="something already"):
        write_lmdb(db, [record(0)])
    assert write_lmdb(db, [record(7)], overwrite=True) == 1
    source = open_records(db)
    assert source.get(0) == record(7)
    source.close()
    assert [p.name for p in db.parent.iterdir()] == ["db"]


CIFAR = SHARED / "data" / "cifar10_test_lmdb"


@pytest.mark.skipif(not CIFAR.is_dir(), reason="the shared CIFAR-10 data bases are absent")
def test_a_data_base_written_elsewhere() -> None:
    source = open_records(CIFAR)
    assert len(source) == 10_000
    assert source.get(9_999)[0] > source.get(1234)[0]
    source.close()
