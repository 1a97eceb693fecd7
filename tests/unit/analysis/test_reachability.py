"""When more trials are worth advising."""

from __future__ import annotations

import math

import pytest

from etude.analysis.comparison import within_reach


@pytest.mark.parametrize(("more", "measured", "seconds", "expected"), [
    (1000, 10, 30.0, True),
    (1001, 10, 30.0, True),  # more than a hundred times as many, but soon done
    (1000, 10, 7200.0, True),
    (1001, 10, 7200.0, False),
    (20, 10, 86401.0, False),
    (10**9, 10**8, 1.0, False),
    (1000, 10, 0.0, True),  # their time is not known
    (1001, 10, 0.0, False),
    (5, 10, math.nan, False),
])  # fmt: skip
def test_an_hour_is_and_a_day_or_a_hundred_times_as_many_is_not(
    more: int, measured: int, seconds: float, expected: bool
) -> None:
    assert within_reach(more, measured, seconds) is expected
