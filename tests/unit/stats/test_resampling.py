"""Permutation and bootstrap: by seed, near the textbook where that holds, and whole trials for percentiles."""

import numpy as np
import pytest
from scipy import stats

from etude.stats import resampling
from etude.stats.resampling import (
    Histograms,
    bootstrap_ratio,
    merged_percentile,
    percentile_ratio,
    permutation,
)

RNG = np.random.default_rng(51)
A, B = RNG.normal(1.05, 0.05, 12), RNG.normal(1.0, 0.05, 9)


def test_the_same_seed_gives_the_same_answer():
    for function in (permutation, bootstrap_ratio):
        assert function(A, B, resamples=199) == function(A, B, resamples=199)
        assert function(A, B, resamples=199) != function(A, B, resamples=199, seed=1)


def test_a_permutation_finds_about_what_the_t_test_finds():
    for statistic, pooled in (("mean", True), ("studentised", False)):
        found = permutation(A, B, statistic=statistic)
        assert found.p == pytest.approx(stats.ttest_ind(A, B, equal_var=pooled).pvalue, abs=0.02)
        assert found.resamples == 9999


def test_few_values_are_dealt_in_every_order_there_is():
    found = permutation([1.0, 2.0, 3.0], [10.0, 11.0, 12.0], statistic="mean")
    assert (found.resamples, found.p) == (20, pytest.approx(2 / 20))


def test_unequal_spreads_need_the_studentised_permutation():
    rng, alarms = np.random.default_rng(52), {"mean": [], "studentised": []}
    for _ in range(250):
        a, b = rng.normal(1.0, 0.08, 6), rng.normal(1.0, 0.01, 24)
        for statistic, seen in alarms.items():
            seen.append(permutation(a, b, statistic=statistic, resamples=199).p <= 0.05)
    assert np.mean(alarms["mean"]) > 0.2
    assert np.mean(alarms["studentised"]) < 0.15


@pytest.mark.parametrize(("of", "middle"), [("median", np.median), ("mean", np.mean)])
@pytest.mark.parametrize("method", ["percentile", "BCa"])
def test_a_bootstrapped_ratio_is_the_ratio_with_limits_around_it(of, middle, method):
    found = bootstrap_ratio(A, B, of=of, method=method)
    assert found.ratio == pytest.approx(middle(A) / middle(B))
    assert found.low < found.ratio < found.high
    scaled = bootstrap_ratio(A * 1e200, B, of=of, method=method)
    assert (scaled.low, scaled.high) == pytest.approx((found.low * 1e200, found.high * 1e200))


def test_samples_without_spread_have_a_ratio_without_width_and_no_permutation():
    found = bootstrap_ratio([2.0, 2.0], [1.0, 1.0])
    assert (found.low, found.ratio, found.high) == (2.0, 2.0, 2.0)
    with pytest.raises(ValueError, match="equal"):
        permutation([1.0, 1.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="positive"):
        bootstrap_ratio([1.0, 0.0], [1.0, 1.0])


CLASSES = np.exp(np.linspace(-2.0, 4.0, 300))


def histograms(rng, trials, level, busy):
    """Latencies of each trial; some trials are busy and slow as a whole."""
    levels = level * np.where(rng.random(trials) < busy, 1.5, 1.0)
    drawn = levels[:, None] * rng.lognormal(0.0, 0.3, (trials, 500))
    places = np.searchsorted(CLASSES, drawn).clip(0, CLASSES.size - 1)
    return Histograms(CLASSES, np.stack([np.bincount(row, minlength=CLASSES.size) for row in places]))


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_a_merged_histogram_has_the_percentile_of_all_its_values(share):
    h = histograms(np.random.default_rng(53), 10, 1.0, 0.0)
    values = np.repeat(CLASSES, h.counts.sum(axis=0).astype(int))
    assert h.percentile(share) == np.quantile(values, share, method="inverted_cdf")


def test_percentiles_are_compared_by_whole_trials():
    """Identical tests with busy trials: false findings stay few, though every trial has 500 values."""
    rng = np.random.default_rng(54)
    found = []
    for _ in range(150):
        a, b = (histograms(rng, 20, 1.0, 0.3) for _ in range(2))
        ratio = percentile_ratio(a, b, 0.9, resamples=299)
        found.append(ratio.low <= 1.0 <= ratio.high)
    assert np.mean(found) > 0.88
    slower = percentile_ratio(histograms(rng, 20, 1.3, 0.0), histograms(rng, 20, 1.0, 0.0), 0.9)
    assert slower.low < 1.3 < slower.high
    assert slower.low > 1.2
    assert slower.of == "p90"


def test_a_merged_percentile_has_an_interval_over_trials():
    rng, truth = np.random.default_rng(55), np.exp(0.3 * stats.norm.ppf(0.9))
    held, width = [], []
    for _ in range(150):
        value, interval = merged_percentile(histograms(rng, 20, 1.0, 0.0), 0.9, resamples=299)
        assert interval.low <= value <= interval.high
        held.append(interval.low * 0.98 <= truth <= interval.high * 1.02)  # a class is 2 % wide
        width.append(interval.half_width / value)
    assert np.mean(held) > 0.9
    assert np.mean(width) < 0.03
    busy = merged_percentile(histograms(rng, 20, 1.0, 0.3), 0.9)[1]
    assert busy.half_width > 2.0 * np.mean(width)
    assert merged_percentile(Histograms([1.0, 2.0], [[1.0, 1.0]] * 4), 0.5) == (1.0, None)


def test_histograms_that_are_none_are_refused():
    for values, counts, reason in (
        ([1.0, 2.0], [[1.0]], "one count a trial"),
        ([2.0, 1.0], [[1.0, 1.0]], "must rise"),
        ([1.0, 2.0], [[1.0, -1.0]], "0 or more"),
        ([1.0, 2.0], [[0.0, 0.0]], "not all 0"),
    ):
        with pytest.raises(ValueError, match=reason):
            Histograms(values, counts)
    few = Histograms([1.0, 2.0], [[1.0, 1.0]] * 4)
    with pytest.raises(ValueError, match="from 10 trials"):
        percentile_ratio(few, few, 0.5)


def test_many_classes_are_resampled_in_parts_with_the_same_result(monkeypatch):
    rng = np.random.default_rng(12)
    trials = Histograms(np.arange(1.0, 41.0), rng.poisson(5.0, (8, 40)))
    whole = merged_percentile(trials, 0.9)
    monkeypatch.setattr(resampling, "MOST_AT_ONCE", 100)
    assert merged_percentile(trials, 0.9) == whole
