"""Host memory for offloaded buffers of the CPU device: a file, so that memory really gets free."""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path
from typing import Any

from layrubnet.errors import DeviceError

_IN_MEMORY = ("tmpfs", "ramfs")
_HINT = "--offload-dir names another folder"
_log = logging.getLogger("layrubnet")


class FileStore:
    """A nameless file of a fixed size; slots in it are written and read by position.

    The file is removed from its folder as soon as it is open: it goes away with the process,
    however that ends. Its room is taken at once, so that a disk cannot turn out full in the middle
    of a training. :class:`DeviceError` if there is no such folder, or not enough room in it.
    """

    def __init__(self, nbytes: int, folder: str | None = None) -> None:
        self.folder = folder or tempfile.gettempdir()
        self.nbytes = nbytes
        self._handle = -1
        try:
            self._handle, name = tempfile.mkstemp(prefix="layrubnet-offload-", dir=self.folder)
            os.unlink(name)
        except OSError as error:
            self.close()
            raise DeviceError(
                f"no file for offloaded feature maps can be made here: {error.strerror}",
                where=self.folder,
                hint=_HINT,
            ) from None
        try:
            os.posix_fallocate(self._handle, 0, max(1, nbytes))
        except OSError as error:
            self.close()
            raise DeviceError(
                f"no room for offloaded feature maps: {error.strerror}",
                where=self.folder,
                expected=f"{nbytes} bytes ({nbytes / 2**20:.1f} MiB)",
                got=f"{_free_bytes(self.folder) / 2**20:.1f} MiB free",
                hint=_HINT,
            ) from None
        if self.in_memory:
            _log.warning(
                "offloaded feature maps go to %s, which lies in memory: nothing is gained; %s",
                self.folder,
                _HINT,
            )

    @property
    def in_memory(self) -> bool:
        """Does the folder lie in memory, so that offloading frees nothing?"""
        return _file_system(self.folder) in _IN_MEMORY

    def write(self, offset: int, array: Any) -> None:
        """Copy an array into the file."""
        view = memoryview(array.reshape(-1)).cast("B")
        while len(view):
            try:
                done = os.pwrite(self._handle, view, offset)
            except OSError as error:
                raise self._failed("written", error) from None
            view, offset = view[done:], offset + done

    def read(self, offset: int, array: Any) -> None:
        """Fill an array from the file."""
        view = memoryview(array.reshape(-1)).cast("B")
        while len(view):
            try:
                done = os.preadv(self._handle, [view], offset)
            except OSError as error:
                raise self._failed("read", error) from None
            if not done:
                raise DeviceError(
                    "the file of offloaded feature maps is too short", where=self.folder
                )
            view, offset = view[done:], offset + done

    def _failed(self, what: str, error: OSError) -> DeviceError:
        return DeviceError(
            f"offloaded feature maps cannot be {what}: {error.strerror}",
            where=self.folder,
            hint=_HINT,
        )

    def close(self) -> None:
        """Give the space back."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _free_bytes(folder: str) -> int:
    try:
        room = os.statvfs(folder)
    except OSError:
        return 0
    return room.f_bavail * room.f_frsize


def _file_system(folder: str) -> str:
    """The type of the file system that holds ``folder`` (empty where that is not known)."""
    path = str(Path(folder).resolve())
    best = ("", "")
    try:
        lines = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        return ""
    for line in lines:
        mount, kind = line.split()[1:3]
        inside = path == mount or path.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best[0]):
            best = (mount, kind)
    return best[1]
