"""Which mean fits, and which is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from etude.stats.intervals import mean_interval
from etude.stats.means import FITTING, MeanRefused, average, wilson

positive = st.lists(st.floats(0.1, 100.0), min_size=1, max_size=30)


@given(positive)
def test_each_kind_has_its_mean(x):
    assert average(x, "cost").mean == pytest.approx(np.mean(x))
    assert average(x, "count").mean == pytest.approx(np.mean(x))
    assert average(x, "rate").mean == pytest.approx(stats.hmean(x))
    assert average(x, "ratio").mean == pytest.approx(stats.gmean(x))
    assert (
        average(x, "rate").mean
        <= average(x, "ratio").mean * (1 + 1e-9)
        <= average(x, "cost").mean * (1 + 2e-9)
    )


@given(positive, st.sampled_from(["cost", "rate", "ratio", "count"]), st.sampled_from([1e-150, 0.3, 1e150]))
def test_means_and_their_intervals_grow_with_the_unit(x, kind, scale):
    plain, scaled = average(x, kind), average(np.array(x) * scale, kind)
    assert scaled.mean == pytest.approx(plain.mean * scale)
    assert (plain.interval is None) == (scaled.interval is None)
    assert len(x) > 1 or plain.interval is None
    assert len(x) < 5 or plain.interval is not None
    if plain.interval is not None and plain.interval.high < 1e6:
        assert scaled.interval.low == pytest.approx(plain.interval.low * scale, rel=1e-6)
        assert scaled.interval.high == pytest.approx(plain.interval.high * scale, rel=1e-6)


@given(positive, st.sampled_from(["cost", "rate", "ratio", "count"]))
def test_an_interval_of_what_is_above_zero_lies_above_zero(x, kind):
    found = average(x, kind)
    if found.interval is not None:
        assert 0.0 < found.interval.low <= found.mean * (1 + 1e-9)
        assert found.mean * (1 - 1e-9) <= found.interval.high < np.inf


def test_where_students_interval_reaches_zero_it_is_formed_on_the_logarithm():
    x = np.array([1.0, 0.2, 0.1, 9.0, 0.3])
    half = mean_interval(x).half_width
    assert half > x.mean()
    found = average(x, "cost").interval
    assert (found.low, found.high) == pytest.approx(
        (x.mean() * np.exp(-half / x.mean()), x.mean() * np.exp(half / x.mean()))
    )
    assert average(x[:4], "cost").interval is None
    assert average(1 / x[:4], "rate").interval is None
    assert average([2.0, 2.1], "cost").interval is not None
    assert average([*x[:4], -1.0], "cost").interval.low < 0.0


def test_the_interval_of_rates_is_that_of_the_times():
    rates = np.array([90.0, 110.0, 100.0, 120.0, 95.0])
    times = mean_interval(1.0 / rates)
    found = average(rates, "rate").interval
    assert (found.low, found.high) == pytest.approx((1.0 / times.high, 1.0 / times.low))


def test_a_mean_of_ratios_does_not_depend_on_the_reference():
    x = np.array([0.5, 2.0, 1.1, 0.7])
    assert average(x, "ratio").mean * average(1.0 / x, "ratio").mean == pytest.approx(1.0)


@pytest.mark.parametrize("kind", FITTING)
@pytest.mark.parametrize("which", ["arithmetic", "harmonic", "geometric"])
def test_a_mean_that_does_not_fit_is_refused_with_the_reason(kind, which):
    x = [1.0, 0.0, 1.0] if kind == "binary" else [1.0, 2.0, 3.0]
    if which == FITTING[kind]:
        assert average(x, kind, which=which).which == which
    else:
        with pytest.raises(MeanRefused, match=rf"no {which} mean of a {kind}: .+"):
            average(x, kind, which=which)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilsons_interval_is_scipys_and_within_0_and_1(pair):
    successes, count = pair
    found, expected = (
        wilson(successes, count),
        stats.binomtest(successes, count).proportion_ci(method="wilson"),
    )
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0.0 <= found.low <= successes / count <= found.high <= 1.0


def test_values_that_are_none_of_their_kind_are_refused():
    for x, kind, reason in (
        ([0.5], "binary", "0 or 1"),
        ([1.0, 0.0], "rate", "above zero"),
        ([1.0, -1.0], "ratio", "above zero"),
        ([], "cost", "no mean"),
        ([1.0], "speed", "kind is one of"),
    ):
        with pytest.raises(ValueError, match=reason):
            average(x, kind)
    with pytest.raises(ValueError, match="no more successes"):
        wilson(3, 2)
