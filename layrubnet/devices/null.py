"""The null device: no memory, no mathematics. Shapes, programs and plans of any net, anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from layrubnet.devices.base import Device, Event, Stream
from layrubnet.devices.cpu.ops import CpuOps
from layrubnet.errors import DeviceError


class NullDevice(Device):
    """Plans as the CPU would (same algorithms, same scratch) but holds and runs nothing."""

    name = "null"

    def __init__(self) -> None:
        self.ops = CpuOps()
        self.base_scratch = CpuOps.BASE_SCRATCH

    def describe(self) -> str:
        return "null (shapes and plans only)"

    def _refuse(self) -> DeviceError:
        return DeviceError(
            "the null device computes nothing", hint='use get_device("cpu") to run a net'
        )

    def allocate(self, nbytes: int) -> Any:
        raise self._refuse()

    def view(self, memory: Any, offset: int, shape: Sequence[int], dtype: str) -> Any:
        raise self._refuse()

    def upload(self, target: Any, source: Any) -> None:
        raise self._refuse()

    def download(self, source: Any) -> Any:
        raise self._refuse()

    def copy_async(self, target: Any, source: Any, stream: Stream) -> None:
        raise self._refuse()

    def host_store(self, nbytes: int, folder: str | None = None) -> Any:
        raise self._refuse()

    def offload_async(self, source: Any, store: Any, offset: int, stream: Stream) -> None:
        raise self._refuse()

    def fetch_async(self, store: Any, offset: int, target: Any, stream: Stream) -> None:
        raise self._refuse()

    def active(self) -> AbstractContextManager[Any]:
        raise self._refuse()

    def new_stream(self, name: str) -> Stream:
        raise self._refuse()

    def new_event(self) -> Event:
        raise self._refuse()

    def synchronize(self) -> None:
        """There is never anything to wait for."""
