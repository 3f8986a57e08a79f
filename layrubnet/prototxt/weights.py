"""Weights files (``.caffemodel`` and ``.caffemodel.h5``) and mean files (``.binaryproto``).

The reader takes name, type and blobs of each layer from the bytes and ignores everything else:
the files of all forks load, whatever their layer options say under contradicting numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from layrubnet.errors import WeightsError
from layrubnet.files import atomic_write
from layrubnet.proto import V1LayerParameter
from layrubnet.prototxt import hdf5, sniff, wire
from layrubnet.prototxt.binary import damage, read_checked
from layrubnet.prototxt.blobs import Array, decode_blob, encode_blob
from layrubnet.prototxt.upgrade_v1 import type_of

# Arrays by layer name; None only for gradients, and for shared blobs in HDF5.
Arrays = Mapping[str, Sequence[Array | None]]

# Field numbers of NetParameter and of the three generations of layers.
_LAYER, _V1_LAYERS = 100, 2
_NAME, _TYPE, _BLOBS = 1, 2, 7
_V1_NAME, _V1_TYPE, _V1_BLOBS, _V0_LAYER = 4, 5, 6, 1
_V0_NAME, _V0_TYPE, _V0_BLOBS = 1, 2, 50


@dataclass(slots=True)
class LayerWeights:
    """What a weights file holds of one layer.

    ``diffs`` has None where no gradient is stored; ``blobs`` has None for a shared blob of an
    HDF5 file, which is stored under the first layer that has it only.
    """

    name: str
    type: str = ""
    blobs: list[Array | None] = field(default_factory=list)
    diffs: list[Array | None] = field(default_factory=list)


def read_weights(path: str | os.PathLike[str]) -> list[LayerWeights]:
    """Return the layers of a weights file, those without blobs included, in file order.

    Arrays have the stored shape and type (legacy files: four axes). HDF5 files, told by their
    suffix ``.h5``, have no layer types. Raises :class:`~layrubnet.errors.WeightsError`.
    """
    name = os.fspath(path)
    data = read_checked(path, sniff.WEIGHTS)
    if data.startswith(sniff.HDF5_SIGNATURE):
        return [
            LayerWeights(layer, "", blobs, diffs) for layer, blobs, diffs in hdf5.read_layers(path)
        ]
    with damage(name):
        return list(_layers(memoryview(data)))


def write_weights(
    path: str | os.PathLike[str],
    net: Any,
    blobs: Arrays,
    diffs: Arrays | None = None,
) -> None:
    """Write a weights file that Caffe reads: the layers of ``net`` with the arrays by layer name.

    ``net`` is a NetParameter; blobs in it are ignored. Everything is stored as float32. The suffix
    ``.h5`` chooses HDF5. The file appears under its name only when complete.
    """
    unknown = sorted({*blobs, *(diffs or {})} - {layer.name for layer in net.layer})
    if unknown:
        raise WeightsError(f"the net has no layer {unknown[0]!r}", where=os.fspath(path))
    with atomic_write(path) as temporary:
        if Path(path).suffix == ".h5":
            hdf5.write_layers(temporary, net, blobs, diffs)
            return
        with open(temporary, "wb") as file:
            for part in _encode_net(net, blobs, diffs or {}):
                file.write(part)


def read_blob(path: str | os.PathLike[str]) -> Array:
    """Return the array of a ``.binaryproto`` file (a data mean: 1 x C x H x W)."""
    data = read_checked(path, sniff.BLOB)
    with damage(os.fspath(path)):
        return decode_blob(memoryview(data))[0]


def write_blob(path: str | os.PathLike[str], array: Array) -> None:
    """Write an array as a ``.binaryproto`` file, float32, atomically."""
    with atomic_write(path) as temporary:
        temporary.write_bytes(encode_blob(array))


def _layers(data: memoryview) -> Iterator[LayerWeights]:
    for number, kind, value in wire.fields(data):
        if kind != wire.LENGTH or isinstance(value, int):
            continue
        if number == _LAYER:
            yield _layer(value, _NAME, _TYPE, _BLOBS)
        elif number == _V1_LAYERS:
            yield _v1_layer(value)


def _layer(data: memoryview, name: int, kind: int, blobs: int) -> LayerWeights:
    result = LayerWeights("")
    for number, _, value in wire.fields(data):
        if isinstance(value, int):
            continue
        if number == name:
            result.name = str(value, "utf-8", "replace")
        elif number == kind:
            result.type = str(value, "utf-8", "replace")
        elif number == blobs:
            blob, diff = decode_blob(value)
            result.blobs.append(blob)
            result.diffs.append(diff)
    return result


def _v1_layer(data: memoryview) -> LayerWeights:
    code = 0
    for number, _, value in wire.fields(data):
        if number == _V0_LAYER and not isinstance(value, int):
            return _layer(value, _V0_NAME, _V0_TYPE, _V0_BLOBS)
        if number == _V1_TYPE and isinstance(value, int):
            code = value
    result = _layer(data, _V1_NAME, -1, _V1_BLOBS)
    if code in V1LayerParameter.LayerType.values():
        result.type = type_of(V1LayerParameter(type=code))
    return result


def _encode_net(net: Any, blobs: Arrays, diffs: Arrays) -> Iterator[bytes]:
    head = type(net)()
    head.CopyFrom(net)
    head.ClearField("layer")
    yield head.SerializeToString()
    for layer in net.layer:
        bare = type(layer)()
        bare.CopyFrom(layer)
        bare.ClearField("blobs")
        parts = [bare.SerializeToString()]
        gradients = diffs.get(layer.name, ())
        for index, array in enumerate(blobs.get(layer.name, ())):
            if array is None:
                raise WeightsError(f"layer {layer.name!r} has no values for its blob {index}")
            gradient = gradients[index] if index < len(gradients) else None
            body = encode_blob(array, gradient)
            parts += [wire.encode_header(_BLOBS, len(body)), body]
        yield wire.encode_header(_LAYER, sum(map(len, parts)))
        yield from parts
