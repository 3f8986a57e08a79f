"""`layrubnet test`: averages, thresholds, spellings."""

from __future__ import annotations

import re

import pytest

from tests.cli.support import Job


@pytest.fixture
def trained(job: Job) -> Job:
    """A job that was trained."""
    assert job("train", job.solver).status == 0
    return job


def test_averages_of_all_batches(trained: Job) -> None:
    result = trained("test", trained.net, "--weights", trained.weights(6), "--iterations", 4)
    assert result.status == 0
    batches = [float(x) for x in re.findall(r"^Batch \d+, accuracy = (.*)$", result.out, re.M)]
    assert len(batches) == 4
    assert f"\naccuracy = {sum(batches) / 4:.6g}\n" in result.out
    assert re.search(r"^loss = (\S+) \(\* 1 = \1 loss\)$", result.out, re.M)


def test_caffes_spellings(trained: Job) -> None:
    weights = trained.weights(6)
    one = trained("test", "-model", trained.net, "-weights", weights, "-iterations", 2)
    two = trained("test", f"--model={trained.net}", f"--weights={weights}", "--iterations=2")
    assert one.status == two.status == 0
    assert one.out == two.out
    assert "Batch 1, " in one.out
    assert "Batch 2, " not in one.out


def test_the_score_equals_that_of_the_last_test_while_training(trained: Job) -> None:
    trained.edit(trained.net, " mirror: true", "")  # drawn from the solver's seed
    last = re.findall(r"Test net output #0: accuracy = (\S+)", trained("train", trained.solver).err)
    # The solver tests at 0, 3 and 6, two batches of the same reader each: the third test is
    # batches 4 and 5.
    out = trained("test", trained.net, "--weights", trained.weights(6), "--iterations", 6).out
    batches = [float(x) for x in re.findall(r"^Batch \d+, accuracy = (.*)$", out, re.M)]
    assert sum(batches[4:6]) / 2 == pytest.approx(float(last[-1]))


@pytest.mark.parametrize(("least", "status"), [("0.0", 0), ("-1e3", 0), ("1.01", 1)])
def test_minimum_decides_the_exit_status(trained: Job, least: str, status: int) -> None:
    words = ("--weights", trained.weights(6), "--iterations", 2, f"--min=accuracy={least}")
    result = trained("test", trained.net, *words)
    assert result.status == status
    assert ("is below the minimum 1.01" in result.err) == bool(status)


def test_minimum_of_an_unknown_output(trained: Job) -> None:
    result = trained("test", trained.net, "--iterations", 1, "--min", "acuracy=0.5")
    assert result.status == 1
    assert "'acuracy', which is no output of the net" in result.error
    assert "accuracy, loss" in result.error


def test_phase_chooses_the_layers(job: Job) -> None:
    result = job("test", job.net, "--phase", "train", "--iterations", 1)
    assert result.status == 0
    assert "accuracy" not in result.out


def test_several_weights_files_and_mismatch(trained: Job) -> None:
    files = f"{trained.weights(6)},{trained.weights(6)}"
    assert trained("test", trained.net, "--weights", files, "--iterations", 1).status == 0
    trained.edit(trained.net, "num_output: 3", "num_output: 4")
    result = trained("test", trained.net, "--weights", files, "--iterations", 1)
    assert result.status == 1
    assert "shape mismatch" in result.error


def test_large_outputs_are_not_listed(job: Job) -> None:
    job.edit(job.net, 'name: "loss" type', 'name: "loss" include { phase: TRAIN } type')
    out = job("test", job.net, "--iterations", 1).out
    assert "Loss: 0" in out
    softmax = 'layer { name: "s" type: "Softmax" bottom: "ip2" top: "prob" }\n'
    job.net.write_text(job.net.read_text() + softmax)
    out = job("test", job.net, "--iterations", 1).out
    assert "prob: 8 more values, mean of all 0.333333" in out
