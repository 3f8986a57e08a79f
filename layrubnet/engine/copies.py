"""Copies between device and host as a plan orders them, on streams of their own."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from layrubnet.devices.base import Device, Event
from layrubnet.engine.program import Instruction
from layrubnet.errors import DeviceError
from layrubnet.memory.plan import Schedule

COPY_OPS = ("offload", "fetch", "wait")


class Copies:
    """The host side of a plan: a slot per offloaded buffer, two copy streams, events.

    A copy starts when the computation has come to where the plan issues it (an event on the
    compute stream); the plan's ``wait`` makes the computation wait for the copy's own event.
    """

    def __init__(self, device: Device, host_bytes: int, folder: str | None) -> None:
        self.device = device
        self.store: Any = None
        self._events: dict[str, Event] = {}
        self._offsets: dict[str, int] = {}
        if host_bytes:
            self.store = device.host_store(host_bytes, folder)
            self._compute = device.new_stream("compute")
            self._streams = {op: device.new_stream(op) for op in ("offload", "fetch")}
            # A net that is dropped without `close` gives its threads and its file back too.
            self._finalizer = weakref.finalize(self, _close, (*self._streams.values(), self.store))

    def start(self, schedule: Schedule) -> None:
        """Bind a schedule next; schedules never run at once, so each has the whole store."""
        self._events, self._offsets = {}, {}
        top = 0
        for name, nbytes in schedule.host.items():
            self._offsets[name] = top
            top += nbytes

    def bind(self, instruction: Instruction, arrays: Mapping[str, Any]) -> Callable[[], None]:
        """Return a function that carries out an offload, a fetch or a wait."""
        device = self.device
        if instruction.op == "wait":
            event = self._event(instruction.target)
            compute = self._compute
            return lambda: compute.wait(event)
        stream, store = self._streams[instruction.op], self.store
        offset = self._offsets[instruction.target]
        ready = device.new_event()
        done = self._event(f"{instruction.op} {instruction.target}")
        (name,) = instruction.reads or instruction.writes
        array, compute = arrays[name], self._compute
        offload = instruction.op == "offload"
        label = f"{instruction.op} of {instruction.target!r}"

        def copy() -> None:
            stream.label = label
            ready.record(compute)
            stream.wait(ready)
            if offload:
                device.offload_async(array, store, offset, stream)
            else:
                device.fetch_async(store, offset, array, stream)
            done.record(stream)

        return copy

    def _event(self, name: str) -> Event:
        if name not in self._events:
            self._events[name] = self.device.new_event()
        return self._events[name]

    def settle(self) -> None:
        """Wait until no copy is under way, whatever became of them: a step was broken off."""
        if self.store is not None:
            for stream in self._streams.values():
                with contextlib.suppress(DeviceError):
                    stream.synchronize()

    def close(self) -> None:
        """Wait for copies under way and give the host memory back."""
        if self.store is not None:
            self._finalizer()


def _close(resources: tuple[Any, ...]) -> None:
    for resource in resources:
        resource.close()
