"""Streams of the CPU device: the computation runs inline, copies on a thread of their own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from layrubnet.devices.base import Event, Stream

Work = Callable[[], None]


class CpuStream(Stream):
    """The stream of the caller's own thread: work is done when the call returns."""

    def __init__(self, name: str) -> None:
        self.name = name

    def submit(self, work: Work) -> None:
        """Do it."""
        work()

    def wait(self, event: Event) -> None:
        event.synchronize()

    def synchronize(self) -> None:
        pass


class CopyStream(CpuStream):
    """Does its work in order on a background thread (copies release the interpreter's lock).

    An error on the thread is raised at the next ``synchronize``, of the stream or of an event.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def submit(self, work: Work) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name=self.name, daemon=True)
            self._thread.start()
        self._work.put(work)

    def wait(self, event: Event) -> None:
        self.submit(event.synchronize)

    def synchronize(self) -> None:
        if self._thread is not None:
            event = CpuEvent()
            event.record(self)
            event.synchronize()

    def raise_error(self) -> None:
        """Raise what went wrong on the thread, if anything did."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Finish the queued work and end the thread."""
        if self._thread is not None:
            self._work.put(None)
            self._thread.join()
            self._thread = None

    def _loop(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                if self._error is None:
                    work()
            except BaseException as error:
                self._error = error


class CpuEvent(Event):
    """Set by the stream's thread once it gets there."""

    def __init__(self) -> None:
        self._happened = threading.Event()
        self._happened.set()
        self._stream: CopyStream | None = None

    def record(self, stream: Stream) -> None:
        if isinstance(stream, CopyStream):
            self._stream = stream
            self._happened.clear()
            happened = self._happened
            stream.submit(happened.set)
            # After an error the thread runs nothing any more, so `synchronize` looks at both.

    def synchronize(self) -> None:
        stream = self._stream
        while not self._happened.wait(timeout=0.2):
            if stream is not None:
                stream.raise_error()
        if stream is not None:
            stream.raise_error()
