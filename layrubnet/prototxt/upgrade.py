"""Bring nets and solvers of every age to the current format, as Caffe does on reading.

Order: V0 to V1 (padding layers folded), old transform fields, V1 to current, ``input`` fields to
an Input layer, BatchNorm's three ``param`` entries, spellings of forks.
"""

from __future__ import annotations

from typing import Any

from layrubnet.errors import PrototxtError
from layrubnet.proto import SolverParameter, enum_name
from layrubnet.prototxt.positions import Positions
from layrubnet.prototxt.upgrade_inputs import upgrade_inputs
from layrubnet.prototxt.upgrade_v0 import is_v0, upgrade_v0
from layrubnet.prototxt.upgrade_v1 import move_transforms, upgrade_v1

# The enum's names do not tell how Caffe writes the types.
_SOLVER_TYPES = {
    "SGD": "SGD",
    "NESTEROV": "Nesterov",
    "ADAGRAD": "AdaGrad",
    "RMSPROP": "RMSProp",
    "ADADELTA": "AdaDelta",
    "ADAM": "Adam",
}


def upgrade_net(net: Any, positions: Positions | None = None) -> tuple[Any, Positions]:
    """Return the net in the current format, and the positions of its layers.

    ``positions`` are those of the given net's layers in file order; the input is not changed.
    Raises :class:`~layrubnet.errors.PrototxtError` for contradictions.
    """
    places = positions or Positions("net")
    _refuse_mixed(net, places)
    if is_v0(net):
        net, places = upgrade_v0(net, places)
    if net.layers:
        net = upgrade_v1(net, places)
    else:
        copy = type(net)()
        copy.CopyFrom(net)
        net = copy
        for index, layer in enumerate(net.layer):
            move_transforms(layer, places.where(index, layer.name))
    if net.input or net.input_dim or net.input_shape:
        places = upgrade_inputs(net, places)
    for index, layer in enumerate(net.layer):
        if layer.type == "BatchNorm" and len(layer.param) == 3:
            # From when each user had to freeze the statistics; the layer does that itself now.
            layer.ClearField("param")
        _settle_rounding(layer, places.where(index, layer.name))
    return net, places


def upgrade_solver(solver: Any, where: str = "solver") -> Any:
    """Return the solver with the old ``solver_type`` enum turned into ``type``."""
    result = SolverParameter()
    result.CopyFrom(solver)
    if solver.HasField("solver_type"):
        name = _SOLVER_TYPES[enum_name(solver, "solver_type")]
        if solver.HasField("type"):
            raise PrototxtError(
                "both solver_type and type are given",
                where=where,
                got=f"solver_type: {enum_name(solver, 'solver_type')}, type: {solver.type!r}",
                hint="remove solver_type, the old spelling",
            )
        result.type = name
        result.ClearField("solver_type")
    return result


def _refuse_mixed(net: Any, places: Positions) -> None:
    if not (net.layer and net.layers):
        return
    first = {place.field: place for place in reversed(places.layers) if place is not None}
    raise PrototxtError(
        "the net mixes 'layer' and 'layers' entries",
        where=str(places.layers[0]) if places.layers else places.file,
        got=f"'layer' at {first.get('layer', '?')}, 'layers' at {first.get('layers', '?')}",
        hint="use 'layer' with types in quotes throughout",
    )


def _settle_rounding(layer: Any, where: str) -> None:
    """Express ceil_mode and torch_pooling as round_mode, Caffe's own field."""
    if not layer.HasField("pooling_param"):
        return
    pooling = layer.pooling_param
    wishes: dict[str, bool] = {}
    if pooling.HasField("round_mode"):
        wishes[f"round_mode: {enum_name(pooling, 'round_mode')}"] = pooling.round_mode == 1
    if pooling.HasField("ceil_mode"):
        wishes[f"ceil_mode: {str(pooling.ceil_mode).lower()}"] = not pooling.ceil_mode
    if pooling.HasField("torch_pooling"):
        wishes[f"torch_pooling: {str(pooling.torch_pooling).lower()}"] = pooling.torch_pooling
    if len(set(wishes.values())) > 1:
        raise PrototxtError(
            "the rounding of the pooled size is given twice, and differently",
            where=where,
            got=", ".join(wishes),
        )
    if pooling.HasField("ceil_mode") or pooling.HasField("torch_pooling"):
        pooling.round_mode = int(next(iter(wishes.values())))
        pooling.ClearField("ceil_mode")
        pooling.ClearField("torch_pooling")
