"""The live display on a terminal, log lines elsewhere."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from layrubnet.observe.log import LogObserver
from layrubnet.observe.progress import LiveProgress, progress_observer, sparkline
from layrubnet.observe.tensorboard import TensorBoard
from tests.solvers.support import make_solver

TEXT = 'lr_policy: "fixed" base_lr: 0.05 display: 2 max_iter: 60 test_iter: 1 test_interval: 30 '


def test_sparkline() -> None:
    assert sparkline([]) == ""
    assert sparkline([1.0]) == "▁"
    assert sparkline([0, 7, 3.5]) == "▁█▄"


def test_choice() -> None:
    pytest.importorskip("rich")
    assert isinstance(progress_observer(io.StringIO()), LogObserver)
    assert isinstance(progress_observer(io.StringIO(), live=True), LiveProgress)


def test_live_run(tmp_path: Path) -> None:
    pytest.importorskip("rich")
    stream = io.StringIO()
    display = LiveProgress(stream)
    solver, _ = make_solver(f'{TEXT} snapshot_prefix: "{tmp_path}/s"')
    solver.observers.all.append(display)
    display.warning("careful [here]")
    solver.solve()
    display.close()
    text = stream.getvalue()
    assert "iteration 30: test net #0: loss " in text
    assert "careful [here]" in text
    assert "snapshot" in text
    assert "60/60" in text
    assert "done" in text


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    solver, _ = make_solver(f'{TEXT} snapshot_prefix: "{tmp_path}/s"')
    board = TensorBoard(tmp_path / "board")
    solver.observers.all.append(board)
    solver.step(3)
    board.close()
    written = b"".join(p.read_bytes() for p in (tmp_path / "board").iterdir())
    assert b"train/loss" in written
    assert b"test0/loss" in written


def test_the_curve_spans_the_whole_run() -> None:
    pytest.importorskip("rich")
    live = LiveProgress(io.StringIO())
    for iteration in range(1000):
        live.iterated(iteration + 1, float(1000 - iteration))
    assert 16 <= len(live._curve) < 32
    assert live._curve == sorted(live._curve, reverse=True)
    assert live._curve[0] > 960


def test_a_terminal_that_was_closed_does_not_end_training() -> None:
    pytest.importorskip("rich")

    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    live = LiveProgress(Closed())
    live.note("nobody reads this")
    live.started("net", "fixed", 0, 10)
    live.iterated(1, 1.0)
    live.finished(1, early=True)
