"""Servers as they are in the field, request by request: no wrong rate is said to be kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from etude.workbench.goal import Goal
from etude.workbench.harnesses.request_queue import TROUBLES, RequestQueue
from etude.workbench.machine_state import MachineState
from etude.workbench.policies.belief.confirmation import disturbed, unconfirmed
from etude.workbench.policies.belief.evidence import Evidence, gathered
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


def test_steal_time_is_a_reason_to_repeat_a_trial_and_to_leave_a_slower_one_out() -> None:
    quiet, steal = MachineState(0.0), MachineState(0.3)

    def known(*trials: tuple[float, list[float], MachineState]) -> list[Evidence]:
        return gathered(task(), [replace(trial(load, w), machine=m) for load, w, m in trials])

    fine = [(300.0, [0.5] * 8, quiet)] * 2
    slow, again = (400.0, [3.0] * 8, steal), (400.0, [0.5] * 8, quiet)
    # Two that agree would be enough, had they not both been disturbed.
    assert [load for load, _ in unconfirmed(known(*fine, slow, slow))] == [400.0]
    assert unconfirmed(known(*fine, slow, slow, slow)) == []
    calm = (400.0, [3.0] * 8, quiet)
    assert unconfirmed(known(*fine, calm, calm)) == []
    # One without steal time is believed rather than a slower one with it; a quicker one is no disturbance.
    assert [each.order for each in disturbed(known(*fine, slow, again))] == [2]
    assert disturbed(known(*fine, (400.0, [0.5] * 8, steal), calm)) == []
    assert disturbed(known(*fine, calm, again)) == []


def test_a_load_that_is_too_much_is_tried_again_before_an_answer_rests_on_it() -> None:
    for seed in range(3):
        answer, _, made = searched("plain", 300.0, seed)
        assert answer.rate is not None
        assert len({each.load for each in made}) < len(made)
