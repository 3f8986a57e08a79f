"""Datum, Caffe's record format: from the bytes of a record to an array, and back.

Images are in OpenCV's order: channels blue, green, red, as C x H x W.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from layrubnet import extras
from layrubnet.errors import DataError
from layrubnet.proto import Datum

INT32 = range(-(2**31), 2**31)


def decode_datum(
    raw: bytes, where: str, force_color: bool = False, force_gray: bool = False
) -> tuple[NDArray[Any], int]:
    """Return ``(array, label)`` of one record: uint8 or float32, shape (C, H, W).

    ``where`` names the record in errors. As in Caffe, an encoded image keeps the channels it has
    unless a colour is forced, and forcing does nothing to records that are not encoded. The
    array may be read-only and is not contiguous for encoded images.

    Raises :class:`DataError` for anything that is not a usable Datum.
    """
    try:
        datum = Datum.FromString(raw)
    except DecodeError:
        raise DataError("the record is not a Datum, or damaged", where=where) from None
    if datum.encoded:
        return _decode_image(datum.data, where, force_color, force_gray), datum.label
    shape = (datum.channels, datum.height, datum.width)
    if not datum.data and not len(datum.float_data):
        _refuse_annotated(raw, where)
        raise DataError("the Datum holds no data", where=where, got=f"shape {shape}")
    if min(shape) < 1:
        raise DataError(
            "the Datum has an impossible shape",
            where=where,
            expected="channels, height and width of 1 or more",
            got=str(shape),
            hint="an image file in a Datum needs encoded: true",
        )
    size = shape[0] * shape[1] * shape[2]
    given = len(datum.data) or len(datum.float_data)
    if given != size:
        raise DataError(
            "the Datum's data do not fit its shape",
            where=where,
            expected=f"{size} values for (channels, height, width) = {shape}",
            got=f"{given} values",
            hint="an image file in a Datum needs encoded: true",
        )
    if datum.data:
        return np.frombuffer(datum.data, np.uint8).reshape(shape), datum.label
    return np.array(datum.float_data, np.float32).reshape(shape), datum.label


def encode_datum(
    array: NDArray[Any], label: int = 0, encoding: str | None = None, quality: int = 95
) -> bytes:
    """Return the record for ``array`` of shape (C, H, W): bytes for uint8, else floats.

    ``encoding`` ("png", "jpg", ...) compresses a uint8 image of 1 or 3 channels (blue, green,
    red); ``quality`` counts for "jpg" only.
    """
    if array.ndim != 3 or array.size == 0:
        raise DataError(
            "a Datum holds an array of 3 axes",
            expected="(channels, height, width)",
            got=str(array.shape),
        )
    if label not in INT32:
        raise DataError("a Datum's label has 32 bits", got=label)
    datum = Datum(label=label)
    datum.channels, datum.height, datum.width = array.shape
    if encoding is not None:
        datum.encoded = True
        datum.data = _encode_image(array, encoding, quality)
    elif array.dtype == np.uint8:
        datum.data = array.tobytes()
    else:
        datum.float_data.extend(array.astype(np.float32).ravel().tolist())
    return bytes(datum.SerializeToString())


def image_to_array(image: NDArray[Any]) -> NDArray[Any]:
    """Return OpenCV's H x W or H x W x C image as a C x H x W view."""
    return image[None] if image.ndim == 2 else image.transpose(2, 0, 1)


def _decode_image(
    data: bytes, where: str, force_color: bool, force_gray: bool
) -> NDArray[np.uint8]:
    cv2 = extras.cv2()
    flag = cv2.IMREAD_UNCHANGED
    if force_color or force_gray:
        flag = cv2.IMREAD_COLOR if force_color else cv2.IMREAD_GRAYSCALE
    try:
        image = cv2.imdecode(np.frombuffer(data, np.uint8), flag) if data else None
    except cv2.error:
        image = None
    if image is None:
        raise DataError(
            "the encoded image cannot be decoded",
            where=where,
            got=f"{len(data)} bytes starting with {data[:4]!r}",
        )
    if image.dtype != np.uint8:
        raise DataError(
            "the encoded image must have 8 bits a channel",
            where=where,
            got=str(image.dtype),
            hint="force_color: true (or force_gray: true) converts it",
        )
    return image_to_array(image)


def _encode_image(array: NDArray[Any], encoding: str, quality: int) -> bytes:
    cv2 = extras.cv2()
    if array.dtype != np.uint8 or array.shape[0] not in (1, 3):
        raise DataError(
            "only images can be encoded",
            expected="uint8 with 1 or 3 channels",
            got=f"{array.dtype} of shape {array.shape}",
        )
    options = [cv2.IMWRITE_JPEG_QUALITY, quality] if encoding in ("jpg", "jpeg") else []
    try:
        done, data = cv2.imencode(
            f".{encoding}", np.ascontiguousarray(array.transpose(1, 2, 0)), options
        )
    except cv2.error:
        done, data = False, None
    if not done:
        raise DataError("OpenCV cannot write this kind of image", got=encoding)
    return bytes(data)


def _refuse_annotated(raw: bytes, where: str) -> None:
    """Recognise SSD's AnnotatedDatum, which parses as an empty Datum without any error.

    Its first field is a whole Datum, where a Datum's first field is the number of channels.
    """
    if raw[:1] != b"\x0a":
        return
    size, at = 0, 1
    for shift in range(0, 35, 7):  # the length in front of the inner message, 7 bits a byte
        byte = raw[at] if at < len(raw) else 0
        size |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            break
    try:
        inner = Datum.FromString(raw[at : at + size])
    except DecodeError:
        return
    if inner.data or len(inner.float_data):
        raise DataError(
            "this record is an AnnotatedDatum (SSD's format for detection), not a Datum",
            where=where,
            hint='such a data base is read by a layer of type "AnnotatedData"',
        )
