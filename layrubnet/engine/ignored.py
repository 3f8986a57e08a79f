"""Warn of options that are set and mean nothing to their layer.

A field that the schema lacks is an error already. The schema has fields of Caffe's forks, though,
which it accepts in every layer: a type that does not read one would ignore it in silence.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from layrubnet.engine.layer import layer_class
from layrubnet.prototxt.forks import FIRST_FORK_NUMBER, FIRST_OWN_NUMBER, fork_fields

_log = logging.getLogger("layrubnet")
_told: set[str] = set()  # train net, test nets and nets built again say the same


def warn_ignored(net: Any, layers: Iterable[Any], where: Callable[[str], str]) -> None:
    """Log a warning for each set fork field of ``layers``, or of the net, that nobody reads."""
    for field, _ in net.ListFields():
        if FIRST_FORK_NUMBER <= field.number < FIRST_OWN_NUMBER:
            _warn(f"net {net.name!r}: the option {field.name} is not known here and ignored")
    for spec in layers:
        read = layer_class(spec.type).fork_fields
        for path in fork_fields(spec):
            if not any(path == known or path.startswith(f"{known}.") for known in read):
                _warn(f"{where(spec.name)}: {spec.type} layers ignore the option {path}")


def _warn(text: str) -> None:
    if text not in _told:
        _told.add(text)
        _log.warning(text)
