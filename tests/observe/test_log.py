"""Log lines against patterns like those of Caffe's own log parsers, written for this test."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from layrubnet.observe.log import LOGGER, LogObserver, add_handler, remove_handler, shown
from layrubnet.observe.observer import Output, TrainReport
from tests.solvers.support import make_solver

GLOG = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [\w.]+:\d+\] .*")
ITERATION = re.compile(r"Iteration (\d+)")
TRAIN = re.compile(r"Train net output #(\d+): (\S+) = ([-+.\deE]+)")
TEST = re.compile(r"Test net output #(\d+): (\S+) = ([-+.\deE]+)")
RATE = re.compile(r"lr = ([-+]?\d*\.?\d+(?:[eE][-+]?\d+)?)")
TEXT = (
    'lr_policy: "multistep" gamma: 0.1 stepvalue: 2 base_lr: 0.05 display: 2 max_iter: 4 '
    "test_iter: 1 test_interval: 4 test_compute_loss: true "
)


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    text = io.StringIO()
    handler = add_handler(text)
    yield text
    remove_handler(handler)


@pytest.fixture
def lines(stream: io.StringIO, tmp_path: Path) -> list[str]:
    solver, _ = make_solver(f'{TEXT} snapshot_prefix: "{tmp_path}/s"')
    solver.observers.all.insert(0, LogObserver())
    solver.solve()
    return stream.getvalue().splitlines()


def test_every_line_has_glogs_prefix(lines: list[str]) -> None:
    assert len(lines) > 15
    for line in lines:
        assert GLOG.fullmatch(line), line


def test_what_parsers_take_from_it(lines: list[str]) -> None:
    train: dict[int, float] = {}
    test: dict[int, float] = {}
    rates: dict[int, float] = {}
    iteration = -1
    for line in lines:
        if found := ITERATION.search(line):
            iteration = int(found[1])
        if found := TRAIN.search(line):
            assert (found[1], found[2]) == ("0", "loss")
            train[iteration] = float(found[3])
        if found := TEST.search(line):
            test[iteration] = float(found[3])
        if found := RATE.search(line):
            rates[iteration] = float(found[1])
    assert list(train) == [0, 2]
    assert list(test) == [0, 4]
    assert rates == {0: 0.05, 2: 0.005}


def test_columns_of_awk_scripts(lines: list[str]) -> None:
    rate = next(line for line in lines if ", lr = " in line)
    assert float(rate.split()[8]) == 0.05
    score = next(line for line in lines if "Test net output #0" in line)
    assert float(score.split()[10]) > 0


def test_order_of_lines(lines: list[str], tmp_path: Path) -> None:
    shape = [re.sub(r"= [-+.\deE]+", "= N", line.split("] ", 1)[1]) for line in lines]
    shape = [re.sub(r"\([\d.]+e?[-+]?\d* iter/s, .*s/2 iters\)", "(rate)", line) for line in shape]
    stem = f"{tmp_path}/s_iter_4"
    loss = "    Train net output #0: loss = N (* 1 = N loss)"
    test = "    Test net output #0: loss = N (* 1 = N loss)"
    assert shape == [
        "Solving linear",
        "Learning Rate Policy: multistep",
        "Iteration 0, Testing net (#0)",
        "Test loss: " + shape[3].rsplit(" ", 1)[1],
        test,
        "Iteration 0 (rate), loss = N",
        loss,
        "Iteration 0, lr = N",
        "MultiStep Status: Iteration 2, step = N",
        "Iteration 2 (rate), loss = N",
        loss,
        "Iteration 2, lr = N",
        f"Snapshotting to binary proto file {stem}.caffemodel",
        f"Snapshotting solver state to binary proto file {stem}.solverstate",
        "Iteration 4, loss = N",
        "Iteration 4, Testing net (#0)",
        "Test loss: " + shape[16].rsplit(" ", 1)[1],
        test,
        "Optimization Done.",
    ]


def test_the_line_of_issue_5422(stream: io.StringIO) -> None:
    LogObserver().trained(TrainReport(100, 0.42, 0.01, (), 2.1, 47.0, 100))
    first, second = stream.getvalue().splitlines()
    assert first.endswith("] Iteration 100 (2.1 iter/s, 47s/100 iters), loss = 0.42")
    assert "solver.cpp:" in first
    assert second.endswith("] Iteration 100, lr = 0.01")


def test_words_of_the_other_events(stream: io.StringIO) -> None:
    log = LogObserver()
    log.writing("a.caffemodel.h5", "weights", True)
    log.writing("a.solverstate.h5", "state", True)
    log.finished(3, True)
    log.warning("two\nlines")
    texts = [line.split("] ", 1)[1] for line in stream.getvalue().splitlines()]
    assert texts == [
        "Snapshotting to HDF5 file a.caffemodel.h5",
        "Snapshotting solver state to HDF5 file a.solverstate.h5",
        "Optimization stopped early.",
        "two",
        "lines",
    ]
    assert stream.getvalue().splitlines()[-1].startswith("W")


def test_outputs() -> None:
    assert shown(Output("loss", 0.5, 2.0)) == "loss = 0.5 (* 2 = 1 loss)"
    assert shown(Output("accuracy", 0.98)) == "accuracy = 0.98"
    assert shown(Output("loss", 1.23456789e-7, 1.0)).startswith("loss = 1.23457e-07 ")


def test_log_file(tmp_path: Path) -> None:
    handler = add_handler(str(tmp_path / "log"))
    LOGGER.info("hello")
    remove_handler(handler)
    assert (tmp_path / "log").read_text().endswith("] hello\n")
    assert handler not in logging.getLogger("layrubnet").handlers
