"""EuclideanLoss and ContrastiveLoss: losses of the distance between two blobs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import Contract, Flops, Needs, Saved, Scratch, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register


@register("EuclideanLoss")
class EuclideanLoss(Layer):
    """loss = sum of (a - b)^2 / (2 N), with N the size of axis 0

    Both bottoms get a gradient: da = (a - b) * dloss / N and db = -da::

        layer { name: "loss" type: "EuclideanLoss" bottom: "prediction" bottom: "target"
          top: "loss" }
    """

    num_bottoms = (2, 2)
    is_loss = True
    accepts_extent = True

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        a, b = bottoms
        if not a.shape or a.shape[:1] != b.shape[:1] or a.count != b.count or a.extent != b.extent:
            raise self.bad_shape(
                "Inputs must have the same dimension",
                expected=f"two bottoms with the shape of the first, {a.shape}",
                got=f"{b.shape} for the second",
            )
        work = 3.0 * a.count
        return Contract(
            tops=(TensorType(()),),
            backward_data=Needs(bottoms=(0, 1)),
            flops=Flops(forward=work, backward_data=work),
        )

    def forward(self, ops: Any, io: IO) -> None:
        a, b = io.x[0], io.x[1]
        ops.euclidean_loss_forward(a, b, 2.0 * max(1, a.shape[0]), io.y[0])

    def backward_data(self, ops: Any, io: IO) -> None:
        a, b = io.x[0], io.x[1]
        for dx, sign in zip(io.dx, (1.0, -1.0), strict=True):
            if dx is not None:
                ops.scaled_difference(a, b, sign / max(1, a.shape[0]), io.dy[0], dx)


@register("ContrastiveLoss")
class ContrastiveLoss(Layer):
    """loss = sum over n of (s d^2 + (1 - s) max(margin - d, 0)^2) / (2 N), d = |a[n] - b[n]|

    Bottoms: a and b (N, ...), and s (N), 1 for similar pairs and 0 for others. With
    ``legacy_version`` the second part is max(margin - d^2, 0). Gradients: da = (a - b) * dloss / N
    for similar pairs, -(a - b) * (margin - d) / (d + 1e-4) * dloss / N for others nearer than the
    margin; db = -da::

        layer { name: "loss" type: "ContrastiveLoss" bottom: "feat" bottom: "feat_p" bottom: "sim"
          top: "loss" contrastive_loss_param { margin: 1 } }

    Differences from Caffe: more than two axes are allowed.
    """

    num_bottoms = (3, 3)
    is_loss = True

    def setup(self) -> None:
        p = self.spec.contrastive_loss_param
        self.margin, self.legacy = p.margin, p.legacy_version

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        a, b, similar = bottoms
        if not a.shape or a.shape[:1] != b.shape[:1] or a.count != b.count:
            raise self.bad_shape(
                "the two blobs of a pair must have the same shape",
                expected=f"{a.shape}, as the first bottom",
                got=f"{b.shape} for the second",
            )
        self.rows = a.shape[0]
        self.size = math.prod(a.shape[1:])
        if similar.count != self.rows:
            raise self.bad_shape(
                "there must be one label for each pair",
                expected=f"{self.rows} labels",
                got=f"{similar.count} labels {similar.shape}",
            )
        work = 3.0 * a.count
        return Contract(
            tops=(TensorType(()),),
            saved=(Saved("squares", (self.rows,)),),
            backward_data=Needs(bottoms=(0, 1, 2), saved=("squares",)),
            no_gradient=(2,),
            flops=Flops(forward=work, backward_data=2 * work),
        )

    def prepare(self, ops: Any) -> Scratch:
        need = ops.contrastive_scratch(self.rows, self.size)
        return Scratch(forward=need, backward_data=need)

    def _folded(self, array: Any) -> Any:
        return array.reshape(self.rows, self.size)

    def forward(self, ops: Any, io: IO) -> None:
        a, b = self._folded(io.x[0]), self._folded(io.x[1])
        ops.contrastive_forward(a, b, io.x[2], self.margin, self.legacy, io.saved.squares, io.y[0])

    def backward_data(self, ops: Any, io: IO) -> None:
        a, b = self._folded(io.x[0]), self._folded(io.x[1])
        for dx, sign in ((io.dx[0], 1.0), (io.dx[1], -1.0)):
            if dx is not None:
                ops.contrastive_backward(
                    a, b, io.x[2], self.margin, self.legacy, io.saved.squares, sign,
                    io.dy[0], self._folded(dx),
                )  # fmt: skip
