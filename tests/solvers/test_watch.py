"""Best snapshot, early stop, and old snapshots that are deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from layrubnet.errors import NetError
from layrubnet.solvers.weights import load_weights
from tests.solvers.support import make_solver

BASE = 'lr_policy: "fixed" base_lr: 0.02 test_iter: 1 test_interval: 1 '
BEST = 'snapshot_best { metric: "loss" mode: MIN } '
STOP = 'early_stop { metric: "loss" mode: MIN patience: 2 min_delta: 1000 } '


def test_best_weights_are_kept(tmp_path: Path) -> None:
    solver, recorder = make_solver(f'{BASE} {BEST} snapshot_prefix: "{tmp_path}/s"')
    solver.step(6)
    best = min(recorder.tests, key=lambda r: r.outputs[0].value)
    assert sum("Best loss so far" in text for text in recorder.notes) >= 2
    other, late = make_solver(f"{BASE} {BEST}")
    load_weights(other.net, tmp_path / "s_best.caffemodel")
    other.test_nets[0].data_nodes()[0].layer.seek({"row": best.iteration * 4})
    other.watch.best = None
    other.test_all()
    assert late.tests[0].outputs[0].value == best.outputs[0].value


def test_early_stop_ends_training(tmp_path: Path) -> None:
    text = f'{BASE} {STOP} max_iter: 50 snapshot_prefix: "{tmp_path}/s"'
    solver, recorder = make_solver(text)
    solver.solve()
    # The first test sets the record; two without progress follow.
    assert solver.iter == 2
    assert any("Early stop" in text for text in recorder.notes)
    assert [r.iteration for r in recorder.snapshots] == [2]


def test_patience_survives_a_snapshot(tmp_path: Path) -> None:
    text = f'{BASE} {STOP} max_iter: 50 snapshot: 1 snapshot_prefix: "{tmp_path}/s"'
    first, _ = make_solver(text)
    first.step(1)
    second, _ = make_solver(text)
    second.restore(tmp_path / "s_iter_1.solverstate")
    second.solve()
    assert second.iter == 2


def test_unknown_metric(tmp_path: Path) -> None:
    text = f'{BASE} snapshot_best {{ metric: "los" }} snapshot_prefix: "{tmp_path}/s"'
    solver, _ = make_solver(text)
    with pytest.raises(NetError, match="did you mean 'loss'"):
        solver.step(1)


def test_old_snapshots_are_deleted(tmp_path: Path) -> None:
    text = 'lr_policy: "fixed" base_lr: 0.02 snapshot: 1 keep_snapshots: 2 '
    solver, _ = make_solver(f'{text} snapshot_prefix: "{tmp_path}/s"')
    solver.step(5)
    assert {p.name.split(".")[0] for p in tmp_path.iterdir()} == {"s_iter_4", "s_iter_5"}
    assert len(list(tmp_path.iterdir())) == 6
    later, _ = make_solver(f'{text} snapshot_prefix: "{tmp_path}/s"')
    later.restore(tmp_path / "s_iter_5.solverstate")
    later.step(1)
    assert {p.name.split(".")[0] for p in tmp_path.iterdir()} == {"s_iter_5", "s_iter_6"}


def test_a_sidecar_cannot_have_other_files_deleted(tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    other = tmp_path / "other_iter_1.caffemodel"
    for file in (mine, other):
        file.write_text("dear to me")
    text = 'lr_policy: "fixed" base_lr: 0.02 snapshot: 1 keep_snapshots: 1 '
    solver, _ = make_solver(f'{text} snapshot_prefix: "{tmp_path}/s"')
    solver.watch.load({"kept": [[0, str(mine), str(mine)], [1, str(other), str(other)]]})
    solver.step(2)
    assert sorted(p.name.split(".")[0] for p in tmp_path.iterdir()) == [
        "mine", "other_iter_1", *["s_iter_2"] * 3,
    ]  # fmt: skip
