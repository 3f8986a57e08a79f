"""Offloading to a file on the CPU: order of copies, errors, and that nothing is left behind."""

from __future__ import annotations

import errno
import gc
import logging
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layrubnet.devices import get_device
from layrubnet.devices.cpu.streams import CopyStream, CpuEvent
from layrubnet.devices.host_store import FileStore
from layrubnet.engine.net import CompiledNet
from layrubnet.engine.program import Instruction
from layrubnet.errors import DeviceError
from layrubnet.memory.options import MemoryOptions
from tests.memory.nets import FAMILIES
from tests.memory.training import Training, differences, feed, train

ROOT = Path(__file__).resolve().parents[2]
MEMORY_FOLDER = Path("/dev/shm")


def open_files() -> int:
    """Files this process has open."""
    return len(os.listdir("/proc/self/fd"))


# -- order ---------------------------------------------------------------------------------------


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that takes its time, differently for each copy."""
    rng, write, read = random.Random(4), FileStore.write, FileStore.read

    def delayed(copy: Any) -> Any:
        def run(self: FileStore, offset: int, array: Any) -> None:
            time.sleep(rng.choice([0, 0, 0.0005, 0.003]))
            copy(self, offset, array)

        return run

    monkeypatch.setattr(FileStore, "write", delayed(write))
    monkeypatch.setattr(FileStore, "read", delayed(read))


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("strategy", ["inter", "hybrid", "vdnn", "min"])
@pytest.mark.parametrize("name", ["LeNet", "DenseNet"])
def test_slow_copies_change_nothing(name: str, strategy: str) -> None:
    training = Training(2)
    assert not differences(
        train(FAMILIES[name], strategy, training), train(FAMILIES[name], "caffe", training)
    )


def test_many_small_copies_in_two_directions(tmp_path: Path) -> None:
    """Chains offload -> fetch over two streams and their events, with random delays."""
    device, rng = get_device("cpu"), random.Random(8)
    out, back = CopyStream("offload"), CopyStream("fetch")
    slots, size = 16, 64
    store = FileStore(slots * size * 4, str(tmp_path))
    sources = np.arange(slots * size, dtype=np.float32).reshape(slots, size)
    targets = np.zeros_like(sources)
    written = [CpuEvent() for _ in range(slots)]
    fetched = [CpuEvent() for _ in range(slots)]
    for round_ in range(40):
        order = rng.sample(range(slots), slots)
        for k in order:
            fetched[k].synchronize()
            assert not round_ or np.array_equal(targets[k], sources[k])
            sources[k] += 1
            if rng.random() < 0.2:
                out.submit(lambda: time.sleep(0.0005))
            device.offload_async(sources[k], store, k * size * 4, out)
            written[k].record(out)
        for k in rng.sample(order, slots):
            back.wait(written[k])
            device.fetch_async(store, k * size * 4, targets[k], back)
            fetched[k].record(back)
    back.synchronize()
    assert np.array_equal(targets, sources)
    for stream in (out, back):
        stream.close()
    store.close()


def test_an_event_marks_the_moment_of_its_record() -> None:
    """Recording an event again does not hold up who waits for the earlier record."""
    slow, fast, go = CopyStream("slow"), CopyStream("fast"), threading.Event()
    event, done = CpuEvent(), []
    event.record(slow)
    fast.wait(event)
    fast.submit(lambda: done.append("first"))
    slow.submit(lambda: (go.wait(10), None)[1])
    event.record(slow)
    fast.synchronize()
    assert done == ["first"]
    go.set()
    event.synchronize()
    slow.close()
    fast.close()


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("strategy", ["hybrid", "min"])
def test_a_step_that_was_broken_off_leaves_no_copy_behind(strategy: str) -> None:
    """Whatever instruction it ends after, the training that follows is the same."""
    wanted = train(FAMILIES["LeNet"], strategy)

    def break_off(net: CompiledNet, at: int) -> None:
        feed(net, np.random.default_rng(9))
        left = iter(range(at))

        def hook(instruction: Instruction) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            net.step(iteration=0, hook=hook)

    for at in (3, 12, 20, 27):
        got = train(FAMILIES["LeNet"], strategy, before=partial(break_off, at=at))
        assert not differences(got, wanted)


# -- errors --------------------------------------------------------------------------------------


def fail_with(code: int) -> Any:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("operation", ["write", "read"])
def test_an_error_on_the_thread_names_the_buffer(
    operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = Training().net(FAMILIES["LeNet"], MemoryOptions("hybrid"))
    net.step(iteration=0)
    call = "pwrite" if operation == "write" else "preadv"
    monkeypatch.setattr(os, call, fail_with(errno.EIO))
    with pytest.raises(DeviceError) as caught:
        net.step(iteration=1)
    text = str(caught.value)
    assert ("offload of 'pool1.mask'" if operation == "write" else "fetch of '") in text
    assert os.strerror(errno.EIO) in text
    assert "--offload-dir" in text
    net.close()


def test_a_short_file_is_reported(tmp_path: Path) -> None:
    store = FileStore(64, str(tmp_path))
    with pytest.raises(DeviceError, match="too short"):
        store.read(0, np.zeros(32, np.float32))
    store.close()


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    options = MemoryOptions("hybrid", offload_dir=str(tmp_path / "nowhere"))
    before = open_files()
    with pytest.raises(DeviceError, match=r"nowhere.*no file.*\n.*--offload-dir"):
        Training().net(FAMILIES["LeNet"], options)
    assert open_files() == before


def test_too_little_room_is_reported(tmp_path: Path) -> None:
    before = open_files()
    with pytest.raises(DeviceError, match="no room for offloaded feature maps") as caught:
        FileStore(2**62, str(tmp_path))
    assert "free" in str(caught.value)
    assert open_files() == before


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "posix_fallocate", fail_with(errno.ENOSPC))
    with pytest.raises(DeviceError, match=os.strerror(errno.ENOSPC)):
        FileStore(1000, str(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not MEMORY_FOLDER.is_dir(), reason="no folder in memory")
def test_a_folder_in_memory_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="layrubnet"):
        FileStore(64, str(MEMORY_FOLDER)).close()
    assert "lies in memory" in caplog.text


# -- nothing is left -----------------------------------------------------------------------------


def test_a_net_gives_back_file_and_threads() -> None:
    """By ``close``, and when it is dropped without."""
    gc.collect()
    files, threads = open_files(), threading.active_count()
    for close in (True, False):
        net = Training().net(FAMILIES["LeNet"], MemoryOptions("hybrid"))
        net.step(iteration=0)
        assert open_files() > files
        if close:
            net.close()
        del net
        gc.collect()
        assert open_files() == files
        assert threading.active_count() == threads


def test_the_file_is_gone_after_a_kill(tmp_path: Path) -> None:
    """No name in the folder while it runs, no room taken after ``kill -9``."""
    code = f"""
        from layrubnet.memory.options import MemoryOptions
        from tests.memory.nets import FAMILIES
        from tests.memory.training import Training
        options = MemoryOptions("hybrid", offload_dir={str(tmp_path)!r})
        net = Training().net(FAMILIES["LeNet"], options)
        net.step(iteration=0)
        print("ready", flush=True)
        input()
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline() == "ready\n"
    assert not list(tmp_path.iterdir())
    opened = [os.readlink(p) for p in Path(f"/proc/{child.pid}/fd").iterdir()]
    assert any("layrubnet-offload-" in name and "(deleted)" in name for name in opened)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    child.stdin.close()
    child.stdout.close()
    assert not list(tmp_path.iterdir())
