"""Streams of the CPU device: the computation runs inline, copies on a thread of their own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from layrubnet.devices.base import Event, Stream
from layrubnet.errors import DeviceError

Work = Callable[[], None]
_PATIENCE = 0.2
"""Seconds between looks at a thread's error while waiting for it."""


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

    The first error on the thread stops it: the work queued behind is dropped, and whoever waits
    for any of that gets the error, with the label of the work that failed.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._work: queue.SimpleQueue[tuple[str, Work] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._error: DeviceError | None = None

    def submit(self, work: Work) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name=self.name, daemon=True)
            self._thread.start()
        self._work.put((self.label, work))

    def wait(self, event: Event) -> None:
        """Work queued from now on starts after what ``event`` marks at this moment."""
        if isinstance(event, CpuEvent):
            self.submit(event.moment())
        else:
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
        while (item := self._work.get()) is not None:
            label, work = item
            if self._error is None:
                try:
                    work()
                except Exception as error:
                    self._error = _told(label or self.name, error)


def _told(label: str, error: Exception) -> DeviceError:
    if isinstance(error, DeviceError):
        return DeviceError(error.what, where=f"{label}, {error.where}", hint=error.hint)
    what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return DeviceError(f"the copy failed: {what or type(error).__name__}", where=label)


class CpuEvent(Event):
    """Set by the stream's thread once it gets there.

    Each ``record`` is a moment of its own: whoever waits for an earlier one is not held up by it.
    """

    def __init__(self) -> None:
        self._happened: threading.Event | None = None
        self._stream: CopyStream | None = None

    def record(self, stream: Stream) -> None:
        if isinstance(stream, CopyStream):
            self._stream, self._happened = stream, threading.Event()
            stream.submit(self._happened.set)
        else:
            self._stream = self._happened = None  # the caller's own work is done already

    def moment(self) -> Work:
        """A function that waits for what the event marks now, whatever is recorded later."""
        stream, happened = self._stream, self._happened

        def wait() -> None:
            if happened is None or stream is None:
                return
            # After an error the thread runs nothing any more, so look at both.
            while not happened.wait(timeout=_PATIENCE):
                stream.raise_error()

        return wait

    def synchronize(self) -> None:
        self.moment()()
