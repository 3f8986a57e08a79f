"""Pooling: the largest or the average value of each window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layrubnet.devices.geometry import PoolGeometry
from layrubnet.engine.contract import Contract, Flops, Needs, Saved, Scratch, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register
from layrubnet.errors import NetError

_AXES = ("height", "width")


def pooled_size(size: int, kernel: int, stride: int, pad: int, *, floor: bool, clip: bool) -> int:
    """The number of windows along one axis.

    Rounded up (unless ``floor``); with padding on either axis (``clip``), a last window that
    would start beyond the plane and its leading padding is dropped.
    """
    free = size + 2 * pad - kernel
    pooled = (free // stride if floor else -(-free // stride)) + 1
    if clip and (pooled - 1) * stride >= size + pad:
        pooled -= 1
    return pooled


@register("Pooling")
class Pooling(Layer):
    """MAX: y = the largest value of each window; AVE: sum / cells of the window.

    Shapes: x (N, C, H, W); y (N, C, H', W') with H' = ceil((H + 2 pad - kernel) / stride) + 1
    (``round_mode: FLOOR`` rounds down); with padding the last window must start inside the plane
    or its leading padding. MAX ignores the padding, and of equal values the first counts; AVE
    counts padded cells, but none beyond H + pad. ``global_pooling`` takes the whole plane. A
    second top of MAX gets the position row * W + column of each largest value::

        layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
          pooling_param { pool: MAX kernel_size: 2 stride: 2 } }

    For backward, MAX keeps one byte per output (more for windows of over 255 cells).

    Differences from Caffe: a window wholly outside the plane (a stride larger than the kernel can
    place one) gives -FLT_MAX with position -1 (MAX) or 0 (AVE) and passes no gradient, where
    Caffe writes out of bounds; NaN in a MAX window gives NaN; ``ceil_mode: false`` and
    ``torch_pooling: true`` of forks are ``round_mode: FLOOR``; STOCHASTIC is refused (Caffe has
    none on the CPU either).
    """

    num_tops = (1, 2)
    accepts_extent = True
    fork_fields = ("pooling_param",)

    def setup(self) -> None:
        p = self.spec.pooling_param
        self.maximum = p.pool == p.MAX
        if p.pool == p.STOCHASTIC:
            raise self._bad(
                "STOCHASTIC pooling is not available",
                hint="Caffe has it on the GPU only, not on the CPU either; use MAX or AVE",
            )
        if len(self.spec.top) > 1 and not self.maximum:
            raise self._bad(
                "only MAX pooling has a second top (the mask)",
                expected="1 top",
                got=f"{len(self.spec.top)} tops",
            )
        self.floor = self._round_down()
        self.whole = p.global_pooling
        self.stride = self._pair("stride")
        self.pad = self._pair("pad")
        if self.whole:
            if any(p.HasField(f) for f in ("kernel_size", "kernel_h", "kernel_w")):
                raise self._bad("With Global_pooling: true Filter size cannot specified")
            if self.pad != (0, 0) or self.stride != (1, 1):
                raise self._bad(
                    "With Global_pooling: true; only pad = 0 and stride = 1",
                    got=f"pad {self.pad}, stride {self.stride}",
                )
            return
        self.kernel = self._pair("kernel_size")
        if 0 in self.kernel:
            raise self._bad("Filter dimensions cannot be zero.", got=self.kernel)
        if 0 in self.stride:
            raise self._bad("Stride dimensions cannot be zero.", got=self.stride)
        if any(q >= k for q, k in zip(self.pad, self.kernel, strict=True)):
            raise self._bad(
                "the padding must be smaller than the kernel",
                expected=f"pad < {self.kernel}",
                got=self.pad,
            )

    def _bad(self, what: str, **details: Any) -> NetError:
        return NetError(what, where=self.where, **details)

    def _round_down(self) -> bool:
        p = self.spec.pooling_param
        said = {}
        if p.HasField("round_mode"):
            said["round_mode"] = p.round_mode == p.FLOOR
        if p.HasField("ceil_mode"):
            said["ceil_mode"] = not p.ceil_mode
        if p.torch_pooling:
            said["torch_pooling"] = True
        if len(set(said.values())) > 1:
            raise self._bad(
                f"{' and '.join(said)} contradict each other",
                got=", ".join(f"{k} asks for {'floor' if v else 'ceil'}" for k, v in said.items()),
                hint="keep round_mode only",
            )
        return any(said.values())

    def _pair(self, name: str) -> tuple[int, int]:
        """``kernel_size``, ``stride`` or ``pad`` as (height, width)."""
        p, short = self.spec.pooling_param, name.removesuffix("_size")
        fields = (f"{short}_h", f"{short}_w")
        given = [f for f in fields if p.HasField(f)]
        if p.HasField(name) and given:
            raise self._bad(
                f"{name} is given once, or as {fields[0]} and {fields[1]}; not both",
                got=f"{name} and {' and '.join(given)}",
            )
        if len(given) == 1:
            raise self._bad(f"both {fields[0]} and {fields[1]} are required", got=given[0])
        if given:
            return (getattr(p, fields[0]), getattr(p, fields[1]))
        if short == "kernel" and not p.HasField(name):
            raise self._bad(
                "the filter size is missing",
                expected="kernel_size, or kernel_h and kernel_w, or global_pooling: true",
            )
        return (getattr(p, name), getattr(p, name))

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        (x,) = bottoms
        if len(x.shape) != 4:
            raise self.bad_shape(
                "Input must have 4 axes, corresponding to (num, channels, height, width)",
                expected="4 axes",
                got=x.shape,
            )
        size = (x.shape[2], x.shape[3])
        kernel = size if self.whole else self.kernel
        out = []
        for i, axis in enumerate(_AXES):
            pooled = pooled_size(
                size[i],
                kernel[i],
                self.stride[i],
                self.pad[i],
                floor=self.floor,
                clip=any(self.pad),
            )
            if pooled < 1:
                raise self.bad_shape(
                    f"the window does not fit the {axis} of the bottom",
                    expected="a top of size >= 1",
                    got=f"{axis} {size[i]}, kernel {kernel[i]}, pad {self.pad[i]}",
                )
            out.append(pooled)
        self.planes = x.shape[0] * x.shape[1]
        self.geometry = g = PoolGeometry(size, (out[0], out[1]), kernel, self.stride, self.pad)
        y = x.with_shape(*x.shape[:2], *out)
        work = float(y.count * kernel[0] * kernel[1])
        return Contract(
            tops=(y,) * len(self.spec.top),
            saved=(Saved("mask", y.shape, g.mask_dtype),) if self.maximum else (),
            backward_data=Needs(saved=("mask",)) if self.maximum else Needs(),
            flops=Flops(forward=work, backward_data=work),
        )

    def prepare(self, ops: Any) -> Scratch:
        size = ops.pool_scratch(self.geometry, self.planes)
        return Scratch(forward=size, backward_data=size)

    def _flat(self, array: Any) -> Any:
        return array.reshape(array.shape[0] * array.shape[1], *array.shape[2:])

    def _mask(self, io: IO, like: Any) -> Any:
        """The saved mask, cut to the rows there are."""
        return self._flat(io.saved.mask[: like.shape[0]])

    def forward(self, ops: Any, io: IO) -> None:
        x, y = self._flat(io.x[0]), self._flat(io.y[0])
        if not self.maximum:
            ops.average_pool_forward(x, self.geometry, y)
            return
        mask = self._mask(io, io.y[0])
        with ops.scratch.reuse():
            ops.max_pool_forward(x, self.geometry, y, mask)
        if len(io.y) > 1:
            ops.pool_mask_indices(mask, self.geometry, self._flat(io.y[1]))

    def backward_data(self, ops: Any, io: IO) -> None:
        if io.dy[0] is None:
            ops.fill(io.dx[0], 0.0)
            return
        dy, dx = self._flat(io.dy[0]), self._flat(io.dx[0])
        if self.maximum:
            ops.max_pool_backward(self._mask(io, io.dy[0]), dy, self.geometry, dx)
        else:
            ops.average_pool_backward(dy, self.geometry, dx)
