"""Servers as they are in the field, request by request: no wrong rate is said to be kept."""

from __future__ import annotations

import pytest

from etude.workbench.goal import Goal
from etude.workbench.harnesses.request_queue import TROUBLES, RequestQueue
from etude.workbench.policies.belief.confirmation import disturbed
from etude.workbench.policies.belief.evidence import gathered
from etude.workbench.policies.posterior import Posterior
from etude.workbench.search import search
from etude.workbench.task import Answer, Task, Trial
from support.policy_simulator import task, trial


def searched(case: str, peak: float, seed: int) -> tuple[Answer, float, list[Trial]]:
    server = RequestQueue(TROUBLES[case], peak, seed)
    made: list[Trial] = []
    answer = search(
        Posterior(), Task(Goal((server.criterion,)), 50.0, 5000.0), server, (), lambda _, t: made.append(t)
    )
    return answer, (answer.rate or 0.0) / peak - 1, made


def test_a_warm_up_that_nobody_declared_is_found() -> None:
    for seed, peak in enumerate((250.0, 400.0)):
        answer, _, _ = searched("warm-up", peak, seed)
        assert not answer.kept
        assert "not-steady" in {each.kind for each in answer.findings}


@pytest.mark.parametrize("seed", [1, 2])
def test_a_server_without_trouble_has_no_finding(seed: int) -> None:
    answer, off, _ = searched("plain", 300.0, seed)
    assert (answer.kept, answer.findings) == (True, ())
    assert abs(off) <= 0.1


def test_disturbed_trials_give_no_wrong_rate_that_is_kept() -> None:
    for seed in range(4):
        answer, off, _ = searched("disturbed-0.5", 300.0, seed)
        assert not answer.kept or abs(off) <= 0.1


def test_a_trial_that_is_slower_than_two_that_agree_is_disturbed() -> None:
    made = [trial(400.0, [0.5] * 8), trial(400.0, [3.0] * 3), trial(400.0, [0.52] * 8)]
    assert [each.order for each in disturbed(gathered(task(), made))] == [1]
    assert disturbed(gathered(task(), made[:2])) == []


def test_a_load_that_is_too_much_is_tried_again_before_an_answer_rests_on_it() -> None:
    for seed in range(3):
        answer, _, made = searched("plain", 300.0, seed)
        assert answer.rate is not None
        assert len({each.load for each in made}) < len(made)
