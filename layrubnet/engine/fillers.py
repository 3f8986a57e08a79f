"""Fillers: initial values of parameters, as Caffe draws them (same distributions, own generator).

``fan_in = count / shape[0]``, ``fan_out = count / shape[1]``; ``n`` is chosen by variance_norm
(FAN_IN, FAN_OUT or AVERAGE).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from layrubnet.engine.contract import Shape
from layrubnet.errors import NetError, nearest

Rng = np.random.Generator


def generator(seed: int, name: str) -> Rng:
    """The random stream for the initial values of the parameter ``name``."""
    return np.random.Generator(np.random.Philox(key=[seed, zlib.crc32(name.encode())]))


def fill(filler: Any, shape: Shape, rng: Rng, where: str = "") -> np.ndarray:
    """Return a float32 array of ``shape`` with values drawn as FillerParameter ``filler`` says.

    ``None`` means the default: the constant 0. An array is taken as it is.
    """
    if filler is None:
        return np.zeros(shape, np.float32)
    if isinstance(filler, np.ndarray):
        return filler.astype(np.float32).reshape(shape)
    maker = _FILLERS.get(filler.type)
    if maker is None:
        close = nearest(filler.type, _FILLERS)
        raise NetError(
            f"Unknown filler name: {filler.type}",
            where=where,
            expected=", ".join(sorted(_FILLERS)),
            hint=f"did you mean {close[0]!r}?" if close else "",
        )
    if filler.sparse != -1 and filler.type != "gaussian":
        raise NetError("Sparsity is only supported by the gaussian filler", where=where)
    values: np.ndarray = maker(filler, shape, rng, where)
    return np.asarray(values, np.float32).reshape(shape)


def _constant(filler: Any, shape: Shape, rng: Rng, where: str) -> np.ndarray:
    return np.full(shape, filler.value, np.float32)


def _uniform(filler: Any, shape: Shape, rng: Rng, where: str) -> np.ndarray:
    return rng.uniform(filler.min, filler.max, shape)


def _gaussian(filler: Any, shape: Shape, rng: Rng, where: str) -> np.ndarray:
    """Normal; with ``sparse: s`` each weight is kept with probability s / (number of outputs)."""
    values = rng.normal(filler.mean, filler.std, shape)
    if filler.sparse >= 0:
        if not shape:
            raise NetError("a sparse gaussian filler needs at least one axis", where=where)
        values *= rng.random(shape) < filler.sparse / shape[0]
    return values


def _positive_unitball(filler: Any, shape: Shape, rng: Rng, where: str) -> np.ndarray:
    """Uniform in [0, 1), then each row (axis 0) is scaled to sum 1."""
    values = rng.random(shape).reshape(shape[0], -1)
    scaled: np.ndarray = values / values.sum(axis=1, keepdims=True)
    return scaled


def _fan(filler: Any, shape: Shape, where: str) -> float:
    count = math.prod(shape)
    if not shape or not count:
        raise NetError(
            f"filler {filler.type!r} needs a blob with at least one axis", where=where, got=shape
        )
    fan_in = count / shape[0]
    fan_out = count / shape[1] if len(shape) > 1 else float(count)
    norm = type(filler).VarianceNorm.Name(filler.variance_norm)
    return {"FAN_IN": fan_in, "FAN_OUT": fan_out, "AVERAGE": (fan_in + fan_out) / 2}[norm]


def _xavier(filler: Any, shape: Shape, rng: Rng, where: str) -> np.ndarray:
    """Uniform in [-a, a] with a = sqrt(3 / n)."""
    bound = math.sqrt(3.0 / _fan(filler, shape, where))
    return rng.uniform(-bound, bound, shape)


def _msra(filler: Any, shape: Shape, rng: Rng, where: str) -> np.ndarray:
    """Normal with standard deviation sqrt(2 / n)."""
    return rng.normal(0.0, math.sqrt(2.0 / _fan(filler, shape, where)), shape)


def _bilinear(filler: Any, shape: Shape, rng: Rng, where: str) -> np.ndarray:
    """Weights of bilinear up-sampling by a Deconvolution; needs square 2-D kernels."""
    if len(shape) != 4 or shape[2] != shape[3]:
        raise NetError(
            "the bilinear filler needs a 4-axis blob with square kernels", where=where, got=shape
        )
    size = shape[3]
    factor = math.ceil(size / 2.0)
    centre = (2 * factor - 1 - factor % 2) / (2.0 * factor)
    ramp = 1 - np.abs(np.arange(size) / factor - centre)
    return np.broadcast_to(np.outer(ramp, ramp), shape)


_FILLERS: dict[str, Callable[[Any, Shape, Rng, str], np.ndarray]] = {
    "bilinear": _bilinear,
    "constant": _constant,
    "gaussian": _gaussian,
    "msra": _msra,
    "positive_unitball": _positive_unitball,
    "uniform": _uniform,
    "xavier": _xavier,
}
