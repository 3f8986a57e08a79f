"""Making very many long-lived objects at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """No cyclic garbage collection inside.

    A net of 10,000 layers is millions of objects, none of them garbage: searching them over and
    over for cycles would take as long as making them.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            # Age what was made at once; otherwise the next allocation would search all of it.
            gc.freeze()
            gc.unfreeze()
        if enabled:
            gc.enable()
