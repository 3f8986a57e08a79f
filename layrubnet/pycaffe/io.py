"""``caffe.io``: images to blobs and back, and NumPy arrays to Caffe's messages and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layrubnet.data.datum import decode_datum, encode_datum
from layrubnet.proto import BlobProto, BlobProtoVector, Datum
from layrubnet.prototxt.blobs import decode_blob, encode_blob
from layrubnet.pycaffe.images import load_image, oversample, resize_image

__all__ = [
    "Transformer",
    "array_to_blobproto",
    "array_to_datum",
    "arraylist_to_blobprotovector_str",
    "blobproto_to_array",
    "blobprotovector_str_to_arraylist",
    "datum_to_array",
    "load_image",
    "oversample",
    "resize_image",
]

Array = NDArray[Any]


# -- messages ------------------------------------------------------------------------------------


def blobproto_to_array(blob: Any, return_diff: bool = False) -> Array:
    """The values (or the gradient) of a BlobProto, with its shape."""
    values, diff = decode_blob(memoryview(blob.SerializeToString()))
    if not return_diff:
        return values
    return np.zeros_like(values) if diff is None else diff


def array_to_blobproto(arr: Array, diff: Array | None = None) -> Any:
    """A BlobProto with these values (and this gradient), as float32."""
    gradient = None if diff is None else np.asarray(diff)
    return BlobProto.FromString(encode_blob(np.asarray(arr), gradient))


def arraylist_to_blobprotovector_str(arraylist: Sequence[Array]) -> bytes:
    """A serialised BlobProtoVector."""
    vector = BlobProtoVector()
    for array in arraylist:
        vector.blobs.append(array_to_blobproto(array))
    return bytes(vector.SerializeToString())


def blobprotovector_str_to_arraylist(data: bytes) -> list[Array]:
    """The arrays of a serialised BlobProtoVector."""
    return [blobproto_to_array(blob) for blob in BlobProtoVector.FromString(data).blobs]


def array_to_datum(arr: Array, label: int | None = None) -> Any:
    """A Datum for a C x H x W array: bytes for uint8, floats otherwise."""
    datum = Datum.FromString(encode_datum(np.asarray(arr), label or 0))
    if label is None:
        datum.ClearField("label")
    return datum


def datum_to_array(datum: Any) -> Array:
    """The C x H x W array of a Datum; encoded images are decoded (blue, green, red)."""
    array, _ = decode_datum(datum.SerializeToString(), "datum")
    return array


# -- images --------------------------------------------------------------------------------------


class Transformer:
    """Turns images into what a net's inputs expect, and back.

    ``inputs``: shape of each input blob, for example ``{"data": net.blobs["data"].data.shape}``.
    The settings act in this order, whatever the order they are made in: resize, transpose,
    channel swap, raw scale, mean, input scale.
    """

    def __init__(self, inputs: Mapping[str, Sequence[int]]) -> None:
        self.inputs = {name: tuple(shape) for name, shape in inputs.items()}
        self.transpose: dict[str, tuple[int, ...]] = {}
        self.channel_swap: dict[str, tuple[int, ...]] = {}
        self.raw_scale: dict[str, float] = {}
        self.mean: dict[str, NDArray[np.float32]] = {}
        self.input_scale: dict[str, float] = {}

    def _check(self, in_: str) -> None:
        if in_ not in self.inputs:
            raise ValueError(f"{in_} is not one of the net inputs: {tuple(self.inputs)}")

    def preprocess(self, in_: str, data: Array) -> NDArray[np.float32]:
        """The array for input ``in_`` from an image; ``data`` is left as it is."""
        self._check(in_)
        made = np.array(data, np.float32)
        dims = self.inputs[in_][2:]
        if made.shape[:2] != dims:
            made = resize_image(made, dims)
        if in_ in self.transpose:
            made = made.transpose(self.transpose[in_])
        if in_ in self.channel_swap:
            made = made[self.channel_swap[in_], :, :]
        if in_ in self.raw_scale:
            made = made * np.float32(self.raw_scale[in_])
        if in_ in self.mean:
            made = made - self.mean[in_]
        if in_ in self.input_scale:
            made = made * np.float32(self.input_scale[in_])
        return made

    def deprocess(self, in_: str, data: Array) -> NDArray[np.float32]:
        """The image from an array for input ``in_``: :meth:`preprocess` backwards."""
        self._check(in_)
        made = np.array(data, np.float32).squeeze()
        if in_ in self.input_scale:
            made = made / np.float32(self.input_scale[in_])
        if in_ in self.mean:
            made = made + self.mean[in_]
        if in_ in self.raw_scale:
            made = made / np.float32(self.raw_scale[in_])
        if in_ in self.channel_swap:
            made = made[np.argsort(self.channel_swap[in_]), :, :]
        if in_ in self.transpose:
            made = made.transpose(np.argsort(self.transpose[in_]))
        return np.asarray(made, np.float32)

    def set_transpose(self, in_: str, order: Sequence[int]) -> None:
        """Set the order of axes, (2, 0, 1) for an H x W x C image."""
        self._check(in_)
        if len(order) != len(self.inputs[in_]) - 1:
            raise ValueError(
                "Transpose order needs to have the same number of dimensions as the input."
            )
        self.transpose[in_] = tuple(order)

    def set_channel_swap(self, in_: str, order: Sequence[int]) -> None:
        """Set the order of channels, (2, 1, 0) for RGB to BGR; acts after the transpose."""
        self._check(in_)
        if len(order) != self.inputs[in_][1]:
            raise ValueError(
                "Channel swap needs to have the same number of dimensions as the input channels."
            )
        self.channel_swap[in_] = tuple(order)

    def set_raw_scale(self, in_: str, scale: float) -> None:
        """Multiply by ``scale`` before the mean is taken away (255 for images from 0 to 1)."""
        self._check(in_)
        self.raw_scale[in_] = scale

    def set_input_scale(self, in_: str, scale: float) -> None:
        """Multiply by ``scale`` after the mean has been taken away."""
        self._check(in_)
        self.input_scale[in_] = scale

    def set_mean(self, in_: str, mean: Array) -> None:
        """Set the mean: one value per channel, or an image (resized to the input's size)."""
        self._check(in_)
        values = np.asarray(mean, np.float32)
        expected = self.inputs[in_][1:]
        if values.ndim == 1:
            if values.shape[0] != expected[0]:
                raise ValueError("Mean channels incompatible with input.")
            self.mean[in_] = values[:, None, None]
            return
        values = values[None] if values.ndim == 2 else values
        if values.ndim != 3:
            raise ValueError("Mean shape invalid")
        if values.shape[0] != expected[0]:
            raise ValueError("Mean channels incompatible with input.")
        if values.shape != expected:
            values = resize_image(values.transpose(1, 2, 0), expected[1:]).transpose(2, 0, 1)
        self.mean[in_] = values
