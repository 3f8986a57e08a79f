"""The protobuf wire format, just enough to walk through a message without its schema.

Weights files of different forks contradict each other in most fields. Walking over the bytes and
looking at a few field numbers only makes their readers immune to that, and costs no copies.
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_SIZES = {FIXED64: 8, FIXED32: 4}


class WireError(ValueError):
    """The bytes are no protobuf message, or end in the middle of one."""


def varint(data: memoryview, position: int) -> tuple[int, int]:
    """Return the number at ``position`` and the position after it."""
    result = shift = 0
    while True:
        if position >= len(data):
            raise WireError("the data ends within a number")
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
        if shift > 63:
            raise WireError("a number is too long")


def fields(data: memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
    """Yield (field number, wire type, value) of a message: a number, or a view of the bytes."""
    position = 0
    while position < len(data):
        tag, position = varint(data, position)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise WireError("field number 0")
        if wire == VARINT:
            value, position = varint(data, position)
            yield number, wire, value
            continue
        if wire == LENGTH:
            size, position = varint(data, position)
        elif wire in _SIZES:
            size = _SIZES[wire]
        else:
            raise WireError(f"wire type {wire}")
        if position + size > len(data):
            raise WireError(f"{size} bytes announced, {len(data) - position} left")
        yield number, wire, data[position : position + size]
        position += size


def signed(value: int) -> int:
    """Return a varint as the int64 that it stands for."""
    return value - (1 << 64) if value >> 63 else value


def encode_varint(value: int) -> bytes:
    """Return ``value`` (an int64; negative numbers take ten bytes) as a varint."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_header(number: int, size: int) -> bytes:
    """Return what comes before ``size`` bytes of a length-delimited field."""
    return encode_varint(number << 3 | LENGTH) + encode_varint(size)


def varints(data: memoryview) -> list[int]:
    """Return the numbers of a packed field."""
    result, position = [], 0
    while position < len(data):
        value, position = varint(data, position)
        result.append(signed(value))
    return result
