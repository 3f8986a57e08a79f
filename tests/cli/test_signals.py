"""Signals to real processes, and kill -9 in the middle of everything."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.support import Job, same_weights, start

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")

ENDLESS = ("--max-iter", 1_000_000, "--set", "test_interval=1000000", "--display", 50)
TESTING = ("--set", "test_iter=100000000", "--set", "test_interval=1")

SLOW_LAYER = """
import sys, time
from layrubnet import pycaffe as caffe

class S(caffe.Layer):
    def setup(self, bottom, top): pass
    def reshape(self, bottom, top): top[0].reshape(1)
    def backward(self, top, propagate_down, bottom): pass
    def forward(self, bottom, top):
        print("now it takes long", file=sys.stderr, flush=True)
        time.sleep(50)
"""


class Run:
    """A training process whose stderr is read line by line."""

    def __init__(self, job: Job, *words: object) -> None:
        self.job = job
        self.process = start(["train", job.solver, *words], job.folder)
        assert self.process.stderr is not None
        self.lines: list[str] = []

    def wait_for(self, text: str) -> None:
        """Read up to a line with ``text``."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if text in line:
                return
        pytest.fail(f"ended without {text!r}:\n{''.join(self.lines[-20:])}")

    def send(self, number: int) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def end(self) -> int:
        """Read to the end; return the exit status."""
        out, err = self.process.communicate(timeout=60)
        self.lines.append(err)
        assert out == ""
        assert "Traceback" not in self.text
        return self.process.returncode

    @property
    def text(self) -> str:
        """Everything read so far."""
        return "".join(self.lines)

    def snapshots(self) -> list[int]:
        """The iterations of all states, sorted."""
        names = (p.name for p in self.job.prefix.parent.glob("*.solverstate"))
        return sorted(int(re.findall(r"_iter_(\d+)", name)[0]) for name in names)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stop_with_a_snapshot(job: Job, number: int) -> None:
    run = Run(job, *ENDLESS)
    run.wait_for("Iteration 50 ")
    run.send(number)
    assert run.end() == 0  # as in Caffe: what was asked for was done
    assert "Optimization stopped early." in run.text
    (iteration,) = run.snapshots()
    assert iteration >= 50
    resumed = job("train", job.solver, "--resume", "--max-iter", iteration + 1)
    assert resumed.status == 0
    assert f"tiny_iter_{iteration}.solverstate" in resumed.err


def test_hang_up_takes_a_snapshot_and_goes_on(job: Job) -> None:
    run = Run(job, *ENDLESS)
    run.wait_for("Iteration 50 ")
    run.send(signal.SIGHUP)
    run.wait_for("Snapshotting solver state")
    run.wait_for("Iteration ")
    run.send(signal.SIGINT)
    assert run.end() == 0
    assert len(run.snapshots()) == 2


def test_effects_can_be_changed(job: Job) -> None:
    words = ("--sigint_effect=snapshot", "-sighup_effect", "stop")
    run = Run(job, *ENDLESS, *words)
    run.wait_for("Iteration 50 ")
    run.send(signal.SIGINT)
    run.wait_for("Snapshotting solver state")
    run.wait_for("Iteration ")
    run.send(signal.SIGHUP)
    assert run.end() == 0
    assert "Optimization stopped early." in run.text
    assert len(run.snapshots()) == 2


def test_stop_while_testing(job: Job) -> None:
    run = Run(job, *TESTING)
    run.wait_for("Testing net (#0)")
    time.sleep(0.1)
    run.send(signal.SIGINT)
    assert run.end() == 0
    assert "Test interrupted." in run.text
    assert run.snapshots() == [0]


def test_snapshot_while_testing(job: Job) -> None:
    run = Run(job, *TESTING)
    run.wait_for("Testing net (#0)")
    run.send(signal.SIGHUP)
    run.wait_for("Snapshotting solver state")
    assert run.process.poll() is None
    run.send(signal.SIGTERM)
    assert run.end() == 0
    assert run.snapshots() == [0]


def test_a_second_interrupt_does_not_wait(job: Job) -> None:
    # A batch so slow that the first interrupt cannot take effect.
    (job.folder / "slow.py").write_text(SLOW_LAYER)
    slow = 'layer { name: "s" type: "Python" top: "s" python_param { module: "slow" layer: "S" } }'
    job.net.write_text(job.net.read_text() + slow)
    run = Run(job)
    run.wait_for("now it takes long")
    run.send(signal.SIGINT)
    run.wait_for("stopping after this iteration (Ctrl-C again: at once)")
    run.send(signal.SIGINT)
    assert run.end() == 130
    assert run.text.endswith("layrubnet: interrupted\n")
    assert run.snapshots() == []


def test_interrupting_other_commands(job: Job) -> None:
    process = start(["test", job.net, "--iterations", 100_000_000], job.folder)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Batch 0")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "layrubnet: interrupted\n"


@pytest.mark.parametrize("random_seed", [7, -1])
def test_killed_and_resumed_equals_uninterrupted(job: Job, random_seed: int) -> None:
    """Dropout, random crops, mirrors and read-ahead included, also with a drawn seed."""
    words = ["train", job.solver, "--max-iter", 100, "--set", "snapshot=10"]
    words += ["--set", "test_interval=30", "--seed", random_seed]
    run = Run(job, *words[2:])
    for _ in range(3):
        run.wait_for("Snapshotting solver state")
    run.send(signal.SIGKILL)
    run.process.communicate(timeout=60)
    assert not job.weights(100).exists()
    _only_whole_files(job.prefix.parent)
    resumed = job(*words, "--resume")
    assert resumed.status == 0, resumed.err
    assert "The newest snapshot is" in resumed.err
    killed = job.weights(100).rename(job.folder / "killed.caffemodel")
    seed = re.findall(r"random_seed: (\d+) \(drawn", run.text) or [str(random_seed)]
    assert job(*words[:-1], seed[0]).status == 0
    assert same_weights(killed, job.weights(100))
    assert job.weights(100).read_bytes() == killed.read_bytes()


def _only_whole_files(folder: Path) -> None:
    """Nothing under a final name may be cut off; a temporary file may be left by kill -9."""
    from layrubnet.prototxt.state import read_state
    from layrubnet.prototxt.weights import read_weights

    for path in folder.glob("tiny_iter_*"):
        if path.suffix == ".solverstate":
            read_state(path)
        elif path.suffix == ".caffemodel":
            read_weights(path)


def test_closing_the_log_pipe_does_not_end_training(job: Job) -> None:
    """`layrubnet train ... 2>&1 | head`: training goes on, its files are complete."""
    process = start(["train", job.solver, "--max-iter", 200], job.folder)
    assert process.stderr is not None
    process.stderr.readline()
    process.stderr.close()
    assert process.stdout is not None
    process.stdout.close()
    try:
        assert process.wait(60) == 0
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert job.weights(200).exists()
