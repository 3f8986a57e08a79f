"""`layrubnet time`: a row per layer, Caffe's lines, figures as JSON."""

from __future__ import annotations

import json

from tests.cli.support import Job


def test_every_layer_and_the_totals(job: Job) -> None:
    figures = job.folder / "new" / "times.json"
    result = job("time", "--model", job.net, "-iterations", 2, "--json", figures)
    assert result.status == 0
    assert "Testing for 2 iterations." in result.out
    for layer in ("data", "ip1", "relu1", "drop1", "ip2", "loss"):
        assert f"{layer:>10}\tforward: " in result.out
        assert f"{layer:>10}\tbackward: " in result.out
    assert "Average Forward-Backward: " in result.out
    saved = json.loads(figures.read_text())
    assert saved["iterations"] == 2
    assert [row["name"] for row in saved["layers"]] == [
        "data", "ip1", "relu1", "drop1", "ip2", "loss",
    ]  # fmt: skip
    layers = sum(row["forward_ms"] for row in saved["layers"])
    assert 0 < layers <= saved["forward_ms"]
    ip1 = saved["layers"][1]
    assert ip1["forward_gflops"] >= 2 * 8 * 36 * 8 / 1e9


def test_other_phase_and_weights(job: Job) -> None:
    job("train", job.solver)
    words = ("-weights", job.weights(6), "-phase", "TEST", "-iterations", 1)
    result = job("time", job.net, *words)
    assert result.status == 0
    assert "accuracy" in result.out


def test_json_is_checked_before_the_work(job: Job) -> None:
    result = job("time", job.net, "--json", job.folder)
    assert result.status == 1
    assert "is a folder" in result.error
    assert result.out == ""
