"""Small jobs for the command line: a data base, a net and a solver in a folder of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from layrubnet.cli import main
from layrubnet.data import encode_datum, write_lmdb
from layrubnet.prototxt.weights import read_weights

NET = """\
name: "Tiny"
layer {{
  name: "data" type: "Data" top: "data" top: "label"
  transform_param {{ scale: 0.00390625 crop_size: 6 mirror: true }}
  data_param {{ source: "{data}" backend: LMDB batch_size: 8 }}
}}
layer {{
  name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
  inner_product_param {{ num_output: 8 weight_filler {{ type: "xavier" }} }}
}}
layer {{ name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }}
layer {{ name: "drop1" type: "Dropout" bottom: "ip1" top: "ip1" }}
layer {{
  name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  inner_product_param {{ num_output: 3 weight_filler {{ type: "xavier" }} }}
}}
layer {{
  name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy"
  include {{ phase: TEST }}
}}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }}
"""

SOLVER = """\
net: "{net}"
base_lr: 0.05 lr_policy: "fixed" momentum: 0.9 type: "SGD"
max_iter: 6 display: 2 test_iter: 2 test_interval: 3
snapshot_prefix: "{prefix}" random_seed: 7
"""


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The last message on stderr, from ``layrubnet: error:`` on."""
        return self.err[self.err.rfind("layrubnet: error:") :]


class Job:
    """A folder with ``data_lmdb``, ``net.prototxt`` and ``solver.prototxt``."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        self.data = folder / "data_lmdb"
        self.net = folder / "net.prototxt"
        self.solver = folder / "solver.prototxt"
        self.prefix = folder / "out" / "tiny"
        write_data(self.data)
        self.net.write_text(NET.format(data=self.data))
        self.solver.write_text(SOLVER.format(net=self.net, prefix=self.prefix))

    def __call__(self, *argv: object) -> Result:
        """Run a command in this process."""
        self._capsys.readouterr()
        try:
            status = main([str(word) for word in argv])
        except SystemExit as error:  # argparse
            status = error.code if isinstance(error.code, int) else -1
        return Result(status, *self._capsys.readouterr())

    def edit(self, file: Path, old: str, new: str) -> None:
        """Replace text in one of the files; it must be there."""
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    def snapshot(self, iteration: int) -> Path:
        """The state file of an iteration."""
        return self.prefix.with_name(f"tiny_iter_{iteration}.solverstate")

    def weights(self, iteration: int) -> Path:
        """The weights file of an iteration."""
        return self.prefix.with_name(f"tiny_iter_{iteration}.caffemodel")

    def files(self) -> set[str]:
        """The names in the folder of the snapshots."""
        return (
            {p.name for p in self.prefix.parent.iterdir()} if self.prefix.parent.exists() else set()
        )


def write_data(path: Path, count: int = 50, classes: int = 3) -> None:
    """Write 8 x 8 grey images with labels that depend on them."""
    rng = np.random.default_rng(5)
    labels = rng.integers(0, classes, count)
    images = rng.integers(0, 100, (count, 1, 8, 8)) + 50 * labels[:, None, None, None]
    write_lmdb(
        path,
        (
            (f"{n:04d}".encode(), encode_datum(image.astype(np.uint8), int(label)))
            for n, (image, label) in enumerate(zip(images, labels, strict=True))
        ),
    )


def start(argv: Sequence[object], cwd: Path, **options: object) -> subprocess.Popen[str]:
    """Start ``python -m layrubnet`` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "layrubnet", *map(str, argv)],
        cwd=cwd,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_hear_interrupts,
        **options,  # type: ignore[call-overload]
    )


def _hear_interrupts() -> None:
    """A shell's background job ignores SIGINT, and hands that down to its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def complete(argv: Sequence[object], cwd: Path, **options: object) -> Result:
    """Run ``python -m layrubnet`` to its end."""
    process = start(argv, cwd, **options)
    try:
        out, err = process.communicate(timeout=120)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return Result(process.returncode, out, err)


def same_weights(one: Path, other: Path) -> bool:
    """Whether two weights files hold the same bits."""
    a, b = read_weights(one), read_weights(other)
    return [layer.name for layer in a] == [layer.name for layer in b] and all(
        np.array_equal(x, y)
        for first, second in zip(a, b, strict=True)
        for x, y in zip(first.blobs, second.blobs, strict=True)
    )
