"""Elementwise activations on the CPU. Every backward may run in place (dx the same as dy)."""

from __future__ import annotations

import numpy as np

from layrubnet.devices.cpu.basic import BasicOps
from layrubnet.devices.cpu.blocks import BLOCK, Array, blocks
from layrubnet.devices.cpu.select import choose, keep


class ActivationOps(BasicOps):
    """Forward and backward of activations, in blocks."""

    def relu_forward(self, x: Array, slope: float, y: Array) -> None:
        """y = x where x > 0, slope * x elsewhere"""
        if slope == 0:
            np.maximum(x, np.float32(0), out=y)
            return
        t = self.temporary(x)
        for xb, yb in blocks(x, y):
            tb = t[: xb.size]
            np.minimum(xb, np.float32(0), out=tb)
            np.multiply(tb, np.float32(slope), out=tb)
            np.maximum(xb, np.float32(0), out=yb)
            np.add(yb, tb, out=yb)

    def relu_backward(self, y: Array, dy: Array, slope: float, dx: Array) -> None:
        """dx = dy where y > 0, slope * dy elsewhere (a positive slope keeps y's sign: y tells)"""
        size = min(y.size, BLOCK)
        positive, lanes = self.scratch(size, "bool"), self.scratch(size, "int32")
        scaled = self.temporary(y)
        for yb, dyb, dxb in blocks(y, dy, dx):
            n = yb.size
            np.greater(yb, np.float32(0), out=positive[:n])
            if slope == 0:
                keep(positive[:n], dyb, dxb, lanes[:n])
            else:
                np.multiply(dyb, np.float32(slope), out=scaled[:n])
                choose(positive[:n], dyb, scaled[:n], dxb, lanes[:n])

    def sigmoid_forward(self, x: Array, y: Array) -> None:
        """y = 1 / (1 + exp(-x)), as (1 + tanh(x / 2)) / 2"""
        half = np.float32(0.5)
        for xb, yb in blocks(x, y):
            np.multiply(xb, half, out=yb)
            np.tanh(yb, out=yb)
            np.multiply(yb, half, out=yb)
            np.add(yb, half, out=yb)

    def sigmoid_backward(self, y: Array, dy: Array, dx: Array) -> None:
        """dx = dy * y * (1 - y)"""
        t = self.temporary(y)
        for yb, dyb, dxb in blocks(y, dy, dx):
            tb = t[: yb.size]
            np.subtract(np.float32(1), yb, out=tb)
            np.multiply(tb, yb, out=tb)
            np.multiply(dyb, tb, out=dxb)

    def tanh_forward(self, x: Array, y: Array) -> None:
        """y = tanh(x)"""
        np.tanh(x, out=y)

    def tanh_backward(self, y: Array, dy: Array, dx: Array) -> None:
        """dx = dy * (1 - y^2)"""
        t = self.temporary(y)
        for yb, dyb, dxb in blocks(y, dy, dx):
            tb = t[: yb.size]
            np.square(yb, out=tb)
            np.subtract(np.float32(1), tb, out=tb)
            np.multiply(dyb, tb, out=dxb)
