"""Class labels: the checks that every layer with integer labels makes on its second bottom."""

from __future__ import annotations

import logging
import math
from typing import Any

from layrubnet.engine.contract import TensorType
from layrubnet.engine.layer import Layer
from layrubnet.errors import DataError

_log = logging.getLogger("layrubnet")


class LabelledLayer(Layer):
    """A layer whose bottoms are scores (class axis ``class_axis``) and integer labels.

    ``fold_scores`` computes ``outer`` (M), ``classes`` (C) and ``inner`` (S); arrays of scores are
    then seen as (M, C, S). The labels have M * S elements.
    """

    ignore: int | None = None
    _warned = False

    def fold_scores(self, x: TensorType, labels: TensorType, axis: int) -> None:
        """Compute M, C, S and check that there is one label for each prediction."""
        self.class_axis = axis = self.axis(axis, len(x.shape))
        if x.extent and axis == 0:
            raise self.bad_shape(
                "the number of classes is known only at run time",
                expected="an axis from 1 on",
                got=axis,
            )
        self.outer, self.classes = math.prod(x.shape[:axis]), x.shape[axis]
        self.inner = math.prod(x.shape[axis + 1 :])
        if labels.count != self.outer * self.inner or labels.extent != x.extent:
            expected = (*x.shape[:axis], *x.shape[axis + 1 :])
            raise self.bad_shape(
                "Number of labels must match number of predictions",
                expected=f"{self.outer * self.inner} labels, for example {expected}: "
                f"one for each prediction of {x.shape} with the classes along axis {axis}",
                got=f"{labels.count} labels {labels.shape}",
            )

    def folded(self, array: Any) -> Any:
        """The (M, C, S) view of an array of scores."""
        return array.reshape(array.size // (self.classes * self.inner), self.classes, self.inner)

    def check_labels(self, ops: Any, labels: Any) -> None:
        """Refuse labels out of range; warn once about labels that are no whole numbers."""
        bad = ops.first_bad_label(labels, self.classes, self.ignore)
        if bad >= 0:
            where = f"element {bad}" if self.inner == 1 else (
                f"element {bad} (sample {bad // self.inner}, position {bad % self.inner})"
            )  # fmt: skip
            ignored = "" if self.ignore is None else f", or {self.ignore} (ignore_label)"
            raise DataError(
                f"label out of range: {float(labels.reshape(-1)[bad]):g}",
                where=self.where,
                expected=f"a label from 0 to {self.classes - 1}, as there are "
                f"{self.classes} classes{ignored}",
                got=f"{float(labels.reshape(-1)[bad]):g} at {where} of the batch",
                hint="set num_output to the number of classes, or repair the labels in the data; "
                "loss_param { ignore_label: N } skips a label",
            )
        if not self._warned and ops.has_fractions(labels):
            self._warned = True
            _log.warning(
                "%s: some labels are no whole numbers; they are truncated (1.7 counts as 1)",
                self.where,
            )
