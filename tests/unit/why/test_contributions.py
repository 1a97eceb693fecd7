"""A cause that was put in is found with its share, and without a difference none is listed."""

from __future__ import annotations

import numpy as np
import pytest

from etude.why.causes import Cause
from etude.why.contributions import cost, count_differences, difference, grouped, split
from etude.why.instruments import CallCount, Run

CAUSES = [Cause("p", "function", f"f{n}") for n in range(20)]


def runs(drawn: np.random.Generator, pairs: int, more: float = 0.0) -> list[Run]:
    """Runs of 20 functions of 50 ms each with 5 % of noise, and 5 % that all of a run have in common."""
    found = []
    for _ in range(pairs):
        times = 0.05 * drawn.normal(1.0, 0.05, len(CAUSES)) * drawn.normal(1.0, 0.05)
        times[3] += more
        found.append(Run(dict(zip(CAUSES, times.tolist(), strict=True))))
    return found


def test_without_a_difference_few_families_list_a_cause() -> None:
    drawn = np.random.default_rng(1)
    families = 400
    listed = sum(bool(split(runs(drawn, 10), runs(drawn, 10)).listed) for _ in range(families))
    assert listed / families <= 0.05 + 2 * (0.05 * 0.95 / families) ** 0.5


def test_a_cause_has_its_share_of_the_difference_and_the_rest_is_noise() -> None:
    drawn = np.random.default_rng(2)
    found = [split(runs(drawn, 12), runs(drawn, 12, more=0.05)) for _ in range(50)]
    assert all(each.listed and each.listed[0].cause == CAUSES[3] for each in found)
    assert np.mean([each.listed[0].low_s <= 0.05 <= each.listed[0].high_s for each in found]) >= 0.95
    for each in found:
        total = sum(c.mean_s for c in each.listed) + each.rest.mean_s
        assert total == pytest.approx(each.whole.mean_s)


DELAYS = {
    "none": (0.0, 0),
    "in the cause": (0.05, 1),
    "in another cause": (0.5, 1),
    "in all": (0.05, len(CAUSES)),
}


def disturbed(drawn: np.random.Generator, pairs: int, noise: str, delay: str, more: float = 0.0) -> list[Run]:
    """Runs of 20 functions of 10 ms, of which one in thirty is delayed."""
    found = []
    delay_s, of = DELAYS[delay]
    for _ in range(pairs):
        shape = drawn.normal(1.0, 0.1, 20) if noise == "normal" else drawn.lognormal(0.0, 0.3, 20)
        times = 0.01 * shape * drawn.normal(1.0, 0.02)
        if drawn.random() < 1 / 30:
            times[4 if delay == "in another cause" else slice(3, 3 + of) if of == 1 else slice(None)] += (
                delay_s
            )
        times[3] += more
        found.append(Run(dict(zip(CAUSES, times.tolist(), strict=True))))
    return found


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("noise", ["normal", "lognormal"])
@pytest.mark.parametrize("pairs", [5, 12, 30])
def test_intervals_hold_all_causes_at_once_whatever_the_noise(noise: str, delay: str, pairs: int) -> None:
    """The table of bench/why/simulated.md in small: the bounds leave four standard errors of the simulation."""
    drawn, families = np.random.default_rng(5), 60
    chance = 4 * (0.05 * 0.95 / families) ** 0.5
    found = [
        split(disturbed(drawn, pairs, noise, delay), disturbed(drawn, pairs, noise, delay, 0.01))
        for _ in range(families)
    ]
    held = [
        all(c.cause == CAUSES[3] and c.low_s <= 0.01 <= c.high_s for c in each.listed)
        and (bool(each.listed) or each.whole.low_s <= 0.01 <= each.whole.high_s)
        for each in found
    ]
    assert np.mean(held) >= 0.95 - chance
    for each in found:
        total = sum(c.mean_s for c in each.listed) + each.rest.mean_s
        assert total == pytest.approx(each.whole.mean_s)


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize(("pairs", "least"), [(12, 0.75), (30, 0.95)])
def test_a_delayed_run_hides_no_cause(delay: str, pairs: int, least: float) -> None:
    """A cause of 3 ms, where one run in thirty takes 50 ms or more longer."""
    drawn = np.random.default_rng(6)
    found = [
        split(disturbed(drawn, pairs, "normal", delay), disturbed(drawn, pairs, "normal", delay, 0.003))
        for _ in range(40)
    ]
    assert np.mean([CAUSES[3] in [c.cause for c in each.listed] for each in found]) >= least


def test_the_difference_and_the_cost_leave_out_a_delayed_run() -> None:
    drawn = np.random.default_rng(7)
    a, b = (drawn.normal(1.0, 0.01, 10) for _ in range(2))
    expected = difference(a[1:].tolist(), b[1:].tolist())
    b[0] += 5.0
    assert difference(a.tolist(), b.tolist()) == expected
    with_it = [
        [Run({CAUSES[0]: 1.02 * s}) for s in side] for side in drawn.normal(1.0, 0.01, (2, 10)).tolist()
    ]
    plain = drawn.normal(1.0, 0.01, (2, 10))
    plain[0][3] = 9.0
    assert cost(plain.tolist(), with_it).high < 0.05


def test_rare_causes_lose_their_caller_and_then_their_name() -> None:
    often, seldom = Cause("p", "function", "f"), Cause("p", "page faults", "page faults", "g")
    calls = [Cause("p", "call", "read", f"g{n}") for n in range(4)]
    run = {often: 1.0, seldom: 0.001, **dict.fromkeys(calls, 0.002)}
    names = grouped([run])
    assert names[often] == often
    assert {names[each] for each in calls} == {Cause("p", "call", "read")}
    assert names[seldom] == Cause("p", "other functions", "other functions")


def test_the_difference_of_pairs_has_students_interval_at_96_percent() -> None:
    """1 % is left to the test for outliers."""
    found = difference([1.0, 2.0, 3.0, 4.0], [1.5, 2.1, 3.4, 4.2])
    assert found.mean_s == pytest.approx(0.3)
    assert found.high_s - found.mean_s == pytest.approx(
        3.481909 * np.std([0.5, 0.1, 0.4, 0.2], ddof=1) / 2, rel=1e-5
    )


def test_few_or_unpaired_runs_are_refused() -> None:
    drawn = np.random.default_rng(3)
    for a, b in ((4, 4), (6, 5)):
        with pytest.raises(ValueError, match="runs"):
            split(runs(drawn, a), runs(drawn, b))


def test_counts_that_no_run_of_the_other_test_reaches_differ() -> None:
    key, other, same = ("read", "/data"), ("write", "/log"), ("close", "/data")
    a = [{key: CallCount(10, 1000), other: CallCount(n, 0), same: CallCount(1, 0)} for n in (3, 4, 5)]
    b = [{key: CallCount(100, 1000), other: CallCount(n, 0), same: CallCount(1, 0)} for n in (7, 8, 9)]
    found = count_differences(a, b)
    assert [(c.call, c.a, c.b, c.exact) for c in found] == [
        ("read", CallCount(10, 1000), CallCount(100, 1000), True),
        ("write", CallCount(4, 0), CallCount(8, 0), False),
    ]
    assert count_differences(a, a) == []
    assert [c.a for c in count_differences([{}, {}], b[:2])] == [CallCount(0, 0)] * 3


def test_the_cost_of_an_instrument_that_delays_one_test_more_changes_the_ratio() -> None:
    plain = [[1.0 + n / 100 for n in range(6)], [2.0 + n / 100 for n in range(6)]]
    runs = [[Run({CAUSES[0]: 1.1 * s}) for s in plain[0]], [Run({CAUSES[0]: 1.21 * s}) for s in plain[1]]]
    found = cost(plain, runs)
    assert (found.a, found.b, found.change) == pytest.approx((1.1, 1.21, 0.1))
    assert (found.low, found.high) == pytest.approx((0.1, 0.1))


def test_a_call_whose_caller_is_lost_in_some_runs_is_one_cause() -> None:
    sleeps = [Cause("p", "call", "nanosleep", caller) for caller in ("snooze", "", "[unknown] in [stack]")]
    a, b = (
        [Run({sleeps[n % 3]: s + n / 1e4, CAUSES[0]: 0.1 + n * n % 7 / 99}) for n in range(9)]
        for s in (0.03, 0.08)
    )
    listed = split(a, b[1:] + b[:1]).listed
    assert [(c.cause and c.cause.name, round(c.mean_s, 2)) for c in listed] == [("nanosleep", 0.05)]


def test_the_cost_of_an_instrument_that_lost_a_pair_is_of_the_others() -> None:
    runs = [[Run({CAUSES[0]: 2.0})] * 5] * 2
    assert cost([[1.0] * 6] * 2, runs).a == 2.0
