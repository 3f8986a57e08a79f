"""Temporary memory for one instruction, taken from a region that the plan reserved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from layrubnet.engine.contract import ITEM_BYTES
from layrubnet.errors import ContractError

_ALIGNMENT = 64

View = Callable[[int, Sequence[int], str], Any]
Cache = dict[tuple[int, tuple[int, ...], str], Any]


class ScratchAllocator:
    """Hands out arrays one after the other; ``reset`` at the start of every instruction.

    The same sequence of requests gets the same arrays again, so a step creates no objects after
    the first. What an array holds is undefined.
    """

    def __init__(self) -> None:
        self._view: View | None = None
        self._begin = self._offset = self._limit = 0
        self._cache: Cache = {}
        self.owner = ""

    def bind(self, view: View, cache: Cache | None = None) -> None:
        """Use some memory: ``view(offset, shape, dtype)`` makes an array in it, ``cache`` keeps
        those already made (an executor brings its own)."""
        self._view, self._cache = view, {} if cache is None else cache

    def reset(self, limit: int, owner: str = "", begin: int = 0) -> None:
        """Start an instruction that may use ``limit`` bytes from ``begin`` on."""
        self._begin = self._offset = begin
        self._limit, self.owner = begin + limit, owner

    @property
    def left(self) -> int:
        """Bytes that the current instruction may still take."""
        return self._limit - self._offset

    @contextmanager
    def reuse(self) -> Iterator[None]:
        """Give back at the end of the ``with`` block what was taken inside it."""
        offset = self._offset
        try:
            yield
        finally:
            self._offset = offset

    def __call__(self, shape: Sequence[int] | int, dtype: str = "float32") -> Any:
        """Return an array of this shape; :class:`ContractError` if the declared bytes run out."""
        dims = (shape,) if isinstance(shape, int) else tuple(shape)
        key = (self._offset, dims, dtype)
        nbytes = math.prod(dims) * ITEM_BYTES[dtype]
        if self._offset + nbytes > self._limit:
            raise ContractError(
                f"layer {self.owner!r} takes more scratch than it declared",
                expected=f"at most {self._limit - self._begin} bytes",
                got=f"{self._offset + nbytes - self._begin} bytes",
                hint="return the bytes from the layer's prepare()",
            )
        array = self._cache.get(key)
        if array is None:
            assert self._view is not None
            array = self._cache[key] = self._view(self._offset, dims, dtype)
        self._offset += -(-nbytes // _ALIGNMENT) * _ALIGNMENT
        return array
