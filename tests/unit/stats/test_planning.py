"""Plans: what is planned finds what it was planned for."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from etude.stats.planning import (
    Noise,
    noise_of_pairs,
    noise_of_trials,
    plan_for_deadline,
    plan_for_effect,
    trials_for_mean,
)
from etude.stats.ratio import paired_ratio, unpaired_ratio

PAIRED = Noise(0.02, (0.015, 0.03), "paired", 1.0, 30.0)
UNPAIRED = Noise(0.02, (0.015, 0.03), "unpaired", 1.0, 30.0)


@pytest.mark.parametrize(("noise", "sides"), [(PAIRED, 1), (UNPAIRED, 2)])
@pytest.mark.parametrize("effect", [0.005, 0.01, 0.05])
def test_a_plan_has_the_fewest_trials_with_the_power_asked_for(noise, sides, effect):
    def power(n):
        degrees = sides * (n - 1)
        away = math.log1p(effect) / (0.02 * math.sqrt(sides / n))
        return stats.nct.sf(stats.t.isf(0.025, degrees), degrees, away)

    found = plan_for_effect(noise, effect)
    assert power(found.trials) >= 0.8
    assert found.trials == 2 or power(found.trials - 1) < 0.8
    assert found.hours == pytest.approx(2 * found.trials * 30.0 / 3600.0)


def test_a_planned_comparison_finds_the_effect_as_often_as_was_planned():
    rng = np.random.default_rng(1)
    for noise, compare, scale in ((PAIRED, paired_ratio, math.sqrt(0.5)), (UNPAIRED, unpaired_ratio, 1.0)):
        n = plan_for_effect(noise, 0.02).trials
        found = []
        for _ in range(1500):
            base, other = rng.lognormal(0.0, 0.02 * scale, (2, n))
            found.append(compare(base, 1.02 * other).low > 1.0)
        assert np.mean(found) == pytest.approx(0.8, abs=0.06)
        assert np.mean(found) > 0.8 - 4 * math.sqrt(0.8 * 0.2 / 1500)


@pytest.mark.parametrize("noise", [PAIRED, UNPAIRED])
def test_what_fits_the_hours_of_a_plan_finds_its_effect(noise):
    plan = plan_for_effect(noise, 0.01)
    back = plan_for_deadline(noise, plan.hours)
    assert back.trials == plan.trials
    assert back.effect == pytest.approx(0.01, rel=0.05)
    assert back.effect <= 0.01


def test_what_cannot_be_planned_says_so():
    assert plan_for_effect(PAIRED, 1e-9) is None
    assert plan_for_deadline(PAIRED, 0.01) is None
    assert plan_for_deadline(PAIRED, 1e9).trials == 10**7
    for call, reason in (
        (lambda: noise_of_trials([1.0] * 9, seconds_per_trial=1.0), "does not vary"),
        (lambda: noise_of_trials([1.0, 2.0], seconds_per_trial=1.0), "5 or more"),
        (lambda: noise_of_trials([1.0, 0.0] * 5, seconds_per_trial=1.0), "positive"),
        (lambda: noise_of_trials(seconds_per_trial=1.0), "a pilot"),
        (lambda: noise_of_pairs([1.0] * 5, [1.0] * 6, seconds_per_trial=1.0), "equally many"),
        (lambda: noise_of_pairs([1.0, 2.0] * 4, [2.0, 2.5] * 4, seconds_per_trial=0.0), "seconds_per_trial"),
        (lambda: plan_for_effect(PAIRED, 0.01, power=0.01), "power"),
        (lambda: plan_for_deadline(PAIRED, -1.0), "hours"),
    ):
        with pytest.raises(ValueError, match=reason):
            call()


def test_the_noise_of_a_pilot_is_its_deviation_with_an_interval():
    rng = np.random.default_rng(2)
    base, other = rng.lognormal(0.0, 0.03, (2, 15))
    noise = noise_of_pairs(base, other, seconds_per_trial=1.0)
    logs = np.log(other / base)
    assert noise.deviation == pytest.approx(np.std(logs, ddof=1))
    assert noise.likely[0] == pytest.approx(noise.deviation * math.sqrt(14 / stats.chi2.ppf(0.9, 14)))
    assert noise.likely[1] == pytest.approx(noise.deviation * math.sqrt(14 / stats.chi2.ppf(0.1, 14)))
    pooled = noise_of_trials(base, other[:8], seconds_per_trial=1.0)
    expected = math.sqrt((14 * np.var(np.log(base), ddof=1) + 7 * np.var(np.log(other[:8]), ddof=1)) / 21)
    assert pooled.deviation == pytest.approx(expected)
    fewer, more = plan_for_effect(noise, 0.01).likely_trials
    assert fewer < plan_for_effect(noise, 0.01).trials < more


def test_dependent_trials_need_more_of_them():
    dependent = Noise(0.02, (0.015, 0.03), "paired", 0.5, 30.0)
    more, fewer = plan_for_effect(dependent, 0.01).trials, plan_for_effect(PAIRED, 0.01).trials
    assert more == pytest.approx(2 * fewer, rel=0.05)
    walk = np.exp(np.cumsum(np.random.default_rng(3).normal(0.0, 0.01, 30)))
    assert noise_of_trials(walk, seconds_per_trial=1.0).worth < 0.5


@given(
    st.floats(0.001, 0.3), st.floats(0.001, 0.5), st.floats(0.3, 0.95), st.sampled_from([PAIRED, UNPAIRED])
)
def test_smaller_effects_more_power_and_more_noise_need_more_trials(spread, effect, power, like):
    noise = Noise(spread, (spread, spread), like.design, 1.0, 1.0)
    noisier = Noise(1.5 * spread, (spread, spread), like.design, 1.0, 1.0)
    trials = plan_for_effect(noise, effect, power=power).trials
    assert plan_for_effect(noise, effect / 2, power=power).trials >= trials
    assert plan_for_effect(noise, effect, power=0.97).trials >= trials
    assert plan_for_effect(noisier, effect, power=power).trials >= trials


def test_a_mean_is_planned_by_its_half_width():
    x = np.random.default_rng(4).normal(10.0, 1.0, 12)
    n = trials_for_mean(x, 0.02)
    half = [stats.t.isf(0.025, k - 1) * np.std(x, ddof=1) / math.sqrt(k) for k in (n - 1, n)]
    assert half[0] >= 0.02 * x.mean() > half[1]
    assert trials_for_mean(x, 0.02, factor=1.08) > n
    assert trials_for_mean(x, 1e-6) is None
    assert trials_for_mean([3.0] * 5, 0.01) == 2
    with pytest.raises(ValueError, match="other than zero"):
        trials_for_mean([-1.0, 1.0, -1.0, 1.0, 0.0], 0.01)
