"""peak/policies/paper.py: Algorithm 2 of "Cutting Corners", section 3.3."""

import itertools

import numpy as np
import pytest

from etude.peak.policies.paper import (
    MOST_AT_A_LOAD,
    Stopping,
    Strawman,
    accuracy,
    binsearch,
    linear,
    model,
    polynomial,
)
from etude.peak.search import search
from etude.peak.slo_ratio import Reading
from etude.peak.task import Answer, TrialRequest
from support.standin import StandIn, decisions, queue, task, trial, trials

EVERY = {
    "strawman": Strawman,
    "linear": linear,
    "binsearch": binsearch,
    "model": model,
    "polynomial": polynomial,
}
each = pytest.mark.parametrize("policy", EVERY.values(), ids=EVERY.keys())
of_algorithm_2 = pytest.mark.parametrize(
    "policy", [linear, binsearch, model], ids=["linear", "binsearch", "model"]
)


def to(load):
    return Stopping("to", lambda task, visits: load)


def noise(seed, cv):
    rng = np.random.default_rng(seed)
    return iter(rng.gamma(1 / cv**2, cv**2, 3000).tolist())


@each
def test_the_first_load_is_the_seed_else_the_lowest(policy):
    assert policy().decide(task(), []).load == 50
    assert policy().decide(task(seed_load=300.0), []).load == 300
    assert policy().decide(task(seed_load=9000.0), []).load == 5000


@of_algorithm_2
def test_a_load_takes_two_trials_of_the_run_length(policy):
    request = policy().decide(task(runlength_s=90.0), trials((50, [0.2])))
    assert (request.load, request.runlength_s) == (50, 90.0)


def test_without_overlap_the_next_load_is_tried():
    assert to(400.0).decide(task(), trials((50, [0.2, 0.21]))).load == 400


def test_with_overlap_more_trials_are_made_at_the_load():
    request = to(400.0).decide(task(), trials((50, [0.8, 1.1])))
    assert request.load == 50
    assert "0.95" in request.why
    assert to(400.0).decide(task(), trials((50, [0.8, 1.1, 0.7, 0.75, 0.72, 0.74, 0.7, 0.71]))).load == 400


def test_the_accuracy_that_was_asked_for_ends_the_search():
    made = trials((100, [0.5, 0.51]), (300, [2.0, 2.1]), (200, [0.98, 1.0, 1.01]))
    answer = to(400.0).decide(task(), made)
    assert (answer.rate, answer.low, answer.high, answer.confidence, answer.kept) == (
        200,
        100,
        300,
        0.95,
        True,
    )
    assert isinstance(to(400.0).decide(task(accuracy=0.99), made), TrialRequest)


def test_accuracy_is_one_less_the_half_width_over_the_mean():
    visit = Reading(1.0, (0.9, 1.0, 1.1))
    low, high = 1 - visit.half_width(0.9), 1 + visit.half_width(0.9)
    assert accuracy(task(confidence=0.9), visit) == pytest.approx(1 - (high - low) / (high + low))


def test_accuracy_is_not_believed_of_few_trials_that_are_not_normal():
    shares = [1.0, 1.001, 0.999, 1.0005, 0.9995, 1.0002, 1.06]
    assert isinstance(to(400.0).decide(task(), trials((200, shares))), TrialRequest)
    assert isinstance(to(400.0).decide(task(), trials((200, shares[:-1]))), Answer)
    assert isinstance(to(400.0).decide(task(), trials((200, shares[:-1] * 5 + [1.06]))), Answer)


def test_a_mean_that_a_hundred_trials_do_not_tell_ends_the_search_without_its_promise():
    shares = list(itertools.islice(itertools.cycle([0.1, 0.1, 2.8]), MOST_AT_A_LOAD))
    answer = to(400.0).decide(task(), trials((200, shares)))
    assert (answer.rate, answer.kept) == (200, False)
    assert isinstance(to(400.0).decide(task(), trials((200, shares[:-1]))), TrialRequest)


def test_a_load_that_is_picked_again_ends_the_search_without_its_promise():
    answer = to(50.0).decide(task(), trials((50, [0.5, 0.5]), (100, [2.0, 2.0])))
    assert (answer.rate, answer.low, answer.high, answer.kept) == (75, 50, 100, False)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [({"limited": "generator"}, "generator-limited"), ({"windows": ()}, "no-windows")],
    ids=["generator", "no windows"],
)
@each
def test_two_trials_that_say_nothing_of_the_server_end_the_search(policy, changes, kind):
    spoilt = trial(400, 0.9, **changes)
    before = trials((50, [0.2, 0.2]), (100, [0.4, 0.4]), (200, [0.5, 0.5]))
    assert policy().decide(task(), [*before, spoilt]).load == 400
    assert policy().decide(task(), [spoilt]).load == 400
    answer = policy().decide(task(), [*before, spoilt, spoilt])
    assert [finding.kind for finding in answer.findings] == [kind]
    assert (answer.low, answer.kept) == (200, False)


@each
def test_a_server_that_dies_is_too_much(policy):
    answer = search(policy(), task(), Dies())
    assert [finding.kind for finding in answer.findings] == ["below-lowest"]
    assert (answer.rate, answer.high, answer.kept) == (None, 50, False)


class Dies:
    def run(self, request, enough):
        return trial(request.load, 1.0, windows=(), ended="died")


@each
def test_a_server_that_bears_all_is_above_the_highest(policy):
    answer = search(policy(), task(step=1000.0), StandIn(lambda load: 0.2))
    assert [finding.kind for finding in answer.findings] == ["above-highest"]
    assert (answer.rate, answer.low, answer.kept) == (None, 5000, False)


@each
def test_the_peak_of_a_queue_is_found(policy):
    for peak in (63.0, 437.0, 1311.0):
        bench = StandIn(queue(peak), noise(int(peak), 0.05))
        answer = search(policy(), task(), bench)
        assert answer.rate == pytest.approx(peak, rel=0.1, abs=20 if policy is Strawman else 0)
        assert answer.low <= answer.rate <= answer.high
        assert answer.kept


@each
def test_the_same_trials_give_the_same_decisions_to_a_policy_that_was_begun_anew(policy):
    made = []
    bench = StandIn(queue(180.0), noise(7, 0.1))
    kept = policy()
    answer = search(kept, task(), bench, made=lambda request, trial: made.append(trial))
    assert decisions(policy, task(), made) == [*bench.offers, answer]
    assert kept.decide(task(), made[:3]) == bench.offers[3]


@pytest.mark.parametrize("policy", [Strawman, linear, binsearch], ids=["strawman", "linear", "binsearch"])
def test_whole_loads_are_asked_for_where_only_those_are_meant(policy):
    of = task(lowest=1.0, highest=64.0, whole=True, step=None)
    bench = StandIn(lambda load: 0.5 if load < 13 else 2.0)
    answer = search(policy(), of, bench)
    assert all(load == int(load) for load in bench.loads)
    assert (answer.rate, answer.low, answer.high, answer.kept) == (12, 12, 13, True)


@pytest.mark.parametrize("policy", [model, polynomial], ids=["model", "polynomial"])
def test_predictions_are_made_whole(policy):
    bench = StandIn(queue(437.0))
    answer = search(policy(), task(whole=True), bench)
    assert all(load == int(load) for load in bench.loads)
    assert answer.rate == pytest.approx(437, abs=4)


@each
def test_the_best_so_far_is_given_when_there_is_no_more_time(policy):
    answer = search(policy(), task(budget_s=1400.0), StandIn(queue(437.0)))
    assert not answer.kept
    assert "budget" in answer.why
    assert answer.low <= 437 <= answer.high


@each
def test_no_trial_is_ended_early(policy):
    request = policy().decide(task(), [])
    assert not policy().enough(task(), [], request, trial(50, 40.0).windows * 18)
