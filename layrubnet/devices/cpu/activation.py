"""Elementwise activations on the CPU. Every backward may run in place (dx the same as dy)."""

from __future__ import annotations

import numpy as np

from layrubnet.devices.cpu.basic import BasicOps
from layrubnet.devices.cpu.blocks import BLOCK, Array, blocks, flat
from layrubnet.devices.cpu.select import choose, keep, pack, unpack


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
            _scaled_elsewhere(positive[:n], dyb, slope, scaled[:n], dxb, lanes[:n])

    def pack_positive(self, y: Array, bits: Array) -> None:
        """bit j of bits[i] = y[8 i + j] > 0 (0 behind the end of y)"""
        wide = self.scratch(-(-min(y.size, BLOCK) // 8), "uint64")
        positive, packed = wide.view(np.bool_), flat(bits)
        begin = 0
        for (yb,) in blocks(y):
            n, rows = yb.size, -(-yb.size // 8)
            np.greater(yb, np.float32(0), out=positive[:n])
            positive[n : 8 * rows].fill(False)
            pack(wide[:rows], packed[begin : begin + rows])
            begin += rows

    def relu_backward_bits(self, bits: Array, dy: Array, slope: float, dx: Array) -> None:
        """As ``relu_backward``, with the signs of y from ``pack_positive``"""
        size = min(dy.size, BLOCK)
        wide, lanes = self.scratch(-(-size // 8), "uint64"), self.scratch(size, "int32")
        scaled = self.temporary(dy)
        positive, packed = wide.view(np.bool_), flat(bits)
        begin = 0
        for dyb, dxb in blocks(dy, dx):
            n, rows = dyb.size, -(-dyb.size // 8)
            unpack(packed[begin : begin + rows], wide[:rows])
            begin += rows
            _scaled_elsewhere(positive[:n], dyb, slope, scaled[:n], dxb, lanes[:n])

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


def _scaled_elsewhere(
    mask: Array, x: Array, slope: float, scaled: Array, y: Array, lanes: Array
) -> None:
    """y = x where mask, slope * x elsewhere; ``scaled`` and ``lanes`` are scratch"""
    if slope == 0:
        keep(mask, x, y, lanes)
    else:
        np.multiply(x, np.float32(slope), out=scaled)
        choose(mask, x, scaled, y, lanes)
