"""Warm-ups and other levels: what is found, what is left alone, and that the search misses nothing."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.stats import warmup
from etude.stats.warmup import LevelShift, change_points, level_shift, no_steady_state_p, standardised
from support.profiles import examples
from support.synthetic_series import MACHINES, autoregressive, lognormal, mixture, normal

# Noise of cv 2 % without any pattern, the same in every test.
NOISE = 1.0 + 0.02 * np.random.default_rng(5).standard_normal(200)


def fit_steps(n, first, factor):
    return NOISE[:n] * np.where(np.arange(n) < first, factor, 1.0)


@pytest.mark.parametrize("n", [12, 20, 29, 30, 60, 200])
@pytest.mark.parametrize("factor", [1.3, 0.7])
def test_three_trials_at_the_beginning_are_found(n, factor):
    found = level_shift(fit_steps(n, 3, factor))
    assert (found.first, found.last) == (3, 0)
    assert found.shift == pytest.approx(factor - 1.0, abs=0.05)
    assert found.method == ("Student's t" if n < 30 else "PELT")


@pytest.mark.parametrize(("n", "last"), [(10, 2), (10, 3), (14, 5), (29, 6), (29, 14), (30, 7), (60, 20)])
def test_a_late_change_is_found(n, last):
    found = level_shift(fit_steps(n, n - last, 1 / 1.1))
    assert (found.first, found.last) == (0, last)
    assert found.shift == pytest.approx(0.1, abs=0.04)


def test_the_shorter_part_is_the_other_level_and_the_first_of_two_equal_ones():
    ends = [level_shift(fit_steps(12, first, 1.2)) for first in (5, 6, 7)]
    assert [(found.first, found.last) for found in ends] == [(5, 0), (6, 0), (0, 5)]
    assert [found.shift > 0.0 for found in ends] == [True, True, False]


@pytest.mark.parametrize("n", [10, 14, 20, 29])
def test_the_level_is_the_share_of_clean_series_that_split_as_clearly(n):
    """The largest t of all splits, by hand; the chance of it is found by simulation."""
    x = np.random.default_rng(n).standard_normal((40_000, n))
    sums = np.cumsum(x - x.mean(axis=1, keepdims=True), axis=1)[:, 1 : n - 2]
    counts = np.arange(2, n - 1)
    explained = (sums**2 * n / (counts * (n - counts))).max(axis=1) / (x.var(axis=1) * n)
    t = np.sqrt(explained / (1.0 - explained) * (n - 2))
    for level in (0.01, 0.03):
        found = np.mean([warmup._chance_of_split(value, n) < level for value in t.tolist()])
        assert found == pytest.approx(level, rel=0.25)


def test_a_level_decides_below_thirty_trials():
    x = fit_steps(12, 9, 1 / 1.06)
    assert level_shift(x).last == 3
    assert level_shift(x, level=1e-9) is None


def test_both_ends_may_be_other_levels():
    found = level_shift(np.concatenate((1.4 * NOISE[:4], NOISE[4:30], 0.8 * NOISE[30:35])))
    assert (found.first, found.last) == (4, 5)
    assert found.shift == pytest.approx(0.4, abs=0.05)
    assert found.shift_last == pytest.approx(-0.2, abs=0.05)


def test_other_trials_of_one_end_do_not_speak_for_chance_at_the_other():
    x = NOISE[:30].copy()
    x[:3] *= 1.4
    x[-3:] *= 1.4
    found = level_shift(x)
    assert (found.first, found.last) == (3, 3)


def test_a_few_slow_trials_in_the_middle_part_nothing():
    x = NOISE[:40].copy()
    x[18:22] *= 1.5
    assert change_points(x) == (18, 22)
    assert level_shift(x) is None


@pytest.mark.parametrize("n", [15, 40])
@pytest.mark.parametrize("places", [[0], [-1], [0, -1], [0, 9]])
def test_single_slow_trials_are_no_level(n, places):
    x = NOISE[:n].copy()
    x[places] *= 2.0
    assert level_shift(x) is None


def test_a_level_that_others_are_like_here_and_there_is_chance():
    """Two of the first three values are of the slower of two modes, and so are others anywhere."""
    x = NOISE[:40].copy()
    x[[0, 1, 9, 16, 23, 31]] *= 1.5
    assert level_shift(x) is None


def test_a_shift_below_the_practical_size_does_not_count():
    x = 1.0 + 1e-4 * np.random.default_rng(6).standard_normal(40)
    x[:6] += 0.005
    assert level_shift(x) is None
    assert level_shift(x, practical=0.001).first == 6
    assert level_shift(x[:20]) is None
    assert level_shift(x[:20], practical=0.001).first == 6


@pytest.mark.parametrize("n", range(10))
def test_nothing_is_said_of_short_series(n):
    assert level_shift(fit_steps(n, 3, 1.5)) is None


def test_what_is_left_is_looked_at_for_a_trend():
    rising = NOISE[:40] * (1.0 + 0.01 * np.arange(40))
    assert no_steady_state_p(rising, None) < 0.01
    assert no_steady_state_p(NOISE[:40], None) > 0.01
    warm = fit_steps(40, 12, 1.5)
    assert no_steady_state_p(warm, None) < 0.01
    assert no_steady_state_p(warm, level_shift(warm)) > 0.01
    assert no_steady_state_p(warm[:15], LevelShift(6, 0, 0.5, 0.0, "Student's t")) is None


def least_cost(values, penalty, shortest):
    """Of all partitions, by trying every one of them, the least cost."""
    n = len(values)
    best = [math.inf] * (n + 1)
    best[0] = -penalty
    for end in range(shortest, n + 1):
        for start in range(end - shortest + 1):
            level = values[start:end]
            best[end] = min(best[end], best[start] + float(((level - level.mean()) ** 2).sum()) + penalty)
    return best[n]


def cost(values, places, penalty):
    levels = np.split(values, places)
    return sum(float(((level - level.mean()) ** 2).sum()) for level in levels) + penalty * len(places)


@given(
    st.lists(st.floats(-5.0, 5.0) | st.sampled_from([0.0, 3.0]), min_size=6, max_size=40),
    st.floats(0.1, 4.0),
    st.integers(1, 4),
)
def test_pruning_never_loses_the_best_partition(x, penalty, shortest):
    places = change_points(x, penalty=penalty, shortest=shortest)
    values = standardised(np.array(x))
    charge = penalty * math.log(len(x))
    assert all(b - a >= shortest for a, b in zip((0, *places), (*places, len(x)), strict=True))
    if len(x) >= 2 * shortest:
        assert cost(values, places, charge) == pytest.approx(
            least_cost(values, charge, shortest), rel=1e-9, abs=1e-6
        )


series = st.tuples(
    st.integers(10, 70), st.integers(0, 20), st.sampled_from([1.0, 1.05, 1.4, 0.8]), st.integers(0, 99)
)


@given(series, st.sampled_from([1e-200, 1e-6, 2.0**10, 1e200]))
def test_the_unit_of_the_values_does_not_matter(parameters, scale):
    n, first, factor, seed = parameters
    x = np.random.default_rng(seed).normal(1.0, 0.02, n) * np.where(np.arange(n) < first, factor, 1.0)
    found, scaled = level_shift(x), level_shift(x * scale)
    assert (found is None) == (scaled is None)
    if found is not None:
        assert (found.first, found.last, found.method) == (scaled.first, scaled.last, scaled.method)
        assert 2 <= found.first + found.last < n
        assert found.shift == pytest.approx(scaled.shift)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([30, 100, 301, 1000]),
    st.sampled_from(range(6)),
    st.sampled_from([1.0, 3.0, 15.0]),
)
@settings(max_examples=examples(80))
def test_what_needs_no_search_would_not_have_been_split_by_one(seed, n, which, penalty):
    rng = np.random.default_rng(seed)
    draw = [normal(0.05), lognormal(0.3), autoregressive(0.6, 0.05), mixture(0.05, times=1.5, cv=0.03)]
    stepped_up = [
        (lambda r, s, n, by=by: normal(0.02)(r, s, n) + by * (np.arange(n) > n // 3)) for by in (0.01, 0.03)
    ]
    values = standardised([*draw, *stepped_up][which](rng, 1, n)[0])
    sums = np.concatenate(([0.0], np.cumsum(values)))
    if warmup._no_change(sums, penalty * math.log(n)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(warmup, "_no_change", lambda sums, penalty: False)
            assert change_points(values, penalty=penalty) == ()


def test_a_clean_series_needs_no_search():
    for n in (30, 100, 1000, 2000):
        x = normal(0.05)(np.random.default_rng(n), 1, n)[0]
        sums = np.concatenate(([0.0], np.cumsum(standardised(x))))
        assert warmup._no_change(sums, 15.0 * math.log(n))


def test_a_small_change_that_only_long_levels_show_is_searched_for():
    x = normal(0.02)(np.random.default_rng(1), 1, 1000)[0] + 0.02 * (np.arange(1000) > 400)
    (place,) = change_points(x)
    assert place == pytest.approx(401, abs=15)


def test_very_long_series_are_looked_at_in_groups():
    x = np.random.default_rng(7).normal(1.0, 0.02, 10_000)
    x[:1500] *= 1.2
    found = level_shift(x)
    assert (found.first, found.last) == (1500, 0)


@pytest.mark.parametrize(
    ("draw", "n", "most"),
    [
        (normal(0.05), 10, 0.03),
        (normal(0.05), 20, 0.03),
        (lognormal(0.30), 14, 0.05),
        (mixture(0.15, plus=0.3), 14, 0.08),
        (autoregressive(0.3, 0.05), 14, 0.12),
        (normal(0.05), 30, 0.02),
        (lognormal(0.30), 30, 0.02),
        (mixture(0.15, plus=0.3), 30, 0.06),
        (mixture(0.05, times=1.5, cv=0.03), 30, 0.06),
        (autoregressive(0.5, 0.05), 30, 0.06),
    ],
)
def test_flat_series_are_seldom_called_warm(draw, n, most):
    found = [level_shift(x) is not None for x in draw(np.random.default_rng(8), 400, n)]
    assert np.mean(found) <= most


def test_a_machine_that_warms_up_is_called_warm():
    (machine,) = (m for m in MACHINES if m.name.startswith("warm-up"))
    rng = np.random.default_rng(9)
    trials = machine.draw(rng, 200, 30) * normal(0.02)(rng, 200, 30)
    assert np.mean([getattr(level_shift(x), "first", 0) == 3 for x in trials]) > 0.9
