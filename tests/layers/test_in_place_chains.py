"""Random chains of layers, in place or not, over views and splits: never another bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.layers.common import assert_same_bits, inputs_text, run
from tests.support.checks import make_net

KINDS = {
    "ReLU": 'type: "ReLU"',
    "leaky": 'type: "ReLU" relu_param { negative_slope: -0.2 }',
    "Sigmoid": 'type: "Sigmoid"',
    "TanH": 'type: "TanH"',
    "PReLU": 'type: "PReLU"',
    "square": 'type: "Power" power_param { power: 2 shift: 0.1 }',
    "linear": 'type: "Power" power_param { scale: -1.5 }',
    "identity": 'type: "Power"',
    "Scale": 'type: "Scale" scale_param { bias_term: true }',
    "Bias": 'type: "Bias"',
    "Dropout": 'type: "Dropout"',
    "fold": 'type: "Reshape" reshape_param { shape { dim: 0 dim: 2 dim: -1 } }',
    "Flatten": 'type: "Flatten"',
    "Concat": 'type: "Concat"',
}


@dataclass(frozen=True)
class Step:
    """One layer; ``tapped``: its bottom has a second reader that comes first or at the end."""

    kind: str
    in_place: bool
    tapped: str


STEPS = st.builds(
    Step,
    st.sampled_from(sorted(KINDS)),
    st.booleans(),
    st.sampled_from(["no", "no", "before", "after"]),
)


def chain(steps: list[Step], in_place: bool) -> str:
    """The net as prototxt; all taps are flattened and summed up with the end of the chain."""
    text = inputs_text({"d": (3, 8)})
    blob, taps, late = "b0", [], []
    text += 'layer { name: "first" type: "TanH" bottom: "d" top: "b0" }'
    for n, step in enumerate(steps):
        if step.tapped != "no":
            tap = f'layer {{ name: "tap{n}" type: "Flatten" bottom: "{blob}" top: "t{n}" }}'
            tap += f'layer {{ name: "sig{n}" type: "Sigmoid" bottom: "t{n}" top: "s{n}" }}'
            taps.append(f"s{n}")
            if step.tapped == "before":
                text += tap
            else:
                # Read after the layer has run, hence under a name of its own.
                text += f'layer {{ name: "name{n}" type: "Split" bottom: "{blob}" top: "u{n}"'
                text += f' top: "v{n}" }}'
                late.append(tap.replace(f'bottom: "{blob}"', f'bottom: "v{n}"', 1))
                blob = f"u{n}"
        top = blob if in_place and step.in_place else f"b{n + 1}"
        text += f'layer {{ name: "l{n}" bottom: "{blob}" top: "{top}" {KINDS[step.kind]} }}'
        blob = top
    text += "".join(late) + f'layer {{ name: "end" type: "Flatten" bottom: "{blob}" top: "e" }}'
    if not taps:
        return text + 'layer { name: "sum" type: "Power" bottom: "e" top: "z" }'
    bottoms = " ".join(f'bottom: "{b}"' for b in ["e", *taps])
    return text + f'layer {{ name: "sum" type: "Eltwise" {bottoms} top: "z" }}'


@settings(max_examples=80, deadline=None)
@given(steps=st.lists(STEPS, min_size=1, max_size=8))
def test_in_place_or_not(steps: list[Step]) -> None:
    rng = np.random.default_rng(4)
    d, seed = (rng.uniform(-1, 1, (3, 8)).astype(np.float32) for _ in range(2))
    results = [run(chain(steps, way), {"d": d}, "z", seed) for way in (False, True)]
    assert_same_bits(*results)


@settings(max_examples=30, deadline=None)
@given(steps=st.lists(STEPS, min_size=1, max_size=8))
def test_without_backward(steps: list[Step]) -> None:
    """Without backward far more runs in place; the top is the same."""
    d = np.random.default_rng(4).uniform(-1, 1, (3, 8)).astype(np.float32)
    tops = []
    for train, way in ((True, False), (False, False), (False, True)):
        net = make_net(chain(steps, way), train=train)
        net.executor.arrays["d.data"][...] = d
        net.forward(iteration=0)
        tops.append(np.array(net.data("z")).tobytes())
    assert len(set(tops)) == 1
