"""Optional packages: the one place that imports them.

Each function returns the imported module, or raises :class:`MissingDependency` saying what was
wanted and how to install it. Nothing here runs at ``import layrubnet``.
"""

from __future__ import annotations

import importlib
from typing import Any

from layrubnet.errors import MissingDependency


def _load(module: str, purpose: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependency(
            f"{purpose} needs the Python package {module.split('.')[0]!r} ({error})",
            hint=f'pip install "layrubnet[{extra}]"',
        ) from None


def lmdb() -> Any:
    """LMDB data bases."""
    return _load("lmdb", "reading or writing LMDB", "data")


def h5py() -> Any:
    """HDF5 files."""
    return _load("h5py", "reading or writing HDF5", "data")


def cv2() -> Any:
    """OpenCV: image files and encoded Datums (Caffe decodes with it, too)."""
    return _load("cv2", "decoding images", "data")


def pyplot() -> Any:
    """Matplotlib's pyplot on the file-only Agg backend."""
    _load("matplotlib", "drawing plots", "plot").use("Agg")
    return _load("matplotlib.pyplot", "drawing plots", "plot")


def rich(module: str) -> Any:
    """A module of rich, for example ``rich("progress")``: terminal tables and progress."""
    return _load(f"rich.{module}", "the live terminal display", "ui")


def tensorboard_writer(folder: str) -> Any:
    """A TensorBoard event writer on ``folder``."""
    return _load("tensorboardX", "writing TensorBoard events", "tensorboard").SummaryWriter(folder)
