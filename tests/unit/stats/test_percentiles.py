"""Percentiles with intervals, quartiles, trimmed means and error bars."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from etude.stats.describe import (
    DEFAULT_SHARES,
    error_bar,
    fewest_for_interval,
    percentile,
    percentiles,
    quartiles,
    trimmed_mean,
)
from etude.stats.intervals import effective_count, mean_interval, median_interval

numbers = st.floats(-1e6, 1e6) | st.integers(-9, 9).map(float)
samples = st.lists(numbers, min_size=1, max_size=80)
X = np.random.default_rng(41).lognormal(0.0, 0.5, 400)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.95, 0.99])
def test_the_interval_is_that_of_scipys_quantile_test(share):
    found = percentile(X, share)
    expected = stats.quantile_test(X, p=share).confidence_interval(0.95)
    assert (found.interval.low, found.interval.high) == (expected.low, expected.high)
    assert found.value == pytest.approx(np.quantile(X, share))
    assert found.reason is None


@given(samples)
def test_the_median_of_independent_values_has_the_interval_that_it_has_elsewhere(x):
    assume(effective_count(x) == len(x))
    assert percentile(x, 0.5).interval == median_interval(x)


@pytest.mark.parametrize(("share", "fewest"), [(0.5, 6), (0.9, 36), (0.99, 368), (0.999, 3688)])
def test_an_interval_appears_with_the_fewest_values_that_are_named(share, fewest):
    assert fewest_for_interval(share) == fewest_for_interval(1.0 - share) == fewest
    without, with_one_more = (
        percentile(np.arange(fewest - 1.0), share),
        percentile(np.arange(fewest * 1.0), share),
    )
    assert without.interval is None
    assert re.search(rf"\b{fewest}\b.*\b{fewest - 1}$", without.reason)
    assert with_one_more.interval is not None


def test_a_percentile_beyond_all_values_is_not_invented():
    found = percentile(np.arange(99.0), 0.99)
    assert (found.value, found.interval) == (None, None)
    assert re.search(r"^p99 .*\b100\b.*\b99$", found.reason)
    assert percentile(np.arange(100.0), 0.99).value == pytest.approx(98.01)
    assert [p.value is None for p in percentiles(X, DEFAULT_SHARES)] == [False, False, False, True]


@pytest.mark.parametrize(("share", "n"), [(0.5, 10), (0.9, 50), (0.99, 500)])
def test_the_interval_covers_as_often_as_it_says(share, n):
    truth = stats.expon.ppf(share)
    drawn = np.random.default_rng(42).exponential(size=(2000, n))
    found = [percentile(x, share).interval for x in drawn]
    assert np.mean([i.low <= truth <= i.high for i in found]) > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 2000)


@given(samples, st.sampled_from([0.25, 0.5, 0.75]), st.floats(0.01, 100.0), st.floats(-1e3, 1e3))
def test_percentiles_move_with_the_values(x, share, scale, shift):
    plain, moved = percentile(x, share), percentile(np.array(x) * scale + shift, share)
    assert (plain.value is None) == (moved.value is None)
    if plain.value is not None:
        assert moved.value == pytest.approx(plain.value * scale + shift, abs=1e-6 * scale)
    if plain.interval is not None:
        assert plain.interval.low <= plain.value <= plain.interval.high
    if len(x) > 1:
        assert quartiles(x) == pytest.approx(tuple(np.quantile(x, (0.25, 0.75))), abs=1e-9)


def test_the_trimmed_mean_is_scipys_with_tukeys_and_mclaughlins_interval():
    found = trimmed_mean(X, 0.1)
    assert found.mean == pytest.approx(stats.trim_mean(X, 0.1))
    assert found.trimmed == 40
    error = np.std(stats.mstats.winsorize(X, (0.1, 0.1)), ddof=1) / (0.8 * np.sqrt(400))
    half = stats.t.isf(0.025, 400 - 80 - 1) * error
    assert (found.interval.low, found.interval.high) == pytest.approx((found.mean - half, found.mean + half))


def test_trimming_nothing_is_students_interval_and_everything_but_one_has_none():
    x = np.random.default_rng(43).permutation(np.arange(10.0))
    plain = trimmed_mean(x, 0.0)
    assert plain.interval.half_width == pytest.approx(stats.t.isf(0.025, 9) * stats.sem(x))
    assert trimmed_mean(x[:9], 0.45).interval is None
    assert "not 1" in trimmed_mean(x[:9], 0.45).reason
    for wrong in (-0.1, 0.5):
        with pytest.raises(ValueError, match="share trimmed"):
            trimmed_mean(x, wrong)


def test_outliers_do_not_move_the_trimmed_mean():
    x = np.append(np.full(19, 1.0), 1e6)
    assert trimmed_mean(x, 0.05).mean == 1.0


def test_error_bars_say_what_they_are_asked_for():
    x = [1.0, 4.0, 2.0, 3.0, 2.5]
    assert error_bar(x) == mean_interval(x)
    assert error_bar(x, "min-max").high == 4.0
    assert (error_bar(x, "quartiles").low, error_bar(x, "quartiles").high) == (2.0, 3.0)
    assert error_bar(x, "deviation").half_width == pytest.approx(np.std(x, ddof=1))
    assert error_bar([], "min-max") is None
    assert error_bar([1.0], "deviation") is None


def test_an_error_bar_of_positive_values_does_not_reach_zero():
    wide = [0.01, 0.02, 9.0, 0.01, 0.03]
    assert mean_interval(wide).low < 0.0 < error_bar(wide).low
    assert error_bar(wide[:4]) is None
    assert error_bar([-1.0, *wide]) == mean_interval([-1.0, *wide])


def test_values_that_depend_on_each_other_are_worth_fewer():
    rng, truth = np.random.default_rng(7), 0.0
    noise = rng.standard_normal((600, 60))
    for i in range(1, 60):
        noise[:, i] = 0.6 * noise[:, i - 1] + 0.8 * noise[:, i]
    ways: list[Any] = [
        lambda x, dependent: percentiles(x, (0.5,), dependent=dependent)[0].interval,
        lambda x, dependent: trimmed_mean(x, 0.1, dependent=dependent).interval,
    ]
    for interval in ways:
        covered = []
        for dependent in (False, True):
            found = [interval(x, dependent) for x in noise]
            covered.append(np.mean([i is None or i.low <= truth <= i.high for i in found]))
        assert covered[0] < 0.80
        assert covered[1] > 0.90
    for x in noise:
        assert percentiles(x, (0.5,), dependent=True)[0].interval == median_interval(x)
