"""The native Python face: a net as a function of its inputs, and the solver.

>>> net = layrubnet.Net("deploy.prototxt", weights="lenet.caffemodel")     # doctest: +SKIP
>>> net.forward(data=images)["prob"]                                       # doctest: +SKIP
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from layrubnet.errors import NetError, ShapeError, nearest
from layrubnet.loading import open_net, save_weights
from layrubnet.memory.options import MemoryOptions, memory_options
from layrubnet.proto import Phase, SolverParameter
from layrubnet.prototxt.text import read_solver
from layrubnet.pycaffe.live import LiveNet
from layrubnet.solvers.solver import Solver as _Solver
from layrubnet.solvers.weights import LoadReport, load_weights

Path = str | os.PathLike[str]


class Net:
    """A net for one phase ("TRAIN" or "TEST"), ready to run.

    ``source``: a prototxt file, its text, or a NetParameter. ``weights``: a file to load.
    ``seed``: of fillers and random draws (default: a new one each time). ``memory``: a strategy
    (``"reuse"``, ``"auto"``, ...) for a net that does not keep every blob, ``memory_budget`` the
    bytes it may use (``"2GiB"``), ``keep`` the blobs to keep readable besides inputs and outputs;
    such a net runs :meth:`step` instead of :meth:`backward`.
    """

    def __init__(
        self,
        source: Path | Any,
        phase: str = "TEST",
        weights: Path | None = None,
        *,
        level: int = 0,
        stages: Collection[str] = (),
        seed: int | None = None,
        device: str = "cpu",
        memory: MemoryOptions | str | None = None,
        memory_budget: str | int | None = None,
        keep: Collection[str] = (),
    ) -> None:
        if phase not in Phase.keys():  # noqa: SIM118 (an enum wrapper, no mapping)
            raise NetError("phase must be 'TRAIN' or 'TEST'", got=repr(phase))
        net = open_net(
            source,
            Phase.Value(phase),
            level=level,
            stages=stages,
            seed=secrets.randbits(31) if seed is None else seed,
            device=device,
            seeds=True,
            memory=replace(memory_options(memory, memory_budget), keep=tuple(keep)),
        )
        self._live = LiveNet(net)
        self.loss = 0.0
        """The weighted sum of the losses of the last forward."""
        if weights is not None:
            self.load(weights)

    @property
    def inputs(self) -> list[str]:
        """The names of the input blobs."""
        return [value.name for value in self._live.net.graph.inputs()]

    @property
    def outputs(self) -> list[str]:
        """The names of the output blobs, sorted."""
        return [value.name for value in self._live.net.graph.outputs()]

    @property
    def blobs(self) -> dict[str, Any]:
        """The data of every blob that is kept: live arrays by name."""
        names = filter(self._live.net.readable, self._live.blob_names)
        return {name: self._live.data(name) for name in names}

    @property
    def diffs(self) -> dict[str, Any]:
        """The gradient of every blob: live arrays by name."""
        return {name: self._live.diff(name) for name in self._live.blob_names}

    @property
    def params(self) -> dict[str, list[Any]]:
        """The blobs of each layer that has any: live arrays by layer name."""
        return {n: [self._live.param_data(n, i) for i in range(c)] for n, c in self._counts()}

    @property
    def param_diffs(self) -> dict[str, list[Any]]:
        """The gradients of each layer's blobs: live arrays by layer name."""
        return {n: [self._live.param_diff(n, i) for i in range(c)] for n, c in self._counts()}

    def _counts(self) -> list[tuple[str, int]]:
        return [(name, len(params)) for name, params in self._live.stored.items() if params]

    def forward(self, **inputs: Any) -> dict[str, np.ndarray]:
        """Run the net; return its outputs as new arrays by name.

        ``inputs``: arrays for input blobs, of any shape that the net can take; an input that is
        not given keeps its content.
        """
        self._feed(inputs)
        self.loss = self._live.forward()
        return self._live.net.output_values()

    def step(self, **inputs: Any) -> dict[str, np.ndarray]:
        """Forward and backward in one; return the outputs.

        Gradients of parameters are those of this step. It works under every memory plan.
        """
        self._feed(inputs)
        self.loss = self._live.step()
        return self._live.net.output_values()

    def _feed(self, inputs: dict[str, Any]) -> None:
        for name, values in inputs.items():
            if name not in self.inputs:
                close = nearest(name, self.inputs)
                raise NetError(
                    f"the net has no input {name!r}",
                    expected=", ".join(self.inputs) or "none: the net reads its data itself",
                    hint=f"did you mean {close[0]!r}?" if close else "",
                )
            self._live.reshape_input(name, np.shape(values))
        self._live.reshape()
        for name, values in inputs.items():
            self._live.net.device.upload(self._live.data(name), np.asarray(values, np.float32))

    def backward(self, **tops: Any) -> dict[str, np.ndarray]:
        """Run backward after a forward; return the gradients of the inputs as new arrays.

        ``tops``: gradients of outputs (losses have theirs). Gradients of parameters are those of
        this backward. A gradient of an input needs ``force_backward: true`` in the net.
        """
        net = self._live.net
        given = {name: np.asarray(values, np.float32) for name, values in tops.items()}
        for name, array in given.items():
            if array.shape != (wanted := tuple(net.diff(name).shape)):
                raise ShapeError(
                    f"the gradient of blob {name!r} has another shape than the blob",
                    expected=wanted,
                    got=array.shape,
                )
        for name, array in given.items():
            net.device.upload(net.diff(name), array)
        self._live.clear_param_diffs()
        self._live.backward()
        found = [name for name in self.inputs if name in net.program.blob_diff]
        return {name: net.device.download(net.diff(name)) for name in found}

    def load(self, path: Path) -> LoadReport:
        """Load weights (``.caffemodel`` or ``.h5``) into the layers of the same names."""
        return load_weights(self._live.net, path)

    def save(self, path: Path) -> None:
        """Write the weights (``.h5``: HDF5, else Caffe's binary format)."""
        save_weights(self._live.net, path)

    def close(self) -> None:
        """Stop the background readers of data layers."""
        self._live.net.close()


class Solver(_Solver):
    """Training as a solver file (or its text, or a SolverParameter) describes it.

    ``memory`` and ``memory_budget``, as those of :class:`Net`, stand in place of ``memory_param``.
    The other ``options`` are those of :class:`layrubnet.solvers.solver.Solver`.
    """

    def __init__(
        self,
        source: Path | Any,
        *,
        memory: MemoryOptions | str | None = None,
        memory_budget: str | int | None = None,
        **options: Any,
    ) -> None:
        if memory is not None or memory_budget is not None:
            options["memory"] = memory_options(memory, memory_budget)
        if isinstance(source, SolverParameter):
            super().__init__(source, **options)
            return
        inline = isinstance(source, str) and any(mark in source for mark in '\n{"')
        options.setdefault("solver_file", None if inline else source)
        super().__init__(read_solver(source), **options)
