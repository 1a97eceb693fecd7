"""Shapes, evidence, likelihood and the belief that comes of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.peak.policies.belief.answer_checks import is_target_met
from etude.peak.policies.belief.curves import family
from etude.peak.policies.belief.evidence import (
    CAP,
    FLOOR,
    PRIOR_BETWEEN,
    START,
    Evidence,
    between_trial_variance,
    evidence_of,
    window_evidence,
)
from etude.peak.policies.belief.grid import Belief, log_likelihood, posterior_of
from etude.peak.task import Trial
from support.policy_simulator import GOAL, mm1, task, trial
from support.profiles import examples


def evidence(load: float, reading: float, sd: float = 0.02, order: int = 0) -> Evidence:
    return Evidence(load, math.log(reading), sd**2, 10, order)


def test_every_shape_rises_and_is_at_the_limit_at_the_peak() -> None:
    shapes = family()
    assert shapes.weights.sum() == pytest.approx(1)
    assert (np.diff(shapes.table, axis=1) >= -1e-12).all()
    assert np.abs(shapes.log_readings(np.array([0.0]))).max() < 1e-3
    assert shapes.table.min() >= FLOOR
    assert shapes.table.max() <= CAP


def test_shapes_are_their_formulas() -> None:
    shapes = family()
    at = shapes.log_readings(np.log([0.5]))[:, 0]
    assert math.exp(at[shapes.names.index("mm1 0.15")]) == pytest.approx(
        1 / (1 / 0.15 - (1 / 0.15 - 1) / 2), rel=1e-3
    )
    assert math.exp(at[shapes.names.index("power 0.3 2")]) == pytest.approx(0.3 + 0.7 / 4, rel=1e-3)


def test_waiting_is_erlangs() -> None:
    from etude.peak.policies.belief.curves import _waiting

    assert _waiting(np.array([0.6]), 1)[0] == pytest.approx(0.6)  # one server: it waits when that is busy
    assert _waiting(np.array([0.5]), 2)[0] == pytest.approx(1 / 3)


def test_far_beyond_the_limit_higher_is_not_less_likely() -> None:
    expected = np.array([[CAP]])
    assert log_likelihood(expected, math.log(40), 0.01) == log_likelihood(expected, CAP, 0.01)
    fine = np.array([[0.0]])
    assert (
        log_likelihood(fine, math.log(40), 0.01)
        < log_likelihood(fine, CAP, 0.01)
        < log_likelihood(fine, 0.0, 0.01)
    )


def test_slack_forgives_only_slowness() -> None:
    expected = np.array([[-1.0]])
    best = log_likelihood(expected, -1.0, 0.01)
    assert log_likelihood(expected, -0.5, 0.01, slack=0.6) == best
    assert log_likelihood(expected, -1.5, 0.01, slack=0.6) < best


def test_more_windows_are_surer_and_wilder_ones_less_sure() -> None:
    def within(*readings: float) -> float:
        found = window_evidence(GOAL, 100, trial(100, readings).windows, 0)
        assert found is not None
        return found.within

    assert within(*[0.5] * 12) < within(*[0.5] * 4) < within(0.5, 0.5)
    assert within(*[0.2, 0.8] * 6) > within(*[0.45, 0.55] * 6)
    # Windows that go together tell less than their number.
    assert within(*[0.3] * 6, *[0.7] * 6) > within(*[0.3, 0.7] * 6)


def test_a_trial_that_died_is_as_bad_as_can_be_and_one_of_the_generator_is_none() -> None:
    died, short = Trial(100, 180.0, (), 170.0, "died"), trial(90, [0.1] * 4, limited="generator")
    (known,) = evidence_of(task(), [short, died])
    assert (known.load, known.order, known.value) == (100, 1, pytest.approx(math.log(50)))


def test_how_far_trials_differ_is_learned_from_repeated_ones() -> None:
    assert between_trial_variance([evidence(100, 0.5), evidence(200, 0.9)]) == pytest.approx(PRIOR_BETWEEN)
    assert (
        between_trial_variance([evidence(100, 0.5), evidence(100, 0.8), evidence(100, 0.4)])
        > 10 * PRIOR_BETWEEN
    )


@settings(max_examples=examples(25))
@given(peak=st.floats(80, 3000))
def test_exact_readings_lead_to_the_peak(peak: float) -> None:
    loads = [0.5 * peak, 0.8 * peak, 0.95 * peak, 1.05 * peak]
    known = [evidence(load, mm1(load / peak), order=n) for n, load in enumerate(loads)]
    belief = posterior_of(task(), known)
    rate, sure = belief.best_rate(0.1)
    assert belief.quantile(0.5) == pytest.approx(peak, rel=0.03)
    assert rate == pytest.approx(peak, rel=0.08)
    assert sure > 0.9
    assert belief.quantile(0.001) < peak < belief.quantile(0.999)
    assert float(belief.below(belief.quantile(0.3))) == pytest.approx(0.3, abs=0.01)


def test_nothing_is_believed_of_the_shape_by_a_trial_far_from_the_limit() -> None:
    known = [evidence(100, 0.12), evidence(200, 0.14, order=1), evidence(300, 0.16, order=2)]
    belief = posterior_of(task(), known)
    assert belief.quantile(0.975) / belief.quantile(0.025) > 3


def test_an_update_is_what_all_trials_together_give() -> None:
    known = [evidence(100, 0.3), evidence(300, 5.0, order=1)]
    more = evidence(200, 0.8, order=2)
    one = posterior_of(task(), known).updated(more)
    two = posterior_of(task(), [*known, more])
    assert one.best_rate(0.1)[0] == pytest.approx(two.best_rate(0.1)[0], rel=0.03)


def test_a_seed_draws_the_belief_and_gives_way_to_trials() -> None:
    seeded = task(seed_load=400.0)
    assert posterior_of(seeded, []).quantile(0.5) == pytest.approx(400, rel=0.2)
    known = [evidence(1000, 0.6), evidence(1300, 4.0, order=1)]
    assert posterior_of(seeded, known).quantile(0.1) > 950
    assert 1000 < posterior_of(seeded, known).quantile(0.5) < 1300


def test_a_promise_is_not_met_with_one_trial_near_the_answer() -> None:
    what = task(within=0.3, confidence=0.7)
    known = [evidence(100, 0.97), evidence(2000, 20.0, order=1)]
    one = is_target_met(what, posterior_of(what, known), known)
    assert one.confidence > what.confidence
    assert not one.met
    two = [*known, evidence(105, 1.02, order=2)]
    assert is_target_met(what, posterior_of(what, two), two).met


def test_the_start_of_a_trial_is_left_out_once_there_is_enough_after_it() -> None:
    def read(count: int) -> Evidence:
        found = window_evidence(GOAL, 100, trial(100, [0.5, 0.5, *[0.1] * (count - 2)]).windows, 0)
        assert found is not None
        return found

    assert read(4).value > math.log(0.25)
    assert read(12).value == pytest.approx(math.log(0.1), abs=1e-6)
    # What is left of the transient is small: less than all of it over all windows.
    assert read(12).within < (START / 12) ** 2


def test_few_windows_of_a_small_load_are_surer_than_as_few_near_the_limit() -> None:
    low, near = (window_evidence(GOAL, 100, trial(100, [each] * 2).windows, 0) for each in (0.1, 1.0))
    assert low is not None
    assert near is not None
    assert near.within - low.within > 0.03


def test_the_variance_of_a_reading_is_that_of_its_law() -> None:
    values = np.linspace(-30, 30, 200_001)
    likely = np.exp([float(log_likelihood(np.array(0.0), value, 0.01)) for value in values[::10]])
    assert float((likely @ values[::10] ** 2) / likely.sum()) == pytest.approx(0.01, rel=0.02)


@pytest.mark.parametrize("deviations", [-3.0, 0.5])
def test_a_miss_is_in_units_of_its_own_spread(deviations: float) -> None:
    joint = np.zeros((len(family().names), 2))
    joint[3, 0] = 1.0
    belief = Belief(np.log([100.0, 101.0]), joint, 0.0)
    at = Evidence(100.0, deviations * 0.1, 0.1**2, 10, 0)
    assert belief.misses([at])[0] == pytest.approx(deviations, abs=0.02)


def test_the_region_is_promised_with_less_doubt_than_the_rate() -> None:
    class Sure(Belief):
        def best_rate(self, within: float) -> tuple[float, float]:
            return 100.0, 0.97

        def best_region(self, width: float) -> tuple[float, float]:
            return 100.0, self.between

    known = [evidence(100, 0.98), evidence(101, 1.01, order=1)]
    none = np.zeros(0)
    assert is_target_met(task(), Sure(none, none, 0.0), known).met
    assert not is_target_met(task(promise="region"), Sure(none, none, 0.97), known).met
    assert is_target_met(task(promise="region"), Sure(none, none, 0.99), known).met


def test_trials_of_one_window_are_as_sure_as_repeats_agree() -> None:
    def within(*readings: float) -> float:
        single = [trial(100, [each]) for each in readings]
        return evidence_of(task(), [*single, trial(200, [0.5])])[-1].within

    alone = within(0.3)
    assert within(0.3, 0.3) == pytest.approx(alone / 2)
    assert within(*[0.3, 0.31] * 8) < alone / 10
    assert within(0.3, 0.9, 0.2, 1.2) > within(0.3, 0.3, 0.3, 0.3)
    longer = [trial(200, [0.5] * 6)]
    same, other = (evidence_of(task(), [*made, *longer])[-1] for made in ([], [trial(100, [0.3])] * 5))
    assert same.within == other.within
