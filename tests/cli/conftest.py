"""The job that most tests of the command line run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import Job


@pytest.fixture
def job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Job:
    """A fresh folder with data, net and solver."""
    return Job(tmp_path, capsys)
