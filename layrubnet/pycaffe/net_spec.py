"""``caffe.NetSpec``, ``caffe.layers`` and ``caffe.params``: nets written in Python.

>>> from layrubnet import pycaffe as caffe
>>> n = caffe.NetSpec()
>>> n.data = caffe.layers.Input(shape=dict(dim=[1, 8]))
>>> n.ip = caffe.layers.InnerProduct(n.data, num_output=2, weight_filler=dict(type="xavier"))
>>> [layer.type for layer in n.to_proto().layer]
['Input', 'InnerProduct']
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from layrubnet.proto import MESSAGES, LayerParameter, NetParameter, enum_value


def _parameter_fields() -> dict[str, str]:
    """The parameter field of each layer type: ``Convolution`` -> ``convolution_param``."""
    return {
        field.message_type.name.removesuffix("Parameter"): field.name
        for field in LayerParameter.DESCRIPTOR.fields
        if field.message_type is not None and field.name.endswith("_param")
    }


_FIELDS = _parameter_fields()
_SAME = {"Deconvolution": "convolution_param", "SoftmaxWithLoss": "softmax_param"}


class Top:
    """One output of a layer function, to be given to others as a bottom."""

    def __init__(self, fn: Function, n: int) -> None:
        self.fn, self.n = fn, n

    def to_proto(self) -> Any:
        """The NetParameter of everything that leads to this top."""
        return to_proto(self)


class Function:
    """A layer with its inputs and options; its tops get names when the net is written."""

    def __init__(self, type_: str, inputs: tuple[Any, ...], options: Mapping[str, Any]) -> None:
        for index, top in enumerate(inputs):
            if not isinstance(top, Top):
                raise TypeError(f"{type_} input {index} is not a Top (type is {type(top)})")
        self.type, self.inputs = type_, inputs
        options = dict(options)
        self.in_place: bool = options.pop("in_place", False)
        ntop = options.pop("ntop", 1)
        self.name: str | None = options.pop("name", None)
        self.options = options
        if self.in_place and (ntop != 1 or len(inputs) != 1):
            raise TypeError(f"{type_}: in_place needs one input and one top")
        self.tops = tuple(Top(self, n) for n in range(ntop))

    def write(self, names: Mapping[int, str], own_name: str) -> Any:
        """The LayerParameter, with the names of all tops known."""
        layer = LayerParameter(name=own_name, type=self.type)
        layer.bottom.extend(names[id(top)] for top in self.inputs)
        layer.top.extend(names[id(top)] for top in self.tops)
        for key, value in self.options.items():
            self._assign(layer, key, value)
        return layer

    def _assign(self, layer: Any, key: str, value: Any) -> None:
        field = _FIELDS.get(self.type) or _SAME.get(self.type)
        if field and key in getattr(layer, field).DESCRIPTOR.fields_by_name:
            layer = getattr(layer, field)
            layer.SetInParent()
        if key not in layer.DESCRIPTOR.fields_by_name:
            raise TypeError(f"{self.type} has no option {key!r}")
        _set(layer, key, value)


def _set(message: Any, key: str, value: Any) -> None:
    """Assign a Python value to a field: dicts to messages, lists to repeated fields."""
    field = message.DESCRIPTOR.fields_by_name[key]
    target = getattr(message, key)
    if hasattr(target, "extend"):
        # Most options that can be repeated (kernel_size, pad) are given as one number.
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if field.message_type is not None:
                _fill(target.add(), item)
            else:
                target.append(_plain(message, field, item))
    elif field.message_type is not None:
        _fill(target, value)
    else:
        setattr(message, key, _plain(message, field, value))


def _fill(message: Any, value: Any) -> None:
    message.SetInParent()
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in message.DESCRIPTOR.fields_by_name:
                raise TypeError(f"{message.DESCRIPTOR.name} has no field {key!r}")
            _set(message, key, inner)
    else:
        message.CopyFrom(value)


def _plain(message: Any, field: Any, value: Any) -> Any:
    if field.enum_type is not None and isinstance(value, str):
        return enum_value(message, field.name, value)
    return value


class _Layers:
    """``layers.Type(bottom, ..., option=value)`` makes a layer of any type."""

    def __getattr__(self, type_: str) -> Any:
        if type_.startswith("__"):
            raise AttributeError(type_)

        def make(*inputs: Any, **options: Any) -> Any:
            function = Function(type_, inputs, options)
            tops = function.tops
            if not tops:
                return function
            return tops[0] if len(tops) == 1 else tops

        return make


class _Values:
    """The enum values of one parameter message: ``params.Pooling.MAX``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, value: str) -> int:
        return int(getattr(MESSAGES[f"{self._name}Parameter"], value))


class _Params:
    def __getattr__(self, name: str) -> _Values:
        if f"{name}Parameter" not in MESSAGES:
            raise AttributeError(f"no layer parameter is called {name!r}")
        return _Values(name)


layers = _Layers()
params = _Params()


class NetSpec:
    """A net under construction: assigned tops become blobs with the attribute's name."""

    def __init__(self) -> None:
        super().__setattr__("tops", OrderedDict())

    tops: OrderedDict[str, Any]

    def __setattr__(self, name: str, top: Any) -> None:
        self.tops[name] = top

    def __setitem__(self, name: str, top: Any) -> None:
        self.tops[name] = top

    def __getattr__(self, name: str) -> Any:
        if name not in self.tops:
            raise AttributeError(f"the net has no top {name!r}")
        return self.tops[name]

    def __getitem__(self, name: str) -> Any:
        return self.tops[name]

    def __delattr__(self, name: str) -> None:
        del self.tops[name]

    def to_proto(self) -> Any:
        """The NetParameter."""
        return _write({id(top): name for name, top in self.tops.items()}, self.tops.values())


def to_proto(*tops: Top | Function) -> Any:
    """The NetParameter of everything that leads to these tops, with automatic names."""
    return _write({}, tops)


def _write(given: dict[int, str], tops: Any) -> Any:
    order: OrderedDict[int, Function] = OrderedDict()
    for top in tops:
        _visit(top.fn if isinstance(top, Top) else top, order)
    names = dict(given)
    counts: dict[str, int] = {}
    net = NetParameter()
    for fn in order.values():
        own = fn.name or _layer_name(fn, names, counts)
        for top in fn.tops:
            if fn.in_place:
                names[id(top)] = names[id(fn.inputs[0])]
            elif id(top) not in names:
                names[id(top)] = own if top.n == 0 else f"{own}_{top.n}"
        net.layer.append(fn.write(names, own))
    return net


def _layer_name(fn: Function, names: Mapping[int, str], counts: dict[str, int]) -> str:
    for named in (*fn.tops, fn):
        if id(named) in names:
            return names[id(named)]
    counts[fn.type] = counts.get(fn.type, 0) + 1
    return f"{fn.type}{counts[fn.type]}"


def _visit(fn: Function, order: OrderedDict[int, Function]) -> None:
    """Put a layer behind everything that it reads, without recursion."""
    stack = [(fn, False)]
    while stack:
        current, ready = stack.pop()
        if id(current) in order:
            continue
        if ready:
            order[id(current)] = current
            continue
        stack.append((current, True))
        stack += [(top.fn, False) for top in reversed(current.inputs)]
