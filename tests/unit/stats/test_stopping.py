"""When a rule says enough, and what it says to the user."""

import itertools
import math
import re

import numpy as np
import pytest

from etude.stats.factors import next_look
from etude.stats.intervals import mean_interval
from etude.stats.ratio import paired_mean_ratio, paired_ratio
from etude.stats.stopping import FixedCount, MeanPrecision, RatioPrecision, SamplesSoFar, TimeBudget

STEADY = np.tile([1.0, 1.01], 30)
NOISY = np.tile([1.0, 2.0, 1.5, 0.6], 20)


def seen(*values, measured_s=0.0):
    return SamplesSoFar(tuple(np.asarray(x, dtype=float) for x in values), measured_s)


def test_a_fixed_count_waits_for_the_test_with_the_fewest_trials():
    rule = FixedCount(5)
    assert not rule.decide(seen(NOISY[:5], NOISY[:4])).enough
    decision = rule.decide(seen(NOISY[:5], NOISY[:6]))
    assert decision.enough
    assert decision.converged is None
    assert rule.factor == 1.0


def test_a_time_budget_needs_both_its_seconds_and_its_minimum():
    rule = TimeBudget(10.0, minimum=3)
    assert not rule.decide(seen(NOISY[:2], measured_s=99.0)).enough
    assert not rule.decide(seen(NOISY[:9], measured_s=9.9)).enough
    decision = rule.decide(seen(NOISY[:3], measured_s=10.0))
    assert decision.enough
    assert decision.converged is None


def test_a_precise_mean_is_enough_at_the_minimum_and_not_before():
    rule = MeanPrecision()
    assert not rule.decide(seen(STEADY[:9])).enough
    decision = rule.decide(seen(STEADY[:10]))
    assert decision.enough
    assert decision.converged
    assert "± 5 %" in decision.why


def test_the_mean_must_be_precise_with_the_factor():
    half = mean_interval(NOISY[:12]).half_width / NOISY[:12].mean()
    assert not MeanPrecision(precision=1.07 * half).decide(seen(NOISY[:12])).enough
    assert MeanPrecision(precision=1.09 * half).decide(seen(NOISY[:12])).enough


def test_an_imprecise_mean_stops_at_the_maximum_and_says_so(golden):
    rule = MeanPrecision(maximum=20)
    assert not rule.decide(seen(NOISY[:19])).enough
    decision = rule.decide(seen(NOISY[:20]))
    assert decision.enough
    assert decision.converged is False
    assert "20 trials" in decision.why
    golden(decision.why)


def test_a_used_budget_stops_only_from_the_minimum_on():
    rule = MeanPrecision(budget_s=30.0)
    assert not rule.decide(seen(NOISY[:9], measured_s=100.0)).enough
    assert not rule.decide(seen(NOISY[:10], measured_s=29.9)).enough
    assert rule.decide(seen(NOISY[:10], measured_s=30.0)).enough
    decision = rule.decide(seen(NOISY[:10], measured_s=36.54))
    assert decision.enough
    assert decision.converged is False
    assert "36.5 of 30 s used" in decision.why


def test_a_precise_mean_is_converged_though_the_budget_is_used():
    assert MeanPrecision().decide(seen(STEADY[:10], measured_s=100.0)).converged


def test_every_test_of_a_group_must_be_precise():
    rule = MeanPrecision(maximum=20)
    assert not rule.decide(seen(STEADY[:12], NOISY[:12])).enough
    assert rule.decide(seen(STEADY[:12], STEADY[:15])).converged


def test_a_group_goes_on_while_an_imprecise_test_has_trials_left():
    rule = MeanPrecision(maximum=20)
    assert not rule.decide(seen(NOISY[:20], NOISY[:12])).enough
    decision = rule.decide(seen(NOISY[:20], STEADY[:12]))
    assert decision.enough
    assert decision.converged is False


@pytest.mark.parametrize("value", [0.1, 0.0, -3.0])
def test_equal_values_are_converged(value):
    assert MeanPrecision().decide(seen([value] * 10)).converged


def test_a_mean_of_zero_is_never_precise():
    decision = MeanPrecision(maximum=12).decide(seen(np.tile([-1.0, 1.0], 6)))
    assert decision.converged is False


@pytest.mark.parametrize("rule", [MeanPrecision, RatioPrecision])
def test_the_factor_grows_as_the_minimum_falls(rule):
    factors = [rule(minimum=minimum).factor for minimum in (20, 10, 9, 5, 4, 3, 2)]
    assert factors == sorted(factors)
    assert factors[0] == factors[1] < factors[2] == factors[3] < factors[4] == factors[5] < factors[6]
    with pytest.raises(ValueError, match="at least 2"):
        rule(minimum=1)


def test_the_factors_of_the_mean_are_those_calibrated():
    assert [MeanPrecision(minimum=m).factor for m in (10, 5, 3, 2)] == [1.08, 1.16, 1.30, 1.64]


def test_a_precise_ratio_is_enough_at_the_minimum_and_not_before():
    rule = RatioPrecision()
    assert not rule.decide(seen(STEADY[:9], 1.5 * STEADY[:9])).enough
    decision = rule.decide(seen(STEADY[:10], 1.5 * STEADY[:10]))
    assert decision.enough
    assert decision.converged
    assert "the ratio " in decision.why


def test_every_ratio_to_the_reference_must_be_precise():
    rule, n = RatioPrecision(), 12
    assert not rule.decide(seen(STEADY[:n], 2.0 * STEADY[:n], NOISY[:n])).enough
    assert rule.decide(seen(NOISY[:n], 2.0 * NOISY[:n], 3.0 * NOISY[:n])).converged


def test_a_ratio_stops_on_its_width_and_never_because_it_excludes_one():
    base, other = NOISY[:12], 9.0 * NOISY[12:0:-1]
    assert paired_ratio(base, other).low > 1.0
    assert not RatioPrecision().decide(seen(base, other)).enough


def test_the_ratio_must_be_precise_with_the_factor():
    base, other, rule = STEADY[:12], 1.0 + 0.1 * NOISY[:12], RatioPrecision()
    half = paired_mean_ratio(base, other, factor=rule.factor).half_width
    assert not RatioPrecision(precision=0.999 * half).decide(seen(base, other)).enough
    assert RatioPrecision(precision=1.001 * half).decide(seen(base, other)).enough


def test_several_ratios_are_precise_where_their_intervals_are_that_hold_together():
    base, other, rule = STEADY[:12], 1.0 + 0.1 * NOISY[:12], RatioPrecision()
    half = paired_mean_ratio(base, other, factor=rule.factor).among(3).half_width
    tests = seen(base, other, other, other)
    assert not RatioPrecision(precision=0.999 * half).decide(tests).enough
    assert RatioPrecision(precision=1.001 * half).decide(tests).enough


@pytest.mark.parametrize(
    ("kind", "ratio"),
    [
        ("cost", paired_mean_ratio),
        ("count", paired_mean_ratio),
        ("rate", lambda base, other, **how: paired_mean_ratio(1 / other, 1 / base, **how)),
        ("ratio", paired_ratio),
    ],
)
def test_the_ratio_that_must_be_precise_is_that_of_the_means_that_fit(kind, ratio):
    base, other = STEADY[:12], NOISY[:12]
    half = ratio(base, other, factor=RatioPrecision().factor).half_width
    looked_at = SamplesSoFar((base, other), kind=kind)
    assert not RatioPrecision(precision=0.999 * half).decide(looked_at).enough
    assert RatioPrecision(precision=1.001 * half).decide(looked_at).enough


def test_an_imprecise_ratio_stops_at_the_maximum_or_when_time_is_up():
    rule = RatioPrecision(maximum=20)
    for n, measured_s in ((20, 0.0), (10, 31.0)):
        decision = rule.decide(seen(STEADY[:n], NOISY[:n], measured_s=measured_s))
        assert decision.enough
        assert decision.converged is False
        assert decision.why.startswith("not converged")
    assert not rule.decide(seen(STEADY[:19], NOISY[:19], measured_s=29.0)).enough


def test_equal_pairs_are_converged():
    assert RatioPrecision().decide(seen([2.0] * 10, [3.0] * 10)).converged


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((STEADY[:10],), "two or more"),
        ((STEADY[:10], STEADY[:11]), "as many trials"),
        ((STEADY[:10], -STEADY[:10]), "positive"),
    ],
)
def test_what_cannot_be_a_ratio_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        RatioPrecision().decide(seen(*values))


@pytest.mark.parametrize("rule", [MeanPrecision, RatioPrecision])
@pytest.mark.parametrize(
    "settings",
    [
        {"precision": 0.0},
        {"precision": math.nan},
        {"maximum": 9},
        {"budget_s": 0.0},
        {"budget_s": math.nan},
        {"confidence": 95.0},
    ],
)
def test_settings_without_sense_are_refused(rule, settings):
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        rule(**settings)


def test_a_budget_may_be_without_end():
    assert not MeanPrecision(budget_s=math.inf).decide(seen(NOISY[:12], measured_s=1e9)).enough


@pytest.mark.parametrize("rule", [lambda: FixedCount(0), lambda: TimeBudget(0.0), lambda: TimeBudget(1.0, 0)])
def test_a_rule_asks_for_something(rule):
    with pytest.raises(ValueError, match="above 0"):
        rule()


def test_what_was_seen_is_finite():
    with pytest.raises(ValueError, match="finite"):
        seen([1.0, math.nan])
    with pytest.raises(ValueError, match="one test"):
        seen()
    with pytest.raises(ValueError, match="measured time"):
        seen([1.0], measured_s=math.nan)


@pytest.mark.parametrize("rule", [MeanPrecision, RatioPrecision])
def test_the_maximum_ends_nothing_before_the_least_time(rule):
    values = (NOISY, NOISY[::-1]) if rule is RatioPrecision else (NOISY,)
    judge = rule(maximum=20, least_s=3.0).decide
    assert not judge(seen(*(x[:40] for x in values), measured_s=2.9)).enough
    assert judge(seen(*(x[:40] for x in values), measured_s=3.0)).converged is False
    assert rule(maximum=20, least_s=3.0, budget_s=1.0).decide(seen(*values, measured_s=1.0)).enough
    assert rule(maximum=20).decide(seen(*values)).enough
    exact = rule(maximum=20, least_s=3.0, exact=True).decide
    assert exact(seen(*(x[:20] for x in values), measured_s=0.1)).enough
    for least_s in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="least time"):
            rule(least_s=least_s)


@pytest.mark.parametrize("rule", [MeanPrecision, RatioPrecision])
def test_a_precision_that_is_reached_at_once_ends_nothing_before_the_least_time(rule):
    values = (np.full(40, 2.0),) * (2 if rule is RatioPrecision else 1)
    early, late = seen(*values, measured_s=2.9), seen(*values, measured_s=3.0)
    few = seen(*(x[:19] for x in values), measured_s=0.1)
    assert not rule(maximum=20, least_s=3.0).decide(early).enough
    assert rule(maximum=20, least_s=3.0).decide(late).converged
    assert rule(maximum=20, least_s=3.0, budget_s=2.0).decide(early).converged
    assert rule(maximum=20, least_s=3.0, exact=True).decide(early).converged
    assert not rule(maximum=20, least_s=3.0, exact=True).decide(few).enough


@pytest.mark.parametrize("minimum", [2, 10, 150])
def test_looks_are_at_each_count_up_to_a_hundred_and_then_at_two_percent_more(minimum):
    looks = [next_look(count, minimum) for count in range(1, 5000)]
    assert looks == sorted(looks)
    assert looks[minimum - 1] == minimum
    assert all(look >= count for count, look in enumerate(looks, 1))
    assert looks[minimum - 1 : 100] == list(range(minimum, 101))
    assert all(next_look(look, minimum) == look for look in set(looks))
    distinct = sorted(set(looks))
    assert all(later <= max(at + 1, 1.0201 * at) for at, later in itertools.pairwise(distinct))


@pytest.mark.parametrize("spread", [1.5, 20.0, 3000.0])
def test_a_progress_line_of_a_wide_interval_has_no_exponent(spread):
    x = np.tile([1.0, spread], 6)
    reason = RatioPrecision(0.02).decide(seen(x, x[::-1])).why
    (shown,) = re.findall(r"known to ± (\S+) %", reason)
    assert shown.replace(".", "", 1).isdigit()
