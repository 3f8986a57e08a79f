"""A layer written for pycaffe: such files run as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from layrubnet import pycaffe as caffe  # a file for Caffe says: import caffe


class HuberLoss(caffe.Layer):
    """Mean over the rows of the Huber loss; ``param_str`` is the error from which it is linear."""

    def setup(self, bottom: Any, top: Any) -> None:
        if len(bottom) != 2:
            raise ValueError("HuberLoss compares two bottoms")
        self.limit = float(self.param_str or 1)

    def reshape(self, bottom: Any, top: Any) -> None:
        if bottom[0].count != bottom[1].count:
            raise ValueError("the bottoms of HuberLoss must have the same number of elements")
        top[0].reshape(1)

    def forward(self, bottom: Any, top: Any) -> None:
        size = np.abs(self._error(bottom))
        square, line = 0.5 * size**2, self.limit * (size - 0.5 * self.limit)
        top[0].data[...] = np.where(size < self.limit, square, line).sum() / bottom[0].num

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        slope = np.clip(self._error(bottom), -self.limit, self.limit)
        scale = top[0].diff[0] / bottom[0].num
        for index, sign in enumerate((1, -1)):
            if propagate_down[index]:
                bottom[index].diff[...] = sign * scale * slope.reshape(bottom[index].data.shape)

    def _error(self, bottom: Any) -> Any:
        return bottom[0].data.ravel() - bottom[1].data.ravel()
