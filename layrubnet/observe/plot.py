"""Draw the curves of a run from its JSON lines: loss, and what the tests measured."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from layrubnet import extras
from layrubnet.errors import LayrubError
from layrubnet.files import atomic_write
from layrubnet.observe.events import read_events

Curve = dict[int, float]


def curves(events: list[dict[str, Any]]) -> tuple[Curve, dict[str, Curve]]:
    """Return the training loss, and every single-number test output by name, over iterations.

    A later event replaces an earlier one of the same iteration (the run was resumed before it).
    """
    train: Curve = {}
    tests: dict[str, Curve] = {}
    for event in events:
        if event.get("event") == "train" and isinstance(event.get("loss"), (int, float)):
            train[int(event["iteration"])] = float(event["loss"])
        elif event.get("event") == "test":
            for name, value in event["outputs"].items():
                if isinstance(value, (int, float)):
                    label = f"test #{event['net']} {name}" if event["net"] else f"test {name}"
                    tests.setdefault(label, {})[int(event["iteration"])] = float(value)
    return train, tests


def check_format(picture: str | os.PathLike[str]) -> None:
    """Raise LayrubError if a picture of this name cannot be drawn."""
    known = extras.pyplot().figure().canvas.get_supported_filetypes()
    extras.pyplot().close()
    suffix = Path(picture).suffix.lstrip(".").lower()
    if suffix and suffix not in known:
        raise LayrubError(
            "unknown picture format",
            where=os.fspath(picture),
            expected=", ".join(f".{name}" for name in ("png", "svg", "pdf")),
            got=f".{suffix}",
        )


def draw(events: str | os.PathLike[str], picture: str | os.PathLike[str]) -> None:
    """Write a picture (``.png``, ``.svg``, ``.pdf``) of a JSON lines file.

    Losses share the left axis; what is named like an accuracy has the right one, from 0 to 1.
    """
    train, tests = curves(read_events(events))
    if not train and not tests:
        raise LayrubError("holds no train or test event", where=os.fspath(events))
    pyplot = extras.pyplot()
    figure, left = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    right = None
    if train:
        _line(left, train, "train loss", color="0.6")
    for label, curve in tests.items():
        axes = left
        if "acc" in label.lower():
            right = right or left.twinx()
            axes = right
        color = f"C{list(tests).index(label)}"
        _line(axes, curve, label, color=color, marker="o", markersize=3)
    left.set_xlabel("iteration")
    left.set_ylabel("loss")
    handles, labels = left.get_legend_handles_labels()
    if right is not None:
        right.set_ylim(0, 1)
        right.set_ylabel("accuracy")
        more = right.get_legend_handles_labels()
        handles, labels = handles + more[0], labels + more[1]
    left.legend(handles, labels, loc="center right")
    left.grid(alpha=0.3)
    with atomic_write(picture) as temporary:
        figure.savefig(temporary, format=Path(picture).suffix.lstrip(".") or "png", dpi=120)
    pyplot.close(figure)


def _line(axes: Any, curve: Curve, label: str, **style: Any) -> None:
    iterations = sorted(curve)
    axes.plot(iterations, [curve[i] for i in iterations], label=label, **style)
