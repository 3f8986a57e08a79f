"""Writing files so that a crash never leaves half of one."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from layrubnet.errors import LayrubError


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the same folder; it takes the name ``path`` when all went well.

    The file is synced before it is renamed and the folder after, so that a file under its final
    name is complete even after a power cut. On any exception the temporary file is removed and
    an older file of that name stays as it was. Missing folders are made. What the system refuses
    (no space, no permission) is raised as :class:`~layrubnet.errors.LayrubError`.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            raise LayrubError(f"cannot be written: {reason}", where=str(target)) from None
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    # Windows cannot open folders, and some network file systems refuse to sync them.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Make the folder of ``path`` and raise LayrubError if a file could not be written there.

    For files that are written late: a mistake shows before hours of work, not after.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise LayrubError(f"cannot be written: {reason}", where=str(target)) from None
    if target.is_dir():
        raise LayrubError("is a folder, not a file", where=str(target))
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise LayrubError("cannot be written: Permission denied", where=str(target))
