"""One sample in a line, and the flags on it."""

import math
import re

import numpy as np
import pytest

from etude.stats.describe import describe
from etude.stats.intervals import effective_count, mean_interval, median_interval
from etude.stats.shape import count_outliers
from etude.stats.trend import trend_p, trend_slope


def test_a_summary_says_what_its_parts_say():
    x = [6.063, 6.18, 5.855, 6.01, 6.10, 6.02, 6.05, 6.09, 6.07, 6.11]
    summary = describe(x, factor=1.08)
    assert summary.count == 10
    assert summary.mean == pytest.approx(np.mean(x))
    assert summary.mean_interval == mean_interval(x, factor=1.08)
    assert summary.median_interval == median_interval(x)
    assert (summary.minimum, summary.maximum) == (5.855, 6.18)
    assert summary.deviation == pytest.approx(np.std(x, ddof=1))
    assert summary.which == "arithmetic"
    assert summary.quartiles == pytest.approx((np.quantile(x, 0.25), np.quantile(x, 0.75)))
    assert summary.relative_deviation == pytest.approx(np.std(x, ddof=1) / np.mean(x))
    interval = summary.mean_interval
    assert interval
    assert summary.relative_half_width == pytest.approx((interval.high - interval.low) / 2 / np.mean(x))


def test_one_value_is_described_without_what_it_cannot_tell():
    summary = describe([3])
    assert (summary.mean, summary.median, summary.effective_count) == (3.0, 3.0, 1.0)
    assert summary.mean_interval is summary.median_interval is summary.deviation is None
    assert summary.relative_deviation is summary.relative_half_width is None
    assert summary.quartiles == (3.0, 3.0)


@pytest.mark.parametrize(
    ("kind", "x", "which", "mean"),
    [
        ("rate", [10.0, 40.0], "harmonic", 16.0),
        ("ratio", [0.5, 2.0], "geometric", 1.0),
        ("binary", [1.0, 0.0, 1.0, 1.0], "proportion", 0.75),
        ("count", [1.0, 2.0], "arithmetic", 1.5),
    ],
)
def test_the_mean_is_the_one_that_fits_the_kind(kind, x, which, mean):
    summary = describe(x, kind)
    assert (summary.which, summary.mean_reason) == (which, None)
    assert summary.mean == pytest.approx(mean)


def test_a_factor_widens_the_interval_of_every_mean_but_a_proportion():
    for kind in ("cost", "rate", "ratio"):
        x = [1.0, 1.1, 0.9, 1.05, 1.02]
        narrow, wide = describe(x, kind).mean_interval, describe(x, kind, factor=1.5).mean_interval
        assert wide.low < narrow.low < narrow.high < wide.high


def test_a_mean_that_there_is_not_is_refused_with_the_reason():
    summary = describe([0.0, 4.0], "rate")
    assert math.isnan(summary.mean)
    assert re.search(r"\bharmonic\b.*\b0$", summary.mean_reason)
    assert summary.median == 2.0
    assert summary.relative_deviation is None


def test_no_value_cannot_be_described():
    with pytest.raises(ValueError, match="without values"):
        describe([])


# Rosner (1983): 54 values of which his procedure calls three outliers at 5 % (the NIST handbook's example).
ROSNER = """-0.25 0.68 0.94 1.15 1.20 1.26 1.26 1.34 1.38 1.43 1.49 1.49 1.55 1.56 1.58 1.65 1.69 1.70 1.76 1.77
1.81 1.91 1.94 1.96 1.99 2.06 2.09 2.10 2.14 2.15 2.23 2.24 2.26 2.35 2.37 2.40 2.47 2.54 2.62 2.64 2.90 2.92
2.92 2.93 3.21 3.26 3.30 3.59 3.68 4.30 4.64 5.34 5.42 6.01"""


def test_outliers_are_those_of_rosners_example():
    assert count_outliers([float(x) for x in ROSNER.split()]) == 3


def test_three_spikes_do_not_hide_one_another():
    x = [1.0, 1.01, 0.99, 1.5, 1.02, 0.98, 1.52, 1.0, 1.01, 0.99, 1.51, 1.0]
    assert count_outliers(x) == 3


def test_outliers_are_sought_on_logarithms_unless_a_value_forbids_it():
    skewed = np.exp([*np.linspace(-1.0, 1.0, 30), 1.9, 2.2])
    assert count_outliers(skewed) == 0
    assert count_outliers([*skewed, 0.0]) > 0


@pytest.mark.parametrize("x", [[], [1.0, 9.0, 1.0, 1.0], [5.0] * 20])
def test_few_or_equal_values_have_no_outliers(x):
    assert count_outliers(x) == 0


def test_the_one_that_differs_from_equal_values_is_an_outlier():
    assert count_outliers([5.0] * 19 + [6.0]) == 1


def test_a_rise_is_seen_and_measured():
    x = np.linspace(1.0, 1.1, 20) + 0.001 * np.tile([1.0, -1.0], 10)
    assert trend_p(x) < 0.01
    assert trend_slope(x) == pytest.approx(0.1 / 1.05, rel=0.05)
    assert trend_slope(x[::-1]) == pytest.approx(-0.1 / 1.05, rel=0.05)


@pytest.mark.parametrize("n", [10, 20, 50])
@pytest.mark.parametrize("rise", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("rounded", [False, True])
def test_trends_agree_with_scipy(n, rise, rounded):
    from scipy.stats import kendalltau, theilslopes

    generator = np.random.default_rng(n)
    x = generator.normal(1.0, 0.05, n) + np.linspace(0.0, rise, n)
    x = np.round(x, 2) if rounded else x
    assert trend_p(x) == pytest.approx(kendalltau(np.arange(n), x).pvalue, abs=0.03)
    assert trend_slope(x) == pytest.approx(theilslopes(x)[0] * (n - 1) / np.median(x))


def test_a_trend_is_judged_by_ranks():
    rising = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1000.0]
    assert trend_p(rising) == trend_p(range(1, 11)) < 0.001


def test_single_outliers_do_not_move_the_slope():
    assert trend_slope([1.0, 1.1] * 10 + [9.0]) == pytest.approx(0.0, abs=0.01)


def test_short_series_are_not_tested_for_a_trend():
    assert trend_p(range(9)) is None
    assert trend_slope(range(1, 10)) is None
    assert trend_p(range(10)) is not None


def test_equal_values_have_no_trend():
    assert (trend_p([2.0] * 12), trend_slope([2.0] * 12)) == (1.0, 0.0)


def test_a_relative_slope_needs_a_median_other_than_zero():
    assert trend_slope([0.0] * 12) is None
    assert trend_slope([-1.0] * 6 + [1.0] * 6) is None


def test_a_long_series_keeps_its_slope():
    rng = np.random.default_rng(3)
    x = np.linspace(1.0, 1.2, 20_000) + rng.normal(0.0, 0.02, 20_000)
    assert trend_slope(x) == pytest.approx(0.2 / 1.1, rel=0.1)


@pytest.mark.parametrize("function", [describe, count_outliers, trend_p, trend_slope])
def test_nan_is_refused(function):
    with pytest.raises(ValueError, match="finite"):
        function([1.0] * 12 + [math.nan])


def test_a_rate_counts_as_many_values_as_its_interval_does():
    """The harmonic mean is that of the inverses, whose dependence is another."""
    x = np.exp(np.cumsum(np.random.default_rng(2).normal(size=20)))
    assert describe(x, "rate").effective_count == effective_count(1.0 / x)
    assert describe(x, "ratio").effective_count == effective_count(np.log(x))
    assert describe(x, "cost").effective_count == effective_count(x)
    assert effective_count(1.0 / x) != effective_count(x)


@pytest.mark.filterwarnings("error")
def test_the_largest_numbers_are_described_without_a_warning() -> None:
    assert describe(np.array([1e308] * 8), "cost").minimum == 1e308
