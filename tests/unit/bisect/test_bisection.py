"""Whole bisections of simulated histories, answers, and what is known after an interruption."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.bisect.bisection import Bisection, Build, Run, Setting
from etude.bisect.simulated import History, Outcome, bisect, drawn_history, is_wrong, noise, outlook_of
from etude.bisect.verdict import Answer, answer_of, credible_range
from unit.bisect.test_next_block import ends_only

EASY = History(64, 0.05, 37, 0.01, "independent", frozenset())


def outcome(history: History, seed: int = 1) -> Outcome:
    return bisect(history, np.random.default_rng(seed), smallest=0.02)


@pytest.mark.parametrize("kind", ["independent", "dependent", "drift", "days", "outliers", "all"])
def test_the_commit_is_named_with_every_kind_of_noise(kind: str) -> None:
    found = outcome(replace(EASY, kind=kind))
    assert (found.answer.kind, found.answer.first) == ("commit", 37)
    assert found.answer.probability >= 0.95


def test_no_step_is_named_where_there_is_none() -> None:
    assert outcome(replace(EASY, step=0.0, place=64)).answer.kind == "none"


def test_a_step_among_broken_builds_is_a_range() -> None:
    found = outcome(replace(EASY, broken=frozenset(range(35, 40))))
    assert (found.answer.kind, found.answer.first, found.answer.last) == ("range", 35, 40)


def test_few_of_many_histories_are_wrong() -> None:
    """3 of 132 were, of histories drawn in this way; 40 of these are a sample."""
    wrong = 0
    for seed in range(40):
        random = np.random.default_rng([7, seed])
        history = replace(drawn_history(random), cv=0.01)
        wrong += is_wrong(history, bisect(history, random, smallest=0.008).answer)
    assert wrong <= 4


def test_trials_are_far_fewer_than_two_measured_to_the_same_precision() -> None:
    """Each of the 6 halvings alone, by a test of 5 % at 95 % power, takes 2 × 13 × (cv / step)² trials."""
    history = replace(EASY, cv=0.05, step=0.03)
    assert outcome(history).trials < 6 * 2 * 13 * (0.05 / 0.03) ** 2


def drive(state: Bisection, history: History, offsets: np.ndarray, until: int = 10**9) -> Answer | None:
    while not isinstance(action := state.action(), Answer):
        if isinstance(action, Build):
            if action.commit in history.broken:
                state.add_failure(action.commit)
            else:
                state.add_build(action.commit, 1.0)
        elif state.trials >= until:
            return None
        else:
            state.add_trial(action, history.level(action.commit) + float(offsets[state.trials]), 1.0)
    return action


@pytest.mark.parametrize("killed_after", [1, 5, 9, 13])
def test_an_interrupted_bisection_ends_at_the_same_commit(killed_after: int) -> None:
    history = replace(EASY, broken=frozenset((30, 33)))
    offsets = noise(history, np.random.default_rng(4), 5000)
    setting = Setting(history.count, 0.02, seed=3)
    whole = Bisection(setting)
    answer = drive(whole, history, offsets)
    assert answer is not None
    first = Bisection(setting)
    assert drive(first, history, offsets, killed_after) is None
    again = Bisection(setting)
    for commit, seconds in first.built.items():
        again.add_build(commit, seconds)
    evidence = first.evidence
    for place in range(first.trials):
        run = Run(int(evidence.commits[place]), int(evidence.blocks[place]))
        again.add_trial(run, float(evidence.values[place]), 1.0)
    again.session = 1
    resumed = drive(again, history, offsets)
    assert resumed is not None
    assert (resumed.kind, resumed.first) == (answer.kind, answer.first) == ("commit", 37)


def test_a_failing_commit_takes_its_trials_with_it() -> None:
    state = Bisection(Setting(64, 0.02, seed=1))
    drive(state, EASY, noise(EASY, np.random.default_rng(1), 5000), 12)
    middle = int(state.evidence.commits.max() - 1) if state.trials else 0
    inner = [int(c) for c in np.unique(state.evidence.commits) if 0 < c < 63]
    state.add_failure(inner[0] if inner else middle)
    assert inner[0] not in state.evidence.commits
    assert not isinstance(state.action(), Answer)


def test_an_end_that_is_broken_leaves_nothing_to_do() -> None:
    state = Bisection(Setting(8, 0.02))
    state.add_failure(7)
    answer = state.action()
    assert isinstance(answer, Answer)
    assert answer.kind == "undecided"


def test_the_outlook_grows_with_the_noise() -> None:
    costs = []
    for cv in (0.005, 0.05):
        history = replace(EASY, cv=cv)
        state = Bisection(Setting(64, 0.02, seed=1))
        drive(state, history, noise(history, np.random.default_rng(1), 5000), 12)
        costs.append(outlook_of(state))
    assert costs[0].trials < costs[1].trials
    assert all(each.seconds <= each.longest_s for each in costs)


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=12), st.floats(0.05, 0.99))
def test_the_credible_range_is_the_shortest(shares: list[float], share: float) -> None:
    if sum(shares[1:]) < 1e-6:
        return
    posterior, _ = ends_only()
    commits = np.array([0.0, *shares[1:]])
    first, last = credible_range(replace(posterior, commits=commits), share)
    target = share * commits.sum() - 1e-9
    assert commits[first : last + 1].sum() >= target
    width = last - first
    assert all(commits[i : i + width].sum() < target + 2e-9 for i in range(len(commits) - width + 1))


def test_an_answer_needs_its_confidence() -> None:
    posterior, _ = ends_only()
    commits = np.zeros(64)
    commits[20], commits[21] = 0.94, 0.05
    almost = replace(posterior, commits=commits, none=0.01)
    assert answer_of(almost, set(), confidence=0.95, smallest=0.02).kind == "undecided"
    assert answer_of(almost, set(), confidence=0.9, smallest=0.02).first == 20
    among = answer_of(almost, {20}, confidence=0.95, smallest=0.02)
    assert (among.kind, among.first, among.last) == ("range", 20, 21)
