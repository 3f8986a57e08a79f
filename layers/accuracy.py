"""Accuracy: the share of right predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layrubnet.engine.contract import Contract, Flops, Scratch, TensorType
from layrubnet.engine.io import IO
from layrubnet.engine.layer import register
from layrubnet.layers.labels import LabelledLayer


@register("Accuracy")
class Accuracy(LabelledLayer):
    """The share of labels whose score is among the ``top_k`` largest along ``axis``

    Bottoms: scores (M, C, S), labels (M, S). Tops: accuracy (), and the accuracy of each class (C)
    if a second top is named. Elements with ``ignore_label`` do not count. Ties count against: the
    label's score must be among the largest k even if it loses every tie::

        layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy"
          include { phase: TEST } }

    Differences from Caffe: a label out of range is an error; a NaN score is never right.
    """

    num_bottoms = (2, 2)
    num_tops = (1, 2)
    accepts_extent = True

    def setup(self) -> None:
        p = self.spec.accuracy_param
        self.ignore = p.ignore_label if p.HasField("ignore_label") else None
        self.top_k = p.top_k

    def infer(self, bottoms: Sequence[TensorType]) -> Contract:
        x, labels = bottoms
        self.fold_scores(x, labels, self.spec.accuracy_param.axis)
        if not 1 <= self.top_k <= self.classes:
            raise self.bad_shape(
                "top_k must be less than or equal to the number of classes",
                expected=f"1 to {self.classes}",
                got=self.top_k,
            )
        tops = (TensorType(()), TensorType((self.classes,)))[: len(self.spec.top)]
        return Contract(tops=tops, no_gradient=(0, 1), flops=Flops(forward=float(x.count)))

    def prepare(self, ops: Any) -> Scratch:
        return Scratch(forward=ops.accuracy_scratch(self.outer, self.classes, self.inner))

    def forward(self, ops: Any, io: IO) -> None:
        self.check_labels(ops, io.x[1])
        per_class = io.y[1] if len(io.y) == 2 else None
        ops.accuracy(self.folded(io.x[0]), io.x[1], self.ignore, self.top_k, io.y[0], per_class)
