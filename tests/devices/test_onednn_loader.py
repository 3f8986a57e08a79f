"""Finding the library: where it is looked for, what is refused, what it leaves behind."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from layrubnet.cli import main
from layrubnet.devices.cpu.device import CpuDevice
from layrubnet.devices.cpu.onednn import binding, loader
from layrubnet.errors import LayrubError
from tests.devices.onednn_support import needs_onednn


class FakeLibrary:
    def __init__(self, major: int, runtime: int) -> None:
        version = loader._Version(major, 2, 0, b"", runtime, 0)
        self.dnnl_version: Any = _Function(ctypes.pointer(version))


class _Function:
    restype: Any = None

    def __init__(self, result: Any) -> None:
        self.result = result

    def __call__(self) -> Any:
        return self.result


def check(major: int, runtime: int) -> loader.Loaded:
    return loader.check(FakeLibrary(major, runtime))  # type: ignore[arg-type]


def test_versions() -> None:
    good = check(3, 2)
    assert good.library is not None
    assert good.text == "oneDNN 3.2.0"
    assert "version 3 is needed" in check(2, 2).text
    assert check(2, 2).library is None
    assert "SYCL" in check(3, 512).text
    assert check(3, 512).library is None


def test_the_environments_library_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "sys", SimpleNamespace(prefix=str(tmp_path)))
    assert loader.candidates() == [loader.NAME]
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / loader.NAME).touch()
    assert loader.candidates() == [str(tmp_path / "lib" / loader.NAME), loader.NAME]


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "candidates", lambda: ["libdnnl-that-is-nowhere.so.3"])
    monkeypatch.setattr(binding, "_opened", [])
    loader.load.cache_clear()
    yield  # type: ignore[misc]
    loader.load.cache_clear()


@pytest.mark.usefixtures("missing")
def test_no_library_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert loader.load().library is None
    assert binding.onednn() is None
    assert "oneDNN" not in CpuDevice().describe()
    assert main(["device-query"]) == 0
    said = capsys.readouterr().out
    assert "NumPy; no oneDNN: libdnnl-that-is-nowhere.so.3" in said
    assert 'pip install "layrubnet[cpu]"' in said


@needs_onednn
def test_reports_name_the_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert loader.load().text in CpuDevice().describe()
    assert main(["device-query"]) == 0
    assert f"Convolution:       {loader.load().text}" in capsys.readouterr().out


def test_waiting_threads_sleep_unless_the_user_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    with loader._patience():
        assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    assert "OMP_WAIT_POLICY" not in os.environ
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    with loader._patience():
        assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"


@needs_onednn
def test_nothing_is_said_at_exit() -> None:
    """Objects of the library that are alive at exit are left alone."""
    program = (
        "from layrubnet.devices.cpu.ops import CpuOps\n"
        "from layrubnet.devices.geometry import ConvGeometry\n"
        "plan = CpuOps().conv_plan(ConvGeometry(2, 8, 8, (6,), (4,), (3,), (1,), (0,), (1,)))\n"
        "assert plan.uses\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")


@needs_onednn
def test_a_refused_call_names_the_function() -> None:
    dnn = binding.onednn()
    assert dnn is not None
    with pytest.raises(LayrubError, match="reorder"):
        dnn.reorder(dnn.plain((2, 3)), dnn.plain((2, 4)))
