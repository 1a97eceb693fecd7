"""Servers as they are in the field, request by request: no wrong rate is said to be kept."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace

import pytest

from etude.peak.diagnostics import findings
from etude.peak.machine_state import MachineState
from etude.peak.policies.belief.answer_checks import is_target_met
from etude.peak.policies.belief.evidence import Evidence, disturbed_trials, evidence_of, unconfirmed_loads
from etude.peak.policies.belief.grid import PRIOR_USUAL_TRIALS, posterior_of, slow_share
from etude.peak.policies.posterior import Posterior, confirmation_trial, is_surprising, usable_trials
from etude.peak.search import search
from etude.peak.task import Answer, Goal, Task, Trial, TrialRequest
from support.places import BENCH
from support.policy_simulator import task, trial

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCH))
    servers = importlib.import_module("peak.request_queue")


def searched(case: str, peak: float, seed: int) -> tuple[Answer, float, list[Trial]]:
    server = servers.RequestQueue(servers.TROUBLES[case], peak, seed)
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


def test_a_trial_whose_warm_up_is_declared_has_none_of_its_backlog() -> None:
    """At 1.5 times the speed of the cold server: a warm-up at the whole load leaves a queue, one at half of it none."""
    request, peak = TrialRequest(270.0, 30.0, ""), 300.0
    apart, within, warm = (
        servers.RequestQueue(servers.TROUBLES[case], peak, 1).run(request, lambda _: False)
        for case in ("warm-up-declared", "warm-up-whole", "plain")
    )
    assert [len(each.windows) for each in (apart, within, warm)] == [3, 3, 3]
    first = [each.windows[0].mean_s or 0.0 for each in (apart, within, warm)]
    assert first[0] < 2 * first[2] < 10 * first[0]
    assert first[1] > 20 * first[2]
    assert within.cost_s == warm.cost_s + 60
    assert warm.cost_s + 60 <= apart.cost_s < warm.cost_s + 70
    # What is far too much already in the warm-up is waited for, and paid for.
    over = servers.RequestQueue(servers.TROUBLES["warm-up-declared"], peak, 1).run(
        TrialRequest(900.0, 30.0, ""), lambda _: False
    )
    assert over.cost_s > warm.cost_s + 70


@pytest.mark.more
def test_searches_of_a_server_whose_warm_up_is_declared_are_right() -> None:
    for seed in range(20):
        peak = 100.0 * 1.2**seed
        answer, off, _ = searched("warm-up-declared", peak, seed)
        assert answer.kept
        assert abs(off) <= 0.1
        assert "not-steady" not in {each.kind for each in answer.findings}


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
    assert [each.order for each in disturbed_trials(evidence_of(task(), made))] == [1]
    assert disturbed_trials(evidence_of(task(), made[:2])) == []


def test_steal_time_is_a_reason_to_repeat_a_trial_and_to_leave_a_slower_one_out() -> None:
    quiet, steal = MachineState(0.0), MachineState(0.3)

    def known(*trials: tuple[float, list[float], MachineState]) -> list[Evidence]:
        return evidence_of(task(), [replace(trial(load, w), machine=m) for load, w, m in trials])

    fine = [(300.0, [0.5] * 8, quiet)] * 2
    slow, again = (400.0, [3.0] * 8, steal), (400.0, [0.5] * 8, quiet)
    # Two that agree would be enough, had they not both been disturbed.
    assert [load for load, _ in unconfirmed_loads(known(*fine, slow, slow))] == [400.0]
    assert [load for load, _ in unconfirmed_loads(known(*fine, slow, slow, slow))] == [400.0]
    assert unconfirmed_loads(known(*fine, *[slow] * 4)) == []
    calm = (400.0, [3.0] * 8, quiet)
    assert unconfirmed_loads(known(*fine, calm, calm)) == []
    # One without steal time is believed rather than a slower one with it; a quicker one is no disturbance.
    assert [each.order for each in disturbed_trials(known(*fine, slow, again))] == [2]
    assert disturbed_trials(known(*fine, (400.0, [0.5] * 8, steal), calm)) == []
    assert disturbed_trials(known(*fine, calm, again)) == []


def test_a_load_whose_requests_were_sent_late_is_tried_again_and_a_late_trial_left_out() -> None:
    """A search of an nginx ended with `generator-late` by one of two trials, having time left."""

    def late(load: float, values: list[float]) -> Trial:
        return replace(trial(load, values), lateness_p99_s=0.2)

    fine = [trial(300.0, [0.5] * 8)] * 2
    near, over, by_generator = trial(400.0, [0.9] * 8), trial(400.0, [1.4] * 8), late(400.0, [1.5] * 8)
    made = [*fine, near, over, by_generator]
    request = confirmation_trial(task(), evidence_of(task(), made), 380.0)
    assert request is not None
    assert request.load == 400.0
    assert [each.kind for each in findings(task(), made)] == ["generator-late"]
    assert findings(task(), [*made, over]) == ()
    # Where a trial that was in time disagrees, the late one says nothing of the server.
    disturbed = [*fine, near, late(400.0, [5.0] * 8)]
    assert [each.order for each in disturbed_trials(evidence_of(task(), disturbed))] == [3]
    assert [each.kind for each in findings(task(), disturbed)] == ["disturbed"]


def test_a_load_that_is_too_much_is_tried_again_before_an_answer_rests_on_it() -> None:
    for seed in range(3):
        answer, _, made = searched("plain", 300.0, seed)
        assert answer.rate is not None
        assert len({each.load for each in made}) < len(made)


CLIFF = [
    trial(50.0, [0.18] * 8),
    trial(92.0, [0.27] * 8),
    trial(125.0, [0.47] * 8),
    trial(135.0, [16.0] * 3),
    trial(125.0, [0.47] * 8),
    trial(135.0, [40.0] * 6),
]
"""Of a server whose peak is 159, and which was at 0.7 of its speed in both trials at 135."""


def test_a_load_that_is_too_much_against_the_curve_below_it_takes_three_trials() -> None:
    known = evidence_of(task(), CLIFF)
    assert is_surprising(task(), usable_trials(known), 135.0)
    request = confirmation_trial(task(), known, 126.0)
    assert request is not None
    assert request.load == 135.0
    assert confirmation_trial(task(), evidence_of(task(), [*CLIFF, CLIFF[-1]]), 126.0) is None


def test_a_load_that_is_clearly_fine_is_not_tried_again_for_no_disturbance_makes_a_trial_quicker() -> None:
    def again(fine: float) -> list[float]:
        made = [trial(400.0, [fine] * 8), *[trial(500.0, [9.0] * 3)] * 2]
        return [load for load, _ in unconfirmed_loads(evidence_of(task(), made))]

    assert again(0.3) == []
    assert again(0.8) == [400.0]


def test_a_load_that_is_too_much_is_not_tried_again_where_the_answer_stands_without_it() -> None:
    made = [trial(load, [of_limit] * 8) for load, of_limit in ((50.0, 0.1), (170.0, 0.15), (300.0, 0.35))]
    made += [trial(380.0, [0.75] * 18), trial(380.0, [0.75] * 18), trial(460.0, [10.0] * 2)]

    def again(trials: list[Trial], rate: float) -> float | None:
        request = confirmation_trial(task(), evidence_of(task(), trials), rate)
        return None if request is None else request.load

    assert 460.0 in [load for load, _ in unconfirmed_loads(evidence_of(task(), made))]
    assert again(made, 418.0) is None
    assert again(made, 440.0) == 460.0
    # A mark that the overload before has left may be all that made it too much.
    assert again([*made[:3], trial(1050.0, [50.0] * 2), *made[3:]], 418.0) == 460.0


def test_a_second_trial_that_is_far_too_much_as_well_is_short() -> None:
    made = [trial(50.0, [0.07] * 8), trial(300.0, [0.4] * 18), trial(400.0, [20.0] * 2)]
    windows = trial(400.0, [20.0] * 2).windows
    request = TrialRequest(400.0, 180.0, "")
    assert Posterior().enough(task(), made, request, windows)
    assert not Posterior().enough(
        task(), made[:2], TrialRequest(300.0, 180.0, ""), trial(300.0, [0.4] * 2).windows
    )


def test_the_rate_allows_for_stalls_that_no_window_has_shown() -> None:
    """Of a server whose peak is 400: stalls of one window in 70 carry two fifths of its mean."""

    def answered(below: float, of_limit: float) -> tuple[float, float]:
        fine, over = trial(below, [of_limit] * 18), [trial(550.0, [17.0] * n) for n in (2, 3)]
        made = [trial(119.0, [0.06] * 8), fine, *over, fine]
        known = usable_trials(evidence_of(task(), made))
        answer = Posterior().best(task(), made, "")
        assert answer.rate is not None
        assert answer.confidence >= task().confidence
        return answer.rate, is_target_met(task(), posterior_of(task(), known), known).rate

    rate, middle = answered(417.0, 0.66)
    assert middle > 1.1 * 400.0
    assert rate < 0.98 * middle
    # Where the load below would be fine with stalls as well, the rate is the middle.
    rate, middle = answered(450.0, 0.3)
    assert rate > 0.99 * middle


def test_where_trials_disagree_a_load_that_is_too_much_takes_four_and_says_nothing_of_the_modes() -> None:
    made = [
        trial(60.0, [0.05] * 8),
        trial(300.0, [0.08] * 8),
        trial(400.0, [15.0] * 2),
        trial(400.0, [0.08] * 6),
    ]
    made += [trial(430.0, [0.1] * 8), *[trial(480.0, [50.0] * 3)] * 3]
    known = evidence_of(task(), made)
    assert slow_share(known) == 1 / (2 + PRIOR_USUAL_TRIALS)
    request = confirmation_trial(task(), known, 440.0)
    assert request is not None
    assert request.load == 480.0
    assert confirmation_trial(task(), evidence_of(task(), [*made, made[-1]]), 440.0) is None


def test_trials_that_were_slow_in_a_row_are_not_believed_because_they_agree() -> None:
    made = [
        trial(50.0, [0.07] * 8),
        trial(177.0, [0.11] * 8),
        trial(613.0, [50.0] * 2),
        trial(327.0, [4.7] * 3),
        trial(237.0, [0.29] * 8),
        trial(263.0, [0.45] * 16),
    ]
    request = Posterior().decide(task(), made)
    assert isinstance(request, TrialRequest)
    assert request.load == 327.0


def test_trials_that_disagree_at_two_loads_are_two_modes_with_a_rate_each() -> None:
    made = [
        trial(50.0, [0.07] * 8),
        trial(176.0, [0.10] * 8),
        trial(238.0, [0.46] * 8),
        trial(275.0, [0.18] * 12),
        trial(238.0, [0.15] * 12),
        trial(326.0, [30.0] * 6),
        trial(326.0, [0.4] * 8),
    ]
    answer = Posterior().best(task(), made, "the budget is spent")
    assert not answer.kept
    (found,) = [each for each in answer.findings if each.kind == "bimodal"]
    quick, slow = (float(each) for each in re.findall(r"about ([0-9.]+)", found.what))
    assert quick > 326
    assert 238 < slow < 326
