"""Windows of a trial taken together: what is stuck at its end counts with the time that it has waited."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.peak.harnesses.command import LoadOutcome
from etude.peak.harnesses.load_report import LoadReport
from etude.peak.task import Criterion, Goal
from etude.peak.window import Window, joined_windows
from etude.results.histograms import Histogram

MEAN = Goal((Criterion("mean", 0.020),))
P99 = Goal((Criterion("percentile", 0.020, 99.0),))


def windows(*under_way: int | None, mean_s: float = 0.01, rate: int = 1000) -> list[Window]:
    """Of a second each, of which the rest is answered in `mean_s`."""
    found, before = [], 0
    for now in under_way:
        done = rate - ((now or 0) - before)
        latency = Histogram(np.array([round(mean_s * 1e9)]), np.array([done]))
        found.append(Window(1.0, rate, done, 0, mean_s, latency, now))
        before = now or 0
    return found


def test_a_queue_that_builds_up_is_in_the_reading_though_its_answers_are_not() -> None:
    """40 of 1000 requests a second are never answered: after 8 s 320 have waited 4 s each on average."""
    *before, last = windows(*range(40, 321, 40))
    told = [*before, replace(last, waited_s=1280.0)]
    whole = joined_windows(told)
    assert whole.mean_s == pytest.approx(0.010)
    assert (whole.stuck, whole.stuck_s) == (320, pytest.approx(4.0))
    assert MEAN.reading(told) > 1 > MEAN.reading(list(windows(*[None] * 8)))
    assert P99.reading(told) == 50.0, "4 % of all have waited for seconds"


def test_without_their_waits_what_is_stuck_is_taken_for_what_came_last() -> None:
    """Of 1000 a second 990 wait: the last 990 of each second are half of one, the 1980 of two about one."""
    assert joined_windows(windows(990)).stuck_s == pytest.approx(0.495)
    assert joined_windows(windows(990, 1980)).stuck_s == pytest.approx(0.99)
    assert joined_windows(windows(600, 900)).stuck_s == pytest.approx(0.45)


def test_a_server_that_works_at_intervals_is_not_taken_for_one_that_falls_behind() -> None:
    """nginx by a quota of a tenth of a CPU: at each second's end a hundred wait for its next 100 ms, on average 57."""
    told = windows(157, 186, 116, 197, 138, 244, mean_s=0.0236, rate=2450)
    assert joined_windows(told).mean_so_far_s == pytest.approx(0.0236, rel=0.05)
    *before, last = told
    known = joined_windows([*before, replace(last, waited_s=244 * 0.06)])
    assert known.mean_so_far_s == pytest.approx(0.0236, rel=0.05)


@pytest.mark.parametrize("under_way", [[10] * 8, [8, 15, 3, 12, 9, 10, 14, 19], [0] * 8, [0]])
def test_what_the_mean_accounts_for_changes_nothing(under_way: list[int]) -> None:
    told = windows(*under_way)
    assert joined_windows(told).stuck == 0
    assert MEAN.reading(told) == pytest.approx(0.5)


def test_where_it_is_not_known_only_answers_count() -> None:
    assert joined_windows(windows(900, None)).stuck == 0
    assert joined_windows([]).stuck == 0
    nothing = [Window(1.0, 10, 0, 0, None, None, 10)]
    assert joined_windows(nothing).stuck == 0
    assert MEAN.reading(nothing) == 50.0


@given(st.lists(st.integers(0, 900), min_size=1, max_size=12), st.floats(1e-4, 0.5))
def test_what_is_stuck_never_makes_a_load_look_better(under_way: list[int], mean_s: float) -> None:
    told = windows(*under_way, mean_s=mean_s)
    whole = joined_windows(told)
    assert whole.mean_so_far_s is not None
    assert whole.mean_so_far_s >= mean_s * (1 - 1e-9)
    assert math.isfinite(whole.mean_so_far_s)
    assert 0 <= whole.stuck <= max(under_way)
    assert 0 <= whole.stuck_s <= len(under_way)
    assert MEAN.reading(told) >= MEAN.reading([*windows(*[None] * len(under_way), mean_s=mean_s)]) * (
        1 - 1e-9
    )


def test_the_looks_at_a_long_trial_do_not_grow_with_its_windows_squared() -> None:
    watched, looks = LoadOutcome([]), []

    def enough(windows: Sequence[Window]) -> bool:
        looks.append(len(windows))
        return len(windows) > 19_000

    for _ in range(20_000):
        watched.told.append(LoadReport(Window(1.0, 10, 10, 0, 0.01), 10))
        if watched.enough(enough):
            break
    assert looks[:100] == list(range(1, 101))
    assert len(looks) < 1000
    assert watched.early
    assert 19_000 < len(watched.told) <= 1.01 * 19_001 + 1
