"""From which size on two tests differ by less than a level."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.stats.crossings import Crossing, crossing
from support.profiles import examples

SIZES = 2.0 ** np.arange(10, 28)


def alike(values, trials=5):
    return [[float(v)] * trials for v in values]


def noisy(values, rng, spread=0.01, trials=10):
    return [v * np.exp(rng.normal(0.0, spread, trials)) for v in values]


def test_it_lies_where_the_ratio_of_medians_comes_below_for_good():
    found = crossing([1.0, 100.0, 1e4], alike([1.0, 1.0, 1.0]), alike([1.0, 1.2, 1.0]), 1.1)
    assert (found.at, found.share, found.why) == (pytest.approx(1000.0), 1.0, None)
    assert (found.interval.low, found.interval.high) == (pytest.approx(1000.0), pytest.approx(1000.0))
    linear = crossing([1.0, 100.0, 1e4], alike([1.0, 1.0, 1.0]), alike([1.0, 1.2, 1.0]), 1.1, log=False)
    assert linear.at == pytest.approx(5050.0)


def test_a_median_is_not_moved_by_one_slow_trial():
    other = [[1.2, 1.2, 1.2, 1.2, 9.0], [1.0, 1.0, 1.0, 1.0, 9.0]]
    assert crossing([1.0, 2.0], alike([1.0, 1.0]), other, 1.1).at == pytest.approx(math.sqrt(2.0))


def test_where_there_is_none_it_says_why():
    base = alike([1.0, 1.0, 1.0])
    for other, why in (
        ([1.2, 1.3, 1.2], "above it everywhere"),
        ([1.0, 1.01, 1.0], "below it from the first size on"),
        ([1.2, 1.0, 1.2], "above it at the last size, 4"),
    ):
        assert crossing([1.0, 2.0, 4.0], base, alike(other), 1.05) == Crossing(None, None, 0.0, why)


def test_a_level_below_one_is_come_to_from_below(golden):
    found = crossing([1.0, 2.0, 4.0], alike([1.0] * 3), alike([0.5, 0.9, 1.0]), 0.95)
    assert found.at == pytest.approx(2.0 * math.sqrt(2.0))
    less = crossing([1.0, 2.0], alike([1.0] * 2), alike([0.5, 0.6]), 0.95)
    above = crossing([1.0, 2.0], alike([1.0] * 2), alike([1.0, 1.0]), 0.95)
    assert less.at is above.at is None
    golden(f"{less.why}\n{above.why}")


def test_the_interval_covers_the_crossing():
    base = 4e-4 + SIZES / 8e9
    other = base + 3e-4
    ratios = other / base
    last = int(np.flatnonzero(ratios >= 1.05)[-1])
    truth = SIZES[last] * 2.0 ** ((ratios[last] - 1.05) / (ratios[last] - ratios[last + 1]))
    rng, held = np.random.default_rng(1), []
    for _ in range(150):
        found = crossing(SIZES, noisy(base, rng), noisy(other, rng), 1.05, draws=299)
        assert found.interval.low <= found.at <= found.interval.high
        held.append(found.interval.low <= truth <= found.interval.high)
    assert np.mean(held) > 0.95 - 4 * math.sqrt(0.95 * 0.05 / 150)


def test_an_interval_that_leaves_the_range_is_none(golden):
    rng = np.random.default_rng(2)
    base, other = np.ones(3), np.array([1.2, 1.06, 1.04])
    found = crossing([1.0, 2.0, 4.0], noisy(base, rng, 0.02), noisy(other, rng, 0.02), 1.05)
    assert found.at is not None
    assert found.interval is None
    assert found.share < 1.0
    assert found.why.endswith(" 4")
    golden(found.why)


def test_below_four_trials_there_is_no_interval():
    found = crossing([1.0, 4.0], alike([1.0, 1.0], 3), alike([1.2, 1.0], 9), 1.1)
    assert (found.at, found.interval, found.share) == (pytest.approx(2.0), None, None)
    assert "4 or more trials" in found.why
    assert crossing([1.0, 4.0], alike([1.0, 1.0], 3), alike([1.2, 1.2], 9), 1.1).why == "above it everywhere"


def test_the_same_seed_gives_the_same_answer():
    rng = np.random.default_rng(3)
    both = noisy(np.ones(4), rng), noisy(np.array([1.3, 1.2, 1.1, 1.0]), rng)
    assert crossing([1, 2, 4, 8], *both, 1.05, seed=1) == crossing([1, 2, 4, 8], *both, 1.05, seed=1)
    assert crossing([1, 2, 4, 8], *both, 1.05, seed=1) != crossing([1, 2, 4, 8], *both, 1.05, seed=2)


@settings(max_examples=examples(60))
@given(
    x=st.lists(st.floats(1e-300, 1e300), min_size=2, max_size=6, unique=True).map(sorted),
    data=st.data(),
    level=st.sampled_from([0.95, 1.0, 1.01]),
)
def test_whatever_is_positive_has_an_answer(x, data, level):
    values = st.lists(st.floats(5e-324, 1.7e308) | st.sampled_from([1.0, 1.02]), min_size=4, max_size=5)
    base, other = (data.draw(st.lists(values, min_size=len(x), max_size=len(x))) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = crossing(x, base, other, level, draws=19)
    assert 0.0 <= found.share <= 1.0
    assert (found.at is None) <= (found.why is not None)
    if found.at is not None:
        assert x[0] * (1 - 1e-9) <= found.at <= x[-1] * (1 + 1e-9)
    if found.interval is not None:
        assert found.interval.low <= found.at <= found.interval.high


@pytest.mark.parametrize(
    ("x", "base", "other", "reason"),
    [
        ([1.0], [[1.0]], [[1.0]], "two or more"),
        ([1.0, 1.0], [[1.0]] * 2, [[1.0]] * 2, "x must rise"),
        ([0.0, 1.0], [[1.0]] * 2, [[1.0]] * 2, "above 0"),
        ([1.0, 2.0], [[1.0]] * 2, [[1.0]], "x 2, base 2, other 1"),
        ([1.0, 2.0], [[1.0], []], [[1.0]] * 2, "at x 2"),
        ([1.0, 2.0], [[1.0], [0.0]], [[1.0]] * 2, "positive"),
        ([1.0, 2.0], [[1.0], [math.nan]], [[1.0]] * 2, "finite"),
    ],
)
def test_what_cannot_cross_is_refused(x, base, other, reason):
    with pytest.raises(ValueError, match=reason) as refused:
        crossing(x, base, other, 1.05)
    assert "\n" not in str(refused.value)


def test_a_level_or_count_that_makes_no_sense_is_refused():
    for options, reason in (
        ({"level": 0.0}, "level"),
        ({"draws": 0}, "draws"),
        ({"confidence": 95}, "fraction"),
    ):
        with pytest.raises(ValueError, match=reason):
            crossing([1, 2], [[1.0]] * 2, [[1.0]] * 2, **({"level": 1.05} | options))
