"""Stub layers that stretch the contract: each has one property that a planner could get wrong.

They compute little; what they *declare* is what the tests look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from layrubnet.engine.contract import (
    Alias,
    BlobDecl,
    Contract,
    Needs,
    Saved,
    StateDecl,
    TensorType,
)
from layrubnet.engine.io import IO
from layrubnet.engine.layer import Expansion, Layer, register
from layrubnet.proto import LayerParameter


@register("StubBatchNorm")
class StubBatchNorm(Layer):
    """Statistics are blobs that only update_state writes; backward reads its own top."""

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        (x,) = bottoms
        channels = (x.shape[1],)
        return Contract(
            tops=(x,),
            blobs=(
                BlobDecl("mean", channels, kind="state"),
                BlobDecl("variance", channels, kind="state"),
                BlobDecl("factor", (1,), kind="state"),
            ),
            saved=(Saved("mean", channels), Saved("inverse_std", channels)),
            forward_needs=Needs(bottoms=(0,)),
            backward_data=Needs(tops=(0,), saved=("inverse_std",)),
            update_state=Needs(saved=("mean", "inverse_std")),
            inplace={0: 0},
            inplace_diff={0: 0},
        )


@register("StubGates")
class StubGates(Layer):
    """One time step of a recurrent net: (x_t, h) -> h'."""

    num_bottoms = (2, 2)

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        x, h = bottoms
        return Contract(
            tops=(h,),
            blobs=(BlobDecl("weight", (h.shape[-1], x.shape[-1] + h.shape[-1])),),
            backward_data=Needs(bottoms=(0, 1), tops=(0,), blobs=(0,)),
            backward_weights=Needs(bottoms=(0, 1), tops=(0,)),
        )


@register("StubCarry")
class StubCarry(Layer):
    """The state carried across iterations: read at the start, written once per micro-batch."""

    num_bottoms = (0, 1)
    num_tops = (0, 1)

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        shape = (4, 8)
        if bottoms:
            return Contract(
                tops=(),
                state=(StateDecl("h", bottoms[0].shape),),
                forward_needs=Needs(),
                update_state=Needs(bottoms=(0,)),
            )
        return Contract(tops=(TensorType(shape),), state=(StateDecl("h", shape),))


@register("StubLSTM")
class StubLSTM(Layer):
    """A composite: expands into one StubGates per time step, all sharing one weight."""

    steps = 3

    def expand(self, bottoms: Sequence[TensorType]) -> Expansion:
        name, x, y = self.name, self.spec.bottom[0], self.spec.top[0]
        layers = [
            LayerParameter(
                name=f"{name}/slice", type="StubSlice", bottom=[x],
                top=[f"{name}/x_{t}" for t in range(self.steps)],
            ),
            LayerParameter(name=f"{name}/start", type="StubCarry", top=[f"{name}/h_-1"]),
        ]  # fmt: skip
        for t in range(self.steps):
            layers.append(
                LayerParameter(
                    name=f"{name}/step_{t}",
                    type="StubGates",
                    bottom=[f"{name}/x_{t}", f"{name}/h_{t - 1}"],
                    top=[f"{name}/h_{t}"],
                    param=[{"name": f"{name}/weight"}],
                )
            )
        last = f"{name}/h_{self.steps - 1}"
        layers.append(
            LayerParameter(name=f"{name}/out", type="Split", bottom=[last], top=[y, f"{name}/h"])
        )
        layers.append(LayerParameter(name=f"{name}/end", type="StubCarry", bottom=[f"{name}/h"]))
        return Expansion(tuple(layers), blobs=((f"{name}/step_0", 0),))


@register("StubSlice")
class StubSlice(Layer):
    """Equal slices along axis 0."""

    num_tops = (1, None)

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        (x,) = bottoms
        count = len(self.spec.top)
        part = x.with_shape(x.shape[0] // count, *x.shape[1:])
        return Contract(tops=(part,) * count, backward_data=Needs())


@register("StubFilter")
class StubFilter(Layer):
    """Keeps the rows whose selector is not zero: the number of rows is known at run time only."""

    num_bottoms = (2, 2)

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        x, _selector = bottoms
        return Contract(
            tops=(replace(x, extent=self.name),),
            saved=(Saved("rows", (x.shape[0],), "int32"),),
            backward_data=Needs(saved=("rows",)),
            no_gradient=(1,),
        )

    def forward(self, ops: Any, io: IO) -> None:
        kept = 0
        for row, wanted in enumerate(io.x[1]):
            if wanted:
                io.y[0][kept] = io.x[0][row]
                io.saved.rows[kept] = row
                kept += 1
        io.set_extent(0, kept)

    def backward_data(self, ops: Any, io: IO) -> None:
        ops.fill(io.dx[0], 0.0)
        for k, gradient in enumerate(io.dy[0]):
            io.dx[0][io.saved.rows[k]] = gradient


@register("StubDetectionOutput")
class StubDetectionOutput(Layer):
    """Output only: at most 10 detections of 7 numbers, not differentiable."""

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        return Contract(tops=(TensorType((10, 7), extent=self.name),))


@register("StubCenterLoss")
class StubCenterLoss(Layer):
    """A loss whose centres are state: used by forward, moved by update_state, never by a solver."""

    num_bottoms = (2, 2)
    is_loss = True

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        x, _label = bottoms
        return Contract(
            tops=(TensorType(()),),
            blobs=(BlobDecl("centres", (10, x.shape[1]), kind="state"),),
            saved=(Saved("distance", x.shape),),
            backward_data=Needs(saved=("distance",)),
            update_state=Needs(bottoms=(0, 1)),
            no_gradient=(1,),
        )


@register("StubUnknown")
class StubUnknown(Layer):
    """A layer that declares nothing special, as a user's first layer: the conservative case."""

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        return Contract(tops=(bottoms[0],), backward_data=Needs(bottoms=(0,), tops=(0,), blobs=()))


@register("StubView")
class StubView(Layer):
    """A view: no forward and no backward instruction."""

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        (x,) = bottoms
        return Contract(tops=(x.with_shape(x.count),), alias={0: Alias(0)}, backward_data=Needs())


@register("StubLoss")
class StubLoss(Layer):
    """A loss of two bottoms, both differentiable."""

    num_bottoms = (1, 2)
    is_loss = True

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        everything = tuple(range(len(bottoms)))
        return Contract(tops=(TensorType(()),), backward_data=Needs(bottoms=everything))
