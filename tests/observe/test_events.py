"""JSON lines: what is written, at once, and how it is read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layrubnet.errors import LayrubError
from layrubnet.observe.events import JsonLines, read_events
from layrubnet.observe.observer import Output, TestReport, TrainReport
from tests.solvers.support import make_solver

TEXT = 'lr_policy: "fixed" base_lr: 0.05 display: 2 max_iter: 4 test_iter: 1 test_interval: 4 '


def test_a_run(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "run.jsonl"
    solver, recorder = make_solver(f'{TEXT} snapshot_prefix: "{tmp_path}/s"')
    events = JsonLines(path)
    solver.observers.all.append(events)
    solver.solve()
    read = read_events(path)  # before close: every line was flushed
    events.close()
    kinds = [(e["event"], e["iteration"]) for e in read]
    assert kinds == [
        ("start", 0),
        ("test", 0),
        ("train", 0),
        ("train", 2),
        ("snapshot", 4),
        ("train", 4),
        ("test", 4),
        ("end", 4),
    ]
    assert read[3]["loss"] == recorder.trains[1].loss
    assert read[3]["outputs"] == {"loss": recorder.trains[1].outputs[0].value}
    assert read[1]["net"] == 0
    assert read[4]["state"] == f"{tmp_path}/s_iter_4.solverstate"


def test_resumed_runs_append(tmp_path: Path) -> None:
    for iteration in (1, 2):
        events = JsonLines(tmp_path / "e")
        events.finished(iteration, False)
        events.close()
    assert [e["iteration"] for e in read_events(tmp_path / "e")] == [1, 2]


def test_values_that_json_lacks(tmp_path: Path) -> None:
    events = JsonLines(tmp_path / "e")
    outputs = (Output("p", float("nan")), Output("p", 1.0))
    events.trained(TrainReport(0, float("inf"), 0.1, outputs, 1.0, 1.0, 1))
    events.tested(TestReport(0, 1, (Output("acc", 0.5),), 0.25))
    events.close()
    train, test = (json.loads(line) for line in (tmp_path / "e").read_text().splitlines())
    assert train["loss"] == "inf"
    assert train["outputs"] == {"p": ["nan", 1.0]}
    assert (test["net"], test["loss"], test["outputs"]) == (1, 0.25, {"acc": 0.5})


def test_a_line_cut_off_by_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "e"
    path.write_text('{"event": "end"}\n{"eve')
    assert read_events(path) == [{"event": "end"}]
    path.write_text('{"eve\n{"event": "end"}\n')
    with pytest.raises(LayrubError, match="e:1: is no JSON"):
        read_events(path)


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(LayrubError, match="cannot be written"):
        JsonLines(tmp_path)
    with pytest.raises(LayrubError, match="cannot be read"):
        read_events(tmp_path / "absent")
