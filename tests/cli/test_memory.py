"""Training under a memory plan, and with layers from the user's own file."""

from __future__ import annotations

from pathlib import Path

import pytest

from layrubnet.memory.strategies import STRATEGIES
from tests.cli.support import Job, same_weights

OWN_LAYER = """\
import layrubnet
from layrubnet import Contract, Needs


@layrubnet.register("HalfOfIt")
class Half(layrubnet.Layer):
    def infer(self, bottoms):
        return Contract(tops=(bottoms[0],), backward_data=Needs())

    def forward(self, ops, io):
        io.y[0][...] = io.x[0] / 2

    def backward_data(self, ops, io):
        io.dx[0][...] = io.dy[0] / 2
"""


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if s != "caffe"])
def test_every_strategy_trains_to_the_same_bits(job: Job, strategy: str) -> None:
    assert job("train", job.solver).status == 0
    plain = job.weights(6)
    kept = plain.rename(job.folder / "plain.caffemodel")
    result = job("train", job.solver, "--memory", strategy, "--set", "iter_size=1")
    assert result.status == 0
    assert f"strategy {strategy}" in result.err
    assert same_weights(kept, job.weights(6))


def test_the_solver_can_ask_for_a_plan_and_a_flag_overrides_it(job: Job) -> None:
    with job.solver.open("a") as file:
        file.write('memory_param { strategy: "reuse" }\n')
    assert "strategy reuse" in job("train", job.solver).err
    assert "strategy min" in job("train", job.solver, "--memory", "min").err


def test_a_budget_means_auto(job: Job) -> None:
    assert "strategy auto" in job("train", job.solver, "--memory-budget", "64MiB").err


def test_an_impossible_budget_is_refused_before_anything_is_written(job: Job) -> None:
    result = job("train", job.solver, "--memory-budget", "10KB")
    assert result.status == 1
    assert "a budget of at least" in result.error
    assert not any(name.endswith((".caffemodel", ".solverstate")) for name in job.files())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--memory", "resue"), "did you mean 'reuse'"),
        (("--memory-budget", "six"), "no amount of memory"),
        (("--memory-budget", "-3GiB"), "memory"),
        (("--memory", "hybrid", "--offload-dir", "/no/such/folder"), "/no/such/folder"),
    ],
)
def test_mistakes_are_explained(job: Job, flags: tuple[str, ...], message: str) -> None:
    result = job("train", job.solver, *flags)
    assert result.status in (1, 2)
    assert message in result.err
    assert "Traceback" not in result.err


def test_a_resumed_run_may_change_the_plan(job: Job) -> None:
    assert job("train", job.solver).status == 0
    kept = job.weights(6).rename(job.folder / "plain.caffemodel")
    assert job("train", job.solver, "--max-iter", 3, "--memory", "hybrid").status == 0
    result = job("train", job.solver, "--resume", job.snapshot(3), "--memory", "recompute")
    assert result.status == 0
    assert same_weights(kept, job.weights(6))


def test_a_layer_from_the_users_own_file(job: Job, tmp_path: Path) -> None:
    own = tmp_path / "half_layer.py"
    own.write_text(OWN_LAYER)
    job.edit(job.net, 'type: "Dropout"', 'type: "HalfOfIt"')
    assert "Unknown layer type: HalfOfIt" in job("check", job.net).error
    assert job("check", job.net, "--import", own).status == 0
    assert job("train", job.solver, "--import", own, "--memory", "auto").status == 0
    assert "there is no such file" in job("check", job.net, "--import", "none.py").error
