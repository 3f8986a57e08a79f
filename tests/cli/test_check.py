"""`layrubnet check`: what it shows, as text and JSON, and when it fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layrubnet.engine.layer import layer_types
from tests.cli.support import Job


def test_a_net_in_both_phases(job: Job) -> None:
    result = job("check", job.net)
    assert result.status == 0
    assert "net 'Tiny', phase TRAIN" in result.out
    assert "net 'Tiny', phase TEST" in result.out
    assert "first batch: data 8x1x6x6, from " in result.out
    assert "323 parameters" in result.out
    assert result.out.endswith("everything is all right\n")
    assert sorted(p.name for p in job.folder.iterdir()) == [
        "data_lmdb", "net.prototxt", "solver.prototxt",
    ]  # fmt: skip


def test_lines_fit_on_a_terminal(job: Job) -> None:
    assert max(map(len, job("check", job.net).out.splitlines())) <= 80


def test_lenet_fits_on_a_terminal(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[2]
    if not (root / "examples/mnist/data/mnist_train_lmdb").exists():
        pytest.skip("the digits are not there: make demo fetches them")
    monkeypatch.chdir(root)
    result = job("check", "examples/mnist/lenet_solver.prototxt")
    assert result.status == 0
    assert "  conv2  Convolution      64x50x6x6        50x20x5x5 50  yes\n" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


def test_json_of_a_solver(job: Job) -> None:
    result = job("check", job.solver, "--json")
    assert result.status == 0
    train, test = json.loads(result.out)
    assert (train["phase"], test["phase"]) == ("TRAIN", "TEST")
    assert train["batch_size"] == 8
    assert train["parameters"] == 36 * 8 + 8 + 8 * 3 + 3
    by_name = {layer["name"]: layer for layer in train["layers"]}
    assert by_name["ip1"]["blobs"] == [[8, 36], [8]]
    assert by_name["ip1"]["tops"] == {"ip1": [8, 8]}
    assert by_name["ip1"]["backward"]
    assert not by_name["data"]["backward"]
    assert train["first_batch"][0]["max"] <= 1
    # The rule's history makes the train net larger than the same net would be alone.
    alone = json.loads(job("check", job.net, "--json", "--phase", "TRAIN").out)[0]
    assert train["memory_by_kind"]["history"] > 0
    assert "history" not in alone["memory_by_kind"]


def test_memory_is_that_of_the_plan_that_the_solver_asks_for(job: Job) -> None:
    kept, _ = json.loads(job("check", job.solver, "--json").out)
    job.solver.write_text(job.solver.read_text() + 'memory_param { strategy: "min" }\n')
    planned, test = json.loads(job("check", job.solver, "--json").out)
    assert (planned["memory_strategy"], test["memory_strategy"]) == ("min", "reuse")
    assert planned["memory_bytes"] < kept["memory_bytes"]
    assert planned["memory_by_kind"]["arena"] > 0
    assert planned["first_batch"] == kept["first_batch"]
    assert "strategy min" in job("check", job.solver).out
    job.edit(job.solver, 'strategy: "min"', 'budget: "10KB"')
    assert "budget" in job("check", job.solver).error


def test_without_data_nothing_is_loaded(job: Job) -> None:
    result = job("check", job.net, "--no-data")
    assert result.status == 0
    assert "first batch" not in result.out


@pytest.mark.parametrize("flag", ["-model", "--model", "-solver", "--solver"])
def test_spellings(job: Job, flag: str) -> None:
    file = job.net if "model" in flag else job.solver
    assert job("check", flag, file, "-phase", "TRAIN", "-gpu", 0).status == 1
    assert job("check", flag, file).status == 0


def test_layer_types(job: Job) -> None:
    result = job("check", "--layers")
    assert result.status == 0
    assert result.out.split() == layer_types()


def test_shared_parameters_are_shown(job: Job) -> None:
    twin = (
        'layer { name: "twin" type: "InnerProduct" bottom: "data" top: "twin" param { name: "w" } '
        "inner_product_param { num_output: 8 bias_term: false } }\n"
        'layer { name: "quiet" type: "Silence" bottom: "twin" }\n'
    )
    job.edit(job.net, 'top: "ip1"\n  inner', 'top: "ip1" param { name: "w" }\n  inner')
    job.net.write_text(job.net.read_text() + twin)
    assert "shared parameter 'w': ip1, twin" in job("check", job.net).out


def test_stages_and_level(job: Job) -> None:
    job.edit(job.net, 'name: "relu1"', 'name: "relu1" include { stage: "a" min_level: 1 }')
    assert "relu1" not in job("check", job.net).out
    assert "relu1" in job("check", job.net, "-stage", "a", "-level", 1).out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("base_lr: 0.05", "", "base_lr is not set"),
        ("max_iter: 6", "", "max_iter is not set"),
        ('lr_policy: "fixed"', 'lr_policy: "stair"', "Unknown learning rate policy: stair"),
        ('type: "SGD"', 'type: "Sgd"', 'did you mean "SGD"?'),
        ("display: 2", "display: -2", "display has an impossible value"),
        ("test_interval: 3", "", "test_interval is not set"),
    ],
)
def test_mistakes_in_a_solver_show_without_training(
    job: Job, old: str, new: str, message: str
) -> None:
    job.edit(job.solver, old, new)
    result = job("check", job.solver)
    assert result.status == 1
    assert message in result.error


def test_ignored_options_are_warned_of(job: Job) -> None:
    job.edit(job.net, "num_output: 8", "num_output: 8 normalize: true")
    result = job("check", job.net)
    assert result.status == 0
    assert result.err == (
        f"layrubnet: warning: {job.net}:7:1 layer 'ip1': InnerProduct layers ignore the option "
        "inner_product_param.normalize\n"
    )


def test_a_broken_record_shows_in_the_first_batch(job: Job, tmp_path: Path) -> None:
    job.edit(job.net, "num_output: 3", "num_output: 2")
    assert "label out of range: 2" in job("check", job.net).error
    assert job("check", job.net, "--no-data").status == 0
