"""Choose elements by a mask without branches.

NumPy's ``where=`` runs a loop for every stretch of equal mask values: ten times slower than these
on masks that change often, as those of ReLU or dropout do. A float is kept or cleared by AND with
an integer of ones or zeros, so what is not selected leaves no trace, be it NaN or infinite.

``lanes`` is int32 scratch of the operands' shape; all arrays are float32, masks bool.
"""

from __future__ import annotations

import numpy as np

from layrubnet.devices.cpu.blocks import Array

_ONE = np.int32(1)


def keep(mask: Array, x: Array, y: Array, lanes: Array) -> None:
    """y = x where mask, 0 elsewhere"""
    np.copyto(lanes, mask)
    np.negative(lanes, out=lanes)
    np.bitwise_and(x.view(np.int32), lanes, out=y.view(np.int32))


def choose(mask: Array, x: Array, other: Array, y: Array, lanes: Array) -> None:
    """y = x where mask, other elsewhere; ``other`` is scratch and is destroyed"""
    np.copyto(lanes, mask)
    np.subtract(lanes, _ONE, out=lanes)
    bits, difference = x.view(np.int32), other.view(np.int32)
    np.bitwise_xor(difference, bits, out=difference)
    np.bitwise_and(difference, lanes, out=difference)
    np.bitwise_xor(bits, difference, out=y.view(np.int32))
