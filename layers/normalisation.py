"""loss_param's normalization: what the sum of the elements' losses is divided by."""

from __future__ import annotations

from typing import Any


def normalisation(param: Any, default: str) -> str:
    """Return FULL, VALID, BATCH_SIZE or NONE for a LossParameter, legacy ``normalize`` included."""
    if param.HasField("normalization"):
        return str(type(param).NormalizationMode.Name(param.normalization))
    if param.HasField("normalize"):
        return "VALID" if param.normalize else "BATCH_SIZE"
    return default


def divisor_of(mode: str, outer: int, inner: int) -> float | None:
    """The divisor for M = ``outer`` samples of S = ``inner`` elements; None: what counts."""
    return {
        "FULL": float(outer * inner),
        "VALID": None,
        "BATCH_SIZE": float(outer),
        "NONE": 1.0,
    }[mode]
