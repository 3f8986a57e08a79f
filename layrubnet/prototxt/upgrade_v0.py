"""The oldest format, ``layers { layer { type: "conv" ... } bottom: ... }``, to the second one.

There, padding was a layer of its own, before a convolution or a pooling: it is folded into the
``pad`` of the layer that reads it.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Any

from layrubnet.errors import PrototxtError
from layrubnet.proto import V1LayerParameter, enum_value
from layrubnet.prototxt.positions import Positions

_TYPES = {
    "accuracy": "ACCURACY",
    "bnll": "BNLL",
    "concat": "CONCAT",
    "conv": "CONVOLUTION",
    "data": "DATA",
    "dropout": "DROPOUT",
    "euclidean_loss": "EUCLIDEAN_LOSS",
    "flatten": "FLATTEN",
    "hdf5_data": "HDF5_DATA",
    "hdf5_output": "HDF5_OUTPUT",
    "im2col": "IM2COL",
    "images": "IMAGE_DATA",
    "infogain_loss": "INFOGAIN_LOSS",
    "innerproduct": "INNER_PRODUCT",
    "lrn": "LRN",
    "multinomial_logistic_loss": "MULTINOMIAL_LOGISTIC_LOSS",
    "pool": "POOLING",
    "relu": "RELU",
    "sigmoid": "SIGMOID",
    "softmax": "SOFTMAX",
    "softmax_loss": "SOFTMAX_LOSS",
    "split": "SPLIT",
    "tanh": "TANH",
    "window_data": "WINDOW_DATA",
}

_PARAMS = {
    "conv": "convolution_param",
    "innerproduct": "inner_product_param",
    "pool": "pooling_param",
    "dropout": "dropout_param",
    "lrn": "lrn_param",
    "data": "data_param",
    "hdf5_data": "hdf5_data_param",
    "images": "image_data_param",
    "window_data": "window_data_param",
    "infogain_loss": "infogain_loss_param",
    "concat": "concat_param",
}

# Old field -> (new field, the layer types that have it).
_FIELDS = {
    "num_output": ("num_output", "conv innerproduct"),
    "biasterm": ("bias_term", "conv innerproduct"),
    "weight_filler": ("weight_filler", "conv innerproduct"),
    "bias_filler": ("bias_filler", "conv innerproduct"),
    "pad": ("pad", "conv pool"),
    "kernelsize": ("kernel_size", "conv pool"),
    "group": ("group", "conv"),
    "stride": ("stride", "conv pool"),
    "pool": ("pool", "pool"),
    "dropout_ratio": ("dropout_ratio", "dropout"),
    "local_size": ("local_size", "lrn"),
    "alpha": ("alpha", "lrn"),
    "beta": ("beta", "lrn"),
    "k": ("k", "lrn"),
    "source": ("source", "data hdf5_data images window_data infogain_loss"),
    "batchsize": ("batch_size", "data hdf5_data images window_data"),
    "rand_skip": ("rand_skip", "data images"),
    "shuffle_images": ("shuffle", "images"),
    "new_height": ("new_height", "images"),
    "new_width": ("new_width", "images"),
    "concat_dim": ("concat_dim", "concat"),
    "det_fg_threshold": ("fg_threshold", "window_data"),
    "det_bg_threshold": ("bg_threshold", "window_data"),
    "det_fg_fraction": ("fg_fraction", "window_data"),
    "det_context_pad": ("context_pad", "window_data"),
    "det_crop_mode": ("crop_mode", "window_data"),
}
_TRANSFORM = {
    "scale": "scale",
    "meanfile": "mean_file",
    "cropsize": "crop_size",
    "mirror": "mirror",
}
_COMMON = {"name", "type", "blobs", "blobs_lr", "weight_decay", "hdf5_output_param"}


def is_v0(net: Any) -> bool:
    """Return whether any entry holds a ``layer`` inside."""
    return any(entry.HasField("layer") for entry in net.layers)


def upgrade_v0(net: Any, places: Positions) -> tuple[Any, Positions]:
    """Return the net as V1, and the positions of the layers that are left."""
    entries, kept = _fold_padding(net, places)
    result = type(net)()
    result.CopyFrom(net)
    result.ClearField("layers")
    for index, entry in zip(kept, entries, strict=True):
        result.layers.append(_upgrade_layer(entry, places.where(index, entry.layer.name)))
    return result, places.keep(kept)


def _fold_padding(net: Any, places: Positions) -> tuple[list[Any], list[int]]:
    producer: dict[str, Any] = {}
    entries, kept = [], []
    for index, original in enumerate(net.layers):
        entry = V1LayerParameter()
        entry.CopyFrom(original)
        if entry.layer.type != "padding":
            entries.append(entry)
            kept.append(index)
        where = places.where(index, entry.layer.name)
        for bottom, blob in enumerate(entry.bottom):
            source = producer.get(blob)
            if source is None or source.layer.type != "padding":
                continue
            if entry.layer.type not in ("conv", "pool") or len(entry.bottom) != 1:
                raise PrototxtError(
                    f"the padding layer {source.layer.name!r} can only be followed by a "
                    "convolution or a pooling with one bottom",
                    where=where,
                    got=f"type {entry.layer.type!r} with {len(entry.bottom)} bottoms",
                )
            if len(source.bottom) != 1 or len(source.top) != 1:
                raise PrototxtError(
                    f"the padding layer {source.layer.name!r} needs one bottom and one top",
                    where=where,
                )
            entry.layer.pad = source.layer.pad
            entry.bottom[bottom] = source.bottom[0]
        producer.update(dict.fromkeys(entry.top, entry))
    return entries, kept


def _upgrade_layer(entry: Any, where: str) -> Any:
    old = entry.layer
    result = V1LayerParameter()
    result.bottom.extend(entry.bottom)
    result.top.extend(entry.top)
    if not entry.HasField("layer"):
        raise PrototxtError("the oldest format (layer inside layers) is mixed with V1", where=where)
    if old.HasField("name"):
        result.name = old.name
    if old.HasField("type"):
        if old.type not in _TYPES:
            raise PrototxtError(
                f"unknown layer type {old.type!r} of the oldest format",
                where=where,
                expected="one of " + ", ".join(_TYPES),
            )
        result.type = enum_value(result, "type", _TYPES[old.type])
    result.blobs.extend(old.blobs)
    result.blobs_lr.extend(old.blobs_lr)
    result.weight_decay.extend(old.weight_decay)
    if old.HasField("hdf5_output_param"):
        result.hdf5_output_param.CopyFrom(old.hdf5_output_param)
    for field, value in old.ListFields():
        if field.name not in _COMMON:
            _move(field.name, value, old.type, result, where)
    return result


def _move(name: str, value: Any, layer_type: str, result: Any, where: str) -> None:
    if name in _TRANSFORM:
        setattr(result.transform_param, _TRANSFORM[name], value)
        return
    new, owners = _FIELDS.get(name, ("", ""))
    if layer_type not in owners.split():
        raise PrototxtError(f"a layer of type {layer_type!r} has no field {name!r}", where=where)
    target = getattr(result, _PARAMS[layer_type])
    if new.endswith("_filler"):
        getattr(target, new).CopyFrom(value)
    elif isinstance(getattr(target, new), MutableSequence):
        getattr(target, new).append(value)
    else:
        setattr(target, new, value)
