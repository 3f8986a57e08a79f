"""``caffe.Classifier``: an image classifier with its preprocessing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layrubnet.pycaffe import images
from layrubnet.pycaffe.io import Transformer
from layrubnet.pycaffe.mode import TEST
from layrubnet.pycaffe.net import Net

Path = str | os.PathLike[str]


class Classifier(Net):
    """A net with one input and one output of class scores.

    ``image_dims``: images are resized to it before they are cropped to the input's size. ``mean``,
    ``input_scale``, ``raw_scale``, ``channel_swap``: as in :class:`caffe.io.Transformer`.
    """

    def __init__(
        self,
        model_file: Path,
        pretrained_file: Path,
        image_dims: Sequence[int] | None = None,
        mean: NDArray[Any] | None = None,
        input_scale: float | None = None,
        raw_scale: float | None = None,
        channel_swap: Sequence[int] | None = None,
    ) -> None:
        super().__init__(model_file, TEST, weights=pretrained_file)
        (name,) = self.inputs
        shape = self.blobs[name].shape
        self.transformer = Transformer({name: shape})
        self.transformer.set_transpose(name, (2, 0, 1))
        if mean is not None:
            self.transformer.set_mean(name, mean)
        if input_scale is not None:
            self.transformer.set_input_scale(name, input_scale)
        if raw_scale is not None:
            self.transformer.set_raw_scale(name, raw_scale)
        if channel_swap is not None:
            self.transformer.set_channel_swap(name, channel_swap)
        self.crop_dims = tuple(shape[2:])
        self.image_dims = tuple(image_dims) if image_dims else self.crop_dims

    def predict(
        self, inputs: Sequence[NDArray[Any]], oversample: bool = True
    ) -> NDArray[np.float32]:
        """Class scores, one row per H x W x C image; ``oversample`` averages over ten crops."""
        resized = [images.resize_image(np.asarray(image), self.image_dims) for image in inputs]
        crops = images.oversample(resized, self.crop_dims) if oversample else self._centres(resized)
        name = self.inputs[0]
        prepared = np.stack([self.transformer.preprocess(name, crop) for crop in crops])
        scores = self.forward_all(**{name: prepared})[self.outputs[0]]
        if oversample:
            scores = scores.reshape(len(resized), 10, -1).mean(axis=1)
        return np.asarray(scores, np.float32)

    def _centres(self, images: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        height, width = self.crop_dims
        top, left = (self.image_dims[0] - height) // 2, (self.image_dims[1] - width) // 2
        return [image[top : top + height, left : left + width] for image in images]
