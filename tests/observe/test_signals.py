"""Real signals become requests, and the second Ctrl-C does not wait."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from layrubnet.errors import LayrubError
from layrubnet.observe.observer import Observer
from layrubnet.observe.signals import Action, SignalActions, parse_effect
from tests.solvers.support import make_solver


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def test_effects() -> None:
    with SignalActions() as requests:
        assert requests() is Action.NONE
        send(signal.SIGHUP)
        assert requests() is Action.SNAPSHOT
        assert requests() is Action.NONE
        send(signal.SIGTERM)
        send(signal.SIGHUP)
        assert requests() is Action.STOP
        assert requests() is Action.SNAPSHOT


def test_other_effects_and_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    hang_up = signal.getsignal(signal.SIGHUP)
    with SignalActions(sigint="snapshot", sighup="none") as requests:
        assert signal.getsignal(signal.SIGHUP) is hang_up
        send(signal.SIGINT)
        assert requests() is Action.SNAPSHOT
    assert signal.getsignal(signal.SIGINT) is before


def test_second_interrupt_aborts() -> None:
    with SignalActions():
        send(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)


def test_interrupts_that_only_snapshot_never_abort() -> None:
    with SignalActions(sigint="snapshot") as requests:
        for _ in range(3):
            send(signal.SIGINT)
            assert requests() is Action.SNAPSHOT


def test_unknown_effect() -> None:
    with pytest.raises(LayrubError, match="was not recognized") as caught:
        parse_effect("stopp")
    assert "'stop'" in str(caught.value)


class Sender(Observer):
    """Sends a signal to this process once at an iteration, or when a test begins."""

    def __init__(self, number: int, iteration: int, during_test: bool = False) -> None:
        self.number, self.iteration, self.during_test = number, iteration, during_test

    def iterated(self, iteration: int, loss: float) -> None:
        if not self.during_test and iteration == self.iteration:
            send(self.number)

    def testing(self, iteration: int, net: int) -> None:
        if self.during_test and iteration == self.iteration:
            self.during_test = False
            send(self.number)


@pytest.mark.parametrize(
    ("number", "during_test", "snapshots", "last"),
    [
        (signal.SIGINT, False, [4], 4),
        (signal.SIGTERM, True, [4], 4),
        (signal.SIGHUP, False, [4, 8], 8),
        (signal.SIGHUP, True, [4, 8], 8),
    ],
)
def test_training(
    tmp_path: Path, number: int, during_test: bool, snapshots: list[int], last: int
) -> None:
    text = f"""lr_policy: "fixed" base_lr: 0.05 max_iter: 8 test_iter: 2 test_interval: 4
        snapshot_prefix: "{tmp_path}/s" """
    with SignalActions() as requests:
        solver, recorder = make_solver(text, requests=requests)
        solver.observers.all.append(Sender(number, 4, during_test))
        solver.solve()
    assert [r.iteration for r in recorder.snapshots] == snapshots
    assert solver.iter == last
