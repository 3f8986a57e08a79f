"""The curves of a run, and the picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from layrubnet.errors import LayrubError
from layrubnet.observe.events import JsonLines
from layrubnet.observe.observer import Output, TestReport, TrainReport
from layrubnet.observe.plot import curves, draw

EVENTS = [
    {"event": "train", "iteration": 0, "loss": 2.0},
    {"event": "train", "iteration": 10, "loss": 1.5},
    {"event": "test", "iteration": 10, "net": 0, "outputs": {"accuracy": 0.5, "all": [1, 2]}},
    {"event": "train", "iteration": 10, "loss": 1.0},
    {"event": "train", "iteration": 20, "loss": "nan"},
    {"event": "test", "iteration": 10, "net": 1, "outputs": {"accuracy": 0.25}},
]


def test_curves() -> None:
    train, tests = curves(EVENTS)
    assert train == {0: 2.0, 10: 1.0}
    assert tests == {"test accuracy": {10: 0.5}, "test #1 accuracy": {10: 0.25}}


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_picture(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    events = JsonLines(tmp_path / "e")
    for i in range(3):
        events.trained(TrainReport(i, 1.0 / (i + 1), 0.1, (), 1.0, 1.0, 1))
        outputs = (Output("accuracy", i / 3), Output("loss", 1.0, 1.0))
        events.tested(TestReport(i, 0, outputs))
    events.close()
    picture = tmp_path / f"loss.{suffix}"
    draw(tmp_path / "e", picture)
    head = picture.read_bytes()[:200]
    assert head.startswith(b"\x89PNG") if suffix == "png" else b"<?xml" in head


def test_nothing_to_draw(tmp_path: Path) -> None:
    JsonLines(tmp_path / "e").close()
    with pytest.raises(LayrubError, match="no train or test event"):
        draw(tmp_path / "e", tmp_path / "loss.png")
    assert not (tmp_path / "loss.png").exists()
