"""Kendall's test and Theil and Sen's slope: as scipy's, whatever the ties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from etude.stats import trend
from etude.stats.trend import MOST, slope_interval, trend_p, trend_slope

lengths = st.integers(10, 60)
tied = lengths.flatmap(lambda n: st.lists(st.integers(-3, 3).map(float), min_size=n, max_size=n))
plain = lengths.flatmap(lambda n: st.lists(st.floats(-1e6, 1e6), min_size=n, max_size=n))


@given(tied | plain)
def test_the_score_counts_every_pair_once(x):
    values = np.array(x)
    every = [np.sign(b - a) for i, a in enumerate(x) for b in x[i + 1 :]]
    ties = trend._ties(values)
    score = 2 * trend._rises(values) + (ties * (ties - 1)).sum() // 2 - values.size * (values.size - 1) // 2
    assert score == sum(every)
    assert sorted(ties) == sorted(np.unique(values, return_counts=True)[1])


@pytest.mark.parametrize("n", [10, 30, 200])
def test_p_is_kendalls_but_for_the_correction_for_continuity(n):
    x = np.random.default_rng(n).normal(1.0, 0.05, n) + 0.001 * np.arange(n)
    tau = stats.kendalltau(np.arange(n), x, method="asymptotic")
    z = abs(stats.norm.ppf(tau.pvalue / 2.0))
    one_pair = 1.0 / np.sqrt(n * (n - 1) * (2 * n + 5) / 18.0)
    assert trend_p(x) == pytest.approx(2.0 * stats.norm.sf(z - one_pair), rel=1e-9)


@pytest.mark.parametrize("n", [10, 31, 400])
def test_the_slope_and_its_interval_are_scipys(n):
    x = np.random.default_rng(n).normal(1.0, 0.05, n).round(2)
    found = stats.theilslopes(x, np.arange(n), 0.95)
    slope = slope_interval(x)
    assert (slope.per_trial, slope.low, slope.high) == pytest.approx(
        (found.slope, found.low_slope, found.high_slope), rel=1e-9, abs=1e-12
    )
    assert trend_slope(x) == pytest.approx(found.slope * (n - 1) / np.median(x), rel=1e-9, abs=1e-12)


def test_series_of_one_length_share_their_pairs_and_those_of_another_do_not():
    x = np.random.default_rng(3).normal(1.0, 0.05, 3 * MOST)
    apart = [trend_p(x[:n]) for n in (10, 20, 10, 3 * MOST, 30, 40, 50, 60, 10)]
    assert apart[0] == apart[2] == apart[-1]
    assert len(set(apart)) == 7
