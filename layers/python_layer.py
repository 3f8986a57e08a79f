"""Python: layers that users wrote for pycaffe."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from layrubnet.engine.contract import BlobDecl, Contract, Needs, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register
from layrubnet.errors import LayrubError, NetError, nearest

_PLACE = re.compile(r"(.+?):\d+(:\d+)?[: ]")
_NO_RESHAPE = "a Python layer changed the shape of a blob after the net was compiled"


@register("Python")
class PythonLayer(Layer):
    """Runs class ``layer`` of module ``module``, written as a subclass of ``caffe.Layer``

    The module is looked for in the current folder, in the net's folder, and where Python finds
    modules. ``import caffe`` in it means ``layrubnet.pycaffe`` if no Caffe is installed::

        layer { name: "loss" type: "Python" bottom: "a" bottom: "b" top: "loss" loss_weight: 1
          python_param { module: "my_layers" layer: "MyLoss" param_str: "{'margin': 2}" } }

    ``setup`` and ``reshape`` run when the net is compiled, on blobs that have shapes but no values
    yet; ``reshape`` and ``forward`` in each forward.

    Differences from Caffe: tops keep the shape of the first ``reshape``; a layer with parameters
    gets two calls of ``backward`` per step, the first for the parameters (nothing propagated down),
    the second for the bottoms; ``share_in_parallel`` has no meaning (each rank has its own).
    """

    num_bottoms = (0, None)
    num_tops = (0, None)

    def setup(self) -> None:
        p = self.spec.python_param
        if not p.module or not p.layer:
            raise NetError(
                "a Python layer needs a module and a class",
                where=self.where,
                expected='python_param { module: "file without .py" layer: "class" }',
                got=f"module {p.module!r}, layer {p.layer!r}",
            )
        self.user: Any = None

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        from layrubnet.pycaffe.python_base import BlobVec, LayerBlob

        with self._paths(), _caffe():
            self.user = user = self._make()
            user.param_str = self.spec.python_param.param_str
            user.phase = 1 if self.phase == "TEST" else 0
            user.blobs = BlobVec()
            bottom = [LayerBlob(b.shape, fixed=_NO_RESHAPE, stand_in=True) for b in bottoms]
            top = [LayerBlob() for _ in self.spec.top]
            with self._located("setup"):
                user.setup(bottom, top)
            with self._located("reshape"):
                user.reshape(bottom, top)
        user.blobs.close()
        self._bottom_shapes = tuple(b.shape for b in bottoms)
        everything = Needs(
            bottoms=tuple(range(len(bottom))),
            tops=tuple(range(len(top))),
            blobs=tuple(range(len(user.blobs))),
        )
        has_backward = hasattr(user, "backward")
        return Contract(
            tops=tuple(TensorType(blob.shape) for blob in top),
            blobs=tuple(
                BlobDecl(f"blob{i}", blob.shape, blob.data.copy())
                for i, blob in enumerate(user.blobs)
            ),
            backward_data=everything if has_backward else None,
            backward_weights=everything if has_backward and len(user.blobs) else None,
            accumulates=True,
            repeatable=False,
        )

    def forward(self, ops: Any, io: IO) -> None:
        def call(*arrays: Any) -> None:
            x, w, y = _split(arrays, len(io.x), len(io.w))
            bottom, top = self._blobs(x), self._blobs(y)
            self._bind_params(w, [None] * len(w))
            with self._located("reshape"):
                self.user.reshape(bottom, top)
            with self._located("forward"):
                self.user.forward(bottom, top)

        ops.load_host(call, tuple(io.y), (*io.x, *io.w))

    def backward_data(self, ops: Any, io: IO) -> None:
        self._backward(ops, io, dx=io.dx, dw=(None,) * len(io.w))

    def backward_weights(self, ops: Any, io: IO) -> None:
        if not io.accumulate:
            for dw in io.dw:
                if dw is not None:
                    ops.fill(dw, 0.0)
        # Users add to the gradients of blobs, so these are read as well as written.
        self._backward(ops, io, dx=(None,) * len(io.x), dw=io.dw)

    def _backward(self, ops: Any, io: IO, *, dx: Sequence[Any], dw: Sequence[Any]) -> None:
        def call(*arrays: Any) -> None:
            x, y, w, dy, rest = _split(arrays, len(io.x), len(io.y), len(io.w), len(io.y))
            new_dx, new_dw = _split(rest, len(io.x))
            self._bind_params(w, new_dw)
            wanted = [d is not None for d in new_dx]
            with self._located("backward"):
                self.user.backward(self._blobs(y, dy), wanted, self._blobs(x, new_dx))

        ops.load_host(call, (*dx, *dw), (*io.x, *io.y, *io.w, *io.dy))

    # -- the user's class --------------------------------------------------------------------

    def _make(self) -> Any:
        from layrubnet.pycaffe.python_base import Layer as Base

        p = self.spec.python_param
        try:
            module = importlib.import_module(p.module)
        except ModuleNotFoundError as error:
            if error.name != p.module:
                raise
            raise NetError(
                f"the module {p.module!r} of a Python layer is not found",
                where=self.where,
                expected=f"{p.module}.py in the current folder, in the net's, or on PYTHONPATH",
                got=f"current folder {Path.cwd()}",
            ) from None
        cls = getattr(module, p.layer, None)
        if not isinstance(cls, type):
            close = nearest(p.layer, [n for n, v in vars(module).items() if isinstance(v, type)])
            raise NetError(
                f"the module {p.module!r} has no class {p.layer!r}",
                where=self.where,
                hint=f"did you mean {close[0]!r}?" if close else "",
            )
        if not issubclass(cls, Base):
            raise NetError(
                f"the class {p.layer!r} does not derive from layrubnet's caffe.Layer",
                where=self.where,
                got=f"bases {', '.join(f'{b.__module__}.{b.__qualname__}' for b in cls.__bases__)}",
                hint="from layrubnet import pycaffe as caffe (an installed Caffe was imported)",
            )
        return cls()

    @contextmanager
    def _paths(self) -> Iterator[None]:
        """Let modules beside the net, and in the current folder, be found."""
        place = _PLACE.match(self.where)
        folders = [str(Path.cwd())] + ([str(Path(place[1]).resolve().parent)] if place else [])
        before = list(sys.path)
        sys.path[:0] = folders
        importlib.invalidate_caches()
        try:
            yield
        finally:
            sys.path[:] = before

    @contextmanager
    def _located(self, method: str) -> Iterator[None]:
        """Say in errors of the user's code which layer it ran for."""
        p = self.spec.python_param
        try:
            yield
        except LayrubError as error:
            raise NetError(str(error), where=f"{self.where}, {p.layer}.{method}") from error
        except Exception as error:
            error.add_note(f"in {method}() of {self.where} ({p.module}.{p.layer})")
            raise

    def _blobs(self, data: Sequence[Any], diffs: Sequence[Any] | None = None) -> list[Any]:
        from layrubnet.pycaffe.python_base import LayerBlob

        made = []
        for values, gradient in zip(data, diffs or [None] * len(data), strict=True):
            blob = LayerBlob(fixed=_NO_RESHAPE)
            blob.bind(values, gradient)
            made.append(blob)
        return made

    def _bind_params(self, data: Sequence[Any], diffs: Sequence[Any]) -> None:
        for blob, values, gradient in zip(self.user.blobs, data, diffs, strict=True):
            blob.bind(values, gradient)


def _split(arrays: Sequence[Any], *counts: int) -> list[Sequence[Any]]:
    """Cut a sequence into pieces of these lengths and the rest."""
    pieces, at = [], 0
    for count in counts:
        pieces.append(arrays[at : at + count])
        at += count
    return [*pieces, arrays[at:]]


@contextmanager
def _caffe() -> Iterator[None]:
    """Let ``import caffe`` mean layrubnet's if there is no other."""
    if "caffe" in sys.modules or importlib.util.find_spec("caffe") is not None:
        yield
        return
    sys.modules["caffe"] = importlib.import_module("layrubnet.pycaffe")
    try:
        yield
    finally:
        for name in [n for n in sys.modules if n == "caffe" or n.startswith("caffe.")]:
            del sys.modules[name]
