"""Layers that work row by row accept blobs whose number of rows is known at run time only."""

from __future__ import annotations

import numpy as np
import pytest

from layrubnet.errors import NetError
from tests.engine import stubs  # noqa: F401  (registers StubFilter)
from tests.layers.common import fill_params, inputs_text
from tests.support.checks import make_net

SHAPE = (6, 4, 3)
FILTER = 'layer { name: "f" type: "StubFilter" bottom: "rows" bottom: "wanted" top: "x" }'


def one(kind: str, param: str = "") -> str:
    return f'layer {{ name: "p" type: "{kind}" bottom: "x" top: "y" {param} }}'


def two(kind: str, param: str = "") -> str:
    """The layer on two views of x, so that both have the same extent."""
    return (
        'layer { name: "t" type: "TanH" bottom: "x" top: "b" }'
        f'layer {{ name: "p" type: "{kind}" bottom: "x" bottom: "b" top: "y" {param} }}'
    )


BODIES = {
    "ReLU": one("ReLU", "relu_param { negative_slope: 0.1 }"),
    "PReLU": one("PReLU"),
    "Dropout": one("Dropout"),
    "Power": one("Power", "power_param { power: 2 shift: 1 }"),
    "Scale": one("Scale", "scale_param { bias_term: true }"),
    "Scale, one number": one("Scale", "scale_param { axis: 0 num_axes: 0 }"),
    "Bias": one("Bias"),
    "Flatten": one("Flatten"),
    "Reshape": one("Reshape", "reshape_param { shape { dim: 0 dim: 2 dim: 6 } }"),
    "Sum": two("Eltwise"),
    "Product": two("Eltwise", "eltwise_param { operation: PROD }"),
    "Maximum": two("Eltwise", "eltwise_param { operation: MAX }"),
    "Concat": two("Concat"),
    "Slice": 'layer { name: "p" type: "Slice" bottom: "x" top: "y" top: "z" }',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("kept", [6, 3, 1, 0])
def test_as_with_fixed_rows(body: str, kept: int) -> None:
    """The kept rows give what a net of just so many rows gives, bit for bit."""
    rows = np.random.default_rng(1).uniform(-1, 1, SHAPE).astype(np.float32)
    chosen = np.random.default_rng(2).permutation(6)[:kept]
    chosen.sort()
    cut = make_net(inputs_text({"rows": SHAPE, "wanted": (6,)}) + FILTER + body)
    fixed = make_net(inputs_text({"x": (kept, *SHAPE[1:])}) + body)
    for net in (cut, fixed):
        fill_params(net)
    cut.data("rows")[...] = rows
    cut.data("wanted")[...] = np.isin(np.arange(6), chosen)
    fixed.data("x")[...] = rows[chosen]
    for net in (cut, fixed):
        net.forward(iteration=0)
        for name in ("y", "z"):
            if name in net.blob_names:
                net.diff(name)[...] = np.cos(net.data(name) * 3)
        net.backward()
    assert np.array_equal(cut.data("y"), fixed.data("y"))
    assert np.array_equal(cut.diff("rows")[chosen], fixed.diff("x"))
    for name in fixed.program.param_diff:
        assert np.array_equal(cut.param_diff(name), fixed.param_diff(name))


@pytest.mark.parametrize(
    "body",
    [
        one("Scale", "scale_param { axis: 0 num_axes: 1 }"),
        one("Bias", "bias_param { axis: 0 num_axes: -1 }"),
        one("Flatten", "flatten_param { axis: 0 }"),
        one("Reshape", "reshape_param { shape { dim: -1 dim: 4 } }"),
        two("Concat", "concat_param { axis: 0 }"),
        one("Slice", "slice_param { axis: 0 slice_point: 2 }").replace('"y"', '"y" top: "z"'),
        'layer { name: "p" type: "Eltwise" bottom: "x" bottom: "full" top: "y" }',
        'layer { name: "p" type: "Concat" bottom: "x" bottom: "full" top: "y" }',
    ],
)
def test_what_mixes_rows_is_refused(body: str) -> None:
    head = inputs_text({"rows": SHAPE, "wanted": (6,), "full": SHAPE})
    with pytest.raises(NetError, match=r"run.time"):
        make_net(head + FILTER + body)
