"""Memory, streams and copies on the CPU: everything happens at once, in order."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Sequence
from typing import Any

import numpy as np

from layrubnet.devices.base import Device, Event, Stream
from layrubnet.devices.cpu.ops import CpuOps
from layrubnet.errors import DeviceError

_PAGE = 4096


class CpuEvent(Event):
    """Work is done as soon as it is queued, so an event has always happened."""

    def record(self, stream: Stream) -> None:
        pass

    def synchronize(self) -> None:
        pass


class CpuStream(Stream):
    """Runs work as it is queued."""

    def __init__(self, name: str) -> None:
        self.name = name

    def wait(self, event: Event) -> None:
        pass

    def synchronize(self) -> None:
        pass


class CpuDevice(Device):
    """Host memory and NumPy."""

    name = "cpu"

    def __init__(self) -> None:
        self.ops = CpuOps()
        self.base_scratch = CpuOps.BASE_SCRATCH

    def describe(self) -> str:
        return f"cpu ({platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__})"

    def allocate(self, nbytes: int) -> np.ndarray:
        """Zeroed memory, aligned to a page; pages that are never touched cost nothing."""
        try:
            block = np.zeros(nbytes + _PAGE, np.uint8)
        except (MemoryError, ValueError):  # ValueError: more than an index can count
            raise DeviceError(
                f"the net needs {nbytes / 2**30:.1f} GiB of memory, more than the system gives",
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
        target[...] = source

    def new_stream(self, name: str) -> CpuStream:
        return CpuStream(name)

    def new_event(self) -> CpuEvent:
        return CpuEvent()

    def synchronize(self) -> None:
        pass
