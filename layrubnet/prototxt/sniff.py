"""What kind of file is this? For messages about files given in the wrong place."""

from __future__ import annotations

from layrubnet.prototxt.wire import FIXED32, LENGTH, VARINT, WireError, fields

HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"

EMPTY = "an empty file"
HDF5 = "an HDF5 file"
TEXT = "a text file"
WEIGHTS = "a weights file (.caffemodel)"
STATE = "a solver snapshot (.solverstate)"
BLOB = "a single array (.binaryproto)"
UNKNOWN = "none of Caffe's formats"


def kind_of(data: bytes) -> str:
    """Return one of the constants above; good for hints, never a reason to trust a file."""
    if not data:
        return EMPTY
    if data.startswith(HDF5_SIGNATURE):
        return HDF5
    if _is_text(data):
        return TEXT
    seen: set[tuple[int, int]] = set()
    try:
        for number, wire, _ in fields(memoryview(data)):
            seen.add((number, wire))
    except WireError:
        pass  # a damaged file still shows what it was meant to be
    if (100, LENGTH) in seen or (1, LENGTH) in seen:
        return WEIGHTS
    if (1, VARINT) in seen and seen & {(2, LENGTH), (3, LENGTH)}:
        return STATE
    if (2, LENGTH) in seen:  # old nets need no name
        return WEIGHTS
    if seen & {(5, LENGTH), (5, FIXED32), (7, LENGTH), (8, LENGTH), (12, LENGTH)}:
        return BLOB
    return UNKNOWN


def _is_text(data: bytes) -> bool:
    head = data[:4096]
    if b"\0" in head:
        return False
    printable = sum(byte >= 32 or byte in (9, 10, 12, 13) for byte in head)
    return printable > 0.97 * len(head)
