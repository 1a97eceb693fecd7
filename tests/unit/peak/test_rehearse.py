"""A rehearsal tells what searches cost and how often they are right, whatever the policy."""

import math
import os
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import stats

from etude.errors import InputError, MachineRefuses
from etude.peak.harnesses.curves import CURVES, TROUBLED
from etude.peak.harnesses.simulated import NOISE, QUIET, SimulatedServer
from etude.peak.rehearse import Place, bench_model_like, binomial_interval, rehearse
from etude.peak.slo_ratio import bracket, slo_ratios
from etude.peak.task import Answer, Criterion, Finding, Goal, Task, Trial, TrialRequest

TASK = Task(Goal((Criterion("mean", 0.040),)), 50, 5000, runlength_s=60.0)
SOME = [CURVES[name] for name in ("mm1", "ramp", "plateaus")]


@dataclass
class Halving:
    """Doubles, then halves a bracket to `width`; ends a trial after two windows that are clear."""

    width: float = 0.10
    kept: bool = True
    name: str = "halving"

    def decide(self, task, trials):
        fine, too_much = bracket(slo_ratios(task, trials))
        if too_much <= fine * (1 + self.width):
            return Answer(math.sqrt(fine * too_much), fine, too_much, 0.95, self.kept, "found")
        if math.isinf(too_much):
            return TrialRequest(
                min(2 * fine, task.highest) or task.seed_load or task.lowest, task.runlength_s, "up"
            )
        return TrialRequest(math.sqrt(fine * too_much) if fine else too_much / 2, task.runlength_s, "between")

    def enough(self, task, trials, request, windows):
        return len(windows) >= 2 and not 0.5 < task.goal.reading(windows) < 2

    def best(self, task, trials, why):
        fine, too_much = bracket(slo_ratios(task, trials))
        return Answer(None, fine, too_much, 0.95, False, why, (Finding("drifting", "it is said"),))


@dataclass
class Fixed:
    """Says what it was told."""

    rate: float
    name: str = "fixed"

    def decide(self, task, trials):
        return Answer(self.rate, 0.0, self.rate, task.confidence, True, "so it was told")


class Broken(Halving):
    def decide(self, task, trials):
        raise ZeroDivisionError


def test_a_rehearsal_says_what_searches_cost_and_how_often_they_are_right():
    told = rehearse(Halving(), TASK, SOME, 20, 7, processes=1)
    assert len(told.outcomes) == 60
    assert 0.2 < told.hours(0.25) < told.hours(0.5) < told.hours(0.75) < 2
    assert told.near.value > 0.7
    assert told.near.low < told.near.value < told.near.high
    assert told.kept.hits == 60
    for outcome in told.outcomes:
        rate = outcome.answer.rate
        assert outcome.near == (abs(rate / outcome.peak - 1) <= 0.10)
        assert outcome.covered == (outcome.answer.low <= outcome.peak <= outcome.answer.high)
        assert outcome.spent_s >= outcome.trials * (170 + 20)
        assert outcome.spent_s <= outcome.trials * (170 + 60)


def test_the_same_seed_gives_the_same_rehearsal_over_any_number_of_processes():
    here = rehearse(Halving(), TASK, SOME, 3, 7, processes=1)
    assert rehearse(Halving(), TASK, SOME, 3, 7, processes=2) == here
    other = rehearse(Halving(), TASK, SOME, 3, 8, processes=1)
    assert {o.peak for o in other.outcomes}.isdisjoint(o.peak for o in here.outcomes)


def test_progress_is_told_after_each_search():
    steps = []
    rehearse(Halving(), TASK, SOME[:1], 4, 7, processes=1, progress=lambda done, of: steps.append((done, of)))
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_peaks_are_spread_over_the_range_that_can_be_searched():
    told = rehearse(Fixed(1.0), TASK, SOME, 100, 7, processes=1)
    for of_curve in told.by_curve().values():
        places = np.log([outcome.peak / 75 for outcome in of_curve.outcomes]) / math.log(5000 / 1.5 / 75)
        assert np.all((places * 100).astype(int) == np.arange(100))


def test_outcomes_are_also_told_by_curve():
    told = rehearse(Halving(), TASK, SOME, 2, 7, processes=1)
    assert list(told.by_curve()) == ["mm1", "ramp", "plateaus"]
    assert sum((each.outcomes for each in told.by_curve().values()), ()) == told.outcomes


def test_answers_that_are_kept_are_counted_apart():
    told = rehearse(Fixed(1000.0), TASK, SOME[:1], 40, 7, processes=1)
    within = [o for o in told.outcomes if abs(1000 / o.peak - 1) <= 0.10]
    assert 0 < len(within) < 10
    assert told.kept_right.hits == told.near.hits == len(within)
    assert told.kept_right.of == 40
    unkept = rehearse(Halving(kept=False), TASK, SOME[:1], 5, 7, processes=1)
    assert (unkept.kept.hits, unkept.kept_right.of) == (0, 0)
    assert math.isnan(unkept.kept_right.value)
    assert (unkept.kept_right.low, unkept.kept_right.high) == (0.0, 1.0)


def test_the_region_promise_is_judged_by_the_true_response():
    task = replace(TASK, promise="region")
    told = rehearse(Halving(0.02), task, [CURVES["knee"]], 30, 7, processes=1)
    assert told.near.hits == 30
    assert told.kept_right == told.in_region
    assert told.in_region.hits < 20


def test_without_noise_a_halved_bracket_is_right_each_time():
    told = rehearse(Halving(0.02), TASK, SOME, 10, 7, place=Place(noise=QUIET), processes=1)
    assert told.near.hits == told.covered.hits == 30
    assert max(abs(o.answer.rate / o.peak - 1) for o in told.outcomes) < 0.01


def test_a_dearer_bench_is_a_dearer_search():
    cheap, dear = (
        rehearse(Halving(), TASK, SOME[:1], 4, 7, place=Place(fixed_cost_s=cost), processes=1)
        for cost in (0.0, 600.0)
    )
    for a, b in zip(cheap.outcomes, dear.outcomes, strict=True):
        assert b.spent_s == pytest.approx(a.spent_s + 600 * a.trials)


def test_a_task_with_a_seed_is_rehearsed_with_seeds_near_the_truth():
    seeds = []

    class Asks(Fixed):
        def decide(self, task, trials):
            seeds.append(task.seed_load)
            return super().decide(task, trials)

    told = rehearse(Asks(1.0), replace(TASK, seed_load=1000.0), SOME[:1], 300, 7, processes=1)
    off = np.log(np.array(seeds) / [outcome.peak for outcome in told.outcomes])
    assert off.std() == pytest.approx(0.25, rel=0.15)
    assert off.mean() == pytest.approx(0, abs=0.05)


def test_policies_draw_anew_in_each_search():
    seeds = []

    class Draws(Fixed):
        def decide(self, task, trials):
            seeds.append(task.seed)
            return super().decide(task, trials)

    rehearse(Draws(1.0), TASK, SOME, 5, 7, processes=1)
    assert len(set(seeds)) == 15


def test_limits_of_percentiles_are_rehearsed_as_limits_of_means():
    slow = replace(TASK, goal=Goal((Criterion("errors", 0.01), Criterion("percentile", 2.0, 95))))
    told = rehearse(Halving(0.02), slow, SOME[:1], 5, 7, place=Place(noise=QUIET), processes=1)
    assert told.near.hits == 5


def test_a_budget_ends_a_search_and_what_was_found_is_named():
    told = rehearse(Halving(), replace(TASK, budget_s=500.0), [TROUBLED["drifting"]], 5, 7, processes=1)
    assert told.kept.hits == 0
    assert told.near.hits == 0
    assert told.named("drifting").hits == told.named("stalling", "drifting").hits == 5
    assert told.named("stalling").hits == 0


@pytest.mark.parametrize(
    ("task", "servers", "searches"),
    [
        (TASK, [], 3),
        (TASK, SOME, 0),
        (replace(TASK, lowest=0), SOME, 3),
        (replace(TASK, highest=math.inf), SOME, 3),
    ],
    ids=["no server", "no search", "from nothing", "no highest"],
)
def test_nothing_to_rehearse_is_said_in_one_line(task, servers, searches):
    with pytest.raises(InputError, match=r"^[^\n]*rehearse[^\n]*$"):
        rehearse(Halving(), task, servers, searches, 1, processes=1)


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_in_a_policy_is_not_swallowed(processes):
    with pytest.raises(ZeroDivisionError):
        rehearse(Broken(), TASK, SOME, 2, 7, processes=processes)


class Killed(Halving):
    def decide(self, task, trials):
        os._exit(9)


def test_a_process_that_is_killed_is_said_in_one_line():
    with pytest.raises(MachineRefuses, match=r"^[^\n]+$"):
        rehearse(Killed(), TASK, SOME, 2, 7, processes=2)


@pytest.mark.parametrize(("hits", "of"), [(0, 0), (0, 7), (7, 7), (3, 7), (190, 200)])
def test_intervals_of_shares_are_the_exact_ones(hits, of):
    low, high = binomial_interval(hits, of, 0.95)
    if of:
        exact = stats.binomtest(hits, of).proportion_ci(0.95, "exact")
        assert (low, high) == pytest.approx((exact.low, exact.high), abs=1e-9)
    else:
        assert (low, high) == (0, 1)


@pytest.mark.parametrize("more", [1.0, 6.0], ids=["as the law", "six times"])
def test_a_place_like_an_earlier_search_costs_and_varies_as_it_did(more):
    noise = replace(NOISE, white=NOISE.white * more, white_most=NOISE.white_most * more, trial_sd=0.08)
    server = SimulatedServer(CURVES["mm1"], 300.0, 5, fixed_cost_s=33.0, window_s=5.0, noise=noise)
    trials = [
        server.run(TrialRequest(load, 180.0, ""), lambda windows: False)
        for load in 10 * (150.0, 200.0, 250.0)
    ]
    found = bench_model_like(TASK, trials, 300.0)
    assert found.fixed_cost_s == pytest.approx(33.0)
    assert found.window_s == 5.0
    assert found.noise.white == pytest.approx(noise.white, rel=0.35)
    assert found.noise.trial_sd == pytest.approx(0.08, rel=0.4)


def test_a_place_like_trials_without_windows_is_refused_in_one_line():
    with pytest.raises(InputError, match=r"^[^\n]*window[^\n]*$"):
        bench_model_like(TASK, [Trial(100.0, 10.0, (), 12.0, "not-made")], 300.0)
