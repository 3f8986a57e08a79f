"""layrubnet: train Caffe's nets, larger than memory, over slow networks.

Everything public is an attribute of this package and is imported when it is first used, so that
``import layrubnet`` costs nothing::

    import layrubnet

    net = layrubnet.Net("deploy.prototxt", weights="net.caffemodel")
    solver = layrubnet.Solver("solver.prototxt")

    @layrubnet.register("Twice")
    class Twice(layrubnet.Layer): ...

    from layrubnet import pycaffe as caffe
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from layrubnet.version import __version__

if TYPE_CHECKING:
    from layrubnet.api import Net, Solver
    from layrubnet.engine.contract import (
        Alias,
        BlobDecl,
        Contract,
        Flops,
        Needs,
        Saved,
        Scratch,
        StateDecl,
        TensorType,
    )
    from layrubnet.engine.io import IO
    from layrubnet.engine.layer import Expansion, Layer, layer_types, register
    from layrubnet.errors import LayrubError

__all__ = [
    "Alias",
    "BlobDecl",
    "Contract",
    "Expansion",
    "Flops",
    "IO",
    "Layer",
    "LayrubError",
    "Needs",
    "Net",
    "Saved",
    "Scratch",
    "Solver",
    "StateDecl",
    "TensorType",
    "__version__",
    "layer_types",
    "register",
]

_CONTRACT = (
    "Alias",
    "BlobDecl",
    "Contract",
    "Flops",
    "Needs",
    "Saved",
    "Scratch",
    "StateDecl",
    "TensorType",
)
_LAYER = ("Expansion", "Layer", "layer_types", "register")
_WHERE = {
    **dict.fromkeys(_CONTRACT, "engine.contract"),
    **dict.fromkeys(_LAYER, "engine.layer"),
    **dict.fromkeys(("Net", "Solver"), "api"),
    "IO": "engine.io",
    "LayrubError": "errors",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
