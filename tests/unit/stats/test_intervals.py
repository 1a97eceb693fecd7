"""Intervals of mean and median: known values, and what they promise of any sample."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import quantile_test

from etude.stats.intervals import Interval, autocorrelation, effective_count, mean_interval, median_interval
from support.synthetic_series import autoregressive

numbers = st.floats(-1e6, 1e6, allow_nan=False) | st.integers(-1000, 1000)
samples = st.lists(numbers, min_size=2, max_size=40)


def sample_with(mean, deviation, count):
    """Values that go up and down (so no dependence) with exactly this mean and standard deviation (n-1)."""
    values = np.where(np.arange(count) % 2 == 0, 1.0, -1.0) * (1.0 + np.arange(count) // 2)
    values = (values - values.mean()) / values.std(ddof=1)
    return mean + deviation * values


# count, mean, SDEV%, HW%, LOW, HIGH of "Elapsed" in figures 2 (Ext2, Ext3) and 3 (chill, remount) of the
# Auto-pilot paper.
PRINTED = {
    "figure 2, Ext2": (10, 6.055, 1.491, 1.067, 5.991, 6.120),
    "figure 2, Ext3": (15, 77.861, 8.594, 4.759, 74.156, 81.567),
    "figure 3, chill": (10, 38.649, 2.528, 1.808, 37.950, 39.348),
    "figure 3, remount": (10, 38.751, 0.614, 0.439, 38.580, 38.921),
}


@pytest.mark.parametrize(("count", "mean", "sdev", "half", "low", "high"), PRINTED.values(), ids=PRINTED)
def test_the_mean_has_the_interval_that_auto_pilots_paper_prints(count, mean, sdev, half, low, high):
    interval = mean_interval(sample_with(mean, mean * sdev / 100.0, count))
    assert 100.0 * interval.half_width / mean == pytest.approx(half, abs=0.0011)
    assert interval.low == pytest.approx(low, abs=0.0011)
    assert interval.high == pytest.approx(high, abs=0.0011)


def test_a_factor_widens_the_interval_about_the_same_mean():
    plain, wider = mean_interval([1.0, 3.0, 2.0]), mean_interval([1.0, 3.0, 2.0], factor=1.5)
    assert wider.half_width == pytest.approx(1.5 * plain.half_width)
    assert wider.low + wider.high == pytest.approx(plain.low + plain.high)


def test_dependence_widens_the_interval_by_what_the_sample_is_worth():
    rising = np.linspace(1.0, 2.0, 20)
    shuffled = rising[np.arange(20) * 11 % 20]
    assert effective_count(shuffled) == 20.0
    widening = mean_interval(rising).half_width / mean_interval(shuffled).half_width
    assert widening == pytest.approx(math.sqrt(20.0 / effective_count(rising)))


@pytest.mark.parametrize("x", [[], [1.0]])
def test_below_two_values_the_mean_has_no_interval(x):
    assert mean_interval(x) is None


def test_equal_values_have_an_interval_of_width_zero():
    assert mean_interval([0.1] * 7) == Interval(pytest.approx(0.1), pytest.approx(0.1))
    assert mean_interval([0.1] * 7).half_width == 0.0


@pytest.mark.parametrize("n", [5, 6, 7, 10, 15, 16, 30, 51, 200])
@pytest.mark.parametrize("confidence", [0.90, 0.95, 0.99])
def test_the_medians_limits_are_the_ranks_that_scipy_finds(n, confidence):
    x = np.random.default_rng(n).permutation(n).astype(float)
    theirs = quantile_test(x, q=float(np.median(x)), p=0.5).confidence_interval(confidence)
    ours = median_interval(x, confidence=confidence)
    if math.isnan(theirs.low) or math.isnan(theirs.high):
        assert ours is None
    else:
        assert (ours.low, ours.high) == (theirs.low, theirs.high)


def test_six_values_are_the_fewest_for_a_median_at_95_percent():
    assert median_interval([1, 2, 3, 4, 5]) is None
    assert median_interval([3, 1, 2, 6, 5, 4]) == Interval(1.0, 6.0)
    assert median_interval([]) is None


def test_the_median_of_dependent_values_is_less_well_known():
    drawn = autoregressive(0.6, 0.1)(np.random.default_rng(7), 400, 50)
    found = [interval for x in drawn if (interval := median_interval(x)) is not None]
    assert len(found) > 380
    assert np.mean([interval.low <= 1.0 <= interval.high for interval in found]) >= 0.95


def test_autocorrelation_is_zero_on_average_without_dependence():
    rng = np.random.default_rng(2)
    assert np.mean([autocorrelation(rng.normal(size=20)) for _ in range(4000)]) == pytest.approx(
        0.0, abs=0.015
    )


def test_autocorrelation_has_its_textbook_value():
    # deviations -2, -1, 0, 1, 2: (2 + 0 + 0 + 2) / 10, and 1/5 for the bias
    assert autocorrelation([1, 2, 3, 4, 5]) == pytest.approx(0.4 + 0.2)


def test_an_insignificant_autocorrelation_does_not_count():
    x = [1.0, 2.0, 3.0, 2.0, 1.0, 2.0, 1.0, 3.0, 1.0, 2.0]
    assert effective_count(x) == 10.0


@pytest.mark.parametrize(("x", "count"), [([], 0.0), ([5.0], 1.0), ([5.0, 5.0], 2.0), (range(100), 2.0)])
def test_the_effective_count_stays_between_two_and_the_count(x, count):
    assert effective_count(x) == pytest.approx(count, abs=0.1)
    assert effective_count(x) >= min(2.0, count)


@given(samples)
def test_intervals_hold_their_estimate_and_no_nan(x):
    interval = mean_interval(x)
    assert interval.low <= np.mean(x) + 1e-9 * max(map(abs, x))
    assert interval.high >= np.mean(x) - 1e-9 * max(map(abs, x))
    middle = median_interval(x)
    if middle is not None:
        assert middle.low <= np.median(x) <= middle.high
    assert 2.0 <= effective_count(x) <= len(x)
    assert not math.isnan(autocorrelation(x))


@pytest.mark.parametrize("function", [mean_interval, median_interval, autocorrelation, effective_count])
@pytest.mark.parametrize("wrong", [[1.0, math.nan, 2.0], [1.0, math.inf], [[1.0], [2.0]], ["slow"], 3.0])
def test_what_is_no_row_of_finite_numbers_is_refused_in_one_line(function, wrong):
    with pytest.raises(ValueError, match=r"^a sample [^\n]+$"):
        function(wrong)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0, math.nan])
def test_a_confidence_is_a_fraction(confidence):
    with pytest.raises(ValueError, match="fraction between 0 and 1"):
        mean_interval([1.0, 2.0], confidence=confidence)
