"""Rows of HDF5 files: several data sets, read together, file after file and round and round.

Rows are numbered for ever, as records are: row ``i`` belongs to pass ``i // n`` over the ``n`` rows
of all files. Within a pass the files follow each other in the order of the list, or shuffled; and
so do the rows of each file. The order of a pass depends on the seed and the pass only, so reading
can start anywhere.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layrubnet import extras
from layrubnet.errors import DataError, nearest


class Hdf5Rows:
    """The rows of the files that a list names, one file at a time in memory, as float32."""

    def __init__(
        self,
        source: str,
        names: Sequence[str],
        *,
        shuffle: bool = False,
        key: tuple[int, int] = (0, 0),
        where: str = "",
    ) -> None:
        """``names``: the data sets, each with the same number of rows in a file."""
        self._where = where or source
        self._names = tuple(names)
        self._shuffle, self._key = shuffle, key
        self._files = self._list(source)
        self.shapes: tuple[tuple[int, ...], ...] = ()
        """The shape of a row of each data set."""
        self._rows = [self._inspect(path) for path in self._files]
        self._total = sum(self._rows)
        if not self._total:
            raise DataError("the HDF5 files hold no rows", where=self._where, got=source)
        self._pass = -1
        self._file_order: list[int] = []
        self._starts: list[int] = []
        self._held = (-1, -1)  # pass and position in the order of the file in memory
        self._loaded = -1  # the number of the file in memory
        self._arrays: list[NDArray[np.float32]] = []
        self._row_order: NDArray[np.int64] = np.zeros(0, np.int64)

    def copy_row(self, number: int, outs: Sequence[Any]) -> None:
        """Write row ``number`` of every data set into ``outs``."""
        passed, within = divmod(number, self._total)
        self._start_pass(passed)
        # Of several files that start at one row, all but the last are empty.
        position = bisect.bisect_right(self._starts, within) - 1
        self._hold(passed, position)
        row = self._row_order[within - self._starts[position]]
        for array, out in zip(self._arrays, outs, strict=True):
            np.copyto(out, array[row])

    def _list(self, source: str) -> list[str]:
        path = Path(source)
        if not path.is_file():
            raise DataError(
                "the list of HDF5 files does not exist",
                where=self._where,
                got=source,
                hint=f"paths are relative to the folder that you run in, {Path.cwd()}",
            )
        try:
            lines = path.read_text("utf-8-sig").splitlines()
        except UnicodeDecodeError:
            raise DataError(
                "the source is no list of files",
                where=self._where,
                expected="a text file with the path of an HDF5 file in each line",
                got=source,
                hint="write the path of the HDF5 file into a text file and name that",
            ) from None
        files = [line.strip() for line in lines if line.strip()]
        if not files:
            raise DataError("the list of HDF5 files is empty", where=self._where, got=source)
        return files

    def _open(self, path: str) -> Any:
        try:
            return extras.h5py().File(path, "r")
        except FileNotFoundError:
            raise DataError(
                "an HDF5 file of the list does not exist",
                where=self._where,
                got=path,
                hint=f"paths are relative to the folder that you run in, {Path.cwd()}",
            ) from None
        except OSError as error:
            raise DataError(
                f"the file cannot be read as HDF5 ({error})", where=self._where, got=path
            ) from None

    def _inspect(self, path: str) -> int:
        """Check the data sets of a file; return its number of rows."""
        with self._open(path) as file:
            shapes = [self._shape(file, path, name) for name in self._names]
        rows = {shape[0] for shape in shapes}
        if len(rows) > 1:
            raise DataError(
                "the data sets of an HDF5 file have different numbers of rows",
                where=f"{self._where}, {path}",
                got=", ".join(f"{n}: {s[0]}" for n, s in zip(self._names, shapes, strict=True)),
            )
        row_shapes = tuple(shape[1:] for shape in shapes)
        if self.shapes and row_shapes != self.shapes:
            raise DataError(
                "the rows have another shape than in the first file of the list",
                where=f"{self._where}, {path}",
                expected=dict(zip(self._names, self.shapes, strict=True)),
                got=dict(zip(self._names, row_shapes, strict=True)),
            )
        self.shapes = row_shapes
        return rows.pop()

    def _shape(self, file: Any, path: str, name: str) -> tuple[int, ...]:
        where = f"{self._where}, {path}"
        if name not in file:
            close = nearest(name, file.keys())
            raise DataError(
                f"the HDF5 file has no data set {name!r}",
                where=where,
                expected="a data set for each top, of the same name",
                got=", ".join(sorted(file.keys())) or "an empty file",
                hint=f"did you mean {close[0]!r}?" if close else "",
            )
        shape = getattr(file[name], "shape", None)
        if not shape:
            raise DataError(
                f"{name!r} is no data set with rows", where=where, expected="1 axis or more"
            )
        if file[name].dtype.kind not in "fiub":
            raise DataError(
                f"{name!r} holds no numbers",
                where=where,
                expected="a float or integer type",
                got=file[name].dtype,
            )
        return tuple(int(n) for n in shape)

    def _rng(self, passed: int, number: int) -> np.random.Generator:
        counter = np.array([0, passed, number, 0], np.uint64)
        return np.random.Generator(np.random.Philox(key=list(self._key), counter=counter))

    def _start_pass(self, passed: int) -> None:
        if passed == self._pass:
            return
        count = len(self._files)
        order = self._rng(passed, 0).permutation(count) if self._shuffle else np.arange(count)
        self._file_order = [int(f) for f in order]
        sizes = (self._rows[f] for f in self._file_order)
        self._starts = [0, *itertools.accumulate(sizes)][:-1]
        self._pass = passed

    def _hold(self, passed: int, position: int) -> None:
        """Have the file at a position of the pass in memory."""
        if self._held == (passed, position):
            return
        number = self._file_order[position]
        if self._loaded != number:
            path = self._files[number]
            with self._open(path) as file:
                self._arrays = [np.asarray(file[n][...], np.float32) for n in self._names]
            self._loaded = number
        rows = self._rows[number]
        shuffled = self._rng(passed, 1 + number).permutation(rows) if self._shuffle else None
        self._row_order = np.arange(rows) if shuffled is None else shuffled
        self._held = (passed, position)
