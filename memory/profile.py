"""Measured costs: how long each instruction of a net and each copy takes on this machine.

``layrubnet time NET --profile FILE`` measures once and writes a file; ``--memory-profile FILE`` (or
``memory_param { profile: "FILE" }``) plans by it instead of by arithmetic. A plan made from a file
is the same every time, which one timed anew at each start would not be.
"""

from __future__ import annotations

import json
import os
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from layrubnet.errors import LayrubError
from layrubnet.files import atomic_write
from layrubnet.memory.cost import CPU, CostModel, Figures

if TYPE_CHECKING:
    from layrubnet.engine.net import CompiledNet
    from layrubnet.engine.program import Instruction

FORMAT = "layrubnet memory profile 1"
COPY_BYTES = 32 * 2**20
"""Size of the copies that are timed."""


@dataclass(frozen=True)
class Profile:
    """Seconds by (op, target), and bytes per second to and from the host."""

    seconds: Mapping[tuple[str, str], float]
    to_host: float
    from_host: float

    def cost_model(self, figures: Figures = CPU) -> CostModel:
        """A cost model that knows these figures; ``figures`` stand in for what was not measured."""
        known = replace(figures, name="measured", to_host=self.to_host, from_host=self.from_host)
        return CostModel(known, self.seconds)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the profile as JSON."""
        rows = [[op, target, seconds] for (op, target), seconds in self.seconds.items()]
        content = {
            "format": FORMAT,
            "to_host": self.to_host,
            "from_host": self.from_host,
            "instructions": rows,
        }
        with atomic_write(path) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def load_profile(path: str | os.PathLike[str]) -> Profile:
    """Read a profile; LayrubError if the file is something else."""
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        if content["format"] != FORMAT:
            raise KeyError
        seconds = {(str(op), str(t)): float(s) for op, t, s in content["instructions"]}
        return Profile(seconds, float(content["to_host"]), float(content["from_host"]))
    except OSError as error:
        raise LayrubError(f"cannot be read: {error.strerror}", where=os.fspath(path)) from None
    except (ValueError, KeyError, TypeError):
        raise LayrubError(
            "is no memory profile",
            where=os.fspath(path),
            hint="layrubnet time NET --profile FILE writes one",
        ) from None


@dataclass
class _Recorder:
    """An executor hook that notes the time since the previous instruction, by (op, target)."""

    times: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    last: float = 0.0

    def __call__(self, instruction: Instruction) -> None:
        self.times[instruction.op, instruction.target].append(perf_counter() - self.last)
        self.last = perf_counter()


def measure(net: CompiledNet, iterations: int = 5, folder: str | None = None) -> Profile:
    """Time the instructions of a net that keeps everything: medians over ``iterations``.

    ``folder``: where offloaded feature maps would go (its speed is measured as well).
    """
    net.forward()
    net.backward()
    recorder = _Recorder()
    for _ in range(iterations):
        for run in (net.forward, net.backward):
            recorder.last = perf_counter()
            run(hook=recorder)
    seconds = {key: statistics.median(found) for key, found in recorder.times.items()}
    return Profile(seconds, *_copy_speeds(net.device, folder))


def _copy_speeds(device: Any, folder: str | None) -> tuple[float, float]:
    """Bytes per second of a copy to the host store and of one back."""
    stream = device.new_stream("compute")
    store = device.host_store(COPY_BYTES, folder)
    try:
        array = device.view(device.allocate(COPY_BYTES), 0, (COPY_BYTES,), "uint8")
        to_host = _speed(lambda: device.offload_async(array, store, 0, stream))
        from_host = _speed(lambda: device.fetch_async(store, 0, array, stream))
        return to_host, from_host
    finally:
        store.close()


def _speed(copy: Callable[[], None]) -> float:
    times = []
    for _ in range(3):
        begin = perf_counter()
        copy()  # the compute stream runs it at once
        times.append(perf_counter() - begin)
    return COPY_BYTES / statistics.median(times)
