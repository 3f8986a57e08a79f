"""The nets of examples/resnet, as modules and as graphs."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from layrubnet.engine.build import build_graph
from layrubnet.engine.graph import Graph
from layrubnet.proto import Phase
from layrubnet.prototxt.rules import filter_net

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "resnet"


@cache
def example_nets() -> ModuleType:
    """The catalogue ``examples/resnet/nets.py``."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module("nets")
    finally:
        sys.path.remove(str(FOLDER))


def graph_of(param: Any, phase: str = "TRAIN") -> Graph:
    """The graph of a NetParameter; nothing is allocated."""
    return build_graph(filter_net(param, Phase.Value(phase)), phase)


@cache
def example_graph(name: str) -> Graph:
    """The graph, in phase TRAIN, of a net of the catalogue; shared: do not change it."""
    return graph_of(example_nets().make(name))
