"""What is looked at once more before an answer."""

from __future__ import annotations

import math

from etude.peak.policies.belief.answer_checks import (
    MIN_CALM_WINDOWS,
    calm_windows,
    highest_offerable_load,
    hysteresis_check,
    non_monotone_check,
    required_check,
    slowdown_check,
)
from etude.peak.policies.belief.evidence import Evidence
from support.policy_simulator import task, trial


def evidence(load: float, reading: float, order: int, *, windows: int = 10, sd: float = 0.02) -> Evidence:
    return Evidence(load, math.log(reading), sd**2, windows, order)


def test_a_mark_is_looked_for_at_once_where_what_came_after_may_be_its_doing() -> None:
    known = [evidence(100, 0.3, 0), evidence(200, 0.35, 1), evidence(800, 20.0, 2)]
    asked = hysteresis_check(task(), [*known, evidence(400, 0.9, 3)])
    assert asked is not None
    assert asked.load == 200
    assert hysteresis_check(task(), [*known, evidence(400, 0.4, 3)]) is None
    assert hysteresis_check(task(), [*known, evidence(400, 4.0, 3)]) is None
    assert hysteresis_check(task(), [known[0], known[1], evidence(400, 0.9, 3)]) is None


def test_one_slow_trial_after_an_overload_is_made_again() -> None:
    known = [evidence(200, 0.1, 0), evidence(600, 20.0, 1), evidence(200, 0.3, 2)]
    asked = slowdown_check(task(), known)
    assert asked is not None
    assert asked.load == 200
    assert slowdown_check(task(), [*known, evidence(200, 0.3, 3)]) is None
    assert slowdown_check(task(), [*known[:2], evidence(200, 0.1, 2)]) is None


def test_a_mark_is_looked_for_before_an_answer_on_few_windows() -> None:
    def asked(windows: int) -> bool:
        known = [
            evidence(390, 0.92, 0, windows=windows),
            evidence(398, 0.99, 1, windows=windows),
            evidence(420, 2.5, 2),
            evidence(800, 9.0, 3),
        ]
        return required_check(task(), known, 400.0, 5000.0) is not None

    assert asked(MIN_CALM_WINDOWS // 2 - 1)
    assert not asked(MIN_CALM_WINDOWS // 2)


def test_a_load_well_above_is_tried_where_the_peak_was_not_predicted() -> None:
    known = [evidence(390, 0.95, 0, windows=MIN_CALM_WINDOWS), evidence(410, 1.1, 1)]
    asked = required_check(task(), known, 400.0, 5000.0)
    assert asked is not None
    assert asked.load == 600
    assert required_check(task(seed_load=400.0, seed_spread=0.1), known, 400.0, 5000.0) is None
    assert required_check(task(), [*known, evidence(600, 2.0, 2)], 400.0, 5000.0) is None


def test_a_load_that_is_too_much_far_above_does_not_show_that_all_between_are() -> None:
    """Of a server with a hump at half its peak, which is 1000."""
    brushed = [evidence(300, 0.16, 0, windows=MIN_CALM_WINDOWS), evidence(530, 1.3, 1), evidence(530, 1.2, 2)]
    far, near = evidence(1050, 14.0, 3), evidence(850, 14.0, 3)
    asked = required_check(task(), [*brushed, far], 515.0, 5000.0)
    assert asked is not None
    assert asked.load == 1.5 * 515
    found = required_check(task(), [*brushed, near], 515.0, 5000.0)
    assert found is None or found.load == 300


def test_windows_of_overloads_show_no_stalls() -> None:
    assert calm_windows([evidence(100, 0.5, 0), evidence(200, 1.05, 1), evidence(300, 1.2, 2)]) == 20


def test_a_doubt_is_worth_another_look_before_it_is_a_finding() -> None:
    def asked(deviations: float) -> list[float]:
        spread = math.sqrt(2 * (0.03**2 + 0.02**2))
        known = [evidence(100, 0.5 * math.exp(deviations * spread), 0), evidence(200, 0.5, 1)]
        found = non_monotone_check(task(), known)
        return [] if found is None else [found.load]

    assert asked(1.4) == []
    assert asked(1.8) == [200]


def test_what_a_generator_can_offer_is_between_what_it_did_and_did_not() -> None:
    short = trial(600, [0.2] * 6, limited="generator")
    assert highest_offerable_load(task(), [trial(500, [0.2] * 6), short]) == 500
    assert highest_offerable_load(task(), [trial(200, [0.2] * 6), short]) == math.sqrt(200 * 600)
    assert highest_offerable_load(task(), [trial(500, [0.2] * 6)]) == 5000
