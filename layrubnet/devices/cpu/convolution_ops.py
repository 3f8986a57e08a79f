"""Which plan computes a convolution on the CPU: oneDNN's where its library loads, else NumPy's."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from layrubnet.devices.cpu.basic import BasicOps
from layrubnet.devices.cpu.blocks import Array
from layrubnet.devices.cpu.convolution import ConvPlan
from layrubnet.devices.cpu.matmul import matmul
from layrubnet.devices.cpu.onednn.binding import onednn
from layrubnet.devices.cpu.onednn.convolution import OneDnnConvPlan
from layrubnet.devices.cpu.onednn.loader import load
from layrubnet.devices.geometry import ConvGeometry


class ConvolutionOps(BasicOps):
    """Convolution plans, and the bias of a deconvolution."""

    def conv_plan(
        self, geometry: ConvGeometry, *, library: bool = True
    ) -> ConvPlan | OneDnnConvPlan:
        """Choose how to compute a convolution; without ``library``: NumPy only."""
        dnn = onednn() if library else None
        key = (geometry, dnn)
        plan = self._plans.get(key)
        if plan is None:
            if dnn is None:
                plan = ConvPlan(geometry, self.scratch)
            else:
                columns = ConvPlan(geometry, self.scratch, matmul)
                plan = OneDnnConvPlan(dnn, geometry, self.scratch, columns)
            self._plans[key] = plan
        return plan

    @cached_property
    def _plans(self) -> WeakValueDictionary[Any, ConvPlan | OneDnnConvPlan]:
        """Plans in use: deep nets have hundreds of layers of few geometries."""
        return WeakValueDictionary()

    def add_channel_bias(self, y: Array, bias: Array) -> None:
        """y[n, c, p] += bias[c]"""
        np.add(y, bias.reshape(-1, 1), out=y)


def convolution_engine() -> str:
    """What convolutions run on, for reports: ``oneDNN 3.2.0``, or NumPy and why."""
    loaded = load()
    return loaded.text if loaded.library is not None else f"NumPy; no oneDNN: {loaded.text}"
