"""The same within a margin: two one-sided tests, from pairs and samples."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from etude.stats.equivalence import equivalence_of
from etude.stats.ratio import paired_mean_ratio, paired_ratio, unpaired_mean_ratio, unpaired_ratio

RNG = np.random.default_rng(31)
BASE, OTHER = RNG.normal(1.0, 0.02, (2, 12))
positive = st.lists(st.floats(0.5, 2.0), min_size=2, max_size=15)


def equivalent_pairs(base, other, *, factor=1.0, **options):
    return equivalence_of(paired_ratio(base, other, factor=factor), **options)


def equivalent(base, other, **options):
    return equivalence_of(unpaired_ratio(base, other), **options)


def test_it_judges_the_ratio_that_it_is_given_with_its_error():
    for ratio in (paired_mean_ratio, unpaired_mean_ratio):
        found, interval = equivalence_of(ratio(BASE, OTHER)), ratio(BASE, OTHER, confidence=0.90)
        assert (found.ratio, found.low, found.high) == pytest.approx(
            (interval.ratio, interval.low, interval.high)
        )


def test_pairs_are_two_one_sided_t_tests_of_log_ratios():
    logs = np.log(OTHER / BASE)
    below = stats.ttest_1samp(logs, math.log(1.02), alternative="less").pvalue
    above = stats.ttest_1samp(logs, -math.log(1.02), alternative="greater").pvalue
    found = equivalent_pairs(BASE, OTHER)
    assert found.p == pytest.approx(max(below, above))
    interval = paired_ratio(BASE, OTHER, confidence=0.90)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_samples_are_two_one_sided_welch_tests_of_logs():
    found, interval = equivalent(BASE, OTHER[:7]), unpaired_ratio(BASE, OTHER[:7], confidence=0.90)
    moved = np.log(OTHER[:7]) - math.log(1.02)
    below = stats.ttest_ind(moved, np.log(BASE), equal_var=False, alternative="less").pvalue
    above = stats.ttest_ind(
        moved + 2 * math.log(1.02), np.log(BASE), equal_var=False, alternative="greater"
    ).pvalue
    assert found.p == pytest.approx(max(below, above))
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


@pytest.mark.parametrize("test", [equivalent_pairs, equivalent])
@pytest.mark.parametrize(
    ("factor", "noise", "verdict"),
    [
        (1.001, 0.005, "the same"),
        (1.001, 0.05, "undecided"),
        (1.019, 0.005, "undecided"),
        (1.2, 0.005, "different"),
        (0.9, 0.005, "different"),
    ],
)
def test_the_verdict_is_same_different_or_undecided(test, factor, noise, verdict):
    base, other = 1.0 + noise * np.random.default_rng(32).standard_normal((2, 12))
    assert test(base, factor * other).verdict == verdict


@given(positive, positive, st.floats(0.001, 0.5), st.sampled_from([0.01, 0.05]))
def test_it_is_the_same_exactly_where_the_interval_lies_within_the_margin(base, other, margin, level):
    try:
        found = equivalent(base, other, margin=margin, level=level)
    except ValueError:
        return
    if abs(found.p - level) < 1e-6:
        return
    within = found.low > 1.0 / (1.0 + margin) and found.high < 1.0 + margin
    assert (found.verdict == "the same") == within


@given(positive, st.floats(1e-100, 1e100))
def test_neither_the_unit_nor_the_order_matters(base, scale):
    other = np.array(base) * np.linspace(0.99, 1.02, len(base))
    try:
        found = equivalent_pairs(base, other)
    except ValueError:
        return
    scaled, swapped = equivalent_pairs(np.array(base) * scale, other * scale), equivalent_pairs(other, base)
    assert scaled.p == pytest.approx(found.p, abs=1e-6)
    assert swapped.p == pytest.approx(found.p, abs=1e-6)
    assert swapped.ratio == pytest.approx(1.0 / found.ratio)


def test_a_stop_rules_factor_makes_it_harder():
    plain, widened = equivalent_pairs(BASE, OTHER), equivalent_pairs(BASE, OTHER, factor=1.5)
    assert widened.p > plain.p
    assert math.log(widened.high / widened.ratio) == pytest.approx(1.5 * math.log(plain.high / plain.ratio))


def test_what_cannot_be_judged_is_refused():
    for call, reason in (
        (lambda: equivalent_pairs([1.0, 2.0], [1.0, 2.0]), "does not vary"),
        (lambda: equivalent_pairs([1.0, 2.0], [1.0]), "equally many"),
        (lambda: equivalent([1.0, 0.0], [1.0, 2.0]), "positive"),
        (lambda: equivalent(BASE, OTHER, margin=0.0), "margin"),
        (lambda: equivalent(BASE, OTHER, level=0.5), "level"),
    ):
        with pytest.raises(ValueError, match=reason):
            call()


def test_one_of_many_is_judged_at_as_much_less():
    ratio = paired_mean_ratio(BASE, OTHER)
    one, many = equivalence_of(ratio), equivalence_of(ratio.among(4))
    assert many.p == pytest.approx(4.0 * one.p)
    wide = equivalence_of(ratio, level=0.05 / 4)
    assert (many.low, many.high) == pytest.approx((wide.low, wide.high))
    assert many.confidence == pytest.approx(0.975)
