"""Resize and crop images as ``caffe.io`` does (H x W x C arrays of floats)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layrubnet import extras
from layrubnet.errors import DataError

Image = NDArray[np.float32]
_LUMINANCE = np.array([0.2125, 0.7154, 0.0721], np.float32)
"""Weights of red, green and blue, as Caffe's image reader has them."""


def load_image(filename: str | os.PathLike[str], color: bool = True) -> Image:
    """Read an image file as H x W x 3 (RGB), or H x W x 1, with values from 0 to 1."""
    cv2 = extras.cv2()
    name = os.fspath(filename)
    if not os.path.isfile(name):
        raise DataError("no such image file", where=name)
    image = cv2.imread(name, cv2.IMREAD_COLOR | cv2.IMREAD_ANYDEPTH)
    if image is None:
        raise DataError("the file is no image that OpenCV can decode", where=name)
    scale = np.iinfo(image.dtype).max if np.issubdtype(image.dtype, np.integer) else 1
    rgb: Image = image[:, :, ::-1].astype(np.float32) / np.float32(scale)
    return rgb if color else (rgb @ _LUMINANCE)[:, :, None]


def resize_image(image: NDArray[Any], new_dims: Sequence[int], interp_order: int = 1) -> Image:
    """Resize an H x W x C image to ``new_dims`` (height, width).

    ``interp_order``: 0 (nearest) or 1 (linear). As in Caffe, images of 1 or 3 channels have their
    pixels' areas aligned, are smoothed before they shrink, and darken towards the smallest value
    at the border when enlarged; other arrays have their corners aligned.
    """
    if interp_order not in (0, 1):
        raise ValueError("resize_image: interp_order must be 0 (nearest) or 1 (linear)")
    array = np.asarray(image, np.float32)
    height, width = (int(d) for d in new_dims)
    if array.shape[-1] not in (1, 3):
        return _zoom(array, (height, width), interp_order, corners=True)
    low, high = array.min(), array.max()
    if not high > low:
        return np.full((height, width, array.shape[-1]), low, np.float32)
    # Outside of the image is the smallest value, which is what 0 is in Caffe's normalised image.
    array = array - low
    if interp_order and (height < array.shape[0] or width < array.shape[1]):
        for axis, size in enumerate((height, width)):
            array = _smooth(array, axis, (array.shape[axis] / size - 1) / 2)
    zoomed = _zoom(array, (height, width), interp_order, corners=False)
    made: Image = np.clip(zoomed, 0, high - low) + low
    return made


def _smooth(array: Image, axis: int, sigma: float) -> Image:
    """A Gaussian along one axis, with zeros outside: against aliasing when an image shrinks."""
    radius = int(4 * sigma + 0.5)
    if sigma <= 0 or radius < 1:
        return array
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    weights = (weights / weights.sum()).astype(np.float32)
    pad = [(radius, radius) if a == axis else (0, 0) for a in range(array.ndim)]
    padded = np.pad(array, pad)
    index = np.arange(array.shape[axis])
    made = np.zeros_like(array)
    for k, weight in enumerate(weights):
        made += weight * np.take(padded, index + k, axis)
    return made


def _zoom(array: Image, dims: tuple[int, int], order: int, *, corners: bool) -> Image:
    for axis, size in enumerate(dims):
        array = _zoom_axis(array, axis, size, order, corners)
    return array


def _zoom_axis(array: Image, axis: int, size: int, order: int, corners: bool) -> Image:
    old = array.shape[axis]
    if size == old:
        return array
    grid = np.arange(size)
    if corners:
        at = grid * ((old - 1) / max(size - 1, 1))
    else:
        at = (grid + 0.5) * (old / size) - 0.5
    shape = [1] * array.ndim
    shape[axis] = size
    if order == 0:
        nearest: Image = np.take(array, np.clip(np.rint(at).astype(int), 0, old - 1), axis)
        return nearest
    below = np.floor(at).astype(int)
    part = (at - below).astype(np.float32).reshape(shape)
    padded = np.pad(array, [(1, 1) if a == axis else (0, 0) for a in range(array.ndim)])
    first = np.take(padded, np.clip(below + 1, 0, old + 1), axis)
    second = np.take(padded, np.clip(below + 2, 0, old + 1), axis)
    made: Image = first * (1 - part) + second * part
    return made


def oversample(images: Sequence[NDArray[Any]], crop_dims: Sequence[int]) -> Image:
    """Ten crops of each image: the four corners and the centre, then the same mirrored.

    Shape: (10 * number of images, height, width, channels).
    """
    first = np.asarray(images[0])
    height, width = (int(d) for d in crop_dims)
    below, right = first.shape[0] - height, first.shape[1] - width
    if below < 0 or right < 0:
        raise ValueError(f"crops of {height} x {width} do not fit images of {first.shape[:2]}")
    corners = [(y, x) for y in (0, below) for x in (0, right)]
    centre = (int(first.shape[0] / 2.0 - height / 2.0), int(first.shape[1] / 2.0 - width / 2.0))
    crops = []
    for image in images:
        five = [np.asarray(image)[y : y + height, x : x + width] for y, x in [*corners, centre]]
        crops += five + [crop[:, ::-1] for crop in five]
    return np.stack(crops).astype(np.float32)
