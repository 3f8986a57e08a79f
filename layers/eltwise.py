"""Eltwise: combine blobs of one shape, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import Contract, Flops, Needs, Saved, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Layer, register
from layrubnet.errors import NetError

MOST_FOR_MAX = 256
"""Bottoms of a MAX: the winner is saved in one byte."""


@register("Eltwise")
class Eltwise(Layer):
    """SUM: y = sum of coeff_i x_i; PROD: y = product of the x_i; MAX: y = the largest x_i

    All bottoms have the top's shape. Gradients: SUM coeff_i dy (no data needed); PROD dy times
    the product of the *other* bottoms (all bottoms are kept); MAX dy for the bottom that won (one
    byte an element is kept). Ties of a MAX: of bottoms 0 and 1 the second wins, a later one must
    be strictly larger, as in Caffe::

        layer { name: "res2a" type: "Eltwise" bottom: "branch1" bottom: "branch2" top: "res2a"
          eltwise_param { operation: SUM coeff: 1 coeff: -1 } }

    Differences from Caffe: in place (top named as bottom 0) every operation is right; Caffe's SUM
    clears its own bottom first. ``stable_prod_grad: false`` is accepted and gives the stable
    gradient, which is right where a factor is 0 too and needs one blob fewer.
    """

    num_bottoms = (2, None)
    accepts_extent = True

    def setup(self) -> None:
        p = self.spec.eltwise_param
        self.operation = type(p).EltwiseOp.Name(p.operation)
        count = len(self.spec.bottom)
        given = list(p.coeff)
        if given and self.operation != "SUM":
            raise NetError(
                "Eltwise layer only takes coefficients for summation",
                where=self.where,
                got=f"operation {self.operation} with {len(given)} coeff",
            )
        if given and len(given) != count:
            raise NetError(
                "Eltwise Layer takes one coefficient per bottom blob",
                where=self.where,
                expected=f"0 or {count} coeff",
                got=len(given),
            )
        if self.operation == "MAX" and count > MOST_FOR_MAX:
            raise NetError(
                "too many bottoms for a maximum",
                where=self.where,
                expected=f"at most {MOST_FOR_MAX}",
                got=count,
                hint="take the maximum of groups first",
            )
        self.coefficients: list[float] = given or [1.0] * count

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        x = bottoms[0]
        for i, other in enumerate(bottoms[1:], 1):
            if other.shape != x.shape or other.extent != x.extent:
                raise self.bad_shape(
                    f"bottom {i} ({self.spec.bottom[i]!r}) has another shape than bottom 0 "
                    f"({self.spec.bottom[0]!r})",
                    expected=x.shape,
                    got=other.shape if other.shape != x.shape else "another run-time extent",
                )
        work = float(len(bottoms) * x.count)
        maximum, product = self.operation == "MAX", self.operation == "PROD"
        return Contract(
            tops=(x,),
            saved=(Saved("winner", x.shape, "uint8"),) if maximum else (),
            backward_data=Needs(
                bottoms=tuple(range(len(bottoms))) if product else (),
                saved=("winner",) if maximum else (),
            ),
            inplace={0: 0},
            inplace_diff={0: 0},
            flops=Flops(work, work * (len(bottoms) if product else 1)),
        )

    def forward(self, ops: Any, io: IO) -> None:
        xs, y = list(io.x), io.y[0]
        if self.operation == "SUM":
            ops.weighted_total(xs, self.coefficients, y)
        elif self.operation == "PROD":
            ops.product(xs, y)
        else:
            ops.maximum_forward(xs, y, self._winner(io, y))

    def backward_data(self, ops: Any, io: IO) -> None:
        dy = io.dy[0]
        # Last to first: the gradient of bottom 0 may take dy's place.
        for i in reversed(range(len(io.dx))):
            dx = io.dx[i]
            if dx is None:
                continue
            if self.operation == "SUM":
                self._sum_backward(ops, i, dy, dx)
            elif self.operation == "PROD":
                others = [io.x[j] for j in range(len(io.dx)) if j != i]
                ops.product([dy, *others], dx)
            else:
                ops.maximum_backward(self._winner(io, dy), dy, i, dx)

    def _winner(self, io: IO, like: Any) -> Any:
        """The saved mask, cut to the rows there are."""
        return io.saved.winner[: like.shape[0]] if like.ndim else io.saved.winner

    def _sum_backward(self, ops: Any, i: int, dy: Any, dx: Any) -> None:
        if self.coefficients[i] == 1:
            ops.copy(dy, dx)
        else:
            ops.scale(dy, self.coefficients[i], dx)
