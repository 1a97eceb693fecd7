"""How another clock stands to ours, and within what."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from etude.machine.remote.synchronized_start import Offset, measure_offset

DELAYS = st.lists(st.tuples(*[st.integers(0, 10**9)] * 2), min_size=1, max_size=20)


@given(DELAYS, st.integers(-(10**15), 10**15), st.integers(0, 10**12))
def test_the_offset_is_known_to_within_its_error_whatever_the_delays(
    delays: list[tuple[int, int]], true_ns: int, now: int
) -> None:
    time = [now]
    rounds = iter(delays)

    def ask() -> int:
        there, back = next(rounds)
        time[0] += there
        theirs = time[0] + true_ns
        time[0] += back
        return theirs

    found = measure_offset(ask, len(delays), lambda: time[0])
    assert abs(found.offset_ns - true_ns) <= found.error_ns
    assert found.error_ns == min((there + back + 1) // 2 for there, back in delays)


def test_instants_are_brought_to_the_other_clock_and_back() -> None:
    offset = Offset(-7, 1)
    assert offset.theirs(100) == 93
    assert offset.ours(offset.theirs(100)) == 100
