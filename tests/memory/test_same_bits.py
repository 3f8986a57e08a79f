"""No plan changes a bit: what training leaves is the same under every strategy."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from layrubnet.engine.layer import layer_class, layer_types
from layrubnet.engine.net import CompiledNet
from layrubnet.engine.updates import LR
from layrubnet.memory.options import MemoryOptions
from layrubnet.memory.strategies import STRATEGIES
from tests.memory.layer_nets import LAYERS
from tests.memory.nets import FAMILIES
from tests.memory.training import Result, Training, budgets, differences, feed, train

PLANNED = [name for name in STRATEGIES if name != "caffe"]
MOSTLY = [
    pytest.param(name, marks=pytest.mark.full if name in ("intra", "inter", "vdnn") else ())
    for name in PLANNED
]
"""What these do, hybrid does as well."""
READERS = {"Data", "HDF5Data", "MemoryData"}
"""They only load, as DummyData does."""

PLAIN, TWICE = Training(), Training(iter_size=2)


@cache
def reference(text: str, iter_size: int = 1) -> Result:
    """What training leaves when everything is kept."""
    return train(text, "caffe", TWICE if iter_size == 2 else PLAIN)


def test_table_is_complete() -> None:
    """Every type of layer is in some net."""
    text = "".join(LAYERS.values())
    ours = "layrubnet.layers."
    known = [t for t in layer_types() if layer_class(t).__module__.startswith(ours)]
    missing = {t for t in known if f'type: "{t}"' not in text} - READERS - {"SoftmaxLoss"}
    assert not missing


@pytest.mark.parametrize("strategy", MOSTLY)
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str, strategy: str) -> None:
    got = train(LAYERS[name], strategy)
    assert not differences(got, reference(LAYERS[name]))


@pytest.mark.parametrize("strategy", PLANNED)
@pytest.mark.parametrize("name", FAMILIES)
def test_families(name: str, strategy: str) -> None:
    """With two micro-batches, which runs both kinds of pass."""
    assert not differences(train(FAMILIES[name], strategy, TWICE), reference(FAMILIES[name], 2))


@pytest.mark.parametrize("strategy", PLANNED)
@pytest.mark.parametrize("name", ["LeNet", "siamese"])
def test_one_micro_batch(name: str, strategy: str) -> None:
    assert not differences(train(FAMILIES[name], strategy, PLAIN), reference(FAMILIES[name]))


@pytest.mark.full
@pytest.mark.parametrize("strategy", PLANNED)
@pytest.mark.parametrize("name", FAMILIES)
def test_one_micro_batch_everywhere(name: str, strategy: str) -> None:
    assert not differences(train(FAMILIES[name], strategy, PLAIN), reference(FAMILIES[name]))


@pytest.mark.parametrize("name", [n for n in FAMILIES if n != "ResNet-20"])
def test_budgets(name: str) -> None:
    """Auto within budgets from the smallest possible to what reuse needs."""
    text = FAMILIES[name]
    for budget in budgets(text, TWICE, 2):
        got = train(text, MemoryOptions("auto", budget), TWICE)
        assert not differences(got, reference(text, 2)), budget


@pytest.mark.full
@pytest.mark.parametrize("name", FAMILIES)
def test_many_budgets(name: str) -> None:
    text = FAMILIES[name]
    for budget in budgets(text, TWICE, 8):
        got = train(text, MemoryOptions("auto", budget), TWICE)
        assert not differences(got, reference(text, 2)), budget


@pytest.mark.parametrize(
    "solver",
    [
        {"type": "SGD", "momentum": 0.9, "clip_gradients": 0.01},
        {"type": "Nesterov", "momentum": 0.9, "regularization_type": "L1", "weight_decay": 0.1},
        {"type": "Adam", "momentum": 0.9, "momentum2": 0.99},
    ],
    ids=lambda s: s["type"],
)
@pytest.mark.parametrize("strategy", ["reuse", "hybrid", "min"])
def test_solvers(strategy: str, solver: dict[str, object]) -> None:
    training = Training(2, solver)
    text = FAMILIES["siamese"]
    assert not differences(train(text, strategy, training), train(text, "caffe", training))


@pytest.mark.parametrize("strategy", ["reuse", "hybrid", "min", "auto"])
@pytest.mark.parametrize("name", ["LeNet", "ResNet-20"])
def test_a_test_net_in_between(name: str, strategy: str) -> None:
    """It borrows the train net's arena, changes nothing there, and finds the same losses."""

    def run(memory: str) -> list[float]:
        net = PLAIN.net(FAMILIES[name], MemoryOptions(memory))
        test = CompiledNet(
            net.param,
            "TEST",
            device=net.device,
            share=net,
            train=False,
            memory=MemoryOptions(memory),
        )
        assert test.executor.borrows == (memory != "caffe")
        rng, found = np.random.default_rng(3), []
        for iteration in range(3):
            feed(net, rng)
            found.append(net.step(iteration=iteration))
            net.executor.set_scalar(LR, 0.05)
            net.update()
            feed(test, rng)
            found.append(test.forward(iteration=iteration))
        net.close()
        return found

    assert run(strategy) == run("caffe")


def test_learning_happens() -> None:
    """The comparison would be empty if gradients or updates were."""
    result = reference(LAYERS["ReLU"])
    assert len({result[f"loss {k}.0"] for k in range(3)}) == 3
    assert any(result["x0/0.param_diff"])
