"""Data: images and labels from a data base."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from layrubnet.data import Batches, Transformer, decode_datum, open_records, stand_in
from layrubnet.engine.contract import Contract, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register
from layrubnet.errors import DataError, LayrubError
from layrubnet.proto import TEST, TRAIN


@register("Data")
class Data(Layer):
    """Batches of Datum records from an LMDB, transformed, read ahead by a background thread

    Tops: data (N, C, H, W), with the size of the first record after ``transform_param``; labels
    (N) if a second top is named::

        layer { name: "mnist" type: "Data" top: "data" top: "label"
          transform_param { scale: 0.00390625 }
          data_param { source: "mnist_train_lmdb" batch_size: 64 backend: LMDB } }

    ``rand_skip: n`` starts at one of the first n records, ``prefetch`` is the number of batches
    read ahead. Paths are relative to the current folder.

    Differences from Caffe: the position is exact and part of snapshots; LevelDB is refused, with
    the recipe to copy it; random crops and mirrors depend on seed and record only.
    """

    num_bottoms = (0, 0)
    num_tops = (1, 2)
    fork_fields = ("transform_param",)

    _batches: Batches | None = None

    def setup(self) -> None:
        p = self.spec.data_param
        if not p.source:
            raise DataError(
                "the layer names no data base", where=self.where,
                hint='data_param { source: "folder of the LMDB" ... }',
            )  # fmt: skip
        if p.batch_size < 1:
            raise DataError(
                "batch_size must be given", where=self.where, expected=">= 1", got=p.batch_size
            )

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        size = self.spec.data_param.batch_size
        planning = stand_in.current()
        shapes = planning.named(self.spec.top, size) if planning else None
        if shapes is None:
            try:
                shapes = [(size, *self._image_shape()), (size,)]
            except LayrubError as error:
                if planning is None:
                    raise
                shapes = planning.guess(self.spec, size, error, self.where)
        tops = tuple(TensorType(tuple(shape)) for shape in shapes)
        return Contract(tops=tops[: len(self.spec.top)], loads=True)

    def _image_shape(self) -> tuple[int, int, int]:
        """(C, H, W) of the first record after ``transform_param``."""
        p = self.spec.data_param
        transformer = self._transformer(0)
        color = p.force_encoded_color or transformer.force_color
        try:
            source = open_records(p.source)
            try:
                raw = source.get(0)[1]
                image, _ = decode_datum(raw, source.path, color, transformer.force_gray)
            finally:
                source.close()
        except DataError as error:
            raise self._located(error) from None
        return transformer.output_shape(*image.shape)

    def _located(self, error: DataError) -> DataError:
        return DataError(str(error), where=self.where)

    def _transformer(self, seed: int) -> Transformer:
        phase = TRAIN if self.phase == "TRAIN" else TEST
        number = zlib.crc32(self.name.encode())
        return Transformer(self.spec.transform_param, phase, seed, number, self.where)

    def open(self, *, seed: int, rank: int = 0, world: int = 1) -> None:
        """Start reading; in TEST every rank reads everything, as in Caffe."""
        p = self.spec.data_param
        if self.phase == "TEST":
            rank, world = 0, 1
        try:
            self._batches = Batches(
                open_records(p.source),
                self._transformer(seed),
                p.batch_size,
                prefetch=p.prefetch,
                rand_skip=p.rand_skip,
                force_color=p.force_encoded_color,
                rank=rank,
                world=world,
            )
        except DataError as error:
            raise self._located(error) from None

    @property
    def batches(self) -> Batches:
        """The open batches; an error before ``open``."""
        if self._batches is None:
            raise DataError("the data base is not open", where=self.where)
        return self._batches

    def load(self, ops: Any, io: IO) -> None:
        try:
            ops.load_host(self.batches.next_into, tuple(io.y))
        except DataError as error:
            raise self._located(error) from None

    def cursor(self) -> dict[str, int]:
        return {"record": self.batches.cursor}

    def seek(self, cursor: dict[str, int]) -> None:
        self.batches.seek(cursor["record"])

    def close(self) -> None:
        if self._batches is not None:
            self._batches.close()
