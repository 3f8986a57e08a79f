"""Find and load oneDNN's shared library, once per process. No library is no error.

The library is looked for beside the interpreter first (where the package ``onednn-cpu-gomp`` puts
it), then where the system's loader looks.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

NAME = "libdnnl.so.3"
MAJOR = 3
_SYCL = 512
HINT = 'pip install "layrubnet[cpu]"'

_PATIENCE = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Idle OpenMP threads sleep. By default they spin, which on a shared machine takes the very core
that the thread with work is waiting for: steps become ten times slower."""


class _Version(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("patch", ctypes.c_int),
        ("hash", ctypes.c_char_p),
        ("cpu_runtime", ctypes.c_uint),
        ("gpu_runtime", ctypes.c_uint),
    )


@dataclass(frozen=True)
class Loaded:
    """A library that can be used, or None and the reason."""

    library: ctypes.CDLL | None
    text: str


@contextmanager
def _patience() -> Iterator[None]:
    """Variables that the OpenMP runtime reads when it is loaded, unless the user has set them."""
    said = "OMP_WAIT_POLICY" in os.environ or "GOMP_SPINCOUNT" in os.environ
    added = {} if said else _PATIENCE
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def candidates() -> list[str]:
    """What to try, in this order: a path, then a name for the system's loader."""
    beside = Path(sys.prefix, "lib", NAME)
    return [str(beside)] * beside.is_file() + [NAME]


def check(library: ctypes.CDLL) -> Loaded:
    """Refuse versions whose interface or run time differs."""
    library.dnnl_version.restype = ctypes.POINTER(_Version)
    version = library.dnnl_version().contents
    text = f"oneDNN {version.major}.{version.minor}.{version.patch}"
    if version.major != MAJOR:
        return Loaded(None, f"{text} was found, version {MAJOR} is needed")
    if version.cpu_runtime == _SYCL:
        return Loaded(None, f"{text} was found, but it runs on SYCL; a build with OpenMP is needed")
    return Loaded(library, text)


@lru_cache(maxsize=1)
def load() -> Loaded:
    """The library, or why there is none (the reason of the first file found)."""
    reasons = []
    for path in candidates():
        try:
            with _patience():
                library = ctypes.CDLL(path)
        except OSError as error:
            reasons.append(str(error))
            continue
        loaded = check(library)
        if loaded.library is not None:
            return loaded
        reasons.append(loaded.text)
    return Loaded(None, f"{reasons[0]} ({HINT})")
