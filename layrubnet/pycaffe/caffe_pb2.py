"""Caffe's messages under the name that scripts know: ``caffe_pb2.NetParameter()``.

The classes are those of :mod:`layrubnet.proto`; an installed Caffe is not touched.
"""

from __future__ import annotations

from typing import Any

from layrubnet import proto
from layrubnet.proto import TEST, TRAIN, Phase

__all__ = ["TEST", "TRAIN", "Phase"]


def __getattr__(name: str) -> Any:
    return getattr(proto, name)


def __dir__() -> list[str]:
    return dir(proto)
