from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from etude.iotrace.profile import covered, cumulative_s

CALLS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 50)), max_size=30)


def arrays(calls: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    starts, durations = np.array(calls, np.int64).reshape(-1, 2).T
    return starts, durations


@given(CALLS)
def test_time_in_calls_up_to_a_moment_is_the_sum_of_their_parts_before_it(
    calls: list[tuple[int, int]],
) -> None:
    at = np.arange(0, 260)
    found = cumulative_s(*arrays(calls), at)
    expected = [sum(min(max(t - start, 0), long) for start, long in calls) for t in at.tolist()]
    assert np.allclose(found * 1e9, expected)


@given(CALLS)
def test_stretches_cover_what_calls_cover_and_lie_apart(calls: list[tuple[int, int]]) -> None:
    starts, lasting = covered(*arrays(calls))
    expected = {t for start, long in calls for t in range(start, start + long)}
    found = [t for s, d in zip(starts.tolist(), lasting.tolist(), strict=True) for t in range(s, s + d)]
    assert sorted(expected) == found
    assert (starts[1:] > (starts + lasting)[:-1]).all()


def test_long_traces_do_not_overflow() -> None:
    hour = 3_600_000_000_000
    starts = np.arange(0, 24 * hour, 24 * hour // 1_000_000, dtype=np.int64)
    found = cumulative_s(starts, np.full(starts.size, 1000), np.array([24 * hour]))
    assert np.allclose(found, starts.size * 1e-6)
