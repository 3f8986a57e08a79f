"""The solver's mathematics on the CPU: clipping, weight decay and the six update rules.

Every rule leaves the step that was taken in ``dw`` (w -= dw), as Caffe does: that is the gradient
a snapshot with ``snapshot_diff`` stores. ``scalars`` is the planned array that holds the learning
rate and the step number (slots ``LR`` and ``STEP``); ``mult`` is the parameter's ``lr_mult``.
Everything is float32, block by block; ``h``, ``m``, ``v``, ``s`` are histories.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from layrubnet.devices.cpu.basic import BasicOps
from layrubnet.devices.cpu.blocks import Array, blocks
from layrubnet.engine.updates import LR, STEP


def _rate(scalars: Array, mult: float) -> np.float32:
    return np.float32(float(scalars[LR]) * mult)


def _decay(x: Array, old: np.float32, history: Array, temporary: Array) -> None:
    """history = old * history + (1 - old) * x"""
    np.multiply(history, old, out=history)
    np.multiply(x, np.float32(1) - old, out=temporary)
    np.add(history, temporary, out=history)


class UpdateOps(BasicOps):
    """What the update section of a program calls."""

    def global_norm(self, xs: Sequence[Array], y: Array) -> None:
        """y[0] = sqrt(sum of the squares of all elements of all xs)"""
        total = 0.0
        for x in xs:
            t = self.temporary(x)
            for (xb,) in blocks(x):
                tb = t[: xb.size]
                np.multiply(xb, xb, out=tb)
                total += float(np.add.reduce(tb))
        y[0] = math.sqrt(total)

    def clip_by_norm(self, y: Array, norm: Array, threshold: float) -> None:
        """y *= threshold / norm[0] where the norm is larger than the threshold"""
        length = float(norm[0])
        if length > threshold:
            self.scale_in_place(y, threshold / length)

    def regularise(self, w: Array, dw: Array, decay: float, kind: str) -> None:
        """dw += decay * w for "L2", dw += decay * sign(w) for "L1" """
        if kind == "L2":
            self.axpy(decay, w, dw)
            return
        t = self.temporary(w)
        factor = np.float32(decay)
        for wb, db in blocks(w, dw):
            tb = t[: wb.size]
            np.sign(wb, out=tb)
            np.multiply(tb, factor, out=tb)
            np.add(db, tb, out=db)

    def sgd_update(
        self, w: Array, dw: Array, h: Array, scalars: Array, mult: float, momentum: float
    ) -> None:
        """h = momentum * h + lr * dw;  w -= h"""
        rate, keep = _rate(scalars, mult), np.float32(momentum)
        for wb, db, hb in blocks(w, dw, h):
            np.multiply(db, rate, out=db)
            np.multiply(hb, keep, out=hb)
            np.add(hb, db, out=hb)
            np.copyto(db, hb)
            np.subtract(wb, db, out=wb)

    def nesterov_update(
        self, w: Array, dw: Array, h: Array, scalars: Array, mult: float, momentum: float
    ) -> None:
        """h' = momentum * h + lr * dw;  w -= (1 + momentum) * h' - momentum * h"""
        rate, keep = _rate(scalars, mult), np.float32(momentum)
        t = self.temporary(w)
        for wb, db, hb in blocks(w, dw, h):
            tb = t[: wb.size]
            np.multiply(hb, keep, out=tb)
            np.multiply(db, rate, out=db)
            np.add(tb, db, out=hb)
            np.multiply(hb, np.float32(1) + keep, out=db)
            np.subtract(db, tb, out=db)
            np.subtract(wb, db, out=wb)

    def adagrad_update(
        self, w: Array, dw: Array, h: Array, scalars: Array, mult: float, delta: float
    ) -> None:
        """h += dw^2;  w -= lr * dw / (sqrt(h) + delta)"""
        rate = _rate(scalars, mult)
        t = self.temporary(w)
        for wb, db, hb in blocks(w, dw, h):
            tb = t[: wb.size]
            np.multiply(db, db, out=tb)
            np.add(hb, tb, out=hb)
            self._step_by_root(wb, db, hb, tb, rate, delta)

    def rmsprop_update(
        self,
        w: Array,
        dw: Array,
        h: Array,
        scalars: Array,
        mult: float,
        decay: float,
        delta: float,
    ) -> None:
        """h = decay * h + (1 - decay) * dw^2;  w -= lr * dw / (sqrt(h) + delta)"""
        rate = _rate(scalars, mult)
        t = self.temporary(w)
        for wb, db, hb in blocks(w, dw, h):
            tb = t[: wb.size]
            np.multiply(db, db, out=tb)
            _decay(tb, np.float32(decay), hb, tb)
            self._step_by_root(wb, db, hb, tb, rate, delta)

    def _step_by_root(
        self, w: Array, dw: Array, h: Array, t: Array, rate: np.float32, delta: float
    ) -> None:
        """dw = rate * dw / (sqrt(h) + delta);  w -= dw"""
        np.sqrt(h, out=t)
        np.add(t, np.float32(delta), out=t)
        np.divide(dw, t, out=dw)
        np.multiply(dw, rate, out=dw)
        np.subtract(w, dw, out=w)

    def adadelta_update(
        self,
        w: Array,
        dw: Array,
        h: Array,
        s: Array,
        scalars: Array,
        mult: float,
        momentum: float,
        delta: float,
    ) -> None:
        """h = momentum * h + (1 - momentum) * dw^2;  u = dw * sqrt((s + delta) / (h + delta));
        s = momentum * s + (1 - momentum) * u^2;  w -= lr * u"""
        rate, keep, small = _rate(scalars, mult), np.float32(momentum), np.float32(delta)
        t, t2 = self.temporary(w), self.temporary(w)
        for wb, db, hb, sb in blocks(w, dw, h, s):
            tb, ub = t[: wb.size], t2[: wb.size]
            np.multiply(db, db, out=tb)
            _decay(tb, keep, hb, tb)
            np.add(sb, small, out=tb)
            np.add(hb, small, out=ub)
            np.divide(tb, ub, out=tb)
            np.sqrt(tb, out=tb)
            np.multiply(db, tb, out=db)
            np.multiply(db, db, out=tb)
            _decay(tb, keep, sb, tb)
            np.multiply(db, rate, out=db)
            np.subtract(wb, db, out=wb)

    def adam_update(
        self,
        w: Array,
        dw: Array,
        m: Array,
        v: Array,
        scalars: Array,
        mult: float,
        beta1: float,
        beta2: float,
        delta: float,
    ) -> None:
        """m = beta1 * m + (1 - beta1) * dw;  v = beta2 * v + (1 - beta2) * dw^2;
        w -= lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + delta)"""
        step = float(scalars[STEP])
        correction = math.sqrt(1 - beta2**step) / (1 - beta1**step)
        rate = np.float32(float(scalars[LR]) * mult * correction)
        t = self.temporary(w)
        for wb, db, mb, vb in blocks(w, dw, m, v):
            tb = t[: wb.size]
            _decay(db, np.float32(beta1), mb, tb)
            np.multiply(db, db, out=tb)
            _decay(tb, np.float32(beta2), vb, tb)
            np.copyto(db, mb)
            self._step_by_root(wb, db, vb, tb, rate, delta)
