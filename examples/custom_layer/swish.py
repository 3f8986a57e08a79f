"""A layer of one's own: a file, a decorator, NumPy. No build step.

Import this file before the net is opened and ``type: "Swish"`` is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import layrubnet
from layrubnet import BlobDecl, Contract, Needs, TensorType
from layrubnet.proto import FillerParameter


@layrubnet.register("Swish")
class Swish(layrubnet.Layer):
    """y = x * s(beta x), s(t) = 1 / (1 + exp(-t)), with one learnt beta for each channel

    Shapes: x and y (N, C, ...), beta (C)::

        layer { name: "swish1" type: "Swish" bottom: "ip1" top: "swish1" }
    """

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        """Everything the engine must know, from the shape alone."""
        (x,) = bottoms
        one = FillerParameter(type="constant", value=1)
        return Contract(
            tops=(x,),
            blobs=(BlobDecl("beta", (x.shape[1],), one),),
            # Both gradients are computed from x and beta: y need not be kept for them.
            backward_data=Needs(bottoms=(0,), blobs=(0,)),
            backward_weights=Needs(bottoms=(0,), blobs=(0,)),
        )

    def forward(self, ops: Any, io: layrubnet.IO) -> None:
        x, beta = io.x[0], self._beta(io)
        io.y[0][...] = x * _sigmoid(beta * x)

    def backward_data(self, ops: Any, io: layrubnet.IO) -> None:
        """dy/dx = s + beta x s (1 - s)"""
        x, beta = io.x[0], self._beta(io)
        s = _sigmoid(beta * x)
        io.dx[0][...] = io.dy[0] * (s + beta * x * s * (1 - s))

    def backward_weights(self, ops: Any, io: layrubnet.IO) -> None:
        """dy/dbeta = x^2 s (1 - s), summed over everything but the channels"""
        x, beta = io.x[0], self._beta(io)
        s = _sigmoid(beta * x)
        axes = tuple(a for a in range(x.ndim) if a != 1)
        io.dw[0][...] = (io.dy[0] * x * x * s * (1 - s)).sum(axis=axes)

    def _beta(self, io: layrubnet.IO) -> Any:
        """beta in a shape that suits x."""
        return io.w[0].reshape(-1, *[1] * (io.x[0].ndim - 2))


def _sigmoid(t: Any) -> Any:
    return 0.5 + 0.5 * np.tanh(0.5 * t)
