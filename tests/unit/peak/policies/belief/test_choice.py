"""The next load is the most informative one for its time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.peak.policies.belief import choice
from etude.peak.policies.belief.choice import GROWTH, forecast_of, next_load, scatter
from etude.peak.policies.belief.evidence import FLOOR, PRIOR_SCATTER, Evidence
from etude.peak.policies.belief.grid import Belief, posterior_of
from etude.peak.task import Trial
from support.golden import Golden
from support.policy_simulator import mm1, task, trial
from support.profiles import examples

KNOWN = [Evidence(300, math.log(0.25), 0.001, 10, 0), Evidence(600, math.log(4.0), 0.01, 10, 1)]


def made(overhead_s: float) -> list[Trial]:
    return [Trial(300, 180.0, trial(300, [0.25] * 10).windows, 100 + overhead_s)]


def belief(known: list[Evidence] = KNOWN) -> Belief:
    return posterior_of(task(), known)


def test_the_most_that_lies_within_one_rate_is_that_of_the_best_answer() -> None:
    found = choice._most_in(belief().joint.sum(axis=0)[:, None], belief(), 0.1)
    assert float(found[0]) == pytest.approx(belief().best_rate(0.1)[1], abs=2e-3)


def test_of_a_step_of_the_grid_a_share_counts() -> None:
    coarse = Belief(0.05 * np.arange(10), np.full((1, 10), 0.1), 0.0)
    within = math.tanh(2.5 * 0.05 / 2)  # two and a half steps wide
    assert choice._most_in(coarse.joint.sum(axis=0)[:, None], coarse, within)[0] == pytest.approx(0.25)


@settings(max_examples=examples(20))
@given(load=st.floats(100, 3000), variance=st.floats(0.001, 1.0))
def test_a_trial_is_never_expected_to_tell_less_than_nothing(load: float, variance: float) -> None:
    told = forecast_of(belief(), load, variance, 18, 0.1)
    assert told.bits > -1e-9
    assert belief().best_rate(0.1)[1] - 3e-3 <= told.sure <= 1 + 1e-9
    assert 2 - 1e-9 <= told.windows <= 18 + 1e-9


def test_a_trial_in_the_middle_tells_more_and_takes_longer_than_one_far_off() -> None:
    middle, far = (forecast_of(belief(), load, 0.1, 18, 0.1) for load in (belief().quantile(0.5), 2500.0))
    assert middle.sure > far.sure + 0.02
    assert middle.bits > far.bits + 0.1
    assert middle.windows > far.windows + 1
    assert far.windows == pytest.approx(2, abs=0.1)


def test_scatter_is_of_a_window_at_the_nearest_load() -> None:
    known = [Evidence(100, -1.0, 0.002, 10, 0), Evidence(400, -0.5, 0.04, 5, 1)]
    assert scatter(known, 120) == pytest.approx(0.02)
    assert scatter(known, 300) == pytest.approx(0.2)
    assert scatter([], 300) == PRIOR_SCATTER


def test_where_a_trial_costs_much_it_is_one_that_tells_more(golden: Golden) -> None:
    known = [Evidence(300, math.log(0.25), 0.05, 10, 0), Evidence(450, math.log(1.4), 0.05, 10, 1)]
    now = posterior_of(task(within=0.05), known)

    def told(overhead_s: float) -> choice.Forecast:
        load, why = next_load(task(within=0.05), now, known, made(overhead_s), 5000.0)
        golden(why)
        return forecast_of(now, load, scatter(known, load), 18, 0.05)

    dear, cheap = told(100_000.0), told(0.0)
    assert dear.windows > cheap.windows + 1
    assert dear.bits > cheap.bits


def test_no_load_is_offered_far_above_the_highest_that_was_fine(golden: Golden) -> None:
    known = [Evidence(100, math.log(0.1), 0.001, 10, 0)]
    load, why = next_load(task(), belief(known), known, made(100.0), 5000.0)
    assert load == pytest.approx(GROWTH * 100)
    golden(why)
    assert next_load(task(), belief(known), known, made(100.0), 200.0)[0] == 200


def test_where_all_was_too_much_it_goes_below_the_lowest_of_it() -> None:
    known = [Evidence(1000, math.log(1.05), 0.01, 10, 0)]
    load, _ = next_load(task(), belief(known), known, made(100.0), 5000.0)
    assert load <= 1000 / 1.1 + 1e-9
    # Even where more is likelier.
    seeded, unsure = task(seed_load=3000.0, seed_spread=0.1), [Evidence(1000, 0.01, 0.5**2, 3, 0)]
    assert next_load(seeded, posterior_of(seeded, unsure), unsure, made(100.0), 5000.0)[0] == pytest.approx(
        1000 / 1.1
    )


def test_while_little_is_sure_the_shape_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [Evidence(100, math.log(0.3), 0.001, 10, 0), Evidence(250, math.log(0.5), 0.01, 10, 1)]
    now = posterior_of(task(), known)

    def bits() -> float:
        load, _ = next_load(task(), now, known, made(100_000.0), 5000.0)
        return forecast_of(now, load, scatter(known, load), 18, 0.1).bits

    told = bits()
    monkeypatch.setattr(choice, "SLOW", math.inf)  # the gain in the answer alone
    assert told > bits() + 0.02


def test_a_load_that_was_nearly_tried_is_tried_again_for_the_rate_and_not_for_the_region() -> None:
    known = [Evidence(300, -1.0, 0.001, 10, 0)]
    assert choice._settled(task(), 302.0, known) == 300
    assert choice._settled(task(), 310.0, known) == 310
    assert choice._settled(task(promise="region"), 302.0, known) == 302
    assert choice._settled(task(whole=True, lowest=1.5, highest=9.5), 9.7, known) == 9
    assert choice._settled(task(whole=True, lowest=1.5, highest=9.5), 1.6, known) == 2


def test_for_the_region_it_is_the_load_that_is_likeliest_near_the_limit(golden: Golden) -> None:
    what = task(promise="region")
    load, why = next_load(what, belief(), KNOWN, made(100.0), 5000.0)
    golden(why)
    assert load == pytest.approx(belief().best_region(0.1)[0])


def test_a_predicted_peak_is_begun_with_beside_it_and_a_guessed_one_with_itself(golden: Golden) -> None:
    predicted = task(seed_load=400.0, seed_spread=0.05)
    load, why = next_load(predicted, posterior_of(predicted, []), [], [], 5000.0)
    assert 250 < load < 640
    guessed = task(seed_load=400.0)
    load, why_itself = next_load(guessed, posterior_of(guessed, []), [], [], 5000.0)
    assert load == 400
    golden(f"predicted: {why}\nguessed: {why_itself}")


def test_readings_at_the_ends_of_curves_are_foretold_without_noise_in_numbers() -> None:
    known = [Evidence(50, FLOOR, 0.0, 1, 0), Evidence(51, math.log(mm1(0.99)), 0.0, 1, 1)]
    told = forecast_of(belief(known), 5000.0, 0.0, 2, 0.1)
    assert np.isfinite([told.sure, told.bits, told.windows]).all()
