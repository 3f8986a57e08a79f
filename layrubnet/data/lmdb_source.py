"""LMDB data bases as Caffe writes them: reading by number, and writing in one piece.

Caffe walks through a data base with a cursor and never asks for a number. Training that resumes
exactly does: the position is part of the snapshot. LMDB has no numbers either, so this source
remembers the key of every 256th record that it passes, and jumps to the nearest one.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from layrubnet import extras
from layrubnet.errors import DataError

STRIDE = 256
"""A remembered key every so many records."""

MAX_READERS = 4096

_FIRST_MAP_SIZE = 64 << 20
_COMMIT_EVERY = 1000

_shared: dict[str, tuple[Any, int]] = {}  # real path -> environment, number of users
_shared_lock = threading.Lock()


class LmdbSource:
    """The records of one LMDB in key order, opened read-only and without locks.

    It thus works on read-only and network file systems and beside other readers. LMDB refuses
    to open a data base twice in one process (a training and a test net may well share one), so
    sources on the same path share one environment.
    """

    _closed = True  # until it is open

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._real = os.path.realpath(path)
        self._lmdb = extras.lmdb()
        self._env = self._acquire()
        try:
            self._check_size()
            self._txn = self._env.begin(buffers=False)
            self._cursor = self._txn.cursor()
            self._count = int(self._txn.stat()["entries"])
        except self._lmdb.Error as error:
            self._release()
            raise self._damaged(error) from None
        except DataError:
            self._release()
            raise
        self._at = -1  # the number of the record under the cursor; -1: none
        self._anchors: list[bytes] = []  # keys of the records 0, STRIDE, 2 STRIDE, ...
        self._closed = False
        if self._count == 0:
            self.close()
            raise DataError("the data base holds no records", where=self.path)

    def __len__(self) -> int:
        return self._count

    def get(self, index: int) -> tuple[bytes, bytes]:
        """Return key and value of record ``index``; the next one in order costs the least."""
        if not 0 <= index < self._count:
            raise IndexError(f"{self.path}: record {index} of {self._count}")
        try:
            if self._at < 0 or not 0 <= index - self._at <= STRIDE:
                self._jump(index)
            self._advance(index)
            key, value = self._cursor.item()
        except self._lmdb.Error as error:
            self._at = -1
            raise self._damaged(error, index) from None
        return bytes(key), bytes(value)

    def close(self) -> None:
        """Release the data base; closing twice is harmless."""
        if self._closed:
            return
        self._closed = True
        self._cursor.close()
        self._txn.abort()
        self._release()

    def __del__(self) -> None:
        self.close()

    def _jump(self, index: int) -> None:
        """Put the cursor on the last remembered record at or before ``index``."""
        anchor = min(index // STRIDE, len(self._anchors) - 1)
        if anchor > 0:
            found = self._cursor.set_key(self._anchors[anchor])
        else:
            anchor = 0
            found = self._cursor.first()
        if not found:
            raise self._lmdb.Error("a record has vanished")
        self._at = anchor * STRIDE
        self._remember()

    def _advance(self, index: int) -> None:
        """Walk on to ``index``, remembering keys on the way."""
        move = self._cursor.next
        while self._at < index:
            stop = min(index, (self._at // STRIDE + 1) * STRIDE)
            for _ in range(stop - self._at):
                if not move():
                    raise self._lmdb.Error("the records end early")
            self._at = stop
            self._remember()

    def _remember(self) -> None:
        if self._at == len(self._anchors) * STRIDE:
            self._anchors.append(bytes(self._cursor.key()))

    def _acquire(self) -> Any:
        with _shared_lock:
            env, users = _shared.get(self._real, (None, 0))
            if env is None:
                try:
                    env = self._lmdb.open(
                        self._real,
                        subdir=os.path.isdir(self._real),
                        readonly=True,
                        lock=False,
                        readahead=False,
                        max_readers=MAX_READERS,
                        max_spare_txns=1,
                    )
                except self._lmdb.Error as error:
                    raise self._damaged(error) from None
            _shared[self._real] = (env, users + 1)
            return env

    def _release(self) -> None:
        with _shared_lock:
            env, users = _shared[self._real]
            if users > 1:
                _shared[self._real] = (env, users - 1)
            else:
                del _shared[self._real]
                env.close()

    def _check_size(self) -> None:
        """Refuse a truncated file: reading past its end would kill the process (SIGBUS)."""
        file = Path(self._real)
        file = file / "data.mdb" if file.is_dir() else file
        needed = (self._env.info()["last_pgno"] + 1) * self._env.stat()["psize"]
        if file.stat().st_size < needed:
            raise DataError(
                "the data base is truncated",
                where=self.path,
                expected=f"{needed} bytes in {file.name}",
                got=f"{file.stat().st_size} bytes",
                hint="copy or download it again",
            )

    def _damaged(self, error: Exception, index: int | None = None) -> DataError:
        place = self.path if index is None else f"{self.path} record {index}"
        return DataError(f"the data base cannot be read ({error})", where=place)


def write_lmdb(
    path: str | Path, records: Iterable[tuple[bytes, bytes]], *, overwrite: bool = False
) -> int:
    """Write ``records`` as a new LMDB folder and return their number.

    The folder appears under its name only once it is complete and synced. The map starts small
    and doubles when it is full, so no file system is asked for a terabyte.

    Raises :class:`DataError` if ``path`` exists (unless ``overwrite``), a key comes twice or is
    not usable, or there are no records.
    """
    target = Path(path)
    if target.exists() and not overwrite:
        raise DataError("there is something already", where=str(path), hint="remove it first")
    target.parent.mkdir(parents=True, exist_ok=True)
    building = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    shutil.rmtree(building, ignore_errors=True)
    try:
        count = _write_folder(building, records, str(path))
        if count == 0:
            raise DataError("no records to write", where=str(path))
        _move(building, target)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return count


def _write_folder(folder: Path, records: Iterable[tuple[bytes, bytes]], where: str) -> int:
    lmdb = extras.lmdb()
    env = lmdb.open(str(folder), map_size=_FIRST_MAP_SIZE, lock=False, readahead=False)
    try:
        count, pending = 0, []
        for record in records:
            pending.append(record)
            if len(pending) == _COMMIT_EVERY:
                count += _commit(lmdb, env, pending, where)
                pending.clear()
        count += _commit(lmdb, env, pending, where)
        env.sync(True)
    finally:
        env.close()
    return count


def _commit(lmdb: Any, env: Any, pending: list[tuple[bytes, bytes]], where: str) -> int:
    while True:
        try:
            with env.begin(write=True) as txn:
                for key, value in pending:
                    try:
                        fresh = txn.put(key, value, overwrite=False)
                    except lmdb.BadValsizeError:
                        raise DataError(
                            f"the key {key!r} cannot be stored",
                            where=where,
                            expected=f"1 to {env.max_key_size()} bytes",
                            got=f"{len(key)} bytes",
                        ) from None
                    if not fresh:
                        raise DataError(f"the key {key!r} comes twice", where=where)
            return len(pending)
        except lmdb.MapFullError:
            env.set_mapsize(env.info()["map_size"] * 2)


def _move(building: Path, target: Path) -> None:
    """Give the finished folder its name; an older one with that name goes last."""
    old = building.with_suffix(".old")
    if target.exists():
        os.replace(target, old)
    os.replace(building, target)
    if old.is_dir():
        shutil.rmtree(old)
    else:
        old.unlink(missing_ok=True)
    if os.name == "posix":
        parent = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)
