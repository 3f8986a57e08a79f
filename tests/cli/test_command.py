"""The command itself: help, version, unknown words, device-query, pipes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from layrubnet.cli import COMMANDS
from layrubnet.version import __version__
from tests.cli.support import Job, complete


def test_version(job: Job) -> None:
    result = job("--version")
    assert result.status == 0
    assert result.out == f"layrubnet {__version__}\n"


def test_no_command_shows_the_help(job: Job) -> None:
    result = job()
    assert result.status == 2
    assert "layrubnet train solver.prototxt" in result.out


@pytest.mark.parametrize("name", [module.NAME for module in COMMANDS])
def test_help_has_examples_and_fits_on_a_terminal(
    job: Job, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = job(name, "--help")
    assert result.status == 0
    assert f"\n  layrubnet {name}" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


def test_every_flag_of_the_examples_exists(job: Job) -> None:
    for module in COMMANDS:
        text = job(module.NAME, "--help").out
        examples = module.__doc__ or ""
        for word in examples.split():
            if word.startswith("--"):
                assert word in text.replace(examples.strip(), ""), (module.NAME, word)


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["trian"], "invalid choice: 'trian'", "did you mean 'train'?"),
        (["train", "s", "--sovler", "x"], "unrecognized arguments: --sovler x", "--solver?"),
        (["train", "s", "--max_iter=3"], "--max_iter=3", "did you mean --max-iter?"),
        (["train", "a", "b"], "unrecognized arguments: b", "one file is enough"),
        (["train", "s", "--lr", "abc"], "'abc' is not a number", "layrubnet train --help"),
        (["train", "s", "--lr", "nan"], "nan is not a finite number", "layrubnet train --help"),
        (["train", "s", "--max-iter", "1e3"], "'1e3' is not a whole number", "--help"),
        (["train", "s", "--max-iter", "9" * 20], "is too large", "--help"),
        (["train", "s", "--seed", "9" * 20], "is too large", "--help"),
        (["check", "n", "--level", "9" * 14], "is too large", "--help"),
        (["test", "n", "--iterations", "0"], "must be at least 1", "layrubnet test --help"),
        (["time", "n", "--iterations=-4"], "must be at least 1", "layrubnet time --help"),
        (["test", "n", "--min", "accuracy"], "not of the form BLOB=NUMBER", "--help"),
        (["test", "n", "--min", "accuracy=1e"], "'1e' is not a number", "--help"),
        (["test", "n", "--phase", "both"], "invalid choice: 'BOTH'", "--help"),
        (["train", "s", "--sigint_effect", "stpo"], "invalid choice", "did you mean 'stop'?"),
    ],
)
def test_wrong_words(job: Job, words: list[str], message: str, hint: str) -> None:
    result = job(*words)
    assert result.status == 2
    assert result.err.startswith("layrubnet: error: ")
    assert message in result.err
    assert hint in result.err.splitlines()[-1]
    assert len(result.err.splitlines()) == 2  # no screen of usage


@pytest.mark.parametrize("command", ["train", "test", "time", "check"])
def test_a_command_without_a_file_says_what_to_write(job: Job, command: str) -> None:
    result = job(command)
    assert result.status == 1
    assert f"layrubnet {command}" in result.error


@pytest.mark.parametrize("name", ["device-query", "device_query"])
def test_device_query(job: Job, name: str) -> None:
    result = job(name, "-gpu", "0")
    assert result.status == 0
    assert "Device name:       cpu (" in result.out
    assert "GPU:" in result.out


def test_as_a_process(job: Job, tmp_path: Path) -> None:
    result = complete(["train", "-solver", job.solver], tmp_path)
    assert result.status == 0
    assert "Optimization Done." in result.err
    failed = complete(["train", "nothing.prototxt"], tmp_path)
    assert failed.status == 1
    assert failed.err.startswith("layrubnet: error: nothing.prototxt: no such file\n")


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_reader_that_goes_away(job: Job, tmp_path: Path, closed: str) -> None:
    """`layrubnet check ... | head -1`: neither a traceback nor a hang."""
    command = [sys.executable, "-m", "layrubnet", "check", str(job.net)]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    stream = process.stdout if closed == "stdout" else process.stderr
    assert stream is not None
    stream.close()
    if closed == "stdout":
        assert process.stderr is not None
        with process.stderr as rest:
            assert rest.read() == ""
    else:
        assert process.stdout is not None
        with process.stdout as rest:
            assert "everything is all right" in rest.read()
    assert process.wait(60) == 0
