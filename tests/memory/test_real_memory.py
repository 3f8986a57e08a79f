"""What is planned is what is used: one allocation, nothing in a step, peaks to the byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layrubnet.devices.cpu.device import CpuDevice
from layrubnet.engine.net import CompiledNet
from layrubnet.engine.program import Instruction
from layrubnet.memory.options import MemoryOptions
from layrubnet.memory.strategies import STRATEGIES
from tests.memory.nets import FAMILIES
from tests.memory.training import Training, feed
from tests.support.array_memory import ArrayMemory, count_array_memory
from tests.support.checks import LIMIT

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks"
PLANNED = [name for name in STRATEGIES if name != "caffe"]
NETS = ("CIFAR-quick", "DenseNet", "U-Net")
PATTERNS = (0xA5, 0x5A)
QUIET = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
"""Threads and the C library reserve address space that they never use; a limit counts it."""


def step(net: CompiledNet, hook: Any = None) -> None:
    """An iteration of two micro-batches."""
    for micro_batch in range(2):
        net.step(iteration=0, micro_batch=micro_batch, hook=hook)
    net.update(hook=hook)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", NETS)
def test_a_step_allocates_nothing(name: str, strategy: str) -> None:
    """No instruction makes more than a few kilobytes of array data, copies and waits included."""
    net = Training(2, debug=False).net(FAMILIES[name], MemoryOptions(strategy))
    feed(net, np.random.default_rng(1))
    step(net)
    worst: list[tuple[int, str]] = []

    def note(memory: ArrayMemory, instruction: Instruction) -> None:
        worst.append((memory.peak - memory.now, f"{instruction.op} {instruction.target}"))
        memory.reset_peak()

    with count_array_memory() as memory:
        before = memory.now
        step(net, partial(note, memory))
        assert memory.now == before
    assert worst
    assert not [w for w in worst if w[0] > LIMIT]
    net.close()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_device_allocation(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A net asks its device for memory once, for as much as was planned, and never again."""
    asked: list[int] = []
    allocate = CpuDevice.allocate

    def count(self: CpuDevice, nbytes: int) -> Any:
        asked.append(nbytes)
        return allocate(self, nbytes)

    monkeypatch.setattr(CpuDevice, "allocate", count)
    net = Training(2).net(FAMILIES["DenseNet"], MemoryOptions(strategy))
    step(net)
    assert asked == [net.plan.nbytes]
    net.close()


def highest_touched(net: CompiledNet, pattern: int) -> int:
    """Fill the arena with a pattern, run a step, return the end of what is no longer pattern."""
    plan, memory = net.plan, net.executor.memory
    arena = memory[plan.persistent_bytes : plan.scratch_offset]
    arena[...] = pattern
    feed(net, np.random.default_rng(2))
    step(net)
    touched = np.flatnonzero(arena != pattern)
    return int(touched[-1]) + 1 if len(touched) else 0


@pytest.mark.parametrize("strategy", PLANNED)
@pytest.mark.parametrize("name", NETS)
def test_planned_peak_is_the_measured_peak(name: str, strategy: str) -> None:
    """The last byte of the arena that a step writes lies in the arena's last aligned line."""
    net = Training(2, debug=False).net(FAMILIES[name], MemoryOptions(strategy))
    top = max(highest_touched(net, pattern) for pattern in PATTERNS)
    assert -(-top // 64) * 64 == net.plan.arena_bytes
    net.close()


@pytest.mark.parametrize("strategy", PLANNED)
def test_nothing_is_written_beyond_the_plan(strategy: str) -> None:
    """A guard behind the one allocation stays as it was."""
    net = Training(2, debug=False).net(FAMILIES["U-Net"], MemoryOptions(strategy))
    block = net.executor.memory.base
    used = net.executor.memory.ctypes.data - block.ctypes.data + net.plan.nbytes
    block[used:] = 0xA5
    assert len(block) > used
    step(net)
    assert (block[used:] == 0xA5).all()
    net.close()


def start(
    batch: int, strategy: str, *more: str, limit: int | None = None
) -> subprocess.CompletedProcess[str]:
    """A process of its own that trains ResNet-20; ``limit``: as by ``ulimit -v``, in bytes."""
    command = [sys.executable, str(BENCHMARK / "memory_worker.py"), "ResNet-20"]
    command += [f"--batch={batch}", f"--strategy={strategy}", *more]
    if limit is not None:
        command = ["sh", "-c", f'ulimit -v {limit // 1024} && exec "$@"', "sh", *command]
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, **QUIET},
        text=True,
        check=False,
    )


def worker(batch: int, strategy: str) -> dict[str, Any]:
    """Figures of such a process."""
    done = start(batch, strategy)
    assert done.returncode == 0, done.stderr
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("strategy", "batches"), [("caffe", (16, 80)), ("reuse", (16, 144))])
def test_resident_memory_grows_as_planned(strategy: str, batches: tuple[int, int]) -> None:
    """By the operating system's figures, between two batch sizes: within 2 %."""
    small, large = (worker(batch, strategy) for batch in batches)
    planned, measured = large["planned"] - small["planned"], large["anon"] - small["anon"]
    assert abs(measured - planned) <= 0.02 * planned


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_offloading_lowers_resident_memory() -> None:
    caffe, least = worker(32, "caffe"), worker(32, "min")
    assert least["anon"] < 0.5 * caffe["anon"]
    assert least["host"] > 0
    assert least["loss"] == caffe["loss"]


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("share", [0.3, 0.5])
def test_trains_where_keeping_everything_is_refused(share: float) -> None:
    """Under ``ulimit -v``: a message for ``caffe``, a training for ``auto`` with a budget."""
    whole = worker(64, "caffe")
    limit = whole["size"] - int(whole["planned"] * (1 - share))
    refused = start(64, "caffe", limit=limit)
    assert refused.returncode == 1
    assert "--memory-budget" in refused.stderr
    assert "Traceback" not in refused.stderr
    trained = start(64, "auto", f"--budget={int(whole['planned'] * 0.2)}", limit=limit)
    assert trained.returncode == 0, trained.stderr
    assert json.loads(trained.stdout)["loss"] == whole["loss"]
