"""Phase, level and stage: which layers a net consists of."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from layrubnet.errors import PrototxtError
from layrubnet.proto import NetParameter
from layrubnet.prototxt.positions import Positions


def meets(rule: Any, phase: int, level: int, stages: Collection[str]) -> bool:
    """Return whether every condition of a NetStateRule holds."""
    if rule.HasField("phase") and rule.phase != phase:
        return False
    if rule.HasField("min_level") and level < rule.min_level:
        return False
    if rule.HasField("max_level") and level > rule.max_level:
        return False
    present = frozenset(stages)
    return present.issuperset(rule.stage) and present.isdisjoint(rule.not_stage)


def kept_layers(
    net: Any,
    phase: int,
    level: int = 0,
    stages: Collection[str] = (),
    positions: Positions | None = None,
) -> list[int]:
    """Return the indices of the layers whose rules hold: any ``include``, or no ``exclude``."""
    kept = []
    places = positions or Positions("net")
    for index, layer in enumerate(net.layer):
        if layer.include and layer.exclude:
            raise PrototxtError(
                "Specify either include rules or exclude rules; not both.",
                where=places.where(index, layer.name),
            )
        if layer.include:
            keep = any(meets(rule, phase, level, stages) for rule in layer.include)
        else:
            keep = not any(meets(rule, phase, level, stages) for rule in layer.exclude)
        if keep:
            kept.append(index)
    return kept


def filter_net(
    net: Any,
    phase: int,
    level: int = 0,
    stages: Collection[str] = (),
    positions: Positions | None = None,
) -> Any:
    """Return a copy of an upgraded net with the layers of this state; ``state`` is set to it."""
    result = NetParameter()
    result.CopyFrom(net)
    result.ClearField("layer")
    for index in kept_layers(net, phase, level, stages, positions):
        result.layer.append(net.layer[index])
    result.ClearField("state")
    result.state.phase = phase
    result.state.level = level
    result.state.stage.extend(stages)
    return result
