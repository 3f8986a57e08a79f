"""The interface of a device. The CPU's streams and events are trivial, a GPU's are not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any


class Event(ABC):
    """A point in a stream's work that other streams and the host can wait for."""

    @abstractmethod
    def record(self, stream: Stream) -> None:
        """Mark the work queued on ``stream`` so far."""

    @abstractmethod
    def synchronize(self) -> None:
        """Block the host until the marked work is done."""


class Stream(ABC):
    """A queue of work that runs in order. ``label`` says what is queued next, for errors."""

    label = ""

    @abstractmethod
    def wait(self, event: Event) -> None:
        """Later work on this stream starts only after ``event``."""

    @abstractmethod
    def synchronize(self) -> None:
        """Block the host until all queued work is done."""

    def close(self) -> None:
        """Finish the queued work and release the stream."""
        self.synchronize()


class Device(ABC):
    """Owns memory, streams, events and copies; ``ops`` on it does the mathematics."""

    name: str
    ops: Any
    base_scratch: int
    """Bytes of scratch every instruction may use without declaring them."""

    @abstractmethod
    def describe(self) -> str:
        """One line for the log: what the device is."""

    @abstractmethod
    def allocate(self, nbytes: int) -> Any:
        """Return device memory; the engine calls this once per net, never during a step."""

    @abstractmethod
    def view(self, memory: Any, offset: int, shape: Sequence[int], dtype: str) -> Any:
        """Return an array over part of ``memory``."""

    @abstractmethod
    def upload(self, target: Any, source: Any) -> None:
        """Copy a host array into a device array (shapes equal; synchronous)."""

    @abstractmethod
    def download(self, source: Any) -> Any:
        """Return a new host array with the content of a device array (synchronous)."""

    @abstractmethod
    def copy_async(self, target: Any, source: Any, stream: Stream) -> None:
        """Queue a copy on ``stream``; either side may be host or device memory."""

    @abstractmethod
    def host_store(self, nbytes: int, folder: str | None = None) -> Any:
        """Return host memory of this size for offloaded buffers (a file in ``folder``)."""

    @abstractmethod
    def offload_async(self, source: Any, store: Any, offset: int, stream: Stream) -> None:
        """Queue a copy of a device array into a host store."""

    @abstractmethod
    def fetch_async(self, store: Any, offset: int, target: Any, stream: Stream) -> None:
        """Queue a copy from a host store into a device array."""

    @abstractmethod
    def active(self) -> AbstractContextManager[Any]:
        """A context in which instructions run (what the device's library needs set)."""

    @abstractmethod
    def new_stream(self, name: str) -> Stream:
        """Return a stream named for reports."""

    @abstractmethod
    def new_event(self) -> Event:
        """Return an event."""

    @abstractmethod
    def synchronize(self) -> None:
        """Block until the device is idle."""
