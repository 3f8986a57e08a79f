"""DummyData: tops filled by fillers."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from layrubnet.engine.contract import Contract, Shape, TensorType
from layrubnet.engine.fillers import fill
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register


@register("DummyData")
class DummyData(Layer):
    """Tops of given shapes with the values of fillers; random ones are new in each forward

    ``shape`` and ``data_filler`` are given once for all tops or once per top; without a filler
    the values are 0. ``num``, ``channels``, ``height``, ``width`` are the old way to give shapes::

        layer { name: "data" type: "DummyData" top: "data"
          dummy_data_param { shape { dim: 32 dim: 3 dim: 32 dim: 32 }
            data_filler { type: "gaussian" std: 1 } } }

    Values depend on seed, layer, rank and the number of forwards before. uniform and gaussian
    fillers write into the top itself; the others make an array on the host each time.
    """

    num_bottoms = (0, 0)
    num_tops = (1, None)

    _key = (0, 0)
    _rank = 0
    _forwards = 0

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        p = self.spec.dummy_data_param
        tops = len(self.spec.top)
        shapes = self._per_top(self._shapes(), "shape", tops)
        given = list(p.data_filler)
        self.fillers = self._per_top(given, "data_filler", tops) if given else [None] * tops
        return Contract(tops=tuple(TensorType(s) for s in shapes), loads=True)

    def _shapes(self) -> list[Shape]:
        p = self.spec.dummy_data_param
        legacy = [list(v) for v in (p.num, p.channels, p.height, p.width)]
        if len(p.shape):
            if any(legacy):
                raise self.bad_shape(
                    "both shape and num, channels, height, width are given",
                    expected="one of the two",
                    got="both",
                )
            return [tuple(s.dim) for s in p.shape]
        if len({len(values) for values in legacy}) != 1:
            raise self.bad_shape(
                "num, channels, height and width must be given equally often",
                expected="each once, or each once per top",
                got=", ".join(f"{len(values)} times" for values in legacy),
            )
        return list(zip(*legacy, strict=True))

    def _per_top(self, values: list[Any], what: str, tops: int) -> list[Any]:
        if len(values) not in (1, tops):
            raise self.bad_shape(
                f"{what} must be given once, or once per top",
                expected=f"1 or {tops} times",
                got=f"{len(values)} times",
            )
        return values if len(values) == tops else values * tops

    def open(self, *, seed: int, rank: int = 0, world: int = 1) -> None:
        """Start the sequence of random values of a seed and rank."""
        self._key, self._rank = (seed, zlib.crc32(self.name.encode())), rank

    def load(self, ops: Any, io: IO) -> None:
        for top, (filler, y) in enumerate(zip(self.fillers, io.y, strict=True)):
            if filler is None or filler.type == "constant":
                ops.fill(y, 0.0 if filler is None else filler.value)
            else:
                ops.load_host(lambda out, f=filler, t=top: self._draw(f, t, out), (y,))
        self._forwards += 1

    def _draw(self, filler: Any, top: int, out: Any) -> None:
        counter = np.array([0, self._forwards, self._rank, top], np.uint64)
        rng = np.random.Generator(np.random.Philox(key=list(self._key), counter=counter))
        if filler.type == "uniform":
            rng.random(dtype=np.float32, out=out)
            np.multiply(out, np.float32(filler.max - filler.min), out=out)
            np.add(out, np.float32(filler.min), out=out)
        elif filler.type == "gaussian" and filler.sparse < 0:
            rng.standard_normal(dtype=np.float32, out=out)
            np.multiply(out, np.float32(filler.std), out=out)
            np.add(out, np.float32(filler.mean), out=out)
        else:
            out[...] = fill(filler, out.shape, rng, self.where)

    def cursor(self) -> dict[str, int]:
        return {"forwards": self._forwards}

    def seek(self, cursor: dict[str, int]) -> None:
        self._forwards = cursor["forwards"]
