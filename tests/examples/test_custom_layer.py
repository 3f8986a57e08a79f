"""examples/custom_layer: the script trains, and the layer in it is right."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.support.checks import check_gradients, probe, randomise

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "custom_layer"


def test_the_script_trains(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "train.py"), "--iterations", "120"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    losses = [float(found) for found in re.findall(r"loss (\S+)", done.stdout)]
    assert len(losses) == 4
    assert losses[-1] < 0.05 * losses[0]
    assert "beta went from 1" in done.stdout


def test_the_gradients_of_the_layer() -> None:
    spec = importlib.util.spec_from_file_location("swish", FOLDER / "swish.py")
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    net = probe('layer { name: "s" type: "Swish" bottom: "x" top: "y" }', {"x": (2, 3, 2)})
    assert (net.get_blob("s", 0) == 1).all()
    net.data("x")[...] = 2
    net.forward()
    np.testing.assert_allclose(net.data("y"), 2 / (1 + np.exp(-2)), rtol=1e-6)
    randomise(net, np.random.default_rng(4))
    check_gradients(net, ["x"])
