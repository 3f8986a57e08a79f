"""Cut a box out of an array, and put it back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from layrubnet.devices.cpu.basic import BasicOps
from layrubnet.devices.cpu.blocks import Array


def _box(small: Array, offsets: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(o, o + n) for o, n in zip(offsets, small.shape, strict=True))


class CropOps(BasicOps):
    """Boxes of arrays."""

    def crop_forward(self, x: Array, offsets: Sequence[int], y: Array) -> None:
        """y[i] = x[i + offsets]"""
        np.copyto(y, x[_box(y, offsets)])

    def crop_backward(self, dy: Array, offsets: Sequence[int], dx: Array) -> None:
        """dx[i + offsets] = dy[i], 0 elsewhere"""
        dx.fill(0)
        np.copyto(dx[_box(dy, offsets)], dy)
