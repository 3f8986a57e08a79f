"""Opening binary files: is it there, and is it what the caller wants?"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from layrubnet.errors import WeightsError
from layrubnet.prototxt import sniff
from layrubnet.prototxt.wire import WireError

_HINTS = {
    (sniff.WEIGHTS, sniff.STATE): "give snapshots with --snapshot; the weights are the "
    ".caffemodel file beside it",
    (sniff.STATE, sniff.WEIGHTS): "this is a weights file; use --weights, or the .solverstate "
    "file beside it",
    (sniff.WEIGHTS, sniff.TEXT): "a prototxt describes a net and holds no weights",
    (sniff.BLOB, sniff.WEIGHTS): "a mean file holds one array, as compute_image_mean writes it",
}


def read_checked(path: str | os.PathLike[str], wanted: str) -> bytes:
    """Return the bytes of a file that looks like ``wanted`` (a kind of :mod:`.sniff`), or an
    HDF5 file with the suffix ``.h5``; raise WeightsError with a hint otherwise."""
    name = os.fspath(path)
    data = read_binary(path)
    kind = sniff.kind_of(data)
    named_hdf5 = Path(name).suffix == ".h5"
    if kind == sniff.HDF5:
        if named_hdf5 and wanted != sniff.BLOB:
            return data
        raise WeightsError(
            f"this is {kind}, not {wanted}",
            where=name,
            hint=f"name it {name}.h5" if wanted != sniff.BLOB else "use a .binaryproto file",
        )
    if named_hdf5:
        raise WeightsError(f"the name says HDF5, but this is {kind}", where=name)
    if kind != wanted:
        hint = _HINTS.get((wanted, kind), "")
        if kind == sniff.EMPTY:
            hint = "was its writer stopped half way?"
        raise WeightsError(f"this is {kind}, not {wanted}", where=name, hint=hint)
    return data


def read_binary(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file, or raise WeightsError."""
    name = os.fspath(path)
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise WeightsError("no such file", where=name) from None
    except IsADirectoryError:
        raise WeightsError("is a folder, not a file", where=name) from None
    except (OSError, ValueError) as error:
        raise WeightsError(f"cannot be read: {error}", where=name) from None


@contextlib.contextmanager
def damage(name: str) -> Iterator[None]:
    """Turn what the decoders find wrong into a WeightsError about the file."""
    try:
        yield
    except WireError as error:
        raise WeightsError(
            f"the file is damaged or cut off: {error}",
            where=name,
            hint="copy it again, or take an older snapshot",
        ) from None
