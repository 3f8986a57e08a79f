"""oneDNN's convolution against NumPy's, shape by shape; which engine computes what."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.devices.cpu.convolution import ConvPlan
from layrubnet.devices.cpu.onednn import choice
from layrubnet.devices.cpu.onednn.convolution import OneDnnConvPlan
from layrubnet.devices.cpu.ops import CpuOps
from layrubnet.devices.geometry import ConvGeometry
from layrubnet.engine.executor import Executor
from layrubnet.engine.lower import LowerOptions, lower
from layrubnet.memory.plan import keep_everything
from tests.devices.onednn_support import bind_scratch, geometries, needs_onednn, numpy_only
from tests.support.checks import check_gradients, check_no_allocation, probe, randomise
from tests.support.golden import GoldenCase

pytestmark = needs_onednn

GOLDEN = [
    "conv_3x3", "conv_pad_stride", "conv_1x1_stride", "conv_nobias", "conv_group2",
    "conv_depthwise", "conv_rect_list", "conv_dilate_rect", "conv_1d", "conv_3d", "conv_3d_group",
    "conv_axis2", "conv_5x5_same", "conv_big_pad", "conv_accum", "deconv_basic", "deconv_stride",
    "deconv_group", "deconv_bilinear", "deconv_rect", "deconv_dilate",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small shapes would be left to NumPy by the rules; here oneDNN computes whatever it can."""
    monkeypatch.setattr(choice, "use_forward", lambda g: True)
    monkeypatch.setattr(choice, "use_weights", lambda g, wide: True)


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str) -> None:
    case = GoldenCase(name)
    plans = [node.layer.plan for node in case.net.graph.nodes if hasattr(node.layer, "plan")]
    assert all(len(plan.uses) == 3 for plan in plans)
    case.check()


@pytest.mark.parametrize("name", ["conv_3x3", "conv_group2", "deconv_group", "pool_max3s2"])
def test_golden_without_the_library(name: str) -> None:
    with numpy_only():
        GoldenCase(name).check()


def values(g: ConvGeometry, batch: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = (
        (batch, g.channels, *g.size), g.weight_shape, (g.outputs,), (batch, g.outputs, *g.out_size)
    )  # fmt: skip
    return [rng.uniform(-1, 1, s).astype(np.float32) for s in shapes]


@settings(max_examples=150, deadline=None)
@given(
    g=geometries(),
    images=st.integers(1, 4),
    fewer=st.integers(0, 3),
    offset=st.sampled_from([0, 4, 16]),
    seed=st.integers(0, 99),
)
def test_equals_numpy(g: ConvGeometry, images: int, fewer: int, offset: int, seed: int) -> None:
    """All passes, for chunks that do not divide the batch, and for fewer images than planned."""
    ops = CpuOps()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "images_at_once", lambda g: min(images, g.batch))
        plan = ops.conv_plan(g)
    assert isinstance(plan, OneDnnConvPlan)
    x, w, b, dy = values(g, max(g.batch - fewer, 1), seed)
    other = CpuOps()
    wanted = ConvPlan(g, other.scratch)
    results = []
    for p, o in ((plan, ops), (wanted, other)):
        y, plain, dx = np.full_like(dy, 9), np.full_like(dy, 9), np.full_like(x, 9)
        dw, more = np.full_like(w, 9), np.full_like(w, 9)
        bind_scratch(o, p.scratch.forward, offset)
        p.forward(x, w, b, y)
        o.scratch.reset(p.scratch.forward)
        p.forward(x, w, None, plain)
        bind_scratch(o, p.scratch.backward_data, offset)
        p.backward_data(dy, w, dx)
        bind_scratch(o, p.scratch.backward_weights, offset)
        p.backward_weights(x, dy, dw, False)
        o.scratch.reset(p.scratch.backward_weights)
        p.backward_weights(x, dy, more, True)
        results.append((y, plain, dx, dw, more))
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-6 * max(1.0, np.abs(want).max()))


LAYER = (
    'layer { name: "c" type: "Convolution" bottom: "x" top: "y" convolution_param { '
    "num_output: 12 kernel_size: 3 pad: 1 %s } }"
)


@pytest.mark.parametrize("params", ["", "stride: 2 group: 2", "dilation: 2 bias_term: false"])
def test_layer(params: str) -> None:
    net = probe(LAYER % params, {"x": (5, 6, 9, 8)})
    check_no_allocation(net)
    randomise(net, np.random.default_rng(2))
    check_gradients(net, ["x"])


def test_pieces_of_the_weight_gradient() -> None:
    net = probe(LAYER % "", {"x": (5, 6, 9, 8)})
    options = LowerOptions(seeds=True, weight_chunks=3)
    program = lower(net.graph, net.device.ops, options=options)
    pieces = Executor(program, keep_everything(program, 1 << 19, {}), net.device, seed=0)
    randomise(net, np.random.default_rng(4))
    for name in ("x.data", "y.diff", "c/0.param", "c/1.param"):
        pieces.arrays[name][...] = net.executor.arrays[name]
    for executor in (net.executor, pieces):
        executor.run("forward")
        executor.run("backward")
    for name in ("c/0.param_diff", "c/1.param_diff"):
        np.testing.assert_allclose(pieces.arrays[name], net.executor.arrays[name], atol=1e-4)


def test_an_engine_may_be_named() -> None:
    for engine, kind in (
        ("CAFFE", ConvPlan),
        ("CUDNN", OneDnnConvPlan),
        ("DEFAULT", OneDnnConvPlan),
    ):
        net = probe(LAYER % f"engine: {engine}", {"x": (2, 3, 5, 5)})
        assert type(net.graph.nodes[-1].layer.plan) is kind
    with numpy_only():
        net = probe(LAYER % "", {"x": (2, 3, 5, 5)})
        assert type(net.graph.nodes[-1].layer.plan) is ConvPlan


def test_no_spatial_axis_is_numpys() -> None:
    g = ConvGeometry(2, 3, 4, (), (), (), (), (), ())
    assert CpuOps().conv_plan(g).uses == ()  # type: ignore[union-attr]
