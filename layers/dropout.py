"""Dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import Alias, Contract, Flops, Needs, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register
from layrubnet.errors import NetError


@register("Dropout")
class Dropout(Layer):
    """TRAIN: y = x / (1 - r) for a unit that is kept, 0 for one dropped (probability r)

    TEST: y = x, a view that costs nothing. The draw of a unit depends on the seed, the layer's
    name, the unit's index, iteration, micro-batch and rank, and on nothing else. So backward
    draws again instead of keeping a mask: no memory between the two, for one more drawing::

        layer { name: "drop6" type: "Dropout" bottom: "fc6" top: "fc6"
          dropout_param { dropout_ratio: 0.5 } }

    A ratio outside [0, 1) is refused; 0 drops nothing, as in Caffe's release builds.
    """

    accepts_extent = True

    def setup(self) -> None:
        p = self.spec.dropout_param
        self.ratio: float = p.dropout_ratio
        if not 0 <= self.ratio < 1:
            raise NetError(
                "dropout_ratio must lie between 0 and 1",
                where=self.where,
                expected="0 <= dropout_ratio < 1",
                got=f"{self.ratio:g}",
            )
        self.training = self.phase == "TRAIN" and self.ratio > 0

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        (x,) = bottoms
        if not self.training:
            return Contract(tops=(x,), alias={0: Alias(0)}, backward_data=Needs())
        cost = 30.0 * x.count
        return Contract(
            tops=(x,),
            backward_data=Needs(),
            inplace={0: 0},
            inplace_diff={0: 0},
            random=True,
            flops=Flops(forward=cost, backward_data=cost),
        )

    def forward(self, ops: Any, io: IO) -> None:
        self._apply(ops, io, io.x[0], io.y[0])

    def backward_data(self, ops: Any, io: IO) -> None:
        self._apply(ops, io, io.dy[0], io.dx[0])

    def _apply(self, ops: Any, io: IO, x: Any, y: Any) -> None:
        assert io.random is not None
        factor = 1.0 / (1.0 - self.ratio)
        ops.dropout(x, self.ratio, factor, io.random.key, io.random.counters, y)
