"""BlobProto bytes to NumPy arrays and back, without a loop over the numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from layrubnet.errors import WeightsError
from layrubnet.prototxt import wire

Array = NDArray[np.floating]

# Field numbers of BlobProto (10 to 13 are NVIDIA's).
_DATA, _DIFF, _SHAPE, _DOUBLE_DATA, _DOUBLE_DIFF = 5, 6, 7, 8, 9
_RAW_DATA_TYPE, _RAW_DIFF_TYPE, _RAW_DATA, _RAW_DIFF = 10, 11, 12, 13
_LEGACY = (1, 2, 3, 4)  # num, channels, height, width
_RAW_TYPES = {0: "<f8", 1: "<f4", 2: "<f2", 3: "<i4", 4: "<u4"}


@dataclass(slots=True)
class _Fields:
    chunks: dict[int, list[memoryview]] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    shape: tuple[int, ...] | None = None

    def array(self, number: int, kind: str) -> Array | None:
        chunks = self.chunks.get(number)
        if not chunks:
            return None
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if len(data) % np.dtype(kind).itemsize:
            raise wire.WireError(f"{len(data)} bytes are no whole number of values")
        return np.frombuffer(data, dtype=kind)


def decode_blob(data: memoryview) -> tuple[Array, Array | None]:
    """Return the values and the gradient (or None) of a serialised BlobProto.

    The arrays are new, writable, and of the stored type: float32, float64 where the file has
    ``double_data``, NVIDIA's ``raw_data`` in any of its types. Shapes are those of ``shape``, or
    the four legacy numbers; a blob with neither has one axis. Raises ``wire.WireError``.
    """
    fields = _collect(data)
    values = _first(fields, _DATA, _DOUBLE_DATA, _RAW_DATA, _RAW_DATA_TYPE)
    diff = _first(fields, _DIFF, _DOUBLE_DIFF, _RAW_DIFF, _RAW_DIFF_TYPE)
    if fields.shape is not None:
        shape = fields.shape
    elif any(number in fields.numbers for number in _LEGACY):
        shape = tuple(fields.numbers.get(number, 0) for number in _LEGACY)
    else:
        shape = () if values is None or values.size == 1 else (values.size,)
    if any(extent < 0 for extent in shape):
        raise wire.WireError(f"the shape {shape} has a negative extent")
    if values is None:
        values = np.zeros(0, np.float32)
    return _shaped(values, shape), None if diff is None else _shaped(diff, shape)


def encode_blob(values: Array, diff: Array | None = None) -> bytes:
    """Return ``values`` (and ``diff``) as a serialised BlobProto of float32 numbers."""
    dims = b"".join(wire.encode_varint(extent) for extent in values.shape)
    shape = wire.encode_header(1, len(dims)) + dims if values.shape else b""
    parts = [_packed(_DATA, values)]
    if diff is not None:
        if diff.shape != values.shape:
            raise WeightsError(
                "the gradient of a blob has another shape", expected=values.shape, got=diff.shape
            )
        parts.append(_packed(_DIFF, diff))
    return b"".join([*parts, wire.encode_header(_SHAPE, len(shape)), shape])


def _packed(number: int, array: Array) -> bytes:
    data = np.ascontiguousarray(array, dtype="<f4").tobytes()
    return wire.encode_header(number, len(data)) + data


def _collect(data: memoryview) -> _Fields:
    result = _Fields()
    for number, _, value in wire.fields(data):
        if isinstance(value, int):
            result.numbers[number] = wire.signed(value)
        elif number == _SHAPE:
            result.shape = (result.shape or ()) + _dims(value)
        else:
            # Packed or not, the bytes of all entries follow one another.
            result.chunks.setdefault(number, []).append(value)
    return result


def _dims(data: memoryview) -> tuple[int, ...]:
    dims: list[int] = []
    for number, _, value in wire.fields(data):
        if number == 1:
            dims += [wire.signed(value)] if isinstance(value, int) else wire.varints(value)
    return tuple(dims)


def _first(fields: _Fields, single: int, double: int, raw: int, raw_type: int) -> Array | None:
    for number, kind in ((double, "<f8"), (single, "<f4")):
        array = fields.array(number, kind)
        if array is not None and array.size:
            return array
    if raw not in fields.chunks:
        return None
    code = fields.numbers.get(raw_type, 0)
    if code not in _RAW_TYPES:
        raise wire.WireError(f"unknown type {code} of raw values")
    return fields.array(raw, _RAW_TYPES[code])


def _shaped(array: Array, shape: tuple[int, ...]) -> Array:
    if math.prod(shape) != array.size:
        raise wire.WireError(f"shape {shape} needs {math.prod(shape)} values, {array.size} found")
    # A copy: aligned, writable, and it does not keep the whole file in memory.
    return np.array(array, dtype=array.dtype.newbyteorder("=")).reshape(shape)
