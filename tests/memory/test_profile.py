"""Measured times: written by `time`, read by the planner; plans by them compute the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest

from layrubnet.errors import LayrubError
from layrubnet.memory.cost import CPU
from layrubnet.memory.profile import Profile, load_profile, measure
from tests.cli.support import Job, same_weights
from tests.support.checks import make_net

NET = """
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 4 dim: 6 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "r" type: "ReLU" bottom: "y" top: "z" }
"""


@pytest.fixture
def job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Job:
    return Job(tmp_path, capsys)


def test_every_instruction_of_an_iteration_is_measured(tmp_path: Path) -> None:
    net = make_net(NET)
    found = measure(net, 2)
    wanted = {(i.op, i.target) for s in ("forward", "backward") for i in net.program.sections[s]}
    assert set(found.seconds) == wanted
    assert all(s > 0 for s in found.seconds.values())
    assert found.to_host > 0 < found.from_host
    found.save(tmp_path / "p.json")
    assert load_profile(tmp_path / "p.json") == found


def test_measured_times_go_before_arithmetic() -> None:
    net = make_net(NET)
    (forward, *_) = net.program.sections["forward"]
    model = Profile({("forward", "ip"): 0.25}, 1e6, 2e6).cost_model()
    assert model.seconds(forward) == 0.25
    assert model.copy_seconds("offload", 10**6) == pytest.approx(1 + CPU.launch)
    assert model.copy_seconds("fetch", 10**6) == pytest.approx(0.5 + CPU.launch)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"format": "other"}', "\x00\x01"])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(LayrubError, match="is no memory profile"):
        load_profile(path)


def test_time_writes_a_profile_and_train_plans_by_it(job: Job) -> None:
    times = job.folder / "times.json"
    assert job("time", job.net, "--iterations", 2, "--profile", times).status == 0
    assert job("train", job.solver).status == 0
    kept = job.weights(6).rename(job.folder / "plain.caffemodel")
    result = job("train", job.solver, "--memory-profile", times)
    assert result.status == 0
    assert "strategy auto" in result.err
    assert same_weights(kept, job.weights(6))
    missing = job("train", job.solver, "--memory", "auto", "--memory-profile", "none.json")
    assert missing.status == 1
    assert "none.json: cannot be read" in missing.error
