"""The policy that assumes nothing but that responses grow with the load."""

from __future__ import annotations

import math

import numpy as np
import pytest

from etude.peak.policies.belief.evidence import evidence_of
from etude.peak.policies.bracket import Bracket, side, tolerance
from etude.peak.search import search
from etude.peak.task import TrialRequest
from support.policy_simulator import Server, bend, knee, mm1, shelf, slow, task, trial


@pytest.mark.parametrize("curve", [mm1, slow, knee, shelf, bend], ids=lambda curve: curve.__name__)
def test_its_middle_is_near_the_peak(curve) -> None:  # type: ignore[no-untyped-def]
    right = 0
    for seed, peak in enumerate(150 * 10 ** np.random.default_rng(3).random(8)):
        server = Server(curve, float(peak), seed)
        answer = search(Bracket(), task(), server)
        right += abs((answer.rate or 0) / peak - 1) <= 0.1
        assert answer.high / answer.low <= tolerance(task())
        for end in (answer.low, answer.high):
            assert sum(each.load == end for each in server.made) >= 2
    assert right >= 7


def test_a_side_is_clear_only_beyond_the_noise() -> None:
    def known(*readings: list[float]) -> int:
        return side(task(), evidence_of(task(), [trial(100, each) for each in readings]))

    assert known([0.2] * 6) == -1
    assert known([8.0] * 6) == 1
    assert known([0.9, 1.15, 1.0, 0.95]) == 0
    assert known([1.3, 1.2], [0.8, 0.75]) == 0


def test_bounds_are_told() -> None:
    low = search(Bracket(), task(), Server(mm1, 20.0, 1))
    high = search(Bracket(), task(highest=1000.0), Server(mm1, 9000.0, 1))
    assert (low.rate, low.low, low.high) == (None, 0.0, 50.0)
    assert (high.rate, high.low, high.high) == (None, 1000.0, math.inf)
    assert [low.findings[0].kind, high.findings[0].kind] == ["below-lowest", "above-highest"]


def test_the_region_promise_needs_an_interval_inside_the_region() -> None:
    answer = search(Bracket(), task(promise="region"), Server(slow, 400.0, 2, noise=0.1))
    assert answer.kept
    assert answer.rate is not None
    assert abs(slow(answer.rate / 400.0) - 1) <= 0.1


def test_when_time_is_up_the_bracket_so_far_is_answered() -> None:
    answer = search(Bracket(), task(budget_s=900.0), Server(mm1, 800.0, 3))
    assert not answer.kept
    assert answer.low <= 800.0 <= answer.high


def test_without_a_trial_that_tells_something_it_gives_up() -> None:
    nothing = [trial(50, [], limited="generator")] * 3
    assert isinstance(Bracket().decide(task(), nothing[:2]), TrialRequest)
    answer = Bracket().decide(task(), nothing)
    assert not isinstance(answer, TrialRequest)
    assert (answer.rate, answer.kept) == (None, False)
