"""Convolution: Caffe's values, a naive loop in any number of dimensions, gradients, errors."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.devices.cpu import convolution
from layrubnet.devices.cpu.ops import CpuOps
from layrubnet.devices.geometry import ConvGeometry
from layrubnet.engine.executor import Executor
from layrubnet.engine.lower import LowerOptions, lower
from layrubnet.errors import LayrubError
from layrubnet.memory.plan import keep_everything
from tests.layers.common import both_ways
from tests.support.checks import check_gradients, check_no_allocation, probe, randomise
from tests.support.golden import GoldenCase

GOLDEN = [
    "conv_3x3", "conv_pad_stride", "conv_1x1_stride", "conv_nobias", "conv_group2",
    "conv_depthwise", "conv_rect_list", "conv_dilate_rect", "conv_1d", "conv_3d", "conv_3d_group",
    "conv_force_nd", "conv_axis2", "conv_5x5_same", "conv_big_pad", "conv_accum",
    "conv_constant_filler",
]  # fmt: skip


def layer(params: str, bottoms: str = "x", tops: str = "y") -> str:
    ends = [f'bottom: "{b}"' for b in bottoms.split()] + [f'top: "{t}"' for t in tops.split()]
    return (
        f'layer {{ name: "c" type: "Convolution" {" ".join(ends)} '
        f"convolution_param {{ {params} }} }}"
    )


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str) -> None:
    GoldenCase(name).check()


# -- against a naive loop ------------------------------------------------------------------------


def naive(x: np.ndarray, w: np.ndarray, g: ConvGeometry) -> np.ndarray:
    """The definition, in float64."""
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *((p, p) for p in g.pad)])
    y = np.zeros((g.batch, g.outputs, *g.out_size))
    inner, outer = g.channels // g.group, g.outputs // g.group
    for o in range(g.outputs):
        first = o // outer * inner
        for cell in itertools.product(*map(range, g.kernel)):
            cut = tuple(
                slice(c * d, c * d + (n - 1) * s + 1, s)
                for c, d, n, s in zip(cell, g.dilation, g.out_size, g.stride, strict=True)
            )
            part = padded[(slice(None), slice(first, first + inner), *cut)]
            weights = w[(o, slice(None), *cell)].reshape(-1, *[1] * len(g.kernel))
            y[:, o] += (part * weights).sum(axis=1)
    return y


@st.composite
def geometries(draw: st.DrawFn) -> ConvGeometry:
    axes = draw(st.integers(0, 3))
    group = draw(st.integers(1, 3))
    kernel = tuple(draw(st.integers(1, 3)) for _ in range(axes))
    stride = tuple(draw(st.integers(1, 3)) for _ in range(axes))
    pad = tuple(draw(st.integers(0, 2)) for _ in range(axes))
    dilation = tuple(draw(st.integers(1, 2)) for _ in range(axes))
    extent = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    size = tuple(
        max(1, e - 2 * p) + draw(st.integers(0, 3)) for e, p in zip(extent, pad, strict=True)
    )
    out = tuple(
        (s + 2 * p - e) // t + 1 for s, p, e, t in zip(size, pad, extent, stride, strict=True)
    )
    return ConvGeometry(
        draw(st.integers(1, 5)),
        group * draw(st.integers(1, 2)),
        group * draw(st.integers(1, 2)),
        size, out, kernel, stride, pad, dilation, group,
    )  # fmt: skip


def field(name: str, values: tuple[int, ...]) -> str:
    return " ".join(f"{name}: {v}" for v in values)


@settings(max_examples=60, deadline=None)
@given(g=geometries(), seed=st.integers(0, 99))
def test_equals_the_definition(g: ConvGeometry, seed: int) -> None:
    text = layer(
        f"num_output: {g.outputs} group: {g.group} {field('kernel_size', g.kernel)} "
        f"{field('stride', g.stride)} {field('pad', g.pad)} {field('dilation', g.dilation)}"
    )
    net = probe(text, {"x": (g.batch, g.channels, *g.size)})
    randomise(net, np.random.default_rng(seed))
    net.forward()
    bias = net.get_blob("c", 1).reshape(-1, *[1] * len(g.kernel))
    want = naive(net.data("x"), net.get_blob("c", 0), g) + bias
    assert net.data("y").shape == want.shape
    np.testing.assert_allclose(net.data("y"), want, atol=1e-4)


@settings(max_examples=60, deadline=None)
@given(g=geometries(), chunk=st.integers(1, 5), accumulate=st.booleans(), seed=st.integers(0, 99))
def test_passes_are_adjoint_for_any_chunk(
    g: ConvGeometry, chunk: int, accumulate: bool, seed: int
) -> None:
    """<conv(x, w), dy> = <x, dx> = <w, dw>, within the scratch that the plan declares."""
    ops = CpuOps()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolution, "_chunk", lambda g: chunk)
        plan = ops.conv_plan(g, library=False)
    rng = np.random.default_rng(seed)
    x, w, dy = (
        rng.uniform(-1, 1, s).astype(np.float32)
        for s in (
            (g.batch, g.channels, *g.size), g.weight_shape, (g.batch, g.outputs, *g.out_size)
        )
    )  # fmt: skip
    y, dx = np.full_like(dy, 9), np.full_like(x, 9)
    dw = np.full_like(w, 2)

    def instruction(nbytes: int) -> None:
        memory = np.full(nbytes, 255, np.uint8)
        ops.scratch.bind(
            lambda offset, shape, dtype: (
                memory[offset : offset + math.prod(shape) * np.dtype(dtype).itemsize]
                .view(dtype)
                .reshape(shape)
            )
        )
        ops.scratch.reset(nbytes)

    instruction(plan.scratch.forward)
    plan.forward(x, w, None, y)
    instruction(plan.scratch.backward_data)
    plan.backward_data(dy, w, dx)
    instruction(plan.scratch.backward_weights)
    plan.backward_weights(x, dy, dw, accumulate)
    np.testing.assert_allclose(y, naive(x, w, g), atol=1e-4)
    product = float((y.astype(np.float64) * dy).sum())
    gradient = dw - 2 if accumulate else dw
    assert float((x.astype(np.float64) * dx).sum()) == pytest.approx(product, abs=1e-3)
    assert float((w.astype(np.float64) * gradient).sum()) == pytest.approx(product, abs=1e-3)


def test_chunks_are_even_and_within_the_limit() -> None:
    g = ConvGeometry(64, 20, 50, (12, 12), (8, 8), (5, 5), (1, 1), (0, 0), (1, 1))
    plan = CpuOps().conv_plan(g, library=False)
    assert 1 < plan.chunk <= 64
    assert 4 * plan.chunk * g.column_rows * g.positions <= convolution.COLUMN_BYTES
    assert 64 % plan.chunk == 0
    large = ConvGeometry(8, 64, 64, (112, 112), (112, 112), (3, 3), (1, 1), (1, 1), (1, 1))
    assert CpuOps().conv_plan(large, library=False).chunk == 1
    pointwise = ConvGeometry(8, 64, 64, (28, 28), (28, 28), (1, 1), (1, 1), (0, 0), (1, 1))
    assert CpuOps().conv_plan(pointwise, library=False).scratch.forward < 4096


# -- gradients, memory, chunks -------------------------------------------------------------------

CASES = [
    ("num_output: 4 kernel_size: 3 pad: 1 stride: 2", (3, 2, 6, 5)),
    ("num_output: 4 kernel_size: 1", (2, 3, 9, 8)),
    ("num_output: 4 kernel_size: 1 group: 2", (5, 4, 3, 3)),
    ("num_output: 6 kernel_size: 2 dilation: 2 group: 3", (6, 3, 5, 5)),
    ("num_output: 3 kernel_size: 2 group: 3 bias_term: false", (5, 3, 4, 4)),
    ("num_output: 2 kernel_size: 2 axis: 2", (2, 2, 3, 4, 4)),
]


@pytest.mark.parametrize(("params", "shape"), CASES)
def test_gradients(params: str, shape: tuple[int, ...]) -> None:
    net = probe(layer(params), {"x": shape})
    randomise(net, np.random.default_rng(1))
    check_gradients(net, ["x"])


@pytest.mark.parametrize(("params", "shape"), [*CASES, ("num_output: 20 kernel_size: 5",
                                                        (8, 20, 12, 12))])  # fmt: skip
def test_no_allocation(params: str, shape: tuple[int, ...]) -> None:
    check_no_allocation(probe(layer(params), {"x": shape}))


def test_several_bottoms_share_the_weights() -> None:
    text = layer("num_output: 2 kernel_size: 2", "a b", "p q")
    net = probe(text, {"a": (2, 3, 4, 4), "b": (2, 3, 4, 4)})
    randomise(net, np.random.default_rng(2))
    check_gradients(net, ["a", "b"])
    check_no_allocation(net)


def test_weight_gradient_in_rows() -> None:
    net = probe(layer("num_output: 5 kernel_size: 3 pad: 1"), {"x": (6, 2, 5, 5)})
    options = LowerOptions(seeds=True, weight_chunks=3)
    program = lower(net.graph, net.device.ops, options=options)
    chunks = [i.chunk for i in program.sections["backward"] if i.op == "backward_weights"]
    assert chunks == [(0, 1), (1, 3), (3, 5)]
    pieces = Executor(program, keep_everything(program, 1 << 19, {}), net.device, seed=0)
    randomise(net, np.random.default_rng(3))
    for name in ("x.data", "y.diff", "c/0.param", "c/1.param"):
        pieces.arrays[name][...] = net.executor.arrays[name]
    for executor in (net.executor, pieces):
        executor.run("forward")
        executor.run("backward")
    for name in ("c/0.param_diff", "c/1.param_diff"):
        np.testing.assert_allclose(pieces.arrays[name], net.executor.arrays[name], atol=1e-5)


def test_groups_are_not_cut_into_rows() -> None:
    net = probe(layer("num_output: 4 kernel_size: 1 group: 2"), {"x": (1, 2, 3, 3)})
    assert net.graph.nodes[-1].contract.blobs[0].chunk_axis is None


def test_backward_keeps_no_more_than_it_needs() -> None:
    contract = (
        probe(layer("num_output: 4 kernel_size: 1"), {"x": (1, 2, 3, 3)}).graph.nodes[-1].contract
    )
    assert contract.backward_data.bottoms == ()
    assert contract.backward_weights.blobs == ()


def test_test_phase_and_no_backward() -> None:
    both_ways(layer("num_output: 4 kernel_size: 3"), {"x": (2, 2, 5, 5)})


def test_the_size_is_rounded_down() -> None:
    for kernel, stride, pad, size, want in [
        (3, 2, 0, 112, 55), (3, 2, 1, 64, 32), (3, 2, 1, 112, 56), (2, 2, 0, 129, 64),
        (3, 2, 0, 32, 15),
    ]:  # fmt: skip
        params = f"num_output: 1 kernel_size: {kernel} stride: {stride} pad: {pad}"
        net = probe(layer(params), {"x": (1, 1, size, 3)})
        assert net.data("y").shape[2] == want


def test_nd_kernel_given_once_or_for_every_axis() -> None:
    shapes = {
        probe(layer(f"num_output: 2 {k}"), {"x": (1, 1, 4, 5, 6)}).data("y").shape
        for k in ("kernel_size: 3", "kernel_size: 3 kernel_size: 3 kernel_size: 3")
    }
    assert shapes == {(1, 2, 2, 3, 4)}


# -- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("kernel_size: 3", "num_output must be given"),
        ("num_output: 2", "kernel_size must be specified once, or once per spatial dimension"),
        ("num_output: 2 kernel_size: 3 kernel_size: 3 kernel_size: 3", "expected: 1 or 2 values"),
        ("num_output: 2 kernel_size: 3 kernel_h: 2 kernel_w: 3", "not both"),
        ("num_output: 2 kernel_size: 3 stride: 1 stride_h: 2 stride_w: 3", "not both"),
        ("num_output: 2 kernel_size: 3 pad: 1 pad_h: 2", "Either pad or pad_h/w"),
        ("num_output: 2 kernel_h: 3", "Filter dimensions must be nonzero"),
        ("num_output: 2 kernel_size: 0", "Filter dimensions must be nonzero"),
        ("num_output: 2 kernel_size: 1 stride: 0", "Stride dimensions must be nonzero"),
        ("num_output: 2 kernel_size: 1 dilation: 0", "Dilation dimensions must be nonzero"),
        ("num_output: 3 kernel_size: 1 group: 2", "Number of output should be multiples of group"),
        ("num_output: 3 kernel_size: 1 group: 3", "input channels must be a multiple of group"),
        ("num_output: 3 kernel_size: 1 group: 0", "group must be positive"),
        ("num_output: 3 kernel_size: 9", "the kernel leaves nothing of axis 2"),
        ("num_output: 3 kernel_size: 1 axis: 4", "the axis is out of range"),
    ],
)
def test_nonsense(params: str, message: str) -> None:
    with pytest.raises(LayrubError) as error:
        probe(layer(params), {"x": (1, 4, 5, 5)})
    assert message in str(error.value)
    assert "'c'" in str(error.value)


def test_pairs_are_for_two_axes_only() -> None:
    with pytest.raises(LayrubError, match="can only be used for 2D convolution"):
        probe(layer("num_output: 1 kernel_h: 2 kernel_w: 2"), {"x": (1, 1, 4, 4, 4)})


def test_bottoms_must_agree() -> None:
    text = layer("num_output: 1 kernel_size: 1", "a b", "p q")
    with pytest.raises(LayrubError, match=r"shape mismatch - bottom\[0\] vs. bottom\[1\]"):
        probe(text, {"a": (1, 1, 4, 4), "b": (1, 1, 4, 5)})
    with pytest.raises(LayrubError, match="as many tops as bottoms"):
        probe(layer("num_output: 1 kernel_size: 1", "a b", "p"), dict.fromkeys("ab", (1, 1, 4, 4)))


def test_a_smaller_batch_than_planned() -> None:
    """A run-time extent cuts the batch; the rows that are there do not change."""
    net = probe(layer("num_output: 3 kernel_size: 2"), {"x": (6, 2, 4, 4)})
    randomise(net, np.random.default_rng(4))
    net.forward()
    want = np.array(net.data("y")[:2])
    plan, ops = net.graph.nodes[-1].layer.plan, net.device.ops
    y = np.zeros_like(want)
    ops.scratch.reset(plan.scratch.forward)
    plan.forward(net.data("x")[:2], net.get_blob("c", 0), net.get_blob("c", 1), y)
    np.testing.assert_allclose(y, want, atol=1e-6)
