"""From a net file to a net that runs, and its weights back into a file.

Shared by the native face (``layrubnet.Net``) and the pycaffe face.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

from layrubnet.engine.net import CompiledNet
from layrubnet.proto import NetParameter, phase_name
from layrubnet.prototxt.solver_nets import NetSource
from layrubnet.prototxt.text import read_net
from layrubnet.prototxt.upgrade import upgrade_net
from layrubnet.prototxt.weights import write_weights
from layrubnet.solvers.nets import places
from layrubnet.solvers.weights import net_blobs


def open_net(
    source: str | os.PathLike[str] | Any,
    phase: int,
    *,
    level: int = 0,
    stages: Collection[str] = (),
    **options: Any,
) -> CompiledNet:
    """Compile the net of a prototxt file (or text, or NetParameter) for one phase.

    ``phase``: 0 (TRAIN) or 1 (TEST). ``options`` go to :class:`CompiledNet`.
    """
    given = isinstance(source, NetParameter)
    net, positions = upgrade_net(source) if given else read_net(source)
    found = NetSource(net, phase, level, tuple(stages), net.name, positions).filtered()
    return CompiledNet(found.net, phase_name(phase), where=places(found), **options)


def save_weights(net: CompiledNet, path: str | os.PathLike[str], *, diffs: bool = False) -> None:
    """Write all weights (``.h5``: HDF5, else Caffe's binary format); ``diffs``: gradients, too."""
    write_weights(path, net.param, *net_blobs(net, diffs=diffs))
