"""Two groups, normality with its power, and clocks that tick too slowly."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from etude.stats.shape import POWER_OF_NORMALITY, groups, normality, ticks
from support.synthetic_series import lognormal, mixture, normal, weibull

RNG = np.random.default_rng(11)
LOW, HIGH = RNG.normal(1.0, 0.01, 12), RNG.normal(1.1, 0.01, 8)


def test_two_groups_are_found_with_their_sizes_and_centres():
    found = groups(RNG.permutation(np.concatenate((LOW, HIGH))))
    assert found.counts == (12, 8)
    assert found.centres == pytest.approx((LOW.mean(), HIGH.mean()))
    assert found.gap == (LOW.max(), HIGH.min())
    pooled = np.sqrt((11 * LOW.var(ddof=1) + 7 * HIGH.var(ddof=1)) / 18)
    assert found.distance == pytest.approx((HIGH.mean() - LOW.mean()) / pooled)


def test_a_few_far_values_are_outliers_and_no_group():
    assert groups(np.concatenate((LOW, LOW + 1e-3, HIGH[:1]))) is None
    assert groups(np.concatenate((LOW, HIGH[:2]))).counts == (12, 2)


def test_values_that_differ_by_one_tick_are_no_groups():
    x = [0.01] * 8 + [0.02] * 6
    assert groups(x) is None
    assert groups(x, step=0.01) is None
    assert groups(x, step=0.0) is not None


@pytest.mark.parametrize("n", [10, 20, 40])
@pytest.mark.parametrize(
    "draw",
    [normal(0.05), lognormal(0.30), weibull, lambda rng, r, n: rng.random((r, n))],
    ids=["normal", "lognormal", "weibull", "uniform"],
)
def test_one_group_is_seldom_taken_for_two(draw, n):
    found = [groups(x) is not None for x in draw(np.random.default_rng(12), 1000, n)]
    assert np.mean(found) < 0.025


def test_groups_ten_deviations_apart_are_found():
    found = [groups(x) is not None for x in mixture(0.5, plus=0.1)(np.random.default_rng(13), 500, 30)]
    assert np.mean(found) > 0.95


@given(
    st.lists(st.integers(1, 1000), min_size=10, max_size=40), st.sampled_from([1e-200, 1e-3, 1e100, 1e200])
)
def test_the_unit_of_the_values_does_not_matter(x, scale):
    x = np.array(x, dtype=float)
    plain, scaled = groups(x), groups(x * scale)
    assert (plain is None) == (scaled is None)
    if plain is not None:
        assert plain.counts == scaled.counts


def test_normality_is_shapiros_and_wilks_with_its_power():
    found = normality(LOW * 1e9)
    assert found.p == pytest.approx(stats.shapiro(LOW).pvalue, rel=1e-6)
    assert found.power == pytest.approx(0.144, abs=0.005)
    assert normality([1.0, 2.0]) is None
    assert normality([2.0] * 30) is None
    assert normality(RNG.normal(size=5001)) is None
    assert normality(RNG.normal(size=4000)).power == POWER_OF_NORMALITY[-1][1]


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7, 11, 12, 30, 300, 5000])
def test_p_is_scipys_at_every_length_for_which_royston_has_another_formula(n):
    rng = np.random.default_rng(n)
    for x in (rng.normal(size=n), rng.exponential(size=n), rng.integers(0, 3, n), rng.standard_cauchy(n)):
        if np.ptp(x):
            assert normality(x).p == pytest.approx(stats.shapiro(x).pvalue, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("n", "power"), [row for row in POWER_OF_NORMALITY if row[0] in (10, 30, 100)])
def test_the_stated_power_is_what_a_simulation_finds(n, power):
    samples = lognormal(0.30)(np.random.default_rng(14), 1500, n)
    assert np.mean([stats.shapiro(x).pvalue < 0.05 for x in samples]) == pytest.approx(power, abs=0.045)


def test_a_common_step_is_found_in_what_a_clock_of_ten_milliseconds_counts():
    found = ticks([0.06, 0.05, 0.06, 0.07, 0.06])
    assert found.step == pytest.approx(0.01)
    assert found.coarse
    assert found.share == pytest.approx(1 / 6)


def test_a_trial_of_no_tick_at_all_hides_no_step():
    assert ticks([0.0, 0.01, 0.02, 0.0]).step == pytest.approx(0.01)


def test_a_fine_clock_is_not_coarse():
    found = ticks(np.round(RNG.normal(5.0, 0.2, 20), 2))
    assert found.step == pytest.approx(0.01)
    assert not found.coarse
    assert ticks(RNG.normal(5.0, 0.2, 20)) is None


@example([400, 995, 1002, 1003], 1e-9)
@given(
    st.lists(st.integers(1, 10_000), min_size=3, max_size=40), st.sampled_from([1e-9, 0.01, 1 / 3, 4096.0])
)
def test_the_step_is_the_greatest_that_all_values_are_multiples_of(counts, step):
    found = ticks([count * step for count in counts])
    assert found.step == pytest.approx(np.gcd.reduce(counts) * step, rel=1e-6)
