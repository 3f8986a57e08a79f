"""Choosing by mask: every bit of what is chosen, no trace of what is not."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from layrubnet.devices.cpu.select import choose, keep

ANY = st.floats(width=32, allow_nan=True, allow_infinity=True)


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.tuples(st.booleans(), ANY, ANY), min_size=1, max_size=40))
def test_against_where(rows: list[tuple[bool, float, float]]) -> None:
    mask = np.array([r[0] for r in rows])
    x, other = (np.array([r[k] for r in rows], np.float32) for k in (1, 2))
    lanes, y = np.empty(len(rows), np.int32), np.empty(len(rows), np.float32)
    keep(mask, x, y, lanes)
    assert y.tobytes() == np.where(mask, x, np.float32(0)).tobytes()
    want = np.where(mask, x, other).tobytes()
    choose(mask, x, other.copy(), y, lanes)
    assert y.tobytes() == want
    choose(mask, x, other.copy(), x, lanes)
    assert x.tobytes() == want


def test_strided_operands() -> None:
    x, other, y = (np.arange(24, dtype=np.float32).reshape(2, 3, 4) * s for s in (1, -1, 0))
    mask = np.arange(12).reshape(2, 3, 2) % 2 == 0
    part = np.s_[:, :, 1:3]
    choose(mask, x[part], other[part].copy(), y[part], np.empty((2, 3, 2), np.int32))
    assert (y[part] == np.where(mask, x[part], other[part])).all()
    assert not y[:, :, 0].any()
