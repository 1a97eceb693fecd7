"""A calibration finds how a server's trials vary, and what they have to be for an accuracy."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import InputError
from etude.peak.calibrate import FACTORS, Calibration, calibrate, plan, trials_for
from etude.peak.harnesses.curves import CURVES
from etude.peak.harnesses.simulated import NOISE, QUIET, SimulatedServer
from etude.peak.slo_ratio import Reading
from etude.peak.task import Criterion, Goal, Task, Trial, TrialRequest
from etude.peak.window import Window
from support.policy_simulator import trial

TASK = Task(Goal((Criterion("mean", 0.040),)), 10, 5000)


def never(windows):
    return False


def made(rounds: int = 5, factors=FACTORS, **server) -> list[Trial]:
    bench = SimulatedServer(CURVES["mm1"], 1000, 1, **server)
    return [bench.run(request, never) for request in plan(TASK, 1000, rounds=rounds, factors=factors)]


def test_a_plan_makes_five_long_trials_at_each_load_round_by_round():
    offers = plan(TASK, 1000)
    loads = [request.load for request in offers]
    assert sorted(loads[:5]) == sorted(loads[20:]) == [300, 500, 700, 900, 1000]
    assert len(offers) == 25
    assert {request.runlength_s for request in offers} == {300}
    assert len({tuple(loads[at : at + 5]) for at in range(0, 25, 5)}) > 1
    assert plan(TASK, 1000) == offers
    assert "90%" in next(request.why for request in offers if request.load == 900)


def test_a_plan_without_windows_makes_trials_of_each_length():
    offers = plan(TASK, 1000, windows=False, factors=(0.3, 0.9), rounds=2)
    assert sorted((o.load, o.runlength_s) for o in offers) == sorted(
        2 * [(load, length) for load in (300, 900) for length in (50, 100, 150, 300)]
    )


def test_a_plan_keeps_to_loads_that_may_be_asked_for():
    task = replace(TASK, lowest=2, highest=9, whole=True)
    assert {request.load for request in plan(task, 6)} == {2, 3, 4, 5, 6}
    assert {request.load for request in plan(task, 3)} == {2, 3}


@pytest.mark.parametrize("peak", [1.0, 1e6, math.nan])
def test_a_peak_outside_the_range_is_refused_in_one_line(peak):
    with pytest.raises(InputError, match=r"^nothing to calibrate[^\n]*$"):
        plan(TASK, peak)


def test_the_fixed_cost_is_that_of_the_trials():
    assert calibrate(TASK, 1000, made(fixed_cost_s=33)).fixed_cost_s == pytest.approx(33)


def test_variance_grows_with_load_and_falls_with_run_length_as_the_law_of_the_server_says():
    found = calibrate(TASK, 1000, made(rounds=300))
    assert [at.factor for at in found.loads] == pytest.approx(FACTORS)
    for at in found.loads:
        for spread in at.spreads:
            # The share of the start's transient that falls into a trial depends on its length.
            started = NOISE.startup_s(at.factor) * (1 - math.exp(-spread.runlength_s / 20))
            white = NOISE.white_s(at.factor)
            cv = math.sqrt(0.02**2 + (started / spread.runlength_s) ** 2 + white / spread.runlength_s)
            assert spread.cv == pytest.approx(cv, rel=0.15)
            assert spread.cv_low < spread.cv < spread.cv_high
        assert at.law.cv(180) == pytest.approx(NOISE.cv(at.factor, 180), rel=0.08)
    at_180 = [at.law.cv(180) for at in found.loads[2:]]
    assert at_180 == sorted(at_180)


def test_means_are_those_of_the_curve():
    found = calibrate(TASK, 1000, made(rounds=100))
    for at in found.loads:
        truth = CURVES["mm1"].response_s(at.factor) / 0.040
        assert at.spreads[-1].mean == pytest.approx(truth, rel=0.05)


def test_shorter_trials_are_the_beginnings_of_the_long_ones():
    trials = made(rounds=2)
    at = next(at for at in calibrate(TASK, 1000, trials).loads if at.factor == 0.9)
    same = [trial for trial in trials if trial.load == 900]
    for spread in at.spreads:
        count = round(spread.runlength_s / 10)
        assert spread.values == pytest.approx([TASK.goal.reading(t.windows[:count]) for t in same])
    assert at.spreads[0].runlength_s == 10
    assert at.spreads[-1].runlength_s == 300


def test_trials_without_windows_are_spread_by_their_own_length():
    bench = SimulatedServer(CURVES["mm1"], 1000, 1, window_s=1000)
    trials = [bench.run(request, never) for request in plan(TASK, 1000, windows=False)]
    assert {len(trial.windows) for trial in trials} == {1}
    for at in calibrate(TASK, 1000, trials).loads:
        assert [spread.runlength_s for spread in at.spreads] == [50, 100, 150, 300]
        assert all(len(spread.values) == 5 for spread in at.spreads)


def test_the_suggestion_is_the_least_bench_time_near_the_peak():
    found = calibrate(TASK, 1000, made(rounds=300, factors=(1.0,)))
    suggested = found.suggested
    truth = {}
    for length in range(10, 310, 10):
        count = trials_for(NOISE.cv(1.0, length), 0.9, 0.95)
        truth[length] = count * (length + 170)
    assert suggested.bench_s == min(need.bench_s for need in found.loads[0].needs)
    assert suggested.bench_s == pytest.approx(min(truth.values()), rel=0.15)
    assert suggested.bench_s == pytest.approx(suggested.trials * (suggested.runlength_s + 170))


def test_a_dear_start_suggests_longer_trials():
    short = calibrate(TASK, 1000, made(rounds=100, factors=(1.0,), fixed_cost_s=0.0)).suggested
    long = calibrate(TASK, 1000, made(rounds=100, factors=(1.0,), fixed_cost_s=900.0)).suggested
    assert short.runlength_s < long.runlength_s
    assert short.trials > long.trials


def test_a_calibration_says_how_little_five_trials_tell():
    counted = []
    for seed in range(60):
        bench = SimulatedServer(CURVES["mm1"], 1000, seed)
        trials = [bench.run(request, never) for request in plan(TASK, 1000, factors=(1.0,))]
        need = calibrate(TASK, 1000, trials).loads[0].needs[-1]
        assert need.trials_low <= need.trials <= need.trials_high
        counted.append(need.trials_low <= trials_for(NOISE.cv(1.0, 300), 0.9, 0.95) <= need.trials_high)
    assert need.trials_high > 3 * need.trials_low
    assert np.mean(counted) > 0.9


def test_a_law_tells_the_variance_of_long_trials_at_least_as_well_as_they_do_themselves():
    bench = SimulatedServer(CURVES["mm1"], 1000, 3)
    found = []
    for _ in range(60):
        trials = [bench.run(request, never) for request in plan(TASK, 1000, factors=(0.3,))]
        at = calibrate(TASK, 1000, trials).loads[0]
        found.append((at.law.cv(300), at.spreads[-1].cv))
    off = np.std((np.array(found) / NOISE.cv(0.3, 300)) ** 2, axis=0)
    assert off[0] < off[1]


def test_where_no_number_of_trials_is_enough_the_longest_run_is_named():
    task = replace(TASK, accuracy=0.9999)
    suggested = calibrate(task, 1000, made()).suggested
    assert (suggested.trials, suggested.runlength_s, suggested.bench_s) == (None, 300, math.inf)


def test_fewer_trials_are_needed_the_longer_they_are():
    for at in calibrate(TASK, 1000, made(rounds=50)).loads:
        counts = [need.trials for need in at.needs]
        assert counts == sorted(counts, reverse=True)
        assert counts[-1] >= 2


def test_a_server_without_noise_needs_two_of_the_shortest():
    suggested = calibrate(TASK, 1000, made(rounds=2, noise=QUIET)).suggested
    assert (suggested.trials, suggested.runlength_s) == (2, 10)


@pytest.mark.parametrize(("rho", "runlength_s"), [(0.3, 90), (0.9, 90), (0.9, 120)])
def test_the_papers_five_trials_follow_from_their_readings(rho, runlength_s):
    """The paper's accuracies of five trials, rounded down to a tenth of a percent: five are what they need."""
    accuracy = {(0.3, 90): 0.870, (0.9, 90): 0.851, (0.9, 120): 0.870}[rho, runlength_s]
    assert trials_for(NOISE.cv(rho, runlength_s), accuracy - 0.0005, 0.95) == 5


@given(st.floats(0.001, 2.0), st.floats(0.5, 0.99), st.floats(0.5, 0.99))
def test_the_number_of_trials_is_the_least_whose_interval_is_narrow_enough(cv, accuracy, confidence):
    count = trials_for(cv, accuracy, confidence)

    def accurate(n: int) -> bool:
        alternating = np.resize([-1.0, 1.0], n)
        alternating = (alternating - alternating.mean()) / alternating.std(ddof=1)
        return Reading(1.0, tuple(1 + cv * alternating)).half_width(confidence) <= 1 - accuracy + 1e-9

    assert count is None or accurate(count)
    assert count == 2 or not accurate((count or 1001) - 1)


def test_what_a_thousand_trials_do_not_give_is_not_promised():
    assert trials_for(1.0, 0.999, 0.95) is None


def test_trials_of_the_generator_and_loads_of_one_trial_are_left_out():
    trials = made(rounds=3)
    slow = [replace(trial, limited="generator") if trial.load == 900 else trial for trial in trials]
    lone = [trial for trial in slow if trial.load != 300] + [trial for trial in slow if trial.load == 300][:1]
    found = calibrate(TASK, 1000, lone)
    assert [at.factor for at in found.loads] == [0.5, 0.7, 1.0]


def test_a_calibration_that_was_cut_off_tells_what_it_knows():
    found = calibrate(TASK, 1000, made()[:12])
    assert isinstance(found, Calibration)
    assert all(len(spread.values) in (2, 3) for at in found.loads for spread in at.spreads)


def test_trials_that_died_tell_of_the_lengths_that_they_reached():
    trials = [trial for trial in made(rounds=3) if trial.load == 500]
    trials[0] = replace(trials[0], windows=trials[0].windows[:5], ended="early")
    at = calibrate(TASK, 1000, trials).loads[0]
    counts = {spread.runlength_s: len(spread.values) for spread in at.spreads}
    assert counts[10] == 3
    assert counts[300] == 2


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_trials_are_refused_in_one_line(count):
    with pytest.raises(InputError, match=r"^[^\n]*two trials[^\n]*$"):
        calibrate(TASK, 1000, made()[:count])


def test_windows_without_a_reading_are_left_out():
    blank = Trial(500, 300, tuple(Window(10, 5, 5, 0) for _ in range(30)), 470)
    with pytest.raises(InputError, match="two trials"):
        calibrate(TASK, 1000, [blank, blank])


def test_a_calibration_uses_any_bench():
    offers: list[TrialRequest] = []

    class Bench:
        def run(self, request, enough):
            offers.append(request)
            return Trial(request.load, 300, (Window(300, 9, 9, 0, 0.010 + 1e-4 * len(offers)),), 310)

    bench = Bench()
    found = calibrate(TASK, 1000, [bench.run(request, never) for request in plan(TASK, 1000, rounds=2)])
    assert len(offers) == 10
    assert found.fixed_cost_s == 10
    assert [spread.runlength_s for at in found.loads for spread in at.spreads] == [300] * 5


def test_a_calibration_finds_the_warm_up_that_nobody_declared():
    warming = [trial(500.0, [0.9, 0.8, 0.7] + [0.5] * 9) for _ in range(3)]
    assert calibrate(TASK, 1000, warming).warm_up_s == 30
    assert calibrate(TASK, 1000, [trial(500.0, [0.5] * 12)] * 3).warm_up_s == 0
