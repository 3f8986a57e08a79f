"""The three passes of a convolution of a fixed number of images, as oneDNN primitives."""

from __future__ import annotations

from layrubnet.devices.cpu.onednn.binding import (
    BIAS,
    DIFF_DST,
    DIFF_SRC,
    DIFF_WEIGHTS,
    DIRECT,
    DST,
    FORWARD_TRAINING,
    SRC,
    WEIGHTS,
    Handle,
    OneDnn,
    dims,
)
from layrubnet.devices.cpu.onednn.staged import Staged
from layrubnet.devices.geometry import ConvGeometry


class Passes:
    """Makes the passes for ``images`` images; raises ``Unsupported`` where there is no kernel.

    All operands are C-contiguous outside; inside each has the layout that oneDNN likes best.
    """

    def __init__(self, dnn: OneDnn, g: ConvGeometry, images: int) -> None:
        self._dnn, self.images = dnn, images
        w = g.weight_shape
        if g.group > 1:
            w = (g.group, g.outputs // g.group, *w[1:])
        x, y = (images, g.channels, *g.size), (images, g.outputs, *g.out_size)
        self._x, self._y, self._w = dnn.plain(x), dnn.plain(y), dnn.plain(w)
        self._b = dnn.plain((g.outputs,))
        self._free_x, self._free_y, self._free_w = map(dnn.any_layout, (x, y, w))
        pad = dims(g.pad)
        self._window = (dims(g.stride), dims([d - 1 for d in g.dilation]), pad, pad)
        self._hint = self._forward(None)

    def _forward(self, bias: Handle | None) -> Handle:
        dnn = self._dnn
        return dnn.describe(
            "convolution_forward",
            dnn.engine,
            FORWARD_TRAINING,
            DIRECT,
            self._free_x,
            self._free_w,
            bias,
            self._free_y,
            *self._window,
            dnn.attributes,
        )

    def forward(self, *, bias: bool) -> Staged:
        """From SRC, WEIGHTS and BIAS to DST."""
        inputs = {SRC: self._x, WEIGHTS: self._w}
        if bias:
            inputs[BIAS] = self._b
        descriptor = self._forward(self._b) if bias else self._hint
        return Staged(self._dnn, descriptor, inputs, {DST: self._y})

    def backward_data(self) -> Staged:
        """From DIFF_DST and WEIGHTS to DIFF_SRC."""
        dnn = self._dnn
        descriptor = dnn.describe(
            "convolution_backward_data",
            dnn.engine,
            DIRECT,
            self._free_x,
            self._free_w,
            self._free_y,
            *self._window,
            self._hint,
            dnn.attributes,
        )
        inputs = {DIFF_DST: self._y, WEIGHTS: self._w}
        return Staged(dnn, descriptor, inputs, {DIFF_SRC: self._x})

    def backward_weights(self) -> Staged:
        """From SRC and DIFF_DST to DIFF_WEIGHTS."""
        dnn = self._dnn
        descriptor = dnn.describe(
            "convolution_backward_weights",
            dnn.engine,
            DIRECT,
            self._free_x,
            self._free_w,
            None,
            self._free_y,
            *self._window,
            self._hint,
            dnn.attributes,
        )
        inputs = {SRC: self._x, DIFF_DST: self._y}
        return Staged(dnn, descriptor, inputs, {DIFF_WEIGHTS: self._w})
