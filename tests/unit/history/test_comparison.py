"""Two sides of the store: a ratio where it can be carried, and machines named where they differ."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from etude.history.comparison import compare_sides, newest_with_before, select_results
from etude.history.metric_history import course_of
from etude.present.sections.history import comparison_document
from etude.stats.cross_session import CrossSessionRatio, NotSupported
from etude.stats.ratio import Ratio
from etude.store.entry import Entry, Machine
from support.made_histories import HOST, history, on_another

UPGRADED = Machine("host-a", "d2", (("kernel", "6.2"), ("processor", "Epyc")))
OTHER = Machine("host-b", "d3", (("kernel", "6.1"), ("processor", "Xeon")))


def ratio_of(entries: list[Entry], base: str, other: str) -> CrossSessionRatio | Ratio | NotSupported:
    (found,) = compare_sides(select_results(base, entries), select_results(other, entries), entries)
    return found.found


def test_single_results_are_compared_by_the_spread_of_their_history_without_its_steps() -> None:
    made = history(100, {50: 1.5}, noise=0.02)
    found = ratio_of(made, "date:2026-02-01", "date:2026-04-01")
    assert isinstance(found, CrossSessionRatio)
    assert 0.015 < found.between.deviation < 0.03
    assert found.low <= 1.5 <= found.high
    assert found.high / found.low < 1.2


def test_the_newest_result_is_compared_with_the_one_before_it() -> None:
    made = history(30, {29: 1.2})
    found = newest_with_before(course_of(made))
    assert found is not None
    assert isinstance(found.found, CrossSessionRatio)
    assert (found.base[0].result, found.other[0].result) == (29, 30)
    assert 1.0 < found.found.low <= 1.2 <= found.found.high
    assert found.differences == ()
    assert newest_with_before(course_of(made[:1])) is None
    assert newest_with_before(course_of([replace(e, kind="binary") for e in made])) is None
    few = newest_with_before(course_of(made[:2]))
    assert few is not None
    assert isinstance(few.found, NotSupported)
    moved = newest_with_before(course_of(on_another(made, UPGRADED, 29)))
    assert moved is not None
    assert moved.differences


def test_two_results_of_one_level_differ_in_one_of_twenty() -> None:
    false = 0
    for seed in range(200):
        made = history(30, seed=seed, noise=0.02)
        found = ratio_of(made, "date:2026-01-10", "date:2026-01-20")
        assert isinstance(found, CrossSessionRatio)
        false += found.p < 0.05
    assert false <= 20


def test_a_wild_result_differs_from_the_others_only_as_far_as_wild_ones_do() -> None:
    """Any two of a history of which one in twelve is ten times as far from its level: its wild ones are among them."""
    false = pairs = 0
    for seed in range(40):
        rng = np.random.default_rng([7, seed])
        far = np.where(rng.random(40) < 1 / 12, 10.0, 1.0) * rng.normal(0.0, 0.02, 40)
        made = [
            replace(e, values=tuple(x * math.exp(off) for x in e.values))
            for e, off in zip(history(40, noise=0.0, seed=seed), far, strict=True)
        ]
        for day in range(1, 31, 3):
            found = ratio_of(made, f"date:2026-01-{day:02d}", f"date:2026-01-{day + 1:02d}")
            assert isinstance(found, CrossSessionRatio)
            false, pairs = false + (found.p < 0.05), pairs + 1
    assert false / pairs < 0.08


def test_a_history_that_drifts_parts_results_by_its_drift() -> None:
    made = [
        replace(e, values=tuple(value * math.exp(0.004 * day) for value in e.values))
        for day, e in enumerate(history(60))
    ]
    found = ratio_of(made, "date:2026-01-05", "date:2026-02-25")
    assert isinstance(found, CrossSessionRatio)
    assert found.between.deviation == pytest.approx(0.004 * 60 / math.sqrt(12), rel=0.1)


def test_a_short_history_is_refused_with_what_is_missing() -> None:
    found = ratio_of(history(2), "date:2026-01-01", "date:2026-01-02")
    assert isinstance(found, NotSupported)
    assert (found.have, found.needed) == (2, 1)


def test_several_results_a_side_are_compared_over_results() -> None:
    made = [replace(e, tags=("old" if e.result <= 5 else "new",)) for e in history(10, {5: 1.3})]
    found = ratio_of(made, "old", "new")
    assert isinstance(found, Ratio)
    assert found.count == 5
    assert found.low <= 1.3 <= found.high


def test_of_times_the_means_are_compared() -> None:
    skewed = (0.7, 0.6, 0.8, 0.7, 2.2)
    made = [
        replace(e, values=tuple(2.0 * x for x in skewed) if e.result == 20 else e.values) for e in history(20)
    ]
    found = ratio_of(made, "date:2026-01-10", "date:2026-01-20")
    assert isinstance(found, CrossSessionRatio)
    assert found.ratio == pytest.approx(2.0 / float(np.mean(made[9].values)))


def test_ratios_that_are_judged_at_once_are_as_wide_as_so_many_need() -> None:
    tests = [history(30, seed=seed, test=f"t{seed}") for seed in range(6)]
    made = [entry for each in tests for entry in each]
    sides = [f"date:2026-01-{day}" for day in (10, 20)]
    together = compare_sides(*(select_results(side, made) for side in sides), made)
    for its, one in zip(tests, together, strict=True):
        alone = ratio_of(its, *sides)
        assert isinstance(alone, CrossSessionRatio)
        assert isinstance(one.found, CrossSessionRatio)
        half = t.ppf(1.0 - 0.05 / 6 / 2, alone.degrees) * alone.standard_error
        ends = (math.exp(math.log(alone.ratio) + side * half) for side in (-1, 1))
        assert (one.found.low, one.found.high) == pytest.approx(tuple(ends))
        assert one.found.adjusted_p == pytest.approx(min(1.0, 6 * alone.p))


@pytest.mark.parametrize("sides", [("date:2026-01-20", "date:2026-01-25"), ("machine:host-a", "tag:v")])
def test_a_result_is_not_compared_with_itself(sides: tuple[str, str]) -> None:
    ended = [replace(e, tags=("v",)) for e in history(20)]
    both = [*ended, *history(30, test="copy", seed=2)]
    found = {
        each.test: each.found for each in compare_sides(*(select_results(side, both) for side in sides), both)
    }
    assert isinstance(found["sort"], NotSupported)
    if "copy" in found:
        assert isinstance(found["copy"], CrossSessionRatio)
        assert found["copy"].together == 1, "what is refused does not count"


def test_machines_are_paired_by_name_and_named_where_only_others_are_there() -> None:
    made = [*history(20), *[replace(e, machine=OTHER, tags=("there",)) for e in history(20, seed=2)]]
    pairs = compare_sides(
        select_results("date:2026-01-05", made), select_results("date:2026-01-15", made), made
    )
    assert [(p.base[0].machine.name, p.other[0].machine.name) for p in pairs] == [
        ("host-a",) * 2,
        ("host-b",) * 2,
    ]
    assert all(p.same_machine for p in pairs)
    base = select_results("machine:host-a,date:2026-01-05", made)
    (across,) = compare_sides(base, select_results("machine:host-b,date:2026-01-05", made), made)
    assert across.differences == ("machine: host-a → host-b", "processor: Epyc → Xeon")


def test_a_machine_that_changed_under_its_name_is_told() -> None:
    made = on_another(history(40), UPGRADED, 20)
    (found,) = compare_sides(
        select_results("date:2026-01-05", made), select_results("date:2026-02-05", made), made
    )
    assert found.differences == ("kernel: 6.1 → 6.2",)


def test_values_that_have_no_ratio_are_left_out() -> None:
    made = [replace(e, values=(0.0, 1.0)) for e in history(10)]
    assert (
        compare_sides(select_results("date:2026-01-05", made), select_results("date:2026-01-06", made), made)
        == ()
    )
    assert HOST.name == "host-a"


def test_a_command_that_changed_is_told_and_one_not_known_says_nothing() -> None:
    made = history(30)
    commands = ("sort a", "sort b", None)
    for then, now in [(a, b) for a in commands for b in commands]:
        changed = [replace(e, command=then if place < 15 else now) for place, e in enumerate(made)]
        sides = (select_results(day, changed) for day in ("date:2026-01-10", "date:2026-01-20"))
        (found,) = compare_sides(*sides, changed)
        differs = then is not None and now is not None and then != now
        assert bool(found.command) == differs
        assert len(comparison_document(found)["differences"]) == differs
        assert found.same_machine
