"""Worker of ``train_step.py``: a training step of ours."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from nets import CLASSES, prototxt
from stepping import serve

from layrubnet.engine.net import CompiledNet
from layrubnet.engine.updates import LR
from layrubnet.proto import NetParameter, SolverParameter
from layrubnet.prototxt.text import parse
from layrubnet.solvers.rules import make_rule


def build(net: str) -> Callable[[], object]:
    solver = SolverParameter(type="SGD", base_lr=0.01, momentum=0.9, weight_decay=0.0005)
    compiled = CompiledNet(parse(prototxt(net), NetParameter), "TRAIN", rule=make_rule(solver))
    rng = np.random.default_rng(0)
    data, label = compiled.data("data"), compiled.data("label")
    data[...] = rng.standard_normal(data.shape)
    label[...] = rng.integers(0, CLASSES, label.shape)
    compiled.executor.set_scalar(LR, 0.01)

    def step() -> None:
        compiled.forward()
        compiled.backward()
        compiled.update()

    return step


if __name__ == "__main__":
    serve(build)
