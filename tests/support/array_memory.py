"""Count the array data that NumPy allocates, exactly, with a peak that can be reset.

tracemalloc's peak mixes array data with everything else Python allocates, so the counting is done
where NumPy allocates: through the data-memory handler of its C interface (NEP 49).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

_SET_HANDLER = 304
"""Position of PyDataMem_SetHandler in NumPy's table of C functions (fixed by its ABI)."""

_libc = ctypes.CDLL(None)
for _name, _result, _arguments in (
    ("malloc", ctypes.c_void_p, [ctypes.c_size_t]),
    ("calloc", ctypes.c_void_p, [ctypes.c_size_t, ctypes.c_size_t]),
    ("realloc", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]),
    ("free", None, [ctypes.c_void_p]),
):
    getattr(_libc, _name).restype = _result
    getattr(_libc, _name).argtypes = _arguments

_P, _N = ctypes.c_void_p, ctypes.c_size_t
_MALLOC = ctypes.PYFUNCTYPE(_P, _P, _N)
_CALLOC = ctypes.PYFUNCTYPE(_P, _P, _N, _N)
_REALLOC = ctypes.PYFUNCTYPE(_P, _P, _P, _N)
_FREE = ctypes.PYFUNCTYPE(None, _P, _P, _N)


class _Handler(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", _P),
        ("malloc", _MALLOC),
        ("calloc", _CALLOC),
        ("realloc", _REALLOC),
        ("free", _FREE),
    )


class ArrayMemory:
    """Bytes of array data allocated while counting: now, and at the peak since ``reset_peak``."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.now = 0
        self.peak = 0
        self._handler = _Handler(
            b"counting",
            1,
            None,
            _MALLOC(lambda context, n: self._note(_libc.malloc(max(n, 1)), n)),
            _CALLOC(lambda context, n, size: self._note(_libc.calloc(n or 1, size or 1), n * size)),
            _REALLOC(self._realloc),
            _FREE(lambda context, pointer, n: self._free(pointer)),
        )

    def _note(self, pointer: int, n: int) -> int:
        self.sizes[pointer] = n
        self.now += n
        self.peak = max(self.peak, self.now)
        return pointer

    def _free(self, pointer: int) -> None:
        self.now -= self.sizes.pop(pointer, 0)
        _libc.free(pointer)

    def _realloc(self, context: int, pointer: int, n: int) -> int:
        self.now -= self.sizes.pop(pointer, 0)
        return self._note(_libc.realloc(pointer, max(n, 1)), n)

    def reset_peak(self) -> None:
        self.peak = self.now


_kept: list[tuple[ArrayMemory, object]] = []
"""Arrays remember the handler that made them, so handlers live for ever."""


@contextmanager
def count_array_memory() -> Iterator[ArrayMemory]:
    """Count allocations of this thread inside the ``with`` block."""
    api = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(api, None), ctypes.POINTER(ctypes.c_void_p))
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER])
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    memory = ArrayMemory()
    capsule = make(ctypes.addressof(memory._handler), b"mem_handler", None)
    _kept.append((memory, capsule))
    previous = set_handler(capsule)
    try:
        yield memory
    finally:
        set_handler(previous)
