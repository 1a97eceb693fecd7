"""The variance over nested levels, the interval over the outermost one, and comparisons across sessions."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from etude.stats.cross_session import (
    NotSupported,
    SessionSpread,
    between_sessions,
    compare_sessions,
    stated_session_spread,
)
from etude.stats.intervals import Interval, mean_interval
from etude.stats.levels import at_least_as_wide, split_by_kind, split_variance
from etude.stats.moments import effective_moments
from etude.stats.twosample import welch
from support.synthetic_series import lognormal


def nested(rng, deviations, counts):
    """Values of `counts` machines × … × trials with these standard deviations, outermost first, and their labels."""
    shape = tuple(counts)
    values = np.full(shape, 10.0)
    for level, deviation in enumerate(deviations):
        values = values + rng.normal(0.0, deviation, shape[: level + 1] + (1,) * (len(shape) - level - 1))
    return values.ravel(), [index.ravel().tolist() for index in np.indices(shape)]


def test_a_balanced_split_is_that_of_the_textbook():
    """Two levels: MS within, and (MS between - MS within)/n, by scipy's one-way analysis of variance."""
    x, (boot, _) = nested(np.random.default_rng(1), (3.0, 1.0), (6, 5))
    trial, boots = split_variance(x, {"boot": boot}).components
    groups = x.reshape(6, 5)
    within, between = groups.var(axis=1, ddof=1).mean(), 5 * groups.mean(axis=1).var(ddof=1)
    assert stats.f_oneway(*groups).statistic == pytest.approx(between / within)
    assert (trial.level, trial.variance) == ("trial", pytest.approx(within))
    assert (boots.level, boots.variance) == ("boot", pytest.approx((between - within) / 5))
    assert trial.share + boots.share == pytest.approx(1.0)


def test_unequal_counts_are_split_without_bias():
    rng, found = np.random.default_rng(2), []
    for _ in range(300):
        x, (boot, sitting, _) = nested(rng, (3.0, 2.0, 1.0), (5, 3, 6))
        keep = rng.random(x.size) < 0.6
        labels = {"boot": np.array(boot)[keep].tolist(), "sitting": np.array(sitting)[keep].tolist()}
        found.append([c.variance for c in split_variance(x[keep], labels).components])
    assert np.mean(found, axis=0) == pytest.approx([1.0, 4.0, 9.0], rel=0.12)


def test_the_interval_goes_over_the_outermost_level_that_was_varied():
    x, (boot, sitting, _) = nested(np.random.default_rng(3), (3.0, 1.0, 0.5), (4, 3, 5))
    found = split_variance(x, {"sitting": sitting, "boot": boot, "machine": ["here"] * x.size})
    assert (found.over, found.groups) == ("boot", 4)
    means = x.reshape(4, 15).mean(axis=1)
    expected = stats.ttest_1samp(means, 0.0).confidence_interval(0.95)
    assert (found.interval.low, found.interval.high) == pytest.approx((expected.low, expected.high))
    assert found.mean == pytest.approx(means.mean())


def test_the_interval_covers_the_mean_over_all_boots_where_that_of_trials_does_not():
    rng, by_boot, by_trial = np.random.default_rng(4), [], []
    for _ in range(600):
        x, (boot, _) = nested(rng, (1.0, 0.3), (5, 10))
        outer, inner = split_variance(x, {"boot": boot}).interval, mean_interval(rng.permutation(x))
        by_boot.append(outer.low <= 10.0 <= outer.high)
        by_trial.append(inner.low <= 10.0 <= inner.high)
    assert np.mean(by_boot) > 0.95 - 4 * math.sqrt(0.95 * 0.05 / 600)
    assert np.mean(by_trial) < 0.75


@pytest.mark.parametrize("kind", ["cost", "rate"])
def test_an_interval_over_sittings_stays_above_zero(kind):
    x = np.repeat([1.0, 0.2, 0.1, 9.0, 0.3], 2)
    x = 1.0 / x if kind == "rate" else x
    sittings = np.repeat(range(5), 2)
    found = split_by_kind(x, kind, {"sitting": sittings})
    assert found.over == "sitting"
    assert 0.0 < found.interval.low < found.mean < found.interval.high < math.inf
    assert split_variance(x if kind == "cost" else 1.0 / x, {"sitting": sittings}).interval.low < 0.0
    assert split_by_kind(x[:8], kind, {"sitting": sittings[:8]}).interval is None


def test_in_one_sitting_the_interval_is_that_of_the_trials():
    x = np.random.default_rng(5).normal(5.0, 1.0, 12)
    found = split_variance(x, {"sitting": [1] * 12, "machine": ["a"] * 12}, factor=1.08)
    assert (found.over, found.groups) == ("trial", 12)
    assert found.interval == mean_interval(x, factor=1.08)


def test_levels_that_cannot_be_told_apart_say_so():
    x, (boot, _) = nested(np.random.default_rng(6), (3.0, 1.0), (4, 5))
    trial, sitting, boots, machine = split_variance(
        x, {"sitting": boot, "boot": boot, "machine": [1] * 20}
    ).components
    assert sitting.variance is machine.variance is None
    assert sitting.reason.endswith("one session")
    assert machine.reason.endswith("one machine")
    assert None not in (trial.variance, boots.variance)
    one_each = split_variance([1.0, 2.0, 4.0], {"boot": [1, 2, 3]})
    assert one_each.components[0].reason.endswith("one trial")
    assert one_each.over == "boot"


def test_the_same_label_in_two_boots_is_two_sittings():
    found = split_variance([1.0, 2.0, 3.0, 4.0], {"sitting": [1, 1, 1, 1], "boot": ["a", "a", "b", "b"]})
    assert [c.groups for c in found.components] == [4, 2, 2]


@given(
    st.lists(
        st.tuples(st.floats(-100.0, 100.0), st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=30
    ),
    st.sampled_from([1e-120, 0.5, 1e120]),
)
@example(rows=[(0.0, 0, 0), (2.9988229567650405e-224, 0, 0)], scale=1e120)
def test_variances_grow_with_the_square_of_the_unit(rows, scale):
    x, boot, sitting = (list(column) for column in zip(*rows, strict=True))
    labels = {"boot": boot, "sitting": sitting}
    plain, scaled = split_variance(x, labels), split_variance(np.array(x) * scale, labels)
    # Squares below the smallest float are 0, and then no multiple of them is the other's.
    tolerance = (1e-9 * max(abs(v) for v in x) ** 2 + np.finfo(float).tiny) * scale * scale
    for a, b in zip(plain.components, scaled.components, strict=True):
        assert (a.level, a.groups, a.reason) == (b.level, b.groups, b.reason)
        if a.variance is not None:
            assert a.variance >= 0.0
            assert b.variance == pytest.approx(a.variance * scale * scale, rel=1e-6, abs=tolerance)


def test_what_cannot_be_split_is_refused():
    for labels, reason in (({"day": [1]}, "a level is one of"), ({"boot": [1, 2]}, "as many labels")):
        with pytest.raises(ValueError, match=reason):
            split_variance([1.0], labels)
    with pytest.raises(ValueError, match="without values"):
        split_variance([], {})


def test_sessions_that_agree_by_chance_are_no_better_known_than_their_trials():
    x, labels = np.array([9.0, 11.0, 10.0, 9.5, 10.5, 10.02]), {"sitting": [1, 1, 1, 2, 2, 2]}
    found, trials = split_variance(x, labels), split_variance(x, {}).interval
    assert found.interval.half_width < 0.1 < trials.half_width
    wide = at_least_as_wide(found, float(x.mean()), trials).interval
    assert (wide.low, wide.high) == pytest.approx(
        (found.mean - trials.half_width, found.mean + trials.half_width)
    )
    far = split_variance(np.add(x, [0, 0, 0, 5, 5, 5]), labels)
    assert at_least_as_wide(far, far.mean, trials) == far
    assert at_least_as_wide(far, far.mean, None) == far
    # Of values above 0 no limit comes to lie below 0 by that.
    close = replace(found, mean=1.0, interval=Interval(0.9, 1.1))
    assert at_least_as_wide(close, 1.2, Interval(0.1, 1.3)).interval == Interval(0.1, pytest.approx(1.1))


def sitting(rng, level, n=12):
    return level * rng.lognormal(0.0, 0.01, n)


@pytest.mark.parametrize("have", [0, 1, 2])
def test_below_three_stored_sittings_the_comparison_is_refused_with_what_is_missing(have):
    rng = np.random.default_rng(7)
    known = between_sessions([sitting(rng, 1.0) for _ in range(have)])
    found = compare_sessions(sitting(rng, 1.0), sitting(rng, 1.1), known)
    assert isinstance(found, NotSupported)
    assert (found.have, found.needed) == (have, 3 - have)
    assert "interleaved" in found.remedy


def test_without_a_word_on_sittings_the_comparison_is_refused():
    found = compare_sessions([1.0, 1.1], [1.0, 1.1], None)
    assert (found.needed, found.have) == (3, 0)


def test_the_term_widens_the_interval_by_twice_its_variance():
    rng = np.random.default_rng(8)
    base, other = sitting(rng, 1.0), sitting(rng, 1.1)
    found = compare_sessions(base, other, stated_session_spread(5.0))
    plain = welch(*(effective_moments(np.log(x)) for x in (other, base)))
    error = math.hypot(plain.standard_error, math.sqrt(2) * math.sqrt(math.log(1.0025)))
    assert math.log(found.high / found.ratio) == pytest.approx(1.96 * error, rel=0.01)
    assert math.log(found.ratio) == pytest.approx(plain.difference)
    assert found.p > plain.p
    without = compare_sessions(base, other, SessionSpread(0.0, math.inf, None))
    assert (without.low, without.p) == (pytest.approx(math.exp(plain.low)), pytest.approx(plain.p))
    assert without.within_share == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("kind", "ratio"), [("cost", 2.0), ("count", 2.0), ("rate", 1.5), ("ratio", math.sqrt(3.0))]
)
def test_the_ratio_is_that_of_the_means_that_fit_the_metric(kind, ratio):
    found = compare_sessions(
        [4.0, 4.0, 4.0, 4.0], [4.0, 12.0, 4.0, 12.0], stated_session_spread(3.0), kind=kind
    )
    assert found.ratio == pytest.approx(ratio)


def test_a_stated_spread_is_a_standard_deviation_in_percent():
    levels = lognormal(0.15)(np.random.default_rng(5), 1, 200_000)[0]
    assert np.std(np.log(levels)) == pytest.approx(stated_session_spread(15.0).deviation, rel=0.01)
    assert stated_session_spread(0.01).deviation == pytest.approx(1e-4)
    assert math.isfinite(stated_session_spread(1e300).deviation)


@pytest.mark.parametrize("stored", [3, 8])
def test_identical_tests_of_two_sittings_differ_falsely_in_one_of_twenty_at_most(stored):
    rng, alarms, naive = np.random.default_rng(9), [], []
    for _ in range(600):
        levels = rng.lognormal(0.0, 0.05, stored + 2)
        *known, base, other = (sitting(rng, level) for level in levels)
        found = compare_sessions(base, other, between_sessions(known))
        alarms.append(not found.low <= 1.0 <= found.high)
        naive.append(welch(base, other).p < 0.05)
    assert np.mean(alarms) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 600)
    assert np.mean(naive) > 0.5


def test_sittings_that_are_no_ratios_are_refused():
    for call, reason in (
        (lambda: between_sessions([[1.0], [0.0], [1.0]]), "positive"),
        (lambda: between_sessions([[1.0], [], [1.0]]), "without values"),
        (lambda: stated_session_spread(-1.0), "0 % or more"),
        (lambda: compare_sessions([1.0, 1.0], [2.0, 2.0], stated_session_spread(0.0)), "no spread"),
    ):
        with pytest.raises(ValueError, match=reason):
            call()
