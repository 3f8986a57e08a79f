"""SoftmaxWithLoss: softmax and the cross entropy with integer labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import Contract, Flops, Needs, Saved, Scratch, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import register
from layrubnet.errors import NetError
from layrubnet.layers.labels import LabelledLayer
from layrubnet.layers.normalisation import divisor_of, normalisation


@register("SoftmaxWithLoss", "SoftmaxLoss")
class SoftmaxWithLoss(LabelledLayer):
    """loss = sum of -log p[label] / divisor, with p = softmax(x) along ``softmax_param.axis``

    Bottoms: scores (M, C, S), labels (M, S) with values 0 ... C - 1. Tops: loss (), and p if a
    second top is named. Gradient: (p - [class is the label]) * dloss / divisor. ``loss_param``:
    ``ignore_label`` (its elements count nothing), ``normalization`` chooses the divisor: VALID
    (labels that count; default), FULL (M * S), BATCH_SIZE (M), NONE (1), never below 1;
    ``class_weight`` once per class multiplies each element's loss by the weight of its label::

        layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }

    Differences from Caffe: a label out of range is an error; the second top works, and a gradient
    that arrives there counts.
    """

    num_bottoms = (2, 2)
    num_tops = (1, 2)
    is_loss = True
    accepts_extent = True
    fork_fields = ("loss_param", "softmax_param")

    def setup(self) -> None:
        p = self.spec.loss_param
        self.ignore = p.ignore_label if p.HasField("ignore_label") else None
        self.mode = normalisation(p, default="VALID")
        self.weights = self._class_weights()
        if p.label_smoothing or self.spec.softmax_param.label_smooth_factor:
            raise NetError("label smoothing is not supported", where=self.where)
        if self.spec.softmax_param.hard_ratio != 1:
            raise NetError("softmax_param: hard_ratio is not supported", where=self.where)

    def _class_weights(self) -> tuple[float, ...]:
        p = self.spec.loss_param
        given = {
            "class_weight": p.class_weight,
            "class_loss_weights": p.class_loss_weights,
            "class_weighting": p.class_weighting if p.weight_by_label_freqs else (),
            "softmax_param.class_weight": self.spec.softmax_param.class_weight,
        }
        found = {name: tuple(values) for name, values in given.items() if len(values)}
        if len(set(found.values())) > 1:
            raise NetError(
                f"class weights are given twice: {' and '.join(found)}", where=self.where
            )
        return next(iter(found.values()), ())

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        x, labels = bottoms
        self.fold_scores(x, labels, self.spec.softmax_param.axis)
        if self.weights and len(self.weights) != self.classes:
            raise NetError(
                "class weights must be given once per class",
                where=self.where,
                expected=f"{self.classes} weights",
                got=f"{len(self.weights)} weights",
            )
        self.prob_top = len(self.spec.top) == 2
        loss = TensorType(())
        return Contract(
            tops=(loss, x) if self.prob_top else (loss,),
            saved=() if self.prob_top else (Saved("prob", x.shape),),
            backward_data=Needs(bottoms=(1,), tops=(1,))
            if self.prob_top
            else Needs(bottoms=(1,), saved=("prob",)),
            no_gradient=(1,),
            flops=Flops(forward=5.0 * x.count, backward_data=2.0 * x.count),
        )

    def prepare(self, ops: Any) -> Scratch:
        shape = (self.outer, self.classes, self.inner)
        labels = ops.cross_entropy_scratch(*shape)
        return Scratch(
            forward=labels + ops.softmax_scratch(*shape),
            backward_data=labels + ops.softmax_scratch(*shape, accumulate=self.prob_top),
        )

    def _prob(self, io: IO) -> Any:
        if self.prob_top:
            return self.folded(io.y[1])
        # What is saved has the bound of a run-time extent; the labels say how much of it counts.
        whole = self.folded(io.saved.prob)
        return whole[: io.x[1].size // self.inner]

    def forward(self, ops: Any, io: IO) -> None:
        prob = self._prob(io)
        self.check_labels(ops, io.x[1])
        ops.softmax_forward(self.folded(io.x[0]), prob)
        ops.cross_entropy_forward(
            prob, io.x[1], self.ignore, self.weights, self._divisor(prob), io.y[0]
        )

    def backward_data(self, ops: Any, io: IO) -> None:
        prob, dx = self._prob(io), self.folded(io.dx[0])
        ops.cross_entropy_backward(
            prob, io.x[1], self.ignore, self.weights, self._divisor(prob), io.dy[0], dx
        )
        if self.prob_top and io.dy[1] is not None:
            ops.softmax_backward(prob, self.folded(io.dy[1]), dx, accumulate=True)

    def _divisor(self, prob: Any) -> float | None:
        return divisor_of(self.mode, prob.shape[0], self.inner)
