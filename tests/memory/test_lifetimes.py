"""When buffers live, which share a place, and where the peak is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from layrubnet.engine.program import Buffer, Instruction
from layrubnet.memory.lifetimes import Slot, accesses, peak, slots
from layrubnet.memory.stretch import profile

BUFFERS = {n: Buffer(n, "data", (32,), layer=n) for n in "abcd"}
CHAIN = (
    Instruction("forward", "1", writes=("a",)),
    Instruction("forward", "2", reads=("a",), writes=("b",), shares=(("b", "a"),)),
    Instruction("forward", "3", reads=("b",), writes=("c",), scratch=640),
    Instruction("forward", "4", reads=("c", "d"), writes=()),
)


def spans(found: list[Slot]) -> set[tuple[int, int, int, tuple[str, ...]]]:
    return {(s.start, s.end, s.nbytes, tuple(s.names)) for s in found}


def test_a_buffer_that_nobody_writes_lives_from_the_beginning() -> None:
    assert accesses(CHAIN, BUFFERS) == {"a": [0, 1], "b": [1, 2], "c": [2, 3], "d": [0, 3]}


def test_a_result_takes_the_place_of_the_operand_it_may_overwrite() -> None:
    found = slots(CHAIN, BUFFERS, base_scratch=1024)
    assert spans(found) == {(0, 2, 128, ("a", "b")), (2, 3, 128, ("c",)), (0, 3, 128, ("d",))}


def test_not_where_the_operand_is_needed_later_or_sharing_is_off() -> None:
    wanted = {(0, 1, 128, ("a",)), (1, 2, 128, ("b",)), (2, 3, 128, ("c",)), (0, 3, 128, ("d",))}
    assert spans(slots(CHAIN, BUFFERS, base_scratch=1024, share=False)) == wanted
    kept = slots(CHAIN, BUFFERS, base_scratch=1024, keep=["a"])
    assert (0, 3, 128, ("a",)) in spans(kept)


def test_scratch_beyond_the_common_one_is_a_place_for_one_instruction() -> None:
    assert (2, 2, 640, ("#2",)) in spans(slots(CHAIN, BUFFERS, base_scratch=512))


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9), st.integers(1, 9)), min_size=1))
def test_peak_is_the_fullest_moment_of_the_profile(rows: list[tuple[int, int, int]]) -> None:
    found = [Slot(start, start + span, size, []) for start, span, size in rows]
    live = profile(found, 30)
    by_hand = [sum(s.nbytes for s in found if s.start <= t <= s.end) for t in range(30)]
    assert live == by_hand
    top, where = peak(found)
    assert top == max(by_hand) == by_hand[where]
