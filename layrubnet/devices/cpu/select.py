"""Choose elements by a mask without branches.

NumPy's ``where=`` runs a loop for every stretch of equal mask values: ten times slower than these
on masks that change often, as those of ReLU or dropout do. A float is kept or cleared by AND with
an integer of ones or zeros, so what is not selected leaves no trace, be it NaN or infinite.

``lanes`` is int32 scratch of the operands' shape; all arrays are float32, masks bool.
``pack`` and ``unpack`` are for masks that are kept: one bit per element.
"""

from __future__ import annotations

import numpy as np

from layrubnet.devices.cpu.blocks import Array

_ONE = np.int32(1)
_LITTLE = np.dtype("<u8")


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


_GATHER = np.uint64(0x0102040810204080)
"""Times eight bytes of 0 or 1: bit j of the highest byte is byte j (no two products meet)."""
_SPREAD = np.uint64(0x0101010101010101)
_PICK = np.uint64(0x8040201008040201)


def pack(mask: Array, bits: Array) -> None:
    """bits[i] = the eight bools in mask[i] (uint64), the first one lowest; ``mask`` is destroyed"""
    words = mask.view(_LITTLE)
    np.multiply(words, _GATHER, out=words)
    np.copyto(bits, mask.view(np.uint8)[7::8])


def unpack(bits: Array, mask: Array) -> None:
    """The reverse: mask[i] (uint64) = eight bools, the lowest bit of bits[i] first"""
    words, lanes = mask.view(_LITTLE), mask.view(np.uint8)
    np.copyto(words, bits)
    np.multiply(words, _SPREAD, out=words)
    np.bitwise_and(words, _PICK, out=words)
    np.not_equal(lanes, 0, out=mask.view(np.bool_))
