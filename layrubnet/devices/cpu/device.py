"""Memory and copies on the CPU: computing happens at once, copies to a file in the background."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from layrubnet.devices.base import Device, Stream
from layrubnet.devices.cpu.onednn.loader import load
from layrubnet.devices.cpu.ops import CpuOps
from layrubnet.devices.cpu.streams import CopyStream, CpuEvent, CpuStream
from layrubnet.devices.host_store import FileStore
from layrubnet.errors import OutOfMemory

_PAGE = 4096


class CpuDevice(Device):
    """Host memory and NumPy."""

    name = "cpu"

    def __init__(self) -> None:
        self.ops = CpuOps()
        self.base_scratch = CpuOps.BASE_SCRATCH

    def describe(self) -> str:
        engine = load()
        kernels = [f"NumPy {np.__version__}"] + [engine.text] * (engine.library is not None)
        return f"cpu ({platform.machine()}, {os.cpu_count()} cores, {', '.join(kernels)})"

    def allocate(self, nbytes: int) -> np.ndarray:
        """Zeroed memory, aligned to a page; pages that are never touched cost nothing."""
        _warm_up()
        try:
            block = np.zeros(nbytes + _PAGE, np.uint8)
        except (MemoryError, ValueError):  # ValueError: more than an index can count
            raise OutOfMemory(
                f"the net needs {nbytes / 2**30:.1f} GiB of memory, more than the system gives",
                nbytes,
                hint="lower batch_size (iter_size makes up for it), or num_output",
            ) from None
        start = -block.ctypes.data % _PAGE
        return block[start : start + nbytes]

    def view(self, memory: Any, offset: int, shape: Sequence[int], dtype: str) -> np.ndarray:
        kind = np.dtype(dtype)
        flat = memory[offset : offset + math.prod(shape) * kind.itemsize]
        view: np.ndarray = flat.view(kind).reshape(tuple(shape))
        return view

    def upload(self, target: Any, source: Any) -> None:
        target[...] = source

    def download(self, source: Any) -> np.ndarray:
        return np.array(source)

    def copy_async(self, target: Any, source: Any, stream: Stream) -> None:
        assert isinstance(stream, CpuStream)
        stream.submit(lambda: np.copyto(target, source))

    def host_store(self, nbytes: int, folder: str | None = None) -> FileStore:
        return FileStore(nbytes, folder)

    def offload_async(self, source: Any, store: Any, offset: int, stream: Stream) -> None:
        assert isinstance(stream, CpuStream)
        stream.submit(lambda: store.write(offset, source))

    def fetch_async(self, store: Any, offset: int, target: Any, stream: Stream) -> None:
        assert isinstance(stream, CpuStream)
        stream.submit(lambda: store.read(offset, target))

    def active(self) -> np.errstate:
        """Values that overflow or become NaN are the net's business, not a warning of NumPy's."""
        return np.errstate(all="ignore")

    def new_stream(self, name: str) -> CpuStream:
        """The stream ``compute`` is the caller's thread; every other has its own."""
        return CpuStream(name) if name == "compute" else CopyStream(name)

    def new_event(self) -> CpuEvent:
        return CpuEvent()

    def synchronize(self) -> None:
        pass


@lru_cache(maxsize=1)
def _warm_up() -> None:
    """Let BLAS take its own memory first.

    It ends the process where it cannot have that later; a net that does not fit gets a message.
    """
    square = np.ones((256, 256), np.float32)
    np.matmul(square, square)
