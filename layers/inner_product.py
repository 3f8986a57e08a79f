"""InnerProduct: the fully connected layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import BlobDecl, Contract, Flops, Needs, Scratch, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register


@register("InnerProduct")
class InnerProduct(Layer):
    """y = x w^T + b, with x flattened from ``axis`` on.

    Shapes: x (M, K) with M the axes before ``axis``; w (N, K), or (K, N) with ``transpose``;
    b (N). Gradients: dx = dy w, dw = dy^T x, db = sum over M of dy::

        layer { name: "ip1" type: "InnerProduct" bottom: "pool2" top: "ip1"
          inner_product_param { num_output: 500 weight_filler { type: "xavier" } } }
    """

    def setup(self) -> None:
        p = self.spec.inner_product_param
        self.outputs, self.bias, self.transpose = p.num_output, p.bias_term, p.transpose
        if self.outputs < 1:
            raise self.bad_shape(
                "num_output must be given", expected=">= 1", got=self.outputs,
                hint="inner_product_param { num_output: ... }",
            )  # fmt: skip

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        (x,) = bottoms
        p = self.spec.inner_product_param
        axis = self.axis(p.axis, len(x.shape))
        self.rows, self.inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis:])
        n, k = self.outputs, self.inner
        blobs = [
            BlobDecl("weight", (k, n) if self.transpose else (n, k), p.weight_filler,
                     chunk_axis=1 if self.transpose else 0)
        ]  # fmt: skip
        if self.bias:
            blobs.append(BlobDecl("bias", (n,), p.bias_filler))
        work = 2.0 * self.rows * n * k
        return Contract(
            tops=(x.with_shape(*x.shape[:axis], n),),
            blobs=tuple(blobs),
            backward_data=Needs(blobs=(0,)),
            backward_weights=Needs(bottoms=(0,)),
            accumulates=True,
            flops=Flops(work, work, work),
        )

    def prepare(self, ops: Any) -> Scratch:
        return Scratch(
            backward_weights=ops.gemm_scratch(self.outputs, self.inner, accumulate=True)
            + 4 * self.outputs + 64
        )  # fmt: skip

    def forward(self, ops: Any, io: IO) -> None:
        x, y = io.x[0].reshape(self.rows, self.inner), io.y[0].reshape(self.rows, self.outputs)
        w = io.w[0] if self.transpose else io.w[0].T
        ops.gemm(x, w, y)
        if self.bias:
            ops.add_bias(y, io.w[1])

    def backward_data(self, ops: Any, io: IO) -> None:
        dy = io.dy[0].reshape(self.rows, self.outputs)
        dx = io.dx[0].reshape(self.rows, self.inner)
        ops.gemm(dy, io.w[0].T if self.transpose else io.w[0], dx)

    def backward_weights(self, ops: Any, io: IO) -> None:
        x = io.x[0].reshape(self.rows, self.inner)
        dy = io.dy[0].reshape(self.rows, self.outputs)
        if io.dw[0] is not None:
            begin, end = io.chunk or (0, self.outputs)
            piece = dy[:, begin:end]
            if self.transpose:
                ops.gemm(x.T, piece, io.dw[0][:, begin:end], accumulate=io.accumulate)
            else:
                ops.gemm(piece.T, x, io.dw[0][begin:end], accumulate=io.accumulate)
        if self.bias and io.dw[1] is not None:
            ops.reduce_sum(dy, (0,), io.dw[1], io.accumulate)
