"""Debug mode: dead memory is filled with NaN, so that reading it shows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from layrubnet.engine.contract import Contract, Needs, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register
from layrubnet.memory.options import MemoryOptions
from tests.memory.mutants import MUTATIONS
from tests.memory.nets import FAMILIES, conv, head, layer, net
from tests.memory.training import Result, Training, differences, train, use_plan


@register("StubSneaky")
class Sneaky(Layer):
    """y = x^2, whose backward reads x behind the contract's back."""

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        return Contract(tops=(bottoms[0],), backward_data=Needs())

    def forward(self, ops: Any, io: IO) -> None:
        self.x = io.x[0]
        io.y[0][...] = self.x**2

    def backward_data(self, ops: Any, io: IO) -> None:
        io.dx[0][...] = 2 * self.x * io.dy[0]


def finite(result: Result, name: str) -> bool:
    return bool(np.isfinite(np.frombuffer(result[name], np.float32)).all())


@pytest.mark.parametrize("debug", [False, True])
def test_a_layer_that_reads_what_it_does_not_declare(debug: bool) -> None:
    sneaky = layer("StubSneaky", "s", ["c"], ["y"])
    text = net(conv("c", "data", 4), sneaky, head("y"))
    result = train(text, "reuse", Training(debug=debug))
    assert finite(result, "c/0.param") is not debug


def test_a_plan_that_forgets_a_repetition() -> None:
    text = FAMILIES["LeNet"]
    made = Training().net(text, MemoryOptions("sublinear"))
    wrong = MUTATIONS["drop_recompute"](made.plan, random.Random(3))
    made.close()
    assert wrong is not None
    result = train(text, "sublinear", before=partial(use_plan, plan=wrong))
    assert differences(result, train(text, "caffe"))


def test_kept_buffers_stay() -> None:
    """A blob that is to stay readable is not filled, and can be read after the update."""
    made = Training().net(FAMILIES["LeNet"], MemoryOptions("reuse", keep=("conv1", "ip1")))
    kept = ("conv1", "ip1", "loss")
    for name in ("data", "label"):
        made.data(name)[...] = 1
    made.step(iteration=0)
    before = [np.array(made.data(name)) for name in kept]
    made.update()
    for name, values in zip(kept, before, strict=True):
        assert np.array_equal(made.data(name), values)
        assert np.isfinite(values).all()
    made.close()
