"""The loads that the policies of "Cutting Corners" pick, each after its part of section 3."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.peak.policies.paper import (
    MOST_LOADS,
    Strawman,
    binsearch,
    by_parabola,
    by_queue,
    linear,
    model,
    polynomial,
)
from etude.peak.search import search
from etude.peak.slo_ratio import Reading
from support.standin import StandIn, queue, task


def loads(policy, share, **changes):
    bench = StandIn(share)
    return search(policy(), task(**changes), bench), bench.loads


def test_binsearch_doubles_and_then_halves():
    answer, tried = loads(binsearch, queue(437.0))
    assert tried == [50, 100, 200, 400, 800, 600, 500, 450, 425, 437.5]
    assert (answer.rate, answer.low, answer.high, answer.kept) == (437.5, 425, 437.5, True)


def test_binsearch_halves_a_seed_that_is_too_much():
    _, tried = loads(binsearch, queue(100.0), seed_load=900.0)
    assert tried[:5] == [900, 450, 225, 112.5, 56.25]
    assert tried[5] == pytest.approx((56.25 + 112.5) / 2)


def test_an_interval_that_collapses_is_an_answer_whose_promise_is_not_kept():
    answer, tried = loads(binsearch, lambda load: 0.5 if load < 437 else 5.0)
    assert len(tried) < 20
    assert answer.rate == pytest.approx(437, rel=1e-3)
    assert answer.low <= 437 <= answer.high
    assert not answer.kept


def test_linear_goes_in_steps_and_then_halves():
    _, tried = loads(linear, queue(137.0))
    assert tried[:7] == [50, 70, 90, 110, 130, 150, 140]


def test_linear_steps_down_from_a_seed_that_is_too_much():
    _, tried = loads(linear, queue(137.0), seed_load=185.0)
    assert tried[:5] == [185, 165, 145, 125, 135]


def test_the_strawman_makes_ten_trials_of_five_minutes_at_each_load():
    bench = StandIn(queue(137.0))
    answer = search(Strawman(), task(), bench)
    assert [(request.load, request.runlength_s) for request in bench.offers] == [
        (load, 300.0) for load in (50, 70, 90, 110, 130, 150) for _ in range(10)
    ]
    assert (answer.rate, answer.low, answer.high, answer.kept) == (130, 130, 150, True)


def test_the_strawman_steps_down_from_a_seed_that_is_saturated():
    answer, tried = loads(Strawman, queue(137.0), seed_load=180.0)
    assert tried == [180, 160, 140, 120]
    assert (answer.rate, answer.low, answer.high) == (120, 120, 140)


def test_the_model_of_one_queue_finds_a_queue_at_its_first_prediction():
    answer, tried = loads(model, queue(437.0))
    assert tried == [50, 100, pytest.approx(437)]
    assert answer.kept


@pytest.mark.parametrize("policy", [model, polynomial], ids=["model", "polynomial"])
def test_the_model_that_does_not_converge_is_an_answer_that_says_so(policy):
    answer, tried = loads(policy, lambda load: (0.3 if load < 437 else 30) + load / 874)
    assert len(tried) <= MOST_LOADS
    assert not answer.kept
    assert [finding.kind for finding in answer.findings] == ["model-misfit"]
    assert answer.low <= 437 <= answer.high


def test_a_prediction_that_returns_is_known_again_in_spite_of_rounding():
    answer, tried = loads(polynomial, lambda load: (0.3 if load < 437 else 30) + load / 874)
    assert len({round(load, 3) for load in tried}) == len(tried)
    assert "predicts 611.8/s again" in answer.why


def test_a_curve_that_falls_is_followed_by_doubling():
    _, tried = loads(model, lambda load: 0.5 if load < 60 else 0.4 if load < 150 else queue(437.0)(load))
    assert tried[:3] == [50, 100, 200]


rates = st.floats(10.0, 1e4)


@given(rates, st.floats(0.01, 0.9), st.floats(0.05, 0.95), st.floats(0.05, 0.95))
def test_a_queue_is_predicted_from_any_two_of_its_loads(peak, idle, one, other):
    if abs(one - other) < 0.01:
        return
    share = queue(peak, idle)
    tuples = [Reading(peak * factor, (share(peak * factor),)) for factor in (one, other)]
    assert by_queue(tuples) == pytest.approx(peak, rel=1e-6)


@given(rates, st.floats(0.0, 0.5), st.floats(0.1, 0.9), st.lists(st.floats(0.05, 2), min_size=3, max_size=3))
def test_a_parabola_is_predicted_from_any_three_of_its_loads(peak, idle, straight, factors):
    low, middle, high = sorted(factors)
    if min(middle - low, high - middle) < 0.02:
        return

    def share(x):
        return idle + (1 - idle) * (straight * x + (1 - straight) * x * x)

    tuples = [Reading(peak * x, (share(x),)) for x in factors]
    assert by_parabola(tuples) == pytest.approx(peak, rel=1e-6)


def test_a_parabola_may_be_a_line_or_never_reach_the_limit():
    def through(*shares):
        return by_parabola([Reading(100.0 * (i + 1), (share,)) for i, share in enumerate(shares)])

    assert through(0.2, 0.4, 0.6) == pytest.approx(500)
    assert through(0.2, 0.3, 0.2) is None
    assert through(0.5, 0.5, 0.5) is None


def test_the_polynomial_takes_three_loads_before_it_predicts():
    def share(load):
        return 0.1 + 0.9 * (load / 437) ** 2

    answer, tried = loads(polynomial, share)
    assert tried == [50, 100, 200, pytest.approx(437)]
    assert answer.kept
