"""Where records come from: the interface that every record source has, and how one is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from layrubnet.errors import DataError

LEVELDB_RECIPE = (
    "copy it once into an LMDB: pip install plyvel lmdb, then in Python: "
    "import plyvel; from layrubnet.data import write_lmdb; "
    "write_lmdb('{path}_lmdb', plyvel.DB('{path}'))"
)


@runtime_checkable
class RecordSource(Protocol):
    """Numbered records of ``(key, value)``; reading them in order is fast.

    One thread at a time may use a source, not always the same one.
    """

    path: str
    """What error messages call the source."""

    def __len__(self) -> int:
        """Return the number of records, at least 1."""

    def get(self, index: int) -> tuple[bytes, bytes]:
        """Return key and value of record ``index`` (0 <= index < len)."""

    def close(self) -> None:
        """Release the source; closing twice is harmless."""


def open_records(path: str | Path) -> RecordSource:
    """Open the data base at ``path``. What lies there counts, not what the net says it is.

    Raises :class:`DataError` if there is nothing, or something that cannot be read.
    """
    from layrubnet.data.lmdb_source import LmdbSource

    place = Path(path)
    if not place.exists():
        raise DataError(
            "the data base does not exist",
            where=str(path),
            hint=f"paths are relative to the folder that you run in, {Path.cwd()}",
        )
    if place.is_dir() and not (place / "data.mdb").is_file():
        if (place / "CURRENT").is_file() or any(place.glob("MANIFEST-*")):
            raise DataError(
                "this is a LevelDB; only LMDB is read",
                where=str(path),
                hint=LEVELDB_RECIPE.format(path=path),
            )
        raise DataError(
            "this folder is not an LMDB",
            where=str(path),
            expected="a file data.mdb in it",
            got=", ".join(sorted(p.name for p in place.iterdir())[:4]) or "an empty folder",
        )
    return LmdbSource(place)
