"""What Convolution and Deconvolution share: parameters, checks, shapes and the plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from layrubnet.devices.geometry import ConvGeometry
from layrubnet.engine.contract import (
    BlobDecl,
    Contract,
    Flops,
    Needs,
    Scratch,
    Shape,
    TensorType,
)
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer
from layrubnet.errors import NetError


def spatial_parameter(layer: Layer, name: str, axes: int, default: int | None) -> Shape:
    """Read ``kernel_size``, ``stride``, ``pad`` or ``dilation``: once for all axes, or one each.

    ``<short>_h`` and ``<short>_w`` may stand in its place on two axes (not for ``dilation``).
    """
    p, short = layer.spec.convolution_param, name.removesuffix("_size")
    values = tuple(getattr(p, name))
    pair = (f"{short}_h", f"{short}_w")
    if name != "dilation" and any(p.HasField(field) for field in pair):
        if axes != 2:
            raise NetError(
                f"{pair[0]} & {pair[1]} can only be used for 2D convolution",
                where=layer.where,
                expected="2 spatial axes",
                got=axes,
                hint=f"give {name} once, or once per spatial axis",
            )
        if values:
            raise NetError(
                f"Either {name} or {short}_h/w should be specified; not both", where=layer.where
            )
        return tuple(getattr(p, field) for field in pair)
    if not values and default is not None:
        values = (default,)
    if len(values) not in (1, axes):
        raise NetError(
            f"{name} must be specified once, or once per spatial dimension",
            where=layer.where,
            expected=f"1 or {axes} values",
            got=f"{len(values)} values",
        )
    return values * axes if len(values) == 1 else values


class ConvolutionBase(Layer):
    """The common part; subclasses say which side is the convolution's input."""

    num_bottoms = (1, None)
    num_tops = (1, None)
    accepts_extent = True
    transposed: ClassVar[bool]

    def setup(self) -> None:
        p = self.spec.convolution_param
        self.outputs, self.group, self.bias = p.num_output, p.group, p.bias_term
        if self.outputs < 1:
            raise NetError(
                "num_output must be given",
                where=self.where,
                expected=">= 1",
                got=self.outputs,
                hint="convolution_param { num_output: ... }",
            )
        if self.group < 1:
            raise NetError("group must be positive", where=self.where, got=self.group)
        if self.outputs % self.group:
            raise NetError(
                "Number of output should be multiples of group",
                where=self.where,
                expected=f"num_output divisible by {self.group}",
                got=self.outputs,
            )
        if len(self.spec.bottom) != len(self.spec.top):
            raise NetError(
                f"{self.type} needs as many tops as bottoms",
                where=self.where,
                expected=f"{len(self.spec.bottom)} tops",
                got=len(self.spec.top),
            )

    def top_size(self, size: int, kernel: int, stride: int, pad: int) -> int:
        """The size of the top along one axis; ``kernel`` is its extent, dilation included."""
        raise NotImplementedError

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        x = bottoms[0]
        for i, other in enumerate(bottoms[1:], 1):
            if other.shape != x.shape:
                raise self.bad_shape(
                    f"shape mismatch - bottom[0] vs. bottom[{i}]", expected=x.shape, got=other.shape
                )
        p = self.spec.convolution_param
        axis = self.axis(p.axis, len(x.shape))
        if axis == 0 and x.extent:
            raise self.bad_shape(
                "the channel axis has a run-time size", expected="axis >= 1", got="axis 0"
            )
        self.geometry = g = self._geometry(x.shape, axis)
        top_channels, top_size = (g.channels, g.size) if self.transposed else (
            g.outputs, g.out_size
        )  # fmt: skip
        blobs = [
            BlobDecl(
                "weight",
                g.weight_shape,
                p.weight_filler,
                chunk_axis=0 if self.group == 1 else None,
            )
        ]
        if self.bias:
            blobs.append(BlobDecl("bias", (self.outputs,), p.bias_filler))
        work = g.flops * len(bottoms)
        return Contract(
            tops=(x.with_shape(*x.shape[:axis], top_channels, *top_size),) * len(bottoms),
            blobs=tuple(blobs),
            backward_data=Needs(blobs=(0,)),
            backward_weights=Needs(bottoms=tuple(range(len(bottoms)))),
            accumulates=True,
            flops=Flops(work, work, work),
        )

    def _geometry(self, shape: Shape, axis: int) -> ConvGeometry:
        channels, size = shape[axis], shape[axis + 1 :]
        if channels % self.group:
            raise self.bad_shape(
                "the number of input channels must be a multiple of group",
                expected=f"channels divisible by {self.group}",
                got=f"{channels} channels in a bottom of shape {shape}",
            )
        axes = len(size)
        kernel = spatial_parameter(self, "kernel_size", axes, None) if axes else ()
        stride = spatial_parameter(self, "stride", axes, 1)
        pad = spatial_parameter(self, "pad", axes, 0)
        dilation = spatial_parameter(self, "dilation", axes, 1)
        for what, values in (("Filter", kernel), ("Stride", stride), ("Dilation", dilation)):
            if 0 in values:
                raise NetError(
                    f"{what} dimensions must be nonzero", where=self.where, got=list(values)
                )
        top_size = []
        for i, (s, k, t, q, d) in enumerate(zip(size, kernel, stride, pad, dilation, strict=True)):
            extent = d * (k - 1) + 1
            top = self.top_size(s, extent, t, q)
            if top < 1:
                raise self.bad_shape(
                    f"the kernel leaves nothing of axis {axis + 1 + i}",
                    expected="a top of size >= 1",
                    got=f"size {s}, kernel {k} (dilation {d}), stride {t}, pad {q}",
                    hint="use a smaller kernel or change the padding",
                )
            top_size.append(top)
        batch, top_shape = math.prod(shape[:axis]), tuple(top_size)
        ends = ((channels, size), (self.outputs, top_shape))
        (inner, inner_size), (outer, outer_size) = ends[::-1] if self.transposed else ends
        return ConvGeometry(
            batch, inner, outer, inner_size, outer_size, kernel, stride, pad, dilation, self.group
        )

    def prepare(self, ops: Any) -> Scratch:
        p = self.spec.convolution_param
        self.plan = ops.conv_plan(self.geometry, library=p.engine != p.CAFFE)
        s = self.plan.scratch
        bias = 4 * self.outputs + 64
        if self.transposed:
            s = Scratch(s.backward_data, s.forward, s.backward_weights)
        return Scratch(s.forward, s.backward_data, s.backward_weights + bias)

    def batched(self, array: Any, *, top: bool) -> Any:
        """View a blob as (batch, channels, \\*size)."""
        g = self.geometry
        inner = top == self.transposed
        shape = (g.channels, *g.size) if inner else (g.outputs, *g.out_size)
        return array.reshape(math.prod(array.shape[: -len(shape)]), *shape)

    def backward_weights(self, ops: Any, io: IO) -> None:
        accumulate = io.accumulate
        for i, top_diff in enumerate(io.dy):
            if top_diff is None:
                continue
            dy, x = self.batched(top_diff, top=True), self.batched(io.x[i], top=False)
            with ops.scratch.reuse():
                if io.dw[0] is not None:
                    ends = (dy, x) if self.transposed else (x, dy)
                    self.plan.backward_weights(*ends, io.dw[0], accumulate, io.chunk)
                if self.bias and io.dw[1] is not None:
                    flat = dy.reshape(dy.shape[0], self.outputs, -1)
                    ops.reduce_sum(flat, (0, 2), io.dw[1], accumulate)
            accumulate = True
