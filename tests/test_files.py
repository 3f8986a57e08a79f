"""Atomic writing: all or nothing."""

from __future__ import annotations

import pytest

from layrubnet.errors import LayrubError
from layrubnet.files import atomic_write


def test_complete_files_appear(tmp_path):
    with atomic_write(tmp_path / "new" / "f") as temporary:
        temporary.write_text("x")
        assert not (tmp_path / "new" / "f").exists()
    assert (tmp_path / "new" / "f").read_text() == "x"
    assert len(list((tmp_path / "new").iterdir())) == 1


def write(path, text="x", error=None):
    with atomic_write(path) as temporary:
        temporary.write_text(text)
        if error is not None:
            raise error


def test_an_exception_changes_nothing(tmp_path):
    write(tmp_path / "f", "old")
    with pytest.raises(KeyError):
        write(tmp_path / "f", "half", KeyError())
    assert [p.name for p in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_text() == "old"


def test_what_the_system_refuses_is_explained(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(LayrubError, match="cannot be written"):
        write(tmp_path / "file" / "f")
    with pytest.raises(LayrubError, match="cannot be written"):
        write(tmp_path / "folder")
    assert not list((tmp_path / "folder").iterdir())
