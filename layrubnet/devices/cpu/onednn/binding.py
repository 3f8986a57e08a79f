"""The part of oneDNN's C interface that the engine uses: descriptors, primitives, execution.

Layouts are plain (given by strides) or ``any`` (the library chooses, a query tells which), so the
numbers of its many layouts, which change between versions, are never needed. All data are in our
arrays: memory objects only hold an address, and scratchpads are ours too.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from layrubnet.devices.cpu.onednn.loader import load
from layrubnet.errors import LayrubError

FORWARD_TRAINING, DIRECT = 64, 1
POOL_MAX, POOL_CELLS_ALL, POOL_CELLS_INSIDE = 511, 767, 1023
SRC, DST, WEIGHTS, BIAS, WORKSPACE, SCRATCHPAD = 1, 17, 33, 41, 64, 80
DIFF_SRC, DIFF_DST, DIFF_WEIGHTS, DIFF_BIAS = 129, 145, 161, 169
FLOAT32, UINT8 = 3, 6
_CPU, _IN_ORDER, _ANY, _USER = 1, 1, 1, 1
_QUERY_IMPLEMENTATION, _QUERY_SCRATCHPAD, _QUERY_ARGUMENT = 8, 136, 255
_AVX512 = 0x20
_UNSUPPORTED = {3: "unimplemented", 4: "no implementation left"}

_Pointer = ctypes.c_void_p
_Dims = ctypes.c_int64 * 12
_execute = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, _Pointer, ctypes.c_int, _Pointer)
_set_handle = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, _Pointer)


class Unsupported(Exception):
    """The library has no implementation for this; the caller uses another engine."""


class _Argument(ctypes.Structure):
    _fields_ = (("argument", ctypes.c_int), ("memory", _Pointer))


def dims(values: Sequence[int]) -> Any:
    """An array of the fixed length that the interface asks for."""
    return _Dims(*values)


class Handle:
    """An object of the library; destroyed with this one. ``keep`` must live as long."""

    def __init__(self, pointer: int, destroy: Any = None, keep: object = None) -> None:
        self.pointer, self._keep = pointer, keep
        if destroy is not None:
            # Not at exit: the library's own objects may be gone by then.
            weakref.finalize(self, destroy, _Pointer(pointer)).atexit = False


class OneDnn:
    """The loaded library with one engine and one stream."""

    def __init__(self, library: ctypes.CDLL, text: str) -> None:
        self.library, self.text = library, text
        library.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
        library.dnnl_primitive_desc_query_md.restype = _Pointer
        self.execute = _execute(("dnnl_primitive_execute", library))
        self.set_handle = _set_handle(("dnnl_memory_set_data_handle", library))
        self.engine = self.make("engine", ctypes.c_int(_CPU), ctypes.c_size_t(0))
        self.stream = self.make("stream", self.engine, ctypes.c_uint(_IN_ORDER))
        self.attributes = self.make("primitive_attr")
        self.call("primitive_attr_set_scratchpad_mode", self.attributes, ctypes.c_int(_USER))
        self.wide = bool(library.dnnl_get_effective_cpu_isa() & _AVX512)

    def call(self, name: str, *arguments: Any) -> None:
        """Call ``dnnl_<name>``; integers must be ctypes objects (or are C ints)."""
        plain = [_Pointer(a.pointer) if isinstance(a, Handle) else a for a in arguments]
        status = getattr(self.library, f"dnnl_{name}")(*plain)
        if status in _UNSUPPORTED:
            raise Unsupported(f"{name}: {_UNSUPPORTED[status]}")
        if status:
            raise LayrubError(f"oneDNN's {name} failed with status {status}")

    def make(self, kind: str, *arguments: Any, function: str = "", keep: object = None) -> Handle:
        """Create an object of a kind; it is destroyed with ``dnnl_<kind>_destroy``."""
        made = _Pointer()
        self.call(function or f"{kind}_create", ctypes.byref(made), *arguments)
        assert made.value is not None
        return Handle(made.value, getattr(self.library, f"dnnl_{kind}_destroy"), keep)

    # -- layouts ---------------------------------------------------------------------------------

    def any_layout(self, shape: Sequence[int]) -> Handle:
        """float32 of this shape in the layout that suits the primitive best."""
        return self.make(
            "memory_desc",
            len(shape),
            dims(shape),
            ctypes.c_int(FLOAT32),
            ctypes.c_int(_ANY),
            function="memory_desc_create_with_tag",
        )

    def plain(self, shape: Sequence[int], kind: int = FLOAT32) -> Handle:
        """Values of this shape, C-contiguous."""
        strides = [1]
        for n in reversed(shape[1:]):
            strides.insert(0, strides[0] * n)
        return self.strided(shape, strides, kind)

    def strided(self, shape: Sequence[int], strides: Sequence[int], kind: int = FLOAT32) -> Handle:
        """Values of this shape with strides in elements."""
        return self.make(
            "memory_desc",
            len(shape),
            dims(shape),
            ctypes.c_int(kind),
            dims(strides),
            function="memory_desc_create_with_strides",
        )

    def nbytes(self, layout: Handle | None) -> int:
        """Bytes that values in a layout take."""
        if layout is None:
            return 0
        return int(self.library.dnnl_memory_desc_get_size(_Pointer(layout.pointer)))

    def same(self, a: Handle, b: Handle) -> bool:
        """Are two layouts equal?"""
        equal = self.library.dnnl_memory_desc_equal
        return bool(equal(_Pointer(a.pointer), _Pointer(b.pointer)))

    # -- primitives ------------------------------------------------------------------------------

    def describe(self, name: str, *arguments: Any) -> Handle:
        """A primitive descriptor; :class:`Unsupported` where there is no implementation."""
        return self.make("primitive_desc", *arguments, function=f"{name}_primitive_desc_create")

    def reorder(self, source: Handle, target: Handle) -> Handle:
        """The descriptor of a copy between layouts."""
        engine = self.engine
        return self.describe("reorder", source, engine, target, engine, self.attributes)

    def layout(self, descriptor: Handle, argument: int) -> Handle:
        """The layout that a primitive uses for one of its arguments."""
        return self._query(descriptor, _QUERY_ARGUMENT, argument)

    def scratchpad(self, descriptor: Handle) -> Handle:
        """The layout of a primitive's temporary memory; may be empty."""
        return self._query(descriptor, _QUERY_SCRATCHPAD, 0)

    def _query(self, descriptor: Handle, what: int, index: int) -> Handle:
        query = self.library.dnnl_primitive_desc_query_md
        found = query(_Pointer(descriptor.pointer), ctypes.c_int(what), ctypes.c_int(index))
        return Handle(found or 0, keep=descriptor)

    def implementation(self, descriptor: Handle) -> str:
        """The name of the kernel that was chosen, for reports."""
        name = ctypes.c_char_p()
        what = ctypes.c_int(_QUERY_IMPLEMENTATION)
        self.call("primitive_desc_query", descriptor, what, 0, ctypes.byref(name))
        return (name.value or b"").decode()


class Call:
    """A primitive with the addresses of its arguments; runs without creating objects."""

    def __init__(self, dnn: OneDnn, descriptor: Handle, layouts: Mapping[int, Handle]) -> None:
        self._dnn = dnn
        self._primitive = dnn.make("primitive", descriptor, keep=descriptor)
        self._memories = {
            argument: dnn.make("memory", layout, dnn.engine, None, keep=layout)
            for argument, layout in layouts.items()
        }
        pairs = [_Argument(a, m.pointer) for a, m in self._memories.items()]
        self._arguments = (_Argument * len(pairs))(*pairs)
        self._address = ctypes.addressof(self._arguments)
        self._known = dict.fromkeys(layouts, 0)

    def __call__(self, addresses: Mapping[int, int]) -> None:
        """Run on arrays at these addresses; returns when the result is there."""
        for argument, address in addresses.items():
            if self._known[argument] != address:
                self._dnn.set_handle(self._memories[argument].pointer, address)
                self._known[argument] = address
        status = self._dnn.execute(
            self._primitive.pointer, self._dnn.stream.pointer, len(self._arguments), self._address
        )
        if status:
            raise LayrubError(f"oneDNN failed with status {status} while running a primitive")


_opened: list[OneDnn] = []


def onednn() -> OneDnn | None:
    """The library, opened at the first call; None where it cannot be used."""
    if not _opened:
        loaded = load()
        if loaded.library is None:
            return None
        _opened.append(OneDnn(loaded.library, loaded.text))
    return _opened[0]
