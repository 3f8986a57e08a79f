"""HDF5Data: rows of HDF5 data sets."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from layrubnet.data import stand_in
from layrubnet.data.hdf5_rows import Hdf5Rows
from layrubnet.engine.contract import Contract, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register
from layrubnet.errors import DataError, LayrubError


@register("HDF5Data")
class HDF5Data(Layer):
    """Consecutive rows of the files that the text file ``source`` lists, round and round

    Each top is filled from the data set of its name: (N, ...) for a data set of shape (rows, ...).
    Integers become floats. ``shuffle`` mixes the files, and the rows within each file, anew in
    each pass::

        layer { name: "data" type: "HDF5Data" top: "data" top: "label"
          hdf5_data_param { source: "train_h5_list.txt" batch_size: 10 shuffle: true } }

    One file at a time is in host memory. Differences from Caffe: file names may hold spaces; the
    position is exact and part of snapshots.
    """

    num_bottoms = (0, 0)
    num_tops = (1, None)

    _rows: Hdf5Rows | None = None
    _rank, _world, _next = 0, 1, 0

    def setup(self) -> None:
        p = self.spec.hdf5_data_param
        if self.spec.HasField("transform_param"):
            raise DataError(
                "HDF5Data does not transform data",
                where=self.where,
                hint="remove transform_param, and scale the values before writing the files",
            )
        if not p.source or p.batch_size < 1:
            raise DataError(
                "source and batch_size must be given",
                where=self.where,
                expected="hdf5_data_param { source: ... batch_size: ... }",
                got=f"source {p.source!r}, batch_size {p.batch_size}",
            )

    def _open_rows(self, seed: int) -> Hdf5Rows:
        p = self.spec.hdf5_data_param
        key = (seed, zlib.crc32(self.name.encode()))
        return Hdf5Rows(p.source, self.spec.top, shuffle=p.shuffle, key=key, where=self.where)

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        size = self.spec.hdf5_data_param.batch_size
        planning = stand_in.current()
        shapes = planning.named(self.spec.top, size) if planning else None
        if shapes is None:
            try:
                shapes = [(size, *shape) for shape in self._open_rows(0).shapes]
            except LayrubError as error:
                if planning is None:
                    raise
                raise planning.unknown(self.spec, size, error, self.where) from None
        return Contract(tops=tuple(TensorType(shape) for shape in shapes), loads=True)

    def open(self, *, seed: int, rank: int = 0, world: int = 1) -> None:
        """Start reading; in TEST every rank reads everything, as in Caffe."""
        self._rows = self._open_rows(seed)
        self._rank, self._world = (0, 1) if self.phase == "TEST" else (rank, world)

    def load(self, ops: Any, io: IO) -> None:
        ops.load_host(self._fill, tuple(io.y))
        self._next += self.spec.hdf5_data_param.batch_size * self._world

    def _fill(self, *tops: Any) -> None:
        if self._rows is None:
            raise DataError("the HDF5 files are not open", where=self.where)
        for position in range(self.spec.hdf5_data_param.batch_size):
            number = self._next + self._rank + position * self._world
            self._rows.copy_row(number, [top[position : position + 1] for top in tops])

    def cursor(self) -> dict[str, int]:
        return {"row": self._next}

    def seek(self, cursor: dict[str, int]) -> None:
        self._next = cursor["row"]

    def close(self) -> None:
        self._rows = None
