"""The second format, ``layers { type: CONVOLUTION ... }``, to ``layer { type: "Convolution" }``."""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Any

from layrubnet.errors import PrototxtError
from layrubnet.proto import enum_name
from layrubnet.prototxt.positions import Positions

# Enum name -> type, where it is not just the words joined in title case.
_IRREGULAR = {
    "NONE": "",
    "ABSVAL": "AbsVal",
    "ARGMAX": "ArgMax",
    "BNLL": "BNLL",
    "HDF5_DATA": "HDF5Data",
    "HDF5_OUTPUT": "HDF5Output",
    "LRN": "LRN",
    "MVN": "MVN",
    "RELU": "ReLU",
    "SOFTMAX_LOSS": "SoftmaxWithLoss",
    "TANH": "TanH",
}
_DATA_PARAMS = ("data_param", "image_data_param", "window_data_param")
_TRANSFORM = ("scale", "mean_file", "crop_size", "mirror")
# Fields that become ParamSpec entries, and those that no layer has any more.
_SPECIAL = {"type", "param", "blob_share_mode", "blobs_lr", "weight_decay", "layer"}


def type_of(layer: Any) -> str:
    """Return the current name of a V1 layer's type."""
    name = enum_name(layer, "type")
    if name in _IRREGULAR:
        return _IRREGULAR[name]
    return "".join(word.capitalize() for word in name.split("_"))


def upgrade_v1(net: Any, places: Positions) -> Any:
    """Return the net with every ``layers`` entry as a ``layer``."""
    result = type(net)()
    result.CopyFrom(net)
    result.ClearField("layers")
    for index, old in enumerate(net.layers):
        layer = result.layer.add()
        _upgrade_layer(old, layer)
        move_transforms(layer, places.where(index, old.name), override=True)
    return result


def move_transforms(layer: Any, where: str, override: bool = False) -> None:
    """Move scale, mean_file, crop_size and mirror of a data layer to its ``transform_param``.

    In V1 nets the old fields win over the new ones (``override``), as in Caffe. In current nets
    Caffe ignores them in silence; here they count, and a contradiction is an error.
    """
    for param in _DATA_PARAMS:
        if not layer.HasField(param):
            continue
        options = getattr(layer, param)
        for field in _TRANSFORM:
            if not options.HasField(field):
                continue
            value = getattr(options, field)
            transform = layer.transform_param
            if not override and transform.HasField(field) and getattr(transform, field) != value:
                raise PrototxtError(
                    f"{field} is given in {param} and in transform_param",
                    where=where,
                    got=f"{value} and {getattr(transform, field)}",
                    hint=f"keep the one in transform_param; {param}'s is the old place",
                )
            setattr(transform, field, value)
            options.ClearField(field)


def _upgrade_layer(old: Any, layer: Any) -> None:
    if old.HasField("type"):
        layer.type = type_of(old)
    for field, value in old.ListFields():
        if field.name in _SPECIAL:
            continue
        if isinstance(value, MutableSequence):
            getattr(layer, field.name).extend(value)
        elif field.message_type is not None:
            getattr(layer, field.name).CopyFrom(value)
        else:
            setattr(layer, field.name, value)
    count = max(len(old.param), len(old.blob_share_mode), len(old.blobs_lr), len(old.weight_decay))
    for index in range(count):
        spec = layer.param.add()
        if index < len(old.param):
            spec.name = old.param[index]
        if index < len(old.blob_share_mode):
            spec.share_mode = old.blob_share_mode[index]
        if index < len(old.blobs_lr):
            spec.lr_mult = old.blobs_lr[index]
        if index < len(old.weight_decay):
            spec.decay_mult = old.weight_decay[index]
