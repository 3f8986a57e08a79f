"""Python layers for the nets of these tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from layrubnet import pycaffe as caffe


class Mix(caffe.Layer):
    """y = x z, reading everything it can in backward."""

    def setup(self, bottom: Any, top: Any) -> None:
        pass

    def reshape(self, bottom: Any, top: Any) -> None:
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom: Any, top: Any) -> None:
        top[0].data[...] = bottom[0].data * bottom[1].data

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        for index in (0, 1):
            if propagate_down[index]:
                bottom[index].diff[...] = top[0].diff * bottom[1 - index].data


class Counter(caffe.Layer):
    """y = x + how often it has run: a second run in a step would show."""

    def setup(self, bottom: Any, top: Any) -> None:
        self.runs = 0

    def reshape(self, bottom: Any, top: Any) -> None:
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom: Any, top: Any) -> None:
        self.runs += 1
        top[0].data[...] = np.tanh(bottom[0].data) + self.runs

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        if propagate_down[0]:
            bottom[0].diff[...] = top[0].diff * (1 - (top[0].data - self.runs) ** 2)
