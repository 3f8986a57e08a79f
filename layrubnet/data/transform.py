"""transform_param: what happens to an image between the data base and the net.

For one record, with the crop window and the mirroring of that record::

    y = mirror(crop(x - mean) * scale)

TRAIN crops at random, TEST in the centre; ``mirror`` mirrors half of the records in either phase,
as in Caffe. What is random depends on the seed, the layer and the record's number only, not on
threads or on what was read before, so a run can be resumed anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layrubnet.errors import DataError, WeightsError
from layrubnet.philox import MASK, philox_words
from layrubnet.proto import TRAIN
from layrubnet.prototxt.weights import read_blob

DRAW_TRANSFORM = 0
"""The number of the draw that crop and mirror use; see :meth:`Transformer.draw`."""

_LATER = ("resize_param", "distort_param", "expand_param")


class Transformer:
    """Applies one layer's ``transform_param`` to one record at a time."""

    def __init__(
        self, param: Any, phase: int, seed: int = 0, layer: int = 0, where: str = ""
    ) -> None:
        """``layer`` numbers the data layers of a net; ``where`` names this one in errors."""
        self._where = where
        self._train = phase == TRAIN
        self._key = seed & MASK, layer & MASK
        self._scale = np.float32(param.scale)
        self._mirror = bool(param.mirror)
        self._crop = self._crop_size(param)
        self._random_crop = self._train and not param.center_crop
        for field in _LATER:
            if param.HasField(field):
                raise DataError(f"transform_param: {field} is not supported", where=where)
        if param.force_color and param.force_gray:
            raise DataError("force_color and force_gray exclude each other", where=where)
        self.force_color = bool(param.force_color)
        self.force_gray = bool(param.force_gray)
        if param.HasField("mean_file") and param.mean_value:
            raise DataError(
                "mean_file and mean_value exclude each other", where=where, hint="keep one of them"
            )
        self._image: NDArray[np.float32] | None = None  # (C, H, W)
        self._values: NDArray[np.float32] | None = None  # (1 or C, 1, 1)
        if param.HasField("mean_file"):
            self._image = _read_mean(param.mean_file, where)
        elif param.mean_value:
            self._values = np.array(param.mean_value, np.float32).reshape(-1, 1, 1)

    def output_shape(self, channels: int, height: int, width: int) -> tuple[int, int, int]:
        """Return (C, H, W) after the transformation of an image of the given size."""
        crop_h, crop_w = self._crop
        return channels, crop_h or height, crop_w or width

    def draw(self, record: int, number: int = DRAW_TRANSFORM) -> tuple[int, int, int, int]:
        """Return the four random 32-bit words of one draw for one record of this layer."""
        return philox_words((record & MASK, record >> 32, number, 0), self._key)

    def transform_into(
        self, out: NDArray[np.float32], array: NDArray[Any], record: int, where: str = ""
    ) -> None:
        """Write the transformed ``array`` (C, H, W) into ``out``.

        ``record`` is the number that the randomness of this record comes from. Raises
        :class:`DataError` with ``where`` if the array does not suit ``out``, the crop or the mean.
        """
        where = where or self._where
        crop_h, crop_w = self._crop
        self._check(out.shape, array.shape, where)
        _, height, width = array.shape
        _, out_h, out_w = out.shape
        top, left = (height - out_h) // 2, (width - out_w) // 2
        mirror = False
        if self._mirror or (self._random_crop and (crop_h or crop_w)):
            flip, down, right, _ = self.draw(record)
            mirror = self._mirror and flip % 2 == 1
            if self._random_crop:
                top, left = down % (height - out_h + 1), right % (width - out_w + 1)
        window = np.s_[:, top : top + out_h, left : left + out_w]
        target = out[:, :, ::-1] if mirror else out
        np.copyto(target, array[window], casting="same_kind")
        if self._image is not None:
            target -= self._image[window]
        elif self._values is not None:
            target -= self._values
        if self._scale != 1:
            out *= self._scale

    def _check(self, out: Sequence[int], got: tuple[int, ...], where: str) -> None:
        """Compare an array's shape with what the net, the crop and the mean expect."""
        if got[0] != out[0]:
            raise DataError(
                "the number of channels differs from the first record's",
                where=where,
                expected=f"{out[0]} channels",
                got=f"{got[0]} channels",
                hint="force_color: true or force_gray: true makes encoded records agree",
            )
        crop_h, crop_w = self._crop
        if crop_h or crop_w:
            if got[1] < out[1] or got[2] < out[2]:
                raise DataError(
                    "the image is smaller than the crop",
                    where=where,
                    expected=f"at least {out[1]} x {out[2]}",
                    got=f"{got[1]} x {got[2]}",
                )
        elif tuple(got[1:]) != tuple(out[1:]):
            raise DataError(
                "the image's size differs from the first record's",
                where=where,
                expected=f"{out[1]} x {out[2]}",
                got=f"{got[1]} x {got[2]}",
                hint="crop_size: N makes them equal, or resize them before writing the data base",
            )
        if self._values is not None and self._values.shape[0] not in (1, got[0]):
            raise DataError(
                "the number of mean values does not suit the channels",
                where=where,
                expected=f"1 or {got[0]} times mean_value",
                got=f"{self._values.shape[0]} times",
            )
        if self._image is not None and self._image.shape != got:
            raise DataError(
                "the mean image has another size than the image before cropping",
                where=where,
                expected=f"(channels, height, width) = {got}",
                got=str(self._image.shape),
                hint="compute the mean of this very data base, or use mean_value",
            )

    def _crop_size(self, param: Any) -> tuple[int, int]:
        """Return (height, width) of the crop; 0 means none."""
        if param.crop_size and (param.crop_h or param.crop_w):
            raise DataError("crop_size and crop_h, crop_w exclude each other", where=self._where)
        if bool(param.crop_h) != bool(param.crop_w):
            raise DataError("crop_h and crop_w belong together", where=self._where)
        return param.crop_size or param.crop_h, param.crop_size or param.crop_w


def _read_mean(path: str, where: str) -> NDArray[np.float32]:
    try:
        blob = np.asarray(read_blob(path), np.float32)
    except WeightsError as error:
        raise DataError(f"mean_file {error}", where=where) from None
    while blob.ndim > 3 and blob.shape[0] == 1:
        blob = blob[0]
    if blob.ndim != 3:
        raise DataError(
            "the mean file holds no single image",
            where=path,
            expected="the shape (1, channels, height, width), or without the 1",
            got=str(blob.shape),
        )
    return blob
