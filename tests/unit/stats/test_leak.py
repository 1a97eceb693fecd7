"""Leaks in bytes a trial, and drift of a practical size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from etude.stats.trend import drift, leak, slope_interval, trend_p

MIB = 1 << 20
NOISE = np.random.default_rng(21).normal(0.0, 2.0 * MIB, 40)
FREE = 4000.0 * MIB + NOISE


def test_a_known_loss_is_found_with_its_size():
    found = leak(FREE - 5.0 * MIB * np.arange(40))
    assert found.suspected
    assert found.low < 5.0 * MIB < found.high
    assert found.bytes_per_trial == pytest.approx(5.0 * MIB, rel=0.05)
    assert found.total_bytes == pytest.approx(39.0 * found.bytes_per_trial)
    assert found.p < 1e-6


def test_neither_noise_nor_a_gain_is_a_leak():
    assert not leak(FREE).suspected
    gain = leak(FREE + 5.0 * MIB * np.arange(40))
    assert (gain.suspected, gain.bytes_per_trial < 0.0) == (False, True)


def test_a_steady_loss_below_the_practical_size_is_not_reported():
    slight = 1e9 - 10_000.0 * np.arange(20)
    assert not leak(slight).suspected
    assert leak(slight, practical_bytes=0.0).suspected
    with pytest.raises(ValueError, match="practical"):
        leak(slight, practical_bytes=-1.0)


def test_steps_of_others_are_seldom_a_leak_and_a_loss_among_them_is_found():
    rng = np.random.default_rng(23)

    def steps(count):
        return np.cumsum(rng.normal(0.0, 3.0 * MIB, (200, count)) * (rng.random((200, count)) < 0.3), axis=1)

    trends, told = np.transpose([(x.p < 0.01, x.suspected) for x in map(leak, 1e10 + steps(20))]).mean(axis=1)
    assert trends > 0.2
    assert told < 0.08
    lost = [leak(x) for x in 1e10 + steps(20) - 2.0 * MIB * np.arange(20)]
    assert np.mean([x.suspected for x in lost]) > 0.9
    assert np.median([x.bytes_per_trial for x in lost]) == pytest.approx(2.0 * MIB, rel=0.1)


def test_a_single_step_is_no_leak():
    assert not leak(np.repeat([4e9, 3e9], 15) + NOISE[:30]).suspected


@pytest.mark.parametrize("n", range(10))
def test_below_ten_trials_nothing_is_said(n):
    assert leak(FREE[:n]) is None
    assert drift(FREE[:n]) is None
    assert slope_interval(FREE[:n]) is None


@given(
    st.lists(st.floats(-100.0, 100.0), min_size=10, max_size=40, unique=True), st.sampled_from([0.8, 0.95])
)
def test_the_slope_and_its_interval_are_scipys(x, confidence):
    found, expected = slope_interval(x, confidence=confidence), stats.theilslopes(x, alpha=confidence)
    assert found.per_trial == pytest.approx(expected.slope, abs=1e-9)
    assert (found.low, found.high) == pytest.approx((expected.low_slope, expected.high_slope), abs=1e-9)


def test_the_slope_of_a_long_series_is_still_that_of_one_trial():
    found = slope_interval(np.arange(5000) * 0.5 + np.random.default_rng(22).normal(0.0, 1.0, 5000))
    assert found.per_trial == pytest.approx(0.5, rel=1e-3)


def test_drift_needs_a_trend_and_a_practical_size():
    flat = 1.0 + 0.01 * np.random.default_rng(24).standard_normal(40)
    rising = flat * (1.0 + 0.002 * np.arange(40))
    assert drift(rising).suspected
    assert drift(rising).change == pytest.approx(0.075, abs=0.02)
    assert not drift(rising, practical=0.2).suspected
    assert not drift(flat).suspected
    slight = 1.0 + 1e-5 * np.arange(40)
    assert (drift(slight).p < 0.01, drift(slight).suspected) == (True, False)


def test_least_squares_are_scipys_and_blinded_by_a_slow_first_trial():
    rising = (1.0 + 0.01 * np.random.default_rng(23).standard_normal(30)) * (1.0 + 0.004 * np.arange(30))
    found, expected = drift(rising, method="least squares"), stats.linregress(np.arange(30), rising)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6, abs=0.0)
    assert found.change == pytest.approx(29 * expected.slope / rising.mean())
    rising[0] *= 2.0
    assert not drift(rising, method="least squares").suspected
    assert drift(rising).suspected
    assert drift(rising).p == trend_p(rising)
