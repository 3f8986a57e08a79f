"""Softmax, its cross-entropy loss and accuracy on the CPU.

Arrays are (M, C, S): axes before the class axis, classes, axes after it. Labels are float32 and
have M * S elements; a label is truncated towards zero before it is used, as in Caffe.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from layrubnet.devices.cpu.basic import BasicOps
from layrubnet.devices.cpu.blocks import BLOCK, Array, flat

FLT_MIN = np.finfo(np.float32).tiny
_SPARE = 2048


def _row_blocks(x: Array) -> Iterator[slice]:
    """Slices of axis 0 with about BLOCK elements each (at least one row)."""
    rows = max(1, BLOCK // max(1, x.shape[1] * x.shape[2]))
    for begin in range(0, x.shape[0], rows):
        yield slice(begin, min(begin + rows, x.shape[0]))


class SoftmaxOps(BasicOps):
    """Softmax and what compares its result with class labels."""

    # -- softmax ---------------------------------------------------------------------------------

    def softmax_scratch(
        self, outer: int, classes: int, inner: int, *, accumulate: bool = False
    ) -> int:
        """Bytes of scratch for softmax on (M, C, S) arrays (``accumulate``: for the backward)."""
        block = 4 * max(BLOCK, classes * inner) if accumulate else 0
        return 4 * outer * inner + block + _SPARE

    def softmax_forward(self, x: Array, y: Array) -> None:
        """y = exp(x - max x) / sum exp(x - max x), max and sum over the classes; y may be x"""
        t = self.scratch((x.shape[0], x.shape[2]))
        column = t[:, None, :]
        np.maximum.reduce(x, axis=1, out=t)
        np.subtract(x, column, out=y)
        np.exp(y, out=y)
        np.add.reduce(y, axis=1, out=t)
        np.divide(y, column, out=y)

    def softmax_backward(self, y: Array, dy: Array, dx: Array, *, accumulate: bool = False) -> None:
        """dx = (dx +) (dy - sum of dy * y over the classes) * y; dx may be dy"""
        t = self.scratch((y.shape[0], y.shape[2]))
        np.einsum("mcs,mcs->ms", dy, y, out=t)
        column = t[:, None, :]
        if not accumulate:
            np.subtract(dy, column, out=dx)
            np.multiply(dx, y, out=dx)
            return
        block = self.scratch(max(BLOCK, y.shape[1] * y.shape[2]))
        for rows in _row_blocks(y):
            part = y[rows]
            tb = block[: part.size].reshape(part.shape)
            np.subtract(dy[rows], column[rows], out=tb)
            np.multiply(tb, part, out=tb)
            np.add(dx[rows], tb, out=dx[rows])

    # -- labels ----------------------------------------------------------------------------------

    def cross_entropy_scratch(self, outer: int, classes: int, inner: int) -> int:
        """Bytes of scratch for the label checks and one of the cross entropy operations."""
        return 40 * outer * inner + 8 * (outer + inner) + 4 * classes + _SPARE

    def accuracy_scratch(self, outer: int, classes: int, inner: int) -> int:
        """Bytes of scratch for the label checks and the accuracy."""
        block = max(BLOCK, classes * inner)
        return self.cross_entropy_scratch(outer, classes, inner) + block

    def first_bad_label(self, labels: Array, classes: int, ignore: int | None) -> int:
        """The position of the first label that is neither ignored nor in [0, classes), or -1."""
        t = self.scratch(labels.size)
        bad, other = self.scratch(labels.size, "bool"), self.scratch(labels.size, "bool")
        np.trunc(flat(labels), out=t)
        np.greater_equal(t, np.float32(0), out=bad)
        np.less(t, np.float32(classes), out=other)
        np.logical_and(bad, other, out=bad)
        if ignore is not None:
            np.equal(t, np.float32(ignore), out=other)
            np.logical_or(bad, other, out=bad)
        np.logical_not(bad, out=bad)  # also true for NaN
        return int(bad.argmax()) if bad.size and np.count_nonzero(bad) else -1

    def has_fractions(self, labels: Array) -> bool:
        """Is there a label that is no whole number?"""
        t = self.scratch(labels.size)
        differs = self.scratch(labels.size, "bool")
        np.trunc(flat(labels), out=t)
        np.not_equal(t, flat(labels), out=differs)
        return bool(np.count_nonzero(differs))

    def _class_index(
        self, labels: Array, shape: Sequence[int], ignore: int | None
    ) -> tuple[Array, Array]:
        """(class of each label, 0 for ignored ones; which are ignored), both (M, S)."""
        index = self.scratch(shape, "int64")
        ignored = self.scratch(shape, "bool")
        np.copyto(index, labels.reshape(shape), casting="unsafe")
        if ignore is None:
            ignored.fill(False)
        else:
            np.equal(index, ignore, out=ignored)
            np.copyto(index, 0, where=ignored)
        return index, ignored

    def _element_index(self, index: Array, classes: int) -> Array:
        """The position of each label's element in the flat (M, C, S) array."""
        outer, inner = index.shape
        where: Array = self.scratch(index.shape, "int64")
        np.multiply(index, inner, out=where)
        for count, step, expand in ((outer, classes * inner, True), (inner, 1, False)):
            line = self.scratch(count, "int64")
            line.fill(step)
            line[:1] = 0
            np.add.accumulate(line, out=line)
            np.add(where, line[:, None] if expand else line, out=where)
        return where

    def _weights_of(self, index: Array, weights: Sequence[float]) -> Array:
        table = self.scratch(len(weights))
        found: Array = self.scratch(index.shape)
        for position, weight in enumerate(weights):
            table[position] = weight
        np.take(table, index, out=found, mode="clip")
        return found

    # -- cross entropy ---------------------------------------------------------------------------

    def cross_entropy_forward(
        self,
        prob: Array,
        labels: Array,
        ignore: int | None,
        weights: Sequence[float],
        divisor: float | None,
        loss: Array,
    ) -> None:
        """loss = sum of -weights[label] * log max(prob[label], FLT_MIN) / divisor

        Ignored labels do not count; no ``weights``: all 1; ``divisor`` None: the number of labels
        that count. The divisor is at least 1.
        """
        outer, classes, inner = prob.shape
        index, ignored = self._class_index(labels, (outer, inner), ignore)
        t = self.scratch(index.shape)
        np.take(flat(prob), self._element_index(index, classes), out=t, mode="clip")
        np.maximum(t, FLT_MIN, out=t)
        np.log(t, out=t)
        if weights:
            np.multiply(t, self._weights_of(index, weights), out=t)
        np.copyto(t, 0, where=ignored)
        total = float(np.add.reduce(t, axis=None, dtype=np.float64))
        loss[...] = -total / self._divisor(ignored, divisor)

    def cross_entropy_backward(
        self,
        prob: Array,
        labels: Array,
        ignore: int | None,
        weights: Sequence[float],
        divisor: float | None,
        dloss: Array,
        dx: Array,
    ) -> None:
        """dx = (prob - [class is the label]) * weights[label] * dloss / divisor, ignored: 0"""
        outer, classes, inner = prob.shape
        index, ignored = self._class_index(labels, (outer, inner), ignore)
        where, t = self._element_index(index, classes), self.scratch(index.shape)
        np.copyto(dx, prob)
        target = flat(dx)
        np.take(target, where, out=t, mode="clip")
        np.subtract(t, np.float32(1), out=t)
        target.put(where, t, mode="clip")
        np.multiply(dx, np.float32(float(dloss) / self._divisor(ignored, divisor)), out=dx)
        if weights:
            np.multiply(dx, self._weights_of(index, weights)[:, None, :], out=dx)
        np.copyto(dx, 0, where=ignored[:, None, :])

    def _divisor(self, ignored: Array, divisor: float | None) -> float:
        if divisor is None:
            divisor = float(ignored.size - np.count_nonzero(ignored))
        return max(1.0, divisor)

    # -- accuracy --------------------------------------------------------------------------------

    def accuracy(
        self,
        x: Array,
        labels: Array,
        ignore: int | None,
        top_k: int,
        y: Array,
        per_class: Array | None = None,
    ) -> None:
        """y = share of labels whose score is among the ``top_k`` largest; ties count against.

        ``per_class``: the share for each class. Ignored labels do not count; of none it is 0.
        """
        outer, classes, inner = x.shape
        index, ignored = self._class_index(labels, (outer, inner), ignore)
        score, smaller = self.scratch(index.shape), self.scratch(index.shape)
        np.take(flat(x), self._element_index(index, classes), out=score, mode="clip")
        block = self.scratch(max(BLOCK, classes * inner), "bool")
        for rows in _row_blocks(x):
            part = x[rows]
            less = block[: part.size].reshape(part.shape)
            # "not less" instead of "greater or equal": a NaN score is then never correct.
            np.less(part, score[rows, None, :], out=less)
            np.add.reduce(less, axis=1, dtype=np.float32, out=smaller[rows])
        correct, counts = self.scratch(index.shape, "bool"), self.scratch(index.shape, "bool")
        np.greater_equal(smaller, np.float32(classes - top_k), out=correct)
        np.logical_not(ignored, out=counts)
        np.logical_and(correct, counts, out=correct)
        y[...] = _share(np.count_nonzero(correct), np.count_nonzero(counts))
        if per_class is None:
            return
        for label in range(classes):
            np.equal(index, label, out=counts)
            np.greater(counts, ignored, out=counts)
            among = np.count_nonzero(counts)
            np.logical_and(counts, correct, out=counts)
            per_class[label] = _share(np.count_nonzero(counts), among)


def _share(part: Any, whole: Any) -> float:
    return int(part) / int(whole) if whole else 0.0
