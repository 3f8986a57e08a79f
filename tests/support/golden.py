"""Run one golden case (what real Caffe computed for a small net) and compare.

Cases are ``.npz`` files; ``find_case`` looks in the shared reference values first and then among
the copies in ``tests/golden``, so that the most important ones run on any clone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from layrubnet.engine.net import CompiledNet
from layrubnet.proto import NetParameter
from layrubnet.prototxt.upgrade import upgrade_net
from tests.support.shared import GOLDEN, REASON

COPIES = Path(__file__).resolve().parents[1] / "golden"
TOLERANCE = 1e-4
"""Relative to the largest magnitude of the reference tensor."""


def find_case(name: str) -> Path:
    """Return the file of a case; skip the test with a reason when it is nowhere."""
    for folder in (COPIES, GOLDEN):
        if (folder / name).is_file():
            return folder / name
    pytest.skip(REASON)


def assert_close(got: Any, want: np.ndarray, what: str, tolerance: float = TOLERANCE) -> None:
    """Compare with a tolerance relative to the largest finite magnitude of ``want``."""
    got = np.asarray(got)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, Caffe's {want.shape}"
    finite = want[np.isfinite(want)]
    scale = max(float(np.abs(finite).max(initial=0.0)), 1e-6)
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale, err_msg=what)


class GoldenCase:
    """A case with its net built and its parameters set."""

    def __init__(self, name: str, device: str = "cpu") -> None:
        self.name = name
        self.arrays = dict(np.load(find_case(f"{name}.npz"), allow_pickle=False))
        self.meta: dict[str, Any] = json.loads(str(self.arrays.pop("meta")))
        text = str(self.arrays.pop("prototxt"))
        self.param = upgrade_net(text_format.Parse(text, NetParameter()))[0]
        self.net = CompiledNet(self.param, self.meta["phase"], device=device, seeds=True, seed=1)
        for key, values in self.keys("param."):
            layer, index = key.rsplit(".", 1)
            self.net.set_blob(layer, int(index), values)

    def keys(self, prefix: str) -> list[tuple[str, np.ndarray]]:
        """(rest of the key, array) for every array under a prefix."""
        return [(k[len(prefix) :], v) for k, v in self.arrays.items() if k.startswith(prefix)]

    def check(self) -> None:
        """Run every step and compare tops, bottom diffs, parameter diffs and parameters."""
        for step in range(self.meta["steps"]):
            self.check_step(step)

    def check_step(self, step: int) -> None:
        """One forward and backward."""
        net, t = self.net, f"s{step}."
        for blob, values in self.keys(f"{t}in."):
            net.device.upload(net.data(blob), values)
        net.forward()
        for blob, values in self.keys(f"{t}top."):
            assert_close(net.device.download(net.data(blob)), values, f"{t}top.{blob}")
        for key, values in self.keys(f"{t}param."):
            layer, index = key.rsplit(".", 1)
            assert_close(net.get_blob(layer, int(index)), values, f"{t}param.{key}")
        if self.meta["forward_only"]:
            return
        for blob, values in self.keys(f"{t}topdiff."):
            if blob in net.program.blob_diff:
                net.device.upload(net.diff(blob), values)
        net.backward(accumulate=bool(self.meta["accumulate"]))
        for blob, values in self.keys(f"{t}bottomdiff."):
            assert_close(net.device.download(net.diff(blob)), values, f"{t}bottomdiff.{blob}")
        for key, values in self.keys(f"{t}paramdiff."):
            self._check_param_diff(key, values, t)

    def _check_param_diff(self, key: str, values: np.ndarray, t: str) -> None:
        layer, index = key.rsplit(".", 1)
        param = self.net.graph.layer_blobs()[layer][int(index)]
        if param.name not in self.net.program.param_diff:
            assert not values.any(), f"{t}paramdiff.{key} is not computed here"
            return
        got = self.net.device.download(self.net.param_diff(param.name))
        assert_close(got.reshape(values.shape), values, f"{t}paramdiff.{key}")
