"""What newcomers do wrong: always status 1, a message that helps, and nothing lost or half done."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import Job


def refused(job: Job, *words: object) -> str:
    """Run a command that must fail in a way that a user can act on; return the message."""
    before = {p for p in job.folder.rglob("*") if p.suffix in (".caffemodel", ".solverstate")}
    result = job(*words)
    assert result.status == 1
    assert "layrubnet: error: " in result.err
    assert "Traceback" not in result.err
    left = {p for p in job.folder.rglob("*") if p.name.endswith(".tmp")}
    assert not left
    assert before <= set(job.folder.rglob("*"))
    return result.error


@pytest.fixture
def files(job: Job) -> dict[str, Path]:
    """Files of every kind, by kind."""
    assert job("train", job.solver).status == 0
    made = {name: job.folder / name for name in ("image.png", "empty", "folder", "missing", "cut")}
    made["image.png"].write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)))
    made["empty"].touch()
    made["folder"].mkdir()
    made["cut"].write_bytes(job.snapshot(6).read_bytes()[:300])
    return {**made, "weights": job.weights(6), "state": job.snapshot(6), "net": job.net}


WRONG_FILES = [
    ("prototxt", "weights", "this is a weights file (.caffemodel), not a prototxt file"),
    ("prototxt", "state", "this is a solver snapshot (.solverstate), not a prototxt file"),
    ("prototxt", "image.png", "this is none of Caffe's formats, not a prototxt file"),
    ("prototxt", "empty", "the file is empty"),
    ("prototxt", "folder", "is a folder, not a prototxt file"),
    ("prototxt", "missing", "no such file"),
    ("--weights", "state", "this is a solver snapshot (.solverstate), not a weights file"),
    ("--weights", "net", "a prototxt describes a net and holds no weights"),
    ("--weights", "image.png", "this is none of Caffe's formats, not a weights file"),
    ("--weights", "empty", "was its writer stopped half way?"),
    ("--weights", "folder", "is a folder, not a file"),
    ("--weights", "missing", "no such file"),
    ("--snapshot", "weights", "use --weights, or the .solverstate file beside it"),
    ("--snapshot", "net", "this is a text file, not a solver snapshot"),
    ("--snapshot", "image.png", "this is none of Caffe's formats, not a solver snapshot"),
    ("--snapshot", "empty", "this is an empty file, not a solver snapshot"),
    ("--snapshot", "folder", "is a folder, not a file"),
    ("--snapshot", "missing", "no such file"),
    ("--snapshot", "cut", "the file is damaged or cut off"),
]


@pytest.mark.parametrize(("place", "kind", "message"), WRONG_FILES)
def test_wrong_files(job: Job, files: dict[str, Path], place: str, kind: str, message: str) -> None:
    if place == "prototxt":
        for command in ("train", "test", "time", "check"):
            error = refused(job, command, files[kind])
            assert message in error
            assert str(files[kind]) in error
    else:
        error = refused(job, "train", job.solver, place, files[kind])
        assert message in error
        assert str(files[kind]) in error


IN_THE_SOLVER = [
    ("base_lr: 0.05", "base_ir: 0.05", ":2:1: ", "did you mean 'base_lr'?"),
    ("base_lr: 0.05", "", "base_lr is not set", "for example base_lr: 0.01"),
    ("base_lr: 0.05", "base_lr: -1", "base_lr has an impossible value", "0 or more"),
    ("base_lr: 0.05", "base_lr: inf", "base_lr has an impossible value", "a finite number"),
    ("base_lr: 0.05", "base_lr: nan", "base_lr has an impossible value", "a finite number"),
    ("base_lr: 0.05", "base_lr: fast", ":2:10: ", "fast"),
    ("momentum: 0.9", "momentum: -0.9", "momentum has an impossible value", "0 or more"),
    ('"SGD"', '"Sgd"', "Unknown solver type: Sgd", 'did you mean "SGD"?'),
    ('lr_policy: "fixed"', 'lr_policy: "step"', "cannot work with this stepsize", "more than 0"),
    ("max_iter: 6", "", "max_iter is not set", ""),
    ("max_iter: 6", "max_iter: -6", "max_iter has an impossible value", "0 or more"),
    ("max_iter: 6", "max_iter: 1e3", "Couldn't parse integer", "write a whole number"),
    ("test_interval: 3", "", "test_interval is not set", "the number of iterations between"),
    ("test_iter: 2", "test_iter: -2", "test_iter has an impossible value", "0 or more"),
    ("display: 2", "iter_size: 0", "cannot work with this iter_size", "1 or more"),
    ("display: 2", "snapshot: -1", "snapshot has an impossible value", "0 or more"),
    ("display: 2", "keep_snapshots: -1", "keep_snapshots has an impossible value", "0 or more"),
    ("display: 2", "clip_gradients: nan", "clip_gradients has an impossible value", "finite"),
    ("net.prototxt", "nett.prototxt", "no such file", "net.prototxt?"),
    ("net: ", "train_net: 'x' net: ", "more than one of these fields", "net, train_net"),
    ("net: ", "#", "must specify a train net", ""),
]


@pytest.mark.parametrize(("old", "new", "message", "more"), IN_THE_SOLVER)
@pytest.mark.parametrize("command", ["train", "check"])
def test_mistakes_in_the_solver(
    job: Job, command: str, old: str, new: str, message: str, more: str
) -> None:
    job.edit(job.solver, old, new)
    error = refused(job, command, job.solver)
    assert message in error
    assert more in error
    assert not job.weights(6).exists()


IN_THE_NET = [
    ("num_output: 8", "num_outputs: 8", ":9:25: ", "did you mean 'num_output'?"),
    ("num_output: 8", "", ":7:1 layer 'ip1': num_output must be given", ">= 1"),
    ("num_output: 8", "num_output: 0", "num_output must be given", "got:      0"),
    ("num_output: 8", "num_output: 4000000000", "memory", " GiB "),
    ("num_output: 8", "num_output: -8", "Value out of range", ""),
    ("batch_size: 8", "batch_size: 0", "layer 'data': batch_size must be given", ">= 1"),
    ("batch_size: 8", "batch_size: 4000000000", "memory", " GiB "),
    ('"xavier"', '"xavierr"', "Unknown filler name: xavierr", "did you mean 'xavier'?"),
    ('type: "ReLU"', 'type: "Relu"', "Unknown layer type: Relu", "did you mean ReLU"),
    ('bottom: "data"', 'bottom: "dta"', "Unknown bottom blob 'dta'", "did you mean 'data'?"),
    ('bottom: "data" top: "ip1"', 'bottom: "data" top: "label"',
     "Top blob 'label' produced by multiple sources", "'data' and 'ip1'"),
    ('name: "relu1"', 'name: "ip1"', "two layers have the same name 'ip1'", "layer 'ip1'"),
    ('name: "relu1"', "name: relu1", ":11:", "relu1"),
    ("layer { name: \"relu1\"", "layer { { name: \"relu1\"", ":11:9: ", "got {"),
    ("_lmdb", "_lmbd", "the data base does not exist", "paths are relative to the folder"),
    ("data_lmdb", "net.prototxt", "the data base cannot be read", "not an LMDB"),
    ("crop_size: 6", "crop_size: 9", "the image is smaller than the crop", "9 x 9"),
    ("mirror: true", 'mean_file: "no"', "layer 'data': mean_file no: no such file", ""),
    ("num_output: 3", "num_output: 2", "label out of range: 2", "there are 2 classes"),
    ('"SoftmaxWithLoss"', '"EuclideanLoss"', "Inputs must have the same dimension", "(8, 3)"),
    ("scale: 0.00390625", "scale: nan", "'data' (Data) is the first", "check transform_param"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message", "more"), IN_THE_NET)
def test_mistakes_in_the_net(job: Job, old: str, new: str, message: str, more: str) -> None:
    job.edit(job.net, old, new)
    error = refused(job, "train", job.solver)
    assert message in error
    assert more in error
    assert message in refused(job, "check", job.net)


FLAGS = [
    (["--lr=-1"], "base_lr has an impossible value"),
    (["--max-iter=-1"], "max_iter has an impossible value"),
    (["--snapshot-every=-1"], "snapshot has an impossible value"),
    (["--test-interval=0"], "test_interval is not set"),
    (["--iter-size=0"], "cannot work with this iter_size"),
    (["--weights", ","], "--weights names no file"),
    (["--resume="], "--resume= names no file"),
    (["--resume"], "there is no valid snapshot of"),
    (["--resume", "--snapshot", "x"], "--snapshot and --resume are the same thing"),
    (["--snapshot", "x", "--weights", "y"], "Give a snapshot to resume training or weights"),
    (["--plot", "x.png", "--no-log-files"], "which --no-log-files turns off"),
    (["--plot", "x.txt"], "unknown picture format"),
    (["--plot", "/"], "is a folder, not a file"),
    (["--log-dir", "/dev/null"], "cannot be written"),
    (["--tensorboard", "/dev/null/x"], "cannot be written"),
    (["--snapshot-prefix", "/dev/null/x"], "cannot be written"),
    (["--set", "foo=1"], "the solver has no field 'foo'"),
    (["--set", "base_lrr=1"], "did you mean 'base_lr'?"),
    (["--set", "base_lr"], "expected FIELD=VALUE"),
    (["--set", "base_lr="], "the value is missing"),
    (["--set", "base_lr=abc"], "--set base_lr=abc: Couldn't parse float: abc"),
    (["--set", "snapshot_format=JPEG"], "one of HDF5, BINARYPROTO"),
    (["--set", "net_param={name: 'x'}"], "more than one of these fields"),
]


@pytest.mark.parametrize(("words", "message"), FLAGS, ids=[" ".join(w) for w, _ in FLAGS])
def test_flags_that_cannot_be(job: Job, words: list[str], message: str) -> None:
    assert message in refused(job, "train", job.solver, *words)
    assert not job.weights(6).exists()


def test_two_files(job: Job) -> None:
    for command, flag in (("train", "--solver"), ("check", "--solver"), ("test", "--model")):
        error = refused(job, command, job.net, flag, job.solver)
        assert str(job.net) in error
        assert str(job.solver) in error


def test_half_a_wish_for_tests_of_a_bare_net(job: Job) -> None:
    for flag in ("--test-iter", "--test-interval"):
        assert "needs both" in refused(job, "train", job.net, flag, 2)


def test_leveldb(job: Job) -> None:
    level = job.folder / "level_db"
    level.mkdir()
    (level / "CURRENT").write_text("MANIFEST-000001\n")
    job.edit(job.net, str(job.data), str(level))
    assert "this is a LevelDB; only LMDB is read" in refused(job, "train", job.solver)


def test_a_snapshot_of_another_net(job: Job) -> None:
    assert job("train", job.solver).status == 0
    job.edit(job.net, "num_output: 8", "num_output: 9")
    error = refused(job, "train", job.solver, "--resume", "--max-iter", 8)
    assert "ip1" in error
    assert "another net" in error
    assert job.weights(6).exists()


def test_a_net_without_a_loss(job: Job) -> None:
    text = job.net.read_text()
    job.net.write_text(text[: text.index('layer { name: "loss"')])
    for command in ("train", "check"):
        assert "the net has no loss in phase TRAIN" in refused(job, command, job.solver)
    assert job("check", job.net).status == 0


@pytest.mark.parametrize("change", [{"losses": None}, {"nets": [{"cursors": {"data": {}}}]}])
def test_a_damaged_sidecar(job: Job, change: dict[str, object]) -> None:
    assert job("train", job.solver).status == 0
    sidecar = job.prefix.with_name("tiny_iter_6.layrubnet.json")
    sidecar.write_text(json.dumps({**json.loads(sidecar.read_text()), **change}))
    error = refused(job, "train", job.solver, "--resume", "--max-iter", 8)
    assert "the sidecar tiny_iter_6.layrubnet.json is damaged" in error
    sidecar.write_text("{}")
    resumed = job("train", job.solver, "--resume", "--max-iter", 8)
    assert resumed.status == 0
    assert "resuming as Caffe does, from the start of the data" in resumed.err


def test_a_state_whose_weights_are_gone(job: Job) -> None:
    assert job("train", job.solver).status == 0
    job.weights(6).unlink()
    error = refused(job, "train", job.solver, "--snapshot", job.snapshot(6))
    assert "the weights file of this snapshot is missing" in error
    assert error.count(str(job.weights(6))) == 1


def test_a_snapshot_of_another_solver_type(job: Job) -> None:
    assert job("train", job.solver).status == 0
    error = refused(job, "train", job.solver, "--resume", "--type", "Adam")
    assert "Incorrect length of history blobs." in error


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_no_permission(job: Job) -> None:
    assert job("train", job.solver).status == 0
    job.solver.chmod(0)
    assert "Permission denied" in refused(job, "train", job.solver)
    job.solver.chmod(stat.S_IRUSR)
    job.prefix.parent.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert "cannot be written" in refused(job, "train", job.solver)
    finally:
        job.prefix.parent.chmod(stat.S_IRWXU)


def test_an_output_folder_that_turns_read_only(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root ignores permissions: the answer of the system is put in by hand.
    monkeypatch.setattr(os, "access", lambda *args, **options: False)
    assert "cannot be written: Permission denied" in refused(job, "train", job.solver)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for 300 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("mounting a small file system needs root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk(job: Job, small_disk: Path) -> None:
    job.edit(job.net, "num_output: 8", "num_output: 800")  # weights of 130 kB
    words = ("--set", "snapshot=1", "--snapshot-prefix", small_disk / "tiny")
    error = refused(job, "train", job.solver, *words)
    assert "cannot be written: No space left on device" in error
    assert not [p for p in small_disk.iterdir() if p.name.endswith(".tmp")]
    # What was complete before still is.
    again = job("train", job.solver, "--snapshot-prefix", small_disk / "tiny", "--resume",
                "--max-iter", 1, "--no-log-files")  # fmt: skip
    assert again.status == 0
    assert "tiny_iter_1.solverstate" in again.err


def test_logs_on_a_full_disk_do_not_end_training(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    for suffix in (".log", ".jsonl"):
        job.prefix.parent.mkdir(exist_ok=True)
        job.prefix.with_suffix(suffix).symlink_to("/dev/full")
    result = job("train", job.solver)
    assert result.status == 0
    assert result.err.count("tiny.jsonl cannot be written any more") == 1
    assert "Logging error" not in result.err
    assert job.weights(6).exists()


def test_output_to_a_full_disk(job: Job) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "layrubnet", "check", str(job.net)],
            cwd=job.folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert process.returncode == 1
    assert process.stderr == "layrubnet: error: No space left on device\n"
