"""`layrubnet train`: spellings, bare nets, overrides, resuming, fine-tuning, what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from layrubnet.prototxt.weights import read_weights
from tests.cli.support import Job, complete, same_weights


def test_solver_file(job: Job) -> None:
    result = job("train", job.solver)
    assert result.status == 0
    assert "Iteration 4" in result.err
    assert "Iteration 6, Testing net (#0)" in result.err
    assert "Optimization Done." in result.err
    assert result.out == ""  # Caffe logs to stderr, too
    assert job.files() == {
        "tiny.log", "tiny.jsonl",
        "tiny_iter_6.caffemodel", "tiny_iter_6.solverstate", "tiny_iter_6.layrubnet.json",
    }  # fmt: skip


def test_first_lines_say_what_will_run(job: Job) -> None:
    err = job("train", job.solver).err
    first = err[: err.index("Solving Tiny")]
    for part in (
        "layrubnet 0.", "on cpu", "batch 8 x iter_size 1 = 8 samples per update",
        "Memory: ", "Seed: 7", f"Logs: {job.prefix}.log, {job.prefix}.jsonl",
    ):  # fmt: skip
        assert part in first


@pytest.mark.parametrize("flag", ["-solver", "--solver", "--solver="])
def test_caffes_spelling_of_the_solver(job: Job, flag: str) -> None:
    words = [f"{flag}{job.solver}"] if flag.endswith("=") else [flag, job.solver]
    assert job("train", *words).status == 0
    assert job.weights(6).exists()


@pytest.mark.parametrize(
    "words", [["-gpu", "0"], ["--gpu=all"], ["--device", "cuda"], ["--device", "null"]]
)
def test_a_gpu_is_refused_before_anything_is_written(job: Job, words: list[str]) -> None:
    result = job("train", job.solver, *words)
    assert result.status == 1
    assert "this version of layrubnet" in result.error
    assert job.files() == set()


def test_solver_mode_gpu_is_said_not_refused(job: Job) -> None:
    job.edit(job.solver, "display: 2", "display: 2 solver_mode: GPU")
    result = job("train", job.solver)
    assert result.status == 0
    assert "no GPU device yet: training on the CPU" in result.err


def test_bare_net_with_defaults_and_flags(job: Job) -> None:
    result = job("train", job.net, "--max-iter", 3, "--seed", 5, "--lr", 0.5)
    assert result.status == 0
    assert (job.folder / "net_iter_3.caffemodel").exists()
    assert "Iteration 0, lr = 0.5" in result.err
    assert "Learning Rate Policy: fixed" in result.err
    assert "Testing net" not in result.err


@pytest.mark.parametrize("kind", ["SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"])
def test_bare_net_with_every_solver_type(job: Job, kind: str) -> None:
    assert job("train", job.net, "--max-iter", 1, "--type", kind).status == 0


def test_bare_net_with_tests(job: Job) -> None:
    words = ("--max-iter", 2, "--test-iter", 2, "--test-interval", 1, "--snapshot-prefix")
    result = job("train", job.net, *words, job.prefix, "--snapshot-every", 1)
    assert result.status == 0
    assert result.err.count("Testing net (#0)") == 3
    assert job.weights(1).exists()
    assert job.weights(2).exists()


def test_bare_net_stages_and_level(job: Job) -> None:
    job.edit(job.net, 'name: "relu1"', 'name: "relu1" include { stage: "extra" min_level: 2 }')
    words = ("--max-iter", 1, "--stage", "extra", "--level", 2)
    assert "relu1" not in _layers(job("train", job.net, "--max-iter", 1).status, job)
    assert "relu1" in _layers(job("train", job.net, *words).status, job)


def _layers(status: int, job: Job) -> list[str]:
    assert status == 0
    return [layer.name for layer in read_weights(job.folder / "net_iter_1.caffemodel")]


def test_set_overrides_any_field(job: Job) -> None:
    values = (
        "max_iter=2",
        f"snapshot_prefix={job.folder}/o/x y",
        "solver_type=ADAM",
        "test_state={ stage: 'none' }",
    )
    result = job("train", job.solver, *(f"--set={value}" for value in values))
    assert result.status == 0, result.err
    assert (job.folder / "o" / "x y_iter_2.caffemodel").exists()
    assert (job.folder / "o" / "x y.log").exists()


def test_prefix_that_is_a_folder(job: Job) -> None:
    words = ("--snapshot-prefix", f"{job.folder}/new/")
    assert job("train", job.solver, *words).status == 0
    made = {p.name for p in (job.folder / "new").iterdir()}
    assert {"solver_iter_6.caffemodel", "solver.log"} <= made
    result = job("train", job.solver, *words, "--resume", "--max-iter", 7)
    assert result.status == 0
    assert "new/solver_iter_6.solverstate" in result.err


@pytest.mark.parametrize("flag", ["--snapshot=", "-snapshot", "--resume="])
def test_continue_from_a_named_state(job: Job, flag: str) -> None:
    assert job("train", job.solver, "--set", "snapshot=3").status == 0
    straight = job.weights(6).read_bytes()
    job.weights(6).unlink()
    state = job.snapshot(3)
    words = [f"{flag}{state}"] if flag.endswith("=") else [flag, state]
    result = job("train", job.solver, *words)
    assert result.status == 0
    assert f"Resuming from {state}" in result.err
    assert "Iteration 0" not in result.err
    assert job.weights(6).read_bytes() == straight


def test_resume_says_which_state_is_the_newest_valid_one(job: Job) -> None:
    assert job("train", job.solver, "--set", "snapshot=2").status == 0
    straight = job.weights(6).read_bytes()
    job.snapshot(6).write_bytes(job.snapshot(6).read_bytes()[:-1])
    result = job("train", job.solver, "--resume")
    assert result.status == 0
    assert f"Passed over {job.snapshot(6)}: the file is damaged or cut off" in result.err
    assert f"The newest snapshot is {job.snapshot(4)}" in result.err
    assert job.weights(6).read_bytes() == straight
    assert "Iteration 4" in result.err


def test_resume_at_the_end_trains_nothing_and_keeps_the_files(job: Job) -> None:
    assert job("train", job.solver).status == 0
    before = job.weights(6).stat().st_mtime_ns
    result = job("train", job.solver, "--resume", "--max-iter", 3)
    assert result.status == 0
    assert "Nothing left to train: iteration 6, max_iter 3" in result.err
    assert job.weights(6).stat().st_mtime_ns == before


def test_running_twice_gives_the_same_weights_and_a_longer_log(job: Job) -> None:
    job("train", job.solver)
    weights, log = job.weights(6).read_bytes(), (job.prefix.parent / "tiny.log").read_text()
    job("train", job.solver)
    assert job.weights(6).read_bytes() == weights
    assert (job.prefix.parent / "tiny.log").read_text().startswith(log)


def test_fine_tuning_from_several_files(job: Job) -> None:
    job("train", job.solver, "--set", "snapshot=3")
    files = f"{job.weights(3)},{job.weights(6)}"
    words = ("--max-iter", 0, "--snapshot-prefix", job.folder / "tuned", "-weights", files)
    result = job("train", job.solver, *words)
    assert result.status == 0
    assert same_weights(job.folder / "tuned_iter_0.caffemodel", job.weights(6))
    assert "Layers copied from the weights (2): ip1, ip2" in result.err


def test_mismatched_layers_are_refused_or_skipped(job: Job) -> None:
    job("train", job.solver)
    job.edit(job.net, "num_output: 3", "num_output: 4")
    refused = job("train", job.solver, "--weights", job.weights(6))
    assert refused.status == 1
    assert "ip2" in refused.error
    assert "4 8 (32) (this net)" in refused.error
    assert "3 8 (24) (the file)" in refused.error
    skipped = job("train", job.solver, "--weights", job.weights(6), "--skip-mismatched")
    assert skipped.status == 0
    assert "Layers of another shape, skipped (1): ip2" in skipped.err


def test_empty_values_mean_none_as_in_caffes_scripts(job: Job) -> None:
    assert job("train", job.solver, "--snapshot=", "--weights=").status == 0


def test_log_folder_and_plot(job: Job) -> None:
    logs, picture = job.folder / "logs", job.folder / "pic" / "loss.png"
    result = job("train", job.solver, "--log-dir", logs, "--plot", picture)
    assert result.status == 0
    assert {p.name for p in logs.iterdir()} == {"tiny.log", "tiny.jsonl"}
    assert picture.read_bytes().startswith(b"\x89PNG")
    events = [json.loads(line) for line in (logs / "tiny.jsonl").read_text().splitlines()]
    assert [e["event"] for e in events][:2] == ["start", "test"]
    assert events[-1]["event"] == "end"
    assert (logs / "tiny.log").read_text().count("Iteration 2 (") == 1


def test_no_log_files(job: Job) -> None:
    result = job("train", job.solver, "--no-log-files")
    assert result.status == 0
    assert "Logs: none" in result.err
    assert not {"tiny.log", "tiny.jsonl"} & job.files()


def test_tensorboard(job: Job) -> None:
    assert job("train", job.solver, "--tensorboard", job.folder / "tb").status == 0
    assert any((job.folder / "tb").iterdir())


def test_the_log_says_how_a_failed_run_ended(job: Job) -> None:
    assert job("train", job.solver, "--lr", 1e30).status == 1
    assert (
        "is the first with a value that is not finite" in job.prefix.with_suffix(".log").read_text()
    )


@pytest.mark.parametrize("words", [(), ("--check-finite",)])
def test_a_diverging_run_names_layer_and_iteration(job: Job, words: tuple[str, ...]) -> None:
    result = job("train", job.solver, "--lr", 1e30, *words)
    assert result.status == 1
    assert "iteration 1: layer 'ip2' (InnerProduct) is the first" in result.error
    assert "hint:     lower base_lr" in result.error
    assert not job.weights(6).exists()


def test_unknown_fields_can_be_skipped_in_the_net_of_a_solver(job: Job) -> None:
    job.edit(job.net, 'name: "Tiny"', 'name: "Tiny" frobnicate: 3')
    assert "--allow-unknown-fields" in job("train", job.solver).error
    assert job("train", job.solver, "--allow-unknown-fields").status == 0


def test_ignored_options_are_said_once(job: Job) -> None:
    job.edit(job.net, "num_output: 8", "num_output: 8 normalize: true")
    result = job("train", job.solver)
    assert result.status == 0
    place = f"{job.net}:7:1 layer 'ip1'"
    said = f"{place}: InnerProduct layers ignore the option inner_product_param.normalize"
    assert result.err.count(said) == 1


def test_options_for_later_versions_are_warned_of(job: Job) -> None:
    result = job("train", job.solver, "--set", "comm_param={ codec: 'gradsa' }")
    assert result.status == 0
    assert "the option comm_param is not supported yet and ignored" in result.err


def test_live_display_on_request(job: Job) -> None:
    job.edit(job.net, "num_output: 8", "num_output: 8 normalize: true")
    result = job("train", job.solver, "--progress", "live")
    assert result.status == 0
    assert "iteration 6: done" in result.err
    assert "ignore the option" in " ".join(result.err.split())
    assert "solver.cpp" not in result.err
    assert "solver.cpp" in (job.prefix.parent / "tiny.log").read_text()


def test_names_that_are_not_utf8(tmp_path: Path, job: Job) -> None:
    folder = tmp_path / "f\udce9"
    folder.mkdir()
    job.solver.rename(folder / "s.prototxt")
    refused = complete(["train", folder / "s.prototxt"], tmp_path)
    assert refused.status == 1
    assert refused.err.startswith("layrubnet: error: a name is not valid UTF-8")
    assert complete(["check", "s.prototxt"], folder).status == 0


def test_solver_in_another_folder_with_odd_names(tmp_path: Path, job: Job) -> None:
    folder = tmp_path / "a b" / "gr\u00fcn"
    folder.mkdir(parents=True)
    (folder / "s.prototxt").write_text(
        'net: "n.prototxt" base_lr: 1 lr_policy: "fixed" max_iter: 1'
    )
    (folder / "n.prototxt").write_text(job.net.read_text())
    result = job("train", folder / "s.prototxt")
    assert result.status == 0, result.err
    assert (folder / "s_iter_1.caffemodel").exists()
    result = job("train", folder / "s.prototxt", "--max-iter", 2, "--resume")
    assert result.status == 0, result.err
    weights = {layer.name: layer.blobs for layer in read_weights(folder / "s_iter_2.caffemodel")}
    assert np.isfinite(weights["ip1"][0]).all()
