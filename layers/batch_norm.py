"""BatchNorm: every channel gets mean 0 and variance 1."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import BlobDecl, Contract, Flops, Needs, Saved, Scratch, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register
from layrubnet.errors import NetError

_log = logging.getLogger("layrubnet")
_MEAN, _VARIANCE, _FACTOR = 0, 1, 2


@register("BatchNorm")
class BatchNorm(Layer):
    """y = (x - mean) / sqrt(variance + eps), per channel (axis 1; a 1-axis bottom is one channel)

    With batch statistics (the default in TRAIN) mean and variance are those of this batch, and
    dx = (dy - mean(dy) - y * mean(dy * y)) / sqrt(variance + eps), so y is kept and x is not. With
    global statistics (the default in TEST, or ``use_global_stats: true``) they are the stored
    ones, blob 0 / blob 2 and blob 1 / blob 2, or 0 where blob 2 is 0; dx = dy / sqrt(...).

    Blobs, learned by no gradient: sum of means (C), sum of variances (C), factor (1). Each forward
    with batch statistics multiplies them by ``moving_average_fraction`` and adds mean,
    m / (m - 1) * variance (m elements a channel) and 1. Scale and shift are a Scale layer::

        layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "conv1" }
        layer { name: "scale1" type: "Scale" bottom: "conv1" top: "conv1"
          scale_param { bias_term: true } }
    """

    fork_fields = ("batch_norm_param.scale_bias", "batch_norm_param.disable_variance")

    def setup(self) -> None:
        p = self.spec.batch_norm_param
        self.eps, self.fraction = p.eps, p.moving_average_fraction
        self.stored = p.use_global_stats if p.HasField("use_global_stats") else (
            self.phase == "TEST"
        )  # fmt: skip
        self._warned = False
        for field in ("scale_bias", "disable_variance"):
            if getattr(p, field):
                raise NetError(
                    f"batch_norm_param: {field} is not supported",
                    where=self.where,
                    hint="put a Scale layer with bias_term: true after it"
                    if field == "scale_bias"
                    else "",
                )

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        (x,) = bottoms
        axes = len(x.shape)
        self.channels = x.shape[1] if axes > 1 else 1
        self.samples = x.shape[0] if axes > 1 else 1
        self.size = math.prod(x.shape[2:]) if axes > 1 else x.count
        c = (self.channels,)
        blobs = tuple(
            BlobDecl(name, shape, kind="state")
            for name, shape in (("mean_sum", c), ("variance_sum", c), ("factor", (1,)))
        )
        work = float(x.count)
        if self.stored:
            return Contract(
                tops=(x,),
                blobs=blobs,
                backward_data=Needs(blobs=(_VARIANCE, _FACTOR)),
                inplace={0: 0},
                inplace_diff={0: 0},
                flops=Flops(forward=2 * work, backward_data=work),
            )
        return Contract(
            tops=(x,),
            blobs=blobs,
            saved=(Saved("mean", c), Saved("variance", c)),
            forward_needs=Needs(bottoms=(0,)),
            backward_data=Needs(tops=(0,), saved=("variance",)),
            update_state=Needs(blobs=(0, 1, 2), saved=("mean", "variance")),
            inplace={0: 0},
            inplace_diff={0: 0},
            flops=Flops(forward=5 * work, backward_data=7 * work),
        )

    def prepare(self, ops: Any) -> Scratch:
        need = ops.batch_norm_scratch(self.channels)
        return Scratch(forward=need, backward_data=need, update_state=need)

    def _folded(self, array: Any) -> Any:
        return array.reshape(self.samples, self.channels, self.size)

    def forward(self, ops: Any, io: IO) -> None:
        x, y = self._folded(io.x[0]), self._folded(io.y[0])
        if not self.stored:
            ops.batch_norm_forward(x, self.eps, y, io.saved.mean, io.saved.variance)
            return
        if not self._warned and ops.is_zero(io.w[_FACTOR]):
            self._warned = True
            _log.warning(
                "%s: the stored statistics are empty (factor 0); mean 0 and variance 0 are used. "
                "Load trained weights, or train with batch statistics first",
                self.where,
            )
        ops.batch_norm_stored_forward(x, io.w[_MEAN], io.w[_VARIANCE], io.w[_FACTOR], self.eps, y)

    def backward_data(self, ops: Any, io: IO) -> None:
        dy, dx = self._folded(io.dy[0]), self._folded(io.dx[0])
        if self.stored:
            ops.batch_norm_stored_backward(dy, io.w[_VARIANCE], io.w[_FACTOR], self.eps, dx)
        else:
            y = self._folded(io.y[0])
            ops.batch_norm_backward(y, dy, io.saved.variance, self.eps, dx)

    def update_state(self, ops: Any, io: IO) -> None:
        ops.batch_norm_update(
            io.saved.mean,
            io.saved.variance,
            self.samples * self.size,
            self.fraction,
            io.w[_MEAN],
            io.w[_VARIANCE],
            io.w[_FACTOR],
        )
