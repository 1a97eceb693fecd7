"""Two programs over total sizes, as data."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import stats

from etude.iolab.comparisons import Comparison, compared, document
from etude.iolab.points import Points

SIZES = [2.0**n for n in range(10, 20)]


def points(name: str, formula: Any, sizes: list[float] = SIZES) -> Points:
    return Points(name, np.array(sizes), tuple(np.array(formula(size), float) for size in sizes))


def noisy(more: float, outliers: bool = False, seed: int = 1) -> Comparison:
    """0.3 ms and a byte a nanosecond against `more` seconds more."""
    noise = np.random.default_rng(seed)

    def times(plus: float, slow: bool) -> Any:
        def of(size: float) -> Any:
            values = (0.3e-3 + plus + size * 1e-9) * (1.0 + 0.01 * noise.standard_normal(20))
            if slow:
                values[3] *= 5.0
            return values

        return of

    return compared(points("static", times(0.0, outliers)), points("dynamic", times(more, outliers)))


def test_one_slow_trial_hides_a_difference_from_student_and_not_from_mann_whitney() -> None:
    found = noisy(0.03e-3, outliers=True)
    tests = found.tests[-1]
    assert (found.tests[0].trials, tests.trials) == (10, None)
    assert found.differs
    assert len(tests.below("mann_whitney")) == len(SIZES)
    assert len(tests.below("student")) <= 2


def test_p_values_are_those_of_scipy() -> None:
    a, b = points("a", lambda size: [1.0, 1.3, 1.1, 1.2]), points("b", lambda size: [1.15, 1.6, 1.4, 1.55])
    (tests,) = compared(a, b).tests
    first, second = a.samples[0], b.samples[0]
    assert tests.sizes[0].student == pytest.approx(stats.ttest_ind(first, second).pvalue)
    assert tests.sizes[0].mann_whitney == pytest.approx(stats.mannwhitneyu(first, second).pvalue)


def test_p_values_count_all_sizes() -> None:
    noise = np.random.default_rng(3)
    found = compared(*(points(name, lambda _: noise.normal(1.0, 0.1, 20)) for name in "ab")).tests[-1]
    for test in ("student", "mann_whitney"):
        raw = [getattr(each, test) for each in found.sizes]
        adjusted = [getattr(each, f"{test}_adjusted") for each in found.sizes]
        assert min(adjusted) == pytest.approx(min(1.0, len(SIZES) * min(raw)))
        assert found.below(test) == [each for each, p in zip(SIZES, adjusted, strict=True) if p < 0.05]


def test_a_crossing_has_its_interval_and_a_difference_that_is_not_shown_has_none() -> None:
    five, one = noisy(0.03e-3).crossings
    assert (five.level, five.state, five.slower) == (1.05, "crosses", "dynamic")
    assert None not in (five.low, five.at, five.high)
    assert five.low <= five.at <= five.high  # type: ignore[operator]
    assert five.at == pytest.approx(0.3e6, rel=0.35), "30 us are 5 % of 600 us"
    assert (one.state, one.at) == ("not below", None)
    same = noisy(0.0)
    assert (same.differs, same.crossings) == (False, ())


def test_a_difference_is_constant_where_the_quartiles_hold_it_at_every_size() -> None:
    same = compared(points("a", lambda n: [n, n + 1.0, n + 2.0]), points("b", lambda n: [n + 5.0] * 3))
    assert same.difference is not None
    assert same.difference.constant
    assert same.difference.median == pytest.approx(4.0)
    twice = compared(points("a", lambda n: [n] * 3), points("b", lambda n: [2 * n] * 3))
    assert twice.difference is not None
    assert not twice.difference.constant
    assert (twice.difference.least, twice.difference.most) == (SIZES[0], SIZES[-1])


def test_programs_without_a_common_size_have_nothing_but_names() -> None:
    found = compared(points("a", lambda n: [n] * 3), points("b", lambda n: [n] * 3, [3.0, 4.0]))
    assert (found.base, found.other, found.ratios, found.p, found.tests) == ("a", "b", (), None, ())


def test_values_that_do_not_vary_have_no_p_of_student_and_all_of_it_is_json() -> None:
    found = compared(points("a", lambda n: [1.0] * 3), points("b", lambda n: [1.0] * 3))
    assert found.tests[0].sizes[0].student is None
    plain = json.loads(json.dumps(document(found)))
    assert plain["differs"] is False
    assert plain["tests"][0]["sizes"][0] == {
        "size": 1024.0,
        "base_trials": 3,
        "other_trials": 3,
        "student": None,
        "mann_whitney": 1.0,
        "student_adjusted": None,
        "mann_whitney_adjusted": 1.0,
    }
    assert found.tests[0].too_few_for_ranks, "1 in 10 at best"
    assert not noisy(0.0).tests[0].too_few_for_ranks


def test_the_clearest_of_many_sizes_alone_is_no_difference() -> None:
    same = [1.0, 2.0, 3.0, 4.0, 5.0]
    far = [value + 10.0 for value in same]
    base = points("static", lambda size: same)
    found = compared(base, points("dynamic", lambda size: far if size == SIZES[3] else same))
    assert found.p == pytest.approx(2 * len(SIZES) * 2 / 252), "2 of 252 orders, at any of ten sizes, twice"
    assert not found.differs


def test_levels_are_of_the_side_on_which_the_difference_is_shown() -> None:
    """At the smallest size the medians may lie the other way by chance."""
    noise = np.random.default_rng(5)

    def times(more: float) -> Any:
        early = {SIZES[0]: 1.2 if more == 0 else 0.8}
        return lambda size: (
            early.get(size, 1.0) * (0.3e-3 + more + size * 1e-9) * (1 + 0.002 * noise.standard_normal(9))
        )

    found = compared(points("static", times(0.0)), points("dynamic", times(0.03e-3)))
    assert found.differs
    assert found.difference is not None
    assert found.difference.median > 0
    assert {each.slower for each in found.crossings} == {"dynamic"}


@pytest.mark.parametrize(
    ("trials", "noise", "state"),
    [(3, 0.0, "not below"), (9, 0.0, "not below"), (9, 0.3, "open")],
)
def test_a_level_is_not_below_where_draws_agree_on_that(trials: int, noise: float, state: str) -> None:
    rng = np.random.default_rng(2)

    def times(factor: float) -> Any:
        def of(size: float) -> Any:
            spread = noise if size == SIZES[-1] else 0.0
            return factor * (1.0 + 1e-4 * np.arange(trials)) * np.exp(spread * rng.standard_normal(trials))

        return of

    five, _ = compared(points("a", times(1.0)), points("b", times(1.1))).crossings
    assert (five.state, five.at) == (state, None)
    assert (five.why is None) == (state == "not below")


def test_of_three_trials_that_overlap_no_level_is_settled() -> None:
    def slower(size: float) -> Any:
        return [1.05, 1.2, 1.3] if size == SIZES[-1] else [2.0, 2.1, 2.2]

    five, _ = compared(points("a", lambda size: [1.0, 1.1, 1.2]), points("b", slower)).crossings
    assert (five.state, five.at) == ("open", None)
