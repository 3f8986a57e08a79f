"""What the tests of the oneDNN engine share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import strategies as st

from layrubnet.devices.cpu import convolution_ops, matmul, pooling_ops
from layrubnet.devices.cpu.onednn.loader import load
from layrubnet.devices.cpu.ops import CpuOps
from layrubnet.devices.geometry import ConvGeometry

needs_onednn = pytest.mark.skipif(load().library is None, reason=f"no oneDNN: {load().text}")


@contextmanager
def numpy_only() -> Iterator[None]:
    """Nets built and run inside behave as on a machine without the library."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolution_ops, "onednn", lambda: None)
        patch.setattr(pooling_ops, "onednn", lambda: None)
        patch.setattr(matmul, "_gemm", lambda: None)
        yield


def bind_scratch(ops: CpuOps, nbytes: int, offset: int = 0) -> None:
    """Give an instruction ``nbytes`` of scratch that begins full of NaN, ``offset`` bytes in."""
    memory = np.full(nbytes + offset, 255, np.uint8)[offset:]
    ops.scratch.bind(
        lambda begin, shape, dtype: (
            memory[begin : begin + math.prod(shape) * np.dtype(dtype).itemsize]
            .view(dtype)
            .reshape(shape)
        )
    )
    ops.scratch.reset(nbytes)


@st.composite
def geometries(draw: st.DrawFn) -> ConvGeometry:
    """Convolutions that oneDNN may compute: 1 to 3 axes, groups, dilation, odd channels."""
    axes = draw(st.integers(1, 3))
    group = draw(st.sampled_from([1, 1, 2, 3, 8]))
    inner, outer = draw(st.integers(1, 9)), draw(st.integers(1, 18))
    if draw(st.booleans()):
        inner, outer = 1, draw(st.sampled_from([1, outer]))
    kernel = tuple(draw(st.integers(1, 5 if axes < 3 else 3)) for _ in range(axes))
    stride = tuple(draw(st.integers(1, 3)) for _ in range(axes))
    dilation = tuple(draw(st.integers(1, 2)) for _ in range(axes))
    extent = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    pad = tuple(draw(st.integers(0, 3)) for _ in range(axes))
    size = tuple(
        max(1, e - 2 * p) + draw(st.integers(0, 6)) for e, p in zip(extent, pad, strict=True)
    )
    out = tuple(
        (s + 2 * p - e) // t + 1 for s, p, e, t in zip(size, pad, extent, stride, strict=True)
    )
    return ConvGeometry(
        draw(st.integers(1, 7)), group * inner, group * outer,
        size, out, kernel, stride, pad, dilation, group,
    )  # fmt: skip
