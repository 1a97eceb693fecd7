"""Searches beside each other: the ratio of two peak rates, with an interval that holds it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.peak.compare_searches import incomparable_reasons, ratio
from etude.peak.task import Answer, Criterion, Goal, Task

TASK = Task(Goal((Criterion("mean", 0.04),)), 50.0, 5000.0)


def answer(rate: float | None, low: float, high: float) -> Answer:
    return Answer(rate, low, high, 0.95, True, "it is bracketed")


def test_of_equal_relative_ends_the_interval_is_wider_by_the_root_of_two() -> None:
    found = ratio(answer(100.0, 100.0 / 1.1, 110.0), answer(300.0, 300.0 / 1.1, 330.0))
    assert found.value == pytest.approx(3.0)
    assert found.low == pytest.approx(3.0 * 1.1 ** -math.sqrt(2))
    assert found.high == pytest.approx(3.0 * 1.1 ** math.sqrt(2))
    assert found.differs is True


def test_beside_a_rate_that_is_known_exactly_the_interval_is_that_of_the_other() -> None:
    found = ratio(answer(100.0, 100.0, 100.0), answer(110.0, 90.0, 150.0))
    assert (found.low, found.high) == (pytest.approx(0.9), pytest.approx(1.5))
    assert found.differs is False


def test_without_a_bound_there_is_none_of_the_ratio() -> None:
    found = ratio(answer(100.0, 90.0, 110.0), answer(200.0, 180.0, math.inf))
    assert found.low > 1.0
    assert math.isinf(found.high)
    assert found.differs is True
    unknown = ratio(answer(100.0, 0.0, math.inf), answer(200.0, 180.0, 220.0))
    assert (unknown.low, unknown.high, unknown.differs) == (0.0, math.inf, None)


def test_without_a_rate_only_the_bounds_say_something() -> None:
    found = ratio(answer(100.0, 50.0, 200.0), answer(None, 400.0, 800.0))
    assert (found.value, found.low, found.high) == (None, 2.0, 16.0)
    assert found.differs is True


RATES = st.floats(1.0, 1e5)
WIDTHS = st.floats(1.0, 3.0)


@given(RATES, WIDTHS, WIDTHS, RATES, WIDTHS, WIDTHS)
def test_the_other_way_round_it_is_one_over_it(
    a: float, a_low: float, a_high: float, b: float, b_low: float, b_high: float
) -> None:
    first, second = answer(a, a / a_low, a * a_high), answer(b, b / b_low, b * b_high)
    there, back = ratio(first, second), ratio(second, first)
    assert there.value is not None
    assert there.low <= there.value <= there.high
    assert 1.0 / there.low == pytest.approx(back.high)
    assert 1.0 / there.high == pytest.approx(back.low)


def test_searches_for_other_things_are_not_compared() -> None:
    assert incomparable_reasons([TASK, TASK]) == ()
    (goal,) = incomparable_reasons([TASK, replace(TASK, goal=Goal((Criterion("mean", 0.05),)))])
    assert "goals" in goal
    assert len(incomparable_reasons([TASK, replace(TASK, whole=True, closed=True, confidence=0.9)])) == 2
