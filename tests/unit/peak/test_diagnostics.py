"""What trials say against a single peak rate."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np

from etude.peak.diagnostics import find_collapsing, find_hysteretic, findings, overloads
from etude.peak.policies.belief.evidence import Evidence
from etude.peak.task import Criterion, GeneratorPart, Goal, Trial
from etude.peak.window import Window
from support.golden import Golden
from support.policy_simulator import LIMIT_S, task, trial


def kinds(*trials: Trial) -> list[str]:
    return [each.kind for each in findings(task(), trials)]


def calm(load: float, level: float, seed: int = 0, count: int = 12) -> Trial:
    return trial(load, list(level * np.random.default_rng(seed).gamma(25, 1 / 25, count)))


def test_ordinary_trials_are_no_finding() -> None:
    assert (
        kinds(calm(50, 0.1, 1), calm(100, 0.2, 2), calm(200, 0.9, 3), calm(200, 0.95, 4), calm(400, 20.0, 5))
        == []
    )


def test_rare_windows_that_carry_the_mean_are_stalls() -> None:
    assert kinds(trial(50, [0.1, 0.11, 0.09, 0.1, 1.2, 0.1]), calm(100, 0.1)) == ["stalling"]
    (found,) = findings(task(), [trial(50, [0.1, 0.11, 0.09, 0.1, 1.2, 0.1])])
    assert "1 of 6" in found.what
    assert "12.0 times" in found.what


def test_growing_windows_of_an_overload_are_no_stalls() -> None:
    assert kinds(calm(50, 0.1), trial(400, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0])) == []


def test_what_half_of_the_windows_do_is_no_stall() -> None:
    assert kinds(calm(50, 0.1), trial(100, [0.1] * 7 + [0.5] * 5)) == []


def test_two_windows_have_no_middle() -> None:
    assert kinds(trial(50, [0.1, 1.2]), calm(60, 0.1)) == []


def test_near_the_limit_where_windows_differ_a_slow_one_is_no_stall() -> None:
    near = [0.61, 0.33, 0.46, 4.91, 2.03, 0.52, 0.26, 1.19, 2.33, 1.55]  # as seen of a server held by a quota
    assert kinds(trial(2427, near), calm(1000, 0.1)) == []
    assert kinds(trial(2427, [0.9, 1.0, 0.95, 4.91 * 1.3, 1.05, 0.9, 0.98, 1.0]), calm(1000, 0.1)) == [
        "stalling"
    ]


def test_what_is_far_below_the_limit_is_not_compared() -> None:
    high = [calm(200, 0.02, 3), calm(200, 0.021, 4)]
    assert kinds(*[calm(100, 0.06, n) for n in (1, 2)], *high) == []
    assert kinds(*[calm(100, 0.12, n) for n in (1, 2)], *high) == ["non-monotone"]


def test_a_lower_load_that_is_slower_is_non_monotone_once_both_were_repeated() -> None:
    low, high = [calm(100, 0.8, 1), calm(100, 0.82, 2)], [calm(200, 0.3, 3), calm(200, 0.31, 4)]
    assert kinds(*low, *high) == ["non-monotone"]
    assert kinds(low[0], *high) == []


def test_two_overloads_are_not_compared() -> None:
    assert kinds(*[calm(100, 20.0, n) for n in (1, 2)], *[calm(200, 8.0, n) for n in (3, 4)]) == []


def test_fewer_answers_at_more_load_is_non_monotone() -> None:
    less = Trial(300, 180.0, (Window(10.0, 3000, 1200, 1800, 0.01),) * 4, 210.0, "early", "server")
    assert kinds(calm(50, 0.1), calm(200, 0.5), less) == ["non-monotone"]


def test_a_load_that_is_slower_after_an_overload_than_before_is_hysteretic() -> None:
    before, over, after = calm(100, 0.2, 1), calm(300, 20.0, 2), calm(100, 0.4, 3)
    assert kinds(before, over, after) == ["hysteretic"]
    assert kinds(before, over, calm(100, 0.21, 3)) == []
    assert kinds(before, after, over) == []


def test_trials_after_an_overload_that_disagree_are_not_hysteretic() -> None:
    before, over, after = calm(1750, 0.03, 1), calm(3000, 20.0, 2), calm(1750, 0.15, 3)
    assert kinds(before, over, after) == ["hysteretic"]
    assert kinds(before, over, after, calm(1750, 0.03, 4)) == ["disturbed"]
    assert kinds(before, over, after, calm(1750, 0.14, 4)) == ["hysteretic"]


def test_trials_in_two_groups_are_bimodal() -> None:
    levels = [0.5, 0.9, 0.51, 0.89, 0.5, 0.91]
    assert kinds(*[calm(100, level, n) for n, level in enumerate(levels)]) == ["bimodal"]


def test_repeated_loads_that_get_slower_and_slower_drift() -> None:
    levels = [0.4, 0.5, 0.62, 0.75, 0.9, 1.1]
    assert kinds(*[calm(100, level, n) for n, level in enumerate(levels)]) == ["drifting"]


def test_a_death_at_a_load_that_was_borne_is_told() -> None:
    died = Trial(80, 180.0, (), 170.0, "died")
    assert kinds(calm(50, 0.1), calm(100, 0.2), died) == ["dying"]
    assert kinds(calm(50, 0.1), replace(died, load=50)) == ["dying"]
    assert kinds(calm(50, 0.1), replace(died, load=400)) == []


def test_what_is_not_answered_by_a_dead_system_is_no_shedding() -> None:
    died = Trial(300, 180.0, (Window(10.0, 3000, 1200, 1800, 0.01),) * 4, 210.0, "died")
    assert kinds(calm(50, 0.1), calm(200, 0.5), died) == []


def test_a_load_command_that_ends_too_soon_is_told() -> None:
    whole = [trial(50, [0.1] * 6), trial(100, [0.2] * 6)]
    assert kinds(*whole) == []
    assert kinds(whole[0], replace(whole[1], cost_s=whole[1].ran_s / 2)) == ["cut-short"]


def test_response_times_of_0_are_told() -> None:
    assert kinds(trial(50, [0.0] * 6), trial(100, [0.2] * 6)) == ["no-times"]


def test_failures_at_a_load_that_is_fine_are_told_when_nobody_asked_for_errors() -> None:
    some = Trial(100, 180.0, (Window(10.0, 1000, 950, 50, 0.2 * LIMIT_S),) * 6, 230.0)
    assert kinds(calm(50, 0.1), some) == ["failing"]


def test_a_generator_that_fell_short_is_told() -> None:
    assert kinds(calm(50, 0.1), trial(900, [0.2] * 6, limited="generator")) == ["generator-limited"]


def test_a_harness_without_windows_is_told() -> None:
    assert kinds(trial(50, [0.1]), trial(100, [0.2])) == ["no-windows"]


def test_a_window_of_a_steady_trial_that_is_far_off_is_a_stall() -> None:
    def steady(spread: float) -> list[float]:
        off = spread / 1.4826
        return [*[0.1] * 3, *[0.1 * math.exp(off), 0.1 * math.exp(-off)] * 6, 0.1 * 2.55]

    assert kinds(trial(50, steady(0.125)), calm(100, 0.1)) == ["stalling"]  # 7.5 robust deviations
    assert kinds(trial(50, steady(0.145)), calm(100, 0.1)) == []  # 6.5


def test_a_reading_that_may_be_a_brush_with_the_limit_is_no_overload() -> None:
    wide, sharp = (Evidence(100.0, math.log(1.6), within, 10, 0) for within in (0.01, 0.0009))
    assert overloads([wide, sharp]) == [sharp]


def test_loads_above_an_overload_are_not_looked_at_for_its_mark() -> None:
    assert kinds(calm(400, 0.2, 1), calm(300, 20.0, 2), calm(400, 0.4, 3)) == []


def test_a_load_is_slower_after_an_overload_by_more_than_chance_and_by_a_third() -> None:
    def named(times: float, sd: float) -> bool:
        known = [
            Evidence(100.0, math.log(0.2), sd**2, 10, 0),
            Evidence(300.0, math.log(20.0), 0.01, 10, 1),
            Evidence(100.0, math.log(0.2 * times), sd**2, 10, 2),
        ]
        return find_hysteretic(task(), known) is not None

    assert named(1.4, 0.01)
    assert not named(1 / 1.4, 0.01), "quicker than before"
    assert not named(1.25, 0.001)
    spread = math.sqrt(2 * (0.1**2 + 0.03**2))
    assert named(math.exp(2.7 * spread), 0.1)
    assert not named(math.exp(2.4 * spread), 0.1)


def answering(load: float, completed: int, seconds: float) -> Trial:
    window = Window(seconds, round(load * seconds), completed, 0, 0.01)
    return Trial(load, seconds, (window,), seconds)


def test_fewer_answers_at_more_load_are_a_collapse_where_luck_does_not_explain_them(golden: Golden) -> None:
    found = find_collapsing(task(), [answering(200, 2000, 10), answering(400, 1500, 10)])
    assert found is not None
    assert sorted(re.findall(r"(\d+)[.0]*/s", found.what)) == ["150", "200", "200", "400"]
    golden(found.what)
    assert find_collapsing(task(), [answering(200, 2000, 10), answering(400, 1850, 10)]) is None, "no tenth"
    assert find_collapsing(task(), [answering(200, 200, 1), answering(400, 165, 1)]) is None, (
        "the luck of one second"
    )


def test_windows_in_which_requests_of_the_warm_up_end_are_no_collapse() -> None:
    counts = [0, 800, 2000, 2000]
    late = Trial(400.0, 40.0, tuple(Window(10.0, 4000, each, 0, 0.05) for each in counts), 40.0)
    assert find_collapsing(task(), [answering(200, 2000, 10), late]) is None


def of_errors(load: float, completed: int, failed: int, mean_s: float | None) -> Trial:
    return Trial(load, 10.0, (Window(10.0, completed + failed, completed, failed, mean_s),), 12.0)


def kinds_with_errors(*trials: Trial) -> list[str]:
    both = Goal((*task().goal.criteria, Criterion("errors", 0.01)))
    return [each.kind for each in findings(task(goal=both), trials) if each.kind != "no-windows"]


def test_requests_that_fail_at_the_lowest_load_are_failing_where_their_times_are_fine() -> None:
    none, some = of_errors(50, 0, 500, None), of_errors(50, 300, 200, LIMIT_S / 10)
    assert kinds_with_errors(none, none) == ["failing"]
    assert kinds_with_errors(some, some) == ["failing"]
    assert kinds_with_errors(of_errors(50, 300, 200, LIMIT_S * 2)) == []
    assert (
        kinds_with_errors(of_errors(50, 500, 0, LIMIT_S / 10), of_errors(100, 700, 200, LIMIT_S / 10)) == []
    )


def late(load: float, level: float, late_s: float | None) -> Trial:
    return replace(calm(load, level), lateness_p99_s=late_s)


def test_of_several_hosts_the_one_whose_generator_was_the_limit_is_named() -> None:
    def by(**member: object) -> tuple[GeneratorPart, GeneratorPart]:
        return GeneratorPart("near"), GeneratorPart("far", **member)  # type: ignore[arg-type]

    short = trial(900, [0.2] * 6, limited="generator", generators=by(limited="generator"))
    slow = [replace(late(100, 1.5, 0.05), generators=by(lateness_p99_s=0.05)) for _ in range(2)]
    full = [replace(busy(100, 1.5, 0.9), generators=by(busy=0.9)) for _ in range(2)]
    for made in ([short], slow, full):
        (found,) = findings(task(), [calm(50, 0.1), *made])
        assert "far" in found.what
        assert "near" not in found.what


def test_loads_that_are_too_much_by_a_generator_that_sent_late_are_told() -> None:
    assert kinds(late(50, 0.2, 0.001), late(100, 1.5, 0.05), late(100, 1.5, 0.05)) == ["generator-late"]
    assert kinds(late(50, 0.2, 0.001), late(100, 1.5, 0.05), late(100, 1.5, 0.001)) == ["generator-late"]
    assert kinds(late(50, 0.2, 0.001), late(100, 1.5, 0.05), *[late(100, 1.5, 0.001)] * 2) == []
    assert kinds(late(50, 0.2, 0.05), late(100, 1.5, 0.012), late(100, 1.5, None)) == []
    assert kinds(calm(50, 0.2), *[replace(of_errors(100, 0, 900, None), lateness_p99_s=0.05)] * 2) == [
        "non-monotone"
    ]


def busy(load: float, level: float, share: float | None) -> Trial:
    return replace(calm(load, level), generator_busy=share, lateness_p99_s=0.0)


def test_loads_that_are_too_much_for_a_generator_without_time_to_spare_are_told() -> None:
    assert kinds(busy(50, 0.2, 0.5), busy(100, 1.5, 0.8), busy(100, 1.5, 0.9)) == ["generator-saturated"]
    assert kinds(busy(50, 0.2, 0.5), busy(100, 1.5, 0.9), busy(100, 1.5, 0.3)) == ["generator-saturated"]
    assert kinds(busy(50, 0.2, 0.9), busy(100, 1.5, 0.7), busy(100, 1.5, None)) == []
    assert kinds(busy(50, 0.2, 0.9), busy(100, 0.5, 0.9)) == []
    assert kinds(busy(50, 0.2, 0.5), *[replace(busy(100, 1.5, 0.9), lateness_p99_s=None)] * 2) == []
