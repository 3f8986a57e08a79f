"""Caffe's HDF5 layout of weights (``data/<layer>/<i>``, ``diff/...``) and of snapshots.

A layer name with a slash becomes nested groups; Caffe cannot write such a file, but nothing in the
layout forbids it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from layrubnet import extras
from layrubnet.errors import WeightsError
from layrubnet.prototxt.blobs import Array

_MOST_BLOBS = 100_000
Layer = tuple[str, list[Array | None], list[Array | None]]


@contextlib.contextmanager
def opened(path: str | os.PathLike[str], mode: str = "r") -> Iterator[Any]:
    """Open an HDF5 file; what the library says about a damaged one becomes a WeightsError."""
    h5py = extras.h5py()
    try:
        with h5py.File(path, mode) as file:
            yield file
    except (OSError, KeyError, RuntimeError, TypeError, ValueError, MemoryError) as error:
        raise WeightsError(f"HDF5: {error}", where=os.fspath(path)) from None


def read_layers(path: str | os.PathLike[str]) -> list[Layer]:
    """Return name, blobs and gradients of every layer."""
    with opened(path) as file:
        if not _is_group(file.get("data")):
            state = "history" in file or "iter" in file
            raise WeightsError(
                "the HDF5 file has no group 'data'",
                where=os.fspath(path),
                hint="this is a solver snapshot; give it with --snapshot" if state else "",
            )
        diffs = file["diff"] if _is_group(file.get("diff")) else {}
        return [_layer(name, group, diffs) for name, group in _groups(file["data"], "")]


def write_layers(
    path: Path,
    net: Any,
    blobs: Mapping[str, Sequence[Array | None]],
    diffs: Mapping[str, Sequence[Array | None]] | None,
) -> None:
    """Write every layer of ``net``; a shared blob only under the first layer that names it."""
    owners: set[str] = set()
    with opened(path, "w") as file:
        data = file.create_group("data")
        gradients = file.create_group("diff") if diffs else None
        for layer in net.layer:
            group = data.require_group(layer.name)
            diff_group = None if gradients is None else gradients.require_group(layer.name)
            gradient_arrays = (diffs or {}).get(layer.name, ())
            for index, array in enumerate(blobs.get(layer.name, ())):
                if _already_owned(layer, index, owners) or array is None:
                    continue
                group[str(index)] = np.asarray(array, np.float32)
                gradient = gradient_arrays[index] if index < len(gradient_arrays) else None
                if diff_group is not None and gradient is not None:
                    diff_group[str(index)] = np.asarray(gradient, np.float32)


def read_indexed(group: Any) -> list[Array]:
    """Return the data sets ``0``, ``1``, ... of a group as arrays of their stored type."""
    return [np.asarray(group[str(index)][()]) for index in _indices(group)]


def _already_owned(layer: Any, index: int, owners: set[str]) -> bool:
    name = layer.param[index].name if index < len(layer.param) else ""
    if not name:
        return False
    known = name in owners
    owners.add(name)
    return known


def _groups(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for key in _names(group):
        child = group[key]
        if not _is_group(child):
            continue
        name = f"{prefix}{key}"
        inner = [k for k in _names(child) if _is_group(child[k])]
        if len(inner) < len(child) or not len(child):
            yield name, child
        yield from _groups(child, f"{name}/")


def _layer(name: str, group: Any, diffs: Any) -> Layer:
    stored = _indices(group)
    blobs: list[Array | None] = []
    gradients: list[Array | None] = []
    for index in range(max(stored, default=-1) + 1):
        # A shared blob is stored under its owner only: the others have gaps.
        blobs.append(np.asarray(group[str(index)][()]) if index in stored else None)
        key = f"{name}/{index}"
        gradients.append(np.asarray(diffs[key][()]) if key in diffs else None)
    return name, blobs, gradients


def _indices(group: Any) -> list[int]:
    """Return the numbers in order that are names of data sets."""
    numbers = [int(name) for name in _names(group) if name.isdecimal()]
    found = sorted(number for number in numbers if not _is_group(group[str(number)]))
    if found and found[-1] > _MOST_BLOBS:
        raise ValueError(f"{found[-1]} is no sensible index of a blob")
    return found


def _names(group: Any) -> list[str]:
    # The library gives names that are no UTF-8 as bytes: nothing that Caffe or we wrote.
    return [name for name in group if isinstance(name, str)]


def _is_group(item: Any) -> bool:
    return hasattr(item, "keys")
