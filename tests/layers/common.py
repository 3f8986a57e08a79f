"""Checks shared by the tests of layers: in place or not, with or without backward."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from layrubnet.engine.net import CompiledNet
from tests.support.checks import make_net, probe

Results = dict[str, np.ndarray]


def inputs_text(inputs: Mapping[str, tuple[int, ...]]) -> str:
    """Input layers as prototxt."""
    return "".join(
        f'layer {{ name: "in_{name}" type: "Input" top: "{name}" input_param {{ shape {{ '
        + " ".join(f"dim: {d}" for d in shape)
        + " } } }\n"
        for name, shape in inputs.items()
    )


def run(text: str, feeds: Mapping[str, np.ndarray], top: str, seed: np.ndarray) -> Results:
    """One forward and backward: the top's data and the gradients of all inputs and parameters.

    ``seed`` is the gradient of ``top``. Parameters get fixed random values by their order.
    """
    net = make_net(text)
    fill_params(net)
    for name, values in feeds.items():
        net.executor.arrays[f"{name}.data"][...] = values
    net.forward(iteration=3)
    found = {"top": np.array(net.data(top))}
    net.diff(top)[...] = seed
    net.backward()
    for name in feeds:
        found[f"d{name}"] = np.array(net.executor.arrays[f"{name}.diff"])
    for name in net.program.param_diff:
        found[f"d{name}"] = np.array(net.param_diff(name))
    return found


def fill_params(net: CompiledNet) -> None:
    """The same random parameters for every net with the same shapes."""
    rng = np.random.default_rng(8)
    for param in net.graph.params:
        target = net.param_data(param.name)
        target[...] = rng.uniform(-1, 1, target.shape)


def assert_same_bits(a: Results, b: Results) -> None:
    """Every array equal bit for bit (so NaN equals NaN)."""
    assert a.keys() == b.keys()
    for key in a:
        assert a[key].tobytes() == b[key].tobytes(), key


def same_in_place(layer: str, inputs: Mapping[str, tuple[int, ...]], first: str = "x") -> None:
    """``layer`` reads ``first`` as bottom 0 and writes ``y``; writing ``first`` changes no bit.

    A producer whose gradient reads its own top stands before it, so that a wrongly overwritten
    value shows.
    """
    rng = np.random.default_rng(5)
    feeds = {n: rng.uniform(-2, 2, s).astype(np.float32) for n, s in inputs.items()}
    for before in ("Sigmoid", None):
        for after in ("TanH", None):
            text = inputs_text({(f"{n}_in" if n == first else n): s for n, s in inputs.items()})
            kind = before or "Power"
            text += f'layer {{ name: "b" type: "{kind}" bottom: "{first}_in" top: "{first}"'
            text += "}" if before else " power_param { scale: 2 } }"
            chained = {(f"{n}_in" if n == first else n): v for n, v in feeds.items()}
            results = []
            for middle in ("y", first):
                body = text + layer.replace('top: "y"', f'top: "{middle}"')
                top = middle
                if after:
                    body += f'layer {{ name: "a" type: "{after}" bottom: "{middle}" top: "z" }}'
                    top = "z"
                shape = make_net(body).data(top).shape
                seed = np.random.default_rng(6).uniform(-1, 1, shape).astype(np.float32)
                results.append(run(body, chained, top, seed))
            assert_same_bits(*results)


def both_ways(layer: str, inputs: Mapping[str, tuple[int, ...]]) -> None:
    """A net without backward, and one in phase TEST, give the same top and run."""
    rng = np.random.default_rng(4)
    feeds = {n: rng.uniform(-2, 2, s).astype(np.float32) for n, s in inputs.items()}
    tops = []
    for options in ({}, {"train": False}, {"phase": "TEST"}, {"phase": "TEST", "train": False}):
        net = probe(layer, inputs, **options)
        fill_params(net)
        for name, values in feeds.items():
            net.data(name)[...] = values
        net.forward(iteration=0)
        tops.append(np.concatenate([np.ravel(v) for v in net.output_values().values()]))
        if net.program.sections.get("backward"):
            net.backward()
    for top in tops[1:]:
        assert top.tobytes() == tops[0].tobytes()
