"""What a layer receives when one of its instructions runs.

The arrays are views of the device's arena, bound once when the program is made ready; a step
creates nothing. A slot that the contract does not declare is absent, and touching it is an error
that says which declaration is missing: so a wrong contract cannot go unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from layrubnet.errors import ContractError


class Slots:
    """Arrays by index; an undeclared one raises :class:`ContractError`."""

    __slots__ = ("_arrays", "_what")

    def __init__(self, arrays: Iterable[Any], what: str) -> None:
        self._arrays = tuple(arrays)
        self._what = what

    def __getitem__(self, index: int) -> Any:
        array = self._arrays[index]
        if array is None:
            raise ContractError(
                f"{self._what} {index} is not declared for this instruction",
                hint="declare it in the layer's contract (Needs) so that it is kept in memory",
            )
        return array

    def __len__(self) -> int:
        return len(self._arrays)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self._arrays)))


class Named:
    """Arrays by name as attributes (``io.saved.mask``); an undeclared one is an error.

    ``"mask" in io.saved`` tells which of two forms runs (see :class:`contract.Compact`).
    """

    def __init__(self, arrays: dict[str, Any], what: str) -> None:
        self.__dict__.update(arrays)
        self._what = what

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__

    def __getattr__(self, name: str) -> Any:
        raise ContractError(
            f"{self._what} {name!r} is not declared for this instruction",
            hint="declare it in the layer's contract",
        )


class IO:
    """One instruction's operands.

    ``x``/``y``: data of bottoms/tops. ``dx``: gradients of bottoms to write (``None``: not
    wanted). ``dy``: gradients of tops to read (``None``: none arrives there, treat as zero).
    ``w``/``dw``: blobs and their gradients (``dw[i] is None``: not wanted). ``saved``, ``state``:
    by name. ``accumulate``: add to ``dw`` instead of overwriting (only for layers that declare
    ``accumulates``). ``chunk``: ``(begin, end)`` of the declared chunk axis of ``dw[0]``, or None.
    ``random``: key and counter for random draws.
    """

    __slots__ = (
        "accumulate",
        "chunk",
        "dw",
        "dx",
        "dy",
        "extents",
        "random",
        "saved",
        "state",
        "w",
        "x",
        "y",
    )

    def __init__(
        self,
        *,
        x: Slots,
        y: Slots,
        w: Slots,
        dx: tuple[Any, ...] = (),
        dy: tuple[Any, ...] = (),
        dw: tuple[Any, ...] = (),
        saved: Named,
        state: Named,
        accumulate: bool = False,
        chunk: tuple[int, int] | None = None,
        random: RandomSource | None = None,
    ) -> None:
        self.x, self.y, self.w = x, y, w
        self.dx, self.dy, self.dw = dx, dy, dw
        self.saved, self.state = saved, state
        self.accumulate = accumulate
        self.chunk = chunk
        self.random = random
        self.extents: dict[int, int] = {}

    def set_extent(self, top: int, extent: int) -> None:
        """Declare how many rows of ``top`` (axis 0) hold data after this forward."""
        self.extents[top] = extent


class RandomSource:
    """The key of a layer's random stream and the planned buffer with its step counters.

    Every draw is Philox4x32-10 of (key; element block, iteration, micro-batch and rank, draw):
    it depends on nothing that a plan, a device or a recomputation changes.
    """

    __slots__ = ("counters", "key")

    def __init__(self, key: tuple[int, int], counters: Any) -> None:
        self.key = key
        self.counters = counters
