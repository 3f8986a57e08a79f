"""pycaffe's interface: ``from layrubnet import pycaffe as caffe`` runs scripts written for Caffe.

Nets keep every blob, and gradients of parameters add up until ``clear_param_diffs``, as in Caffe.
"""

from __future__ import annotations

from layrubnet.engine.layer import layer_types as layer_type_list
from layrubnet.pycaffe import io, proto
from layrubnet.pycaffe.blob import Blob
from layrubnet.pycaffe.classifier import Classifier
from layrubnet.pycaffe.mode import (
    TEST,
    TRAIN,
    init_log,
    set_device,
    set_mode_cpu,
    set_mode_gpu,
    set_random_seed,
)
from layrubnet.pycaffe.net import Net
from layrubnet.pycaffe.net_spec import NetSpec, layers, params, to_proto
from layrubnet.pycaffe.python_base import Layer
from layrubnet.pycaffe.solvers import (
    AdaDeltaSolver,
    AdaGradSolver,
    AdamSolver,
    NesterovSolver,
    RMSPropSolver,
    SGDSolver,
    Solver,
    get_solver,
)

__version__ = "1.0.0"
"""The version of Caffe whose interface this is."""

__all__ = [
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "Blob",
    "Classifier",
    "Layer",
    "Net",
    "NetSpec",
    "NesterovSolver",
    "RMSPropSolver",
    "SGDSolver",
    "Solver",
    "TEST",
    "TRAIN",
    "__version__",
    "get_solver",
    "init_log",
    "io",
    "layer_type_list",
    "layers",
    "params",
    "proto",
    "set_device",
    "set_mode_cpu",
    "set_mode_gpu",
    "set_random_seed",
    "to_proto",
]
