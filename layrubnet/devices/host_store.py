"""Host memory for offloaded buffers of the CPU device: a file, so that memory really gets free."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from layrubnet.errors import DeviceError

_IN_MEMORY = ("tmpfs", "ramfs")


class FileStore:
    """A nameless file of a fixed size; slots in it are written and read by position.

    The file is removed from its folder as soon as it is open: it goes away with the process,
    however that ends.
    """

    def __init__(self, nbytes: int, folder: str | None = None) -> None:
        self.folder = folder or tempfile.gettempdir()
        self.nbytes = nbytes
        try:
            handle, name = tempfile.mkstemp(prefix="layrubnet-offload-", dir=self.folder)
            os.unlink(name)
            os.posix_fallocate(handle, 0, max(1, nbytes))
        except OSError as error:
            raise DeviceError(
                f"no room for {nbytes} bytes of offloaded feature maps: {error.strerror}",
                where=self.folder,
                hint="--offload-dir names another folder",
            ) from None
        self._handle = handle

    @property
    def in_memory(self) -> bool:
        """Does the folder lie in memory, so that offloading frees nothing?"""
        return _file_system(self.folder) in _IN_MEMORY

    def write(self, offset: int, array: Any) -> None:
        """Copy an array into the file."""
        view = memoryview(array).cast("B")
        while len(view):
            done = os.pwrite(self._handle, view, offset)
            view, offset = view[done:], offset + done

    def read(self, offset: int, array: Any) -> None:
        """Fill an array from the file."""
        view = memoryview(array).cast("B")
        while len(view):
            done = os.preadv(self._handle, [view], offset)
            if not done:
                raise DeviceError("the file of offloaded feature maps is too short")
            view, offset = view[done:], offset + done

    def close(self) -> None:
        """Give the space back."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


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
