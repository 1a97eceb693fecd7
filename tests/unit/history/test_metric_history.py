"""Courses of results: a step is named with its first result, and the machine's are not taken for the code's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from statistics import mean, variance

import numpy as np
import pytest

from etude.history.metric_history import course_of, courses
from etude.present.sentences.history import drift_line, limits_text
from etude.store.entry import Entry, Machine
from support.made_histories import BEGIN, HOST, commit, history, on_another

UPGRADED = Machine("host-a", "d2", (("kernel", "6.2"), ("processor", "Epyc")))


@dataclass(frozen=True)
class Marked:
    test: str
    metric: str | None
    commit: str
    why: str


@pytest.mark.parametrize("at", [20, 100, 190])
def test_a_known_step_in_a_history_of_200_commits_is_found_at_its_commit(at: int) -> None:
    course = course_of(history(200, {at: 1.1}))
    (change,) = course.changes
    assert change.first.commit == commit(at)
    assert change.last.commit == commit(at - 1)
    assert change.low <= 0.1 <= change.high
    assert change.low > 0.08
    assert change.worse
    assert change.cause == "commit"


def test_flat_histories_of_200_commits_raise_none_in_19_of_20() -> None:
    assert sum(bool(course_of(history(200, seed=seed)).changes) for seed in range(100)) <= 5


def test_a_step_of_a_rate_downwards_is_for_the_worse() -> None:
    (change,) = course_of(history(60, {30: 0.9}, kind="rate")).changes
    assert change.worse
    (change,) = course_of(history(60, {30: 0.9}, kind="ratio")).changes
    assert change.worse is None


def test_a_step_where_the_machine_changes_is_the_machines_with_what_differs() -> None:
    course = course_of(on_another(history(100, {50: 1.1}), UPGRADED, 50))
    (change,) = course.changes
    assert change.cause == "machine"
    assert change.differences == ("kernel: 6.1 → 6.2",)
    assert course.machines == ((50, ("kernel: 6.1 → 6.2",)),)


def test_a_machine_of_which_nothing_is_known_is_not_said_to_have_changed() -> None:
    course = course_of(on_another(history(100, {50: 1.1}), Machine("host-a", ""), 50))
    assert course.machines == ()
    assert course.changes[0].cause == "commit"


def test_a_step_far_from_a_change_of_the_machine_is_the_codes() -> None:
    (change,) = course_of(on_another(history(100, {50: 1.1}), UPGRADED, 70)).changes
    assert (change.cause, change.differences) == ("commit", ())


def test_results_of_machines_of_other_names_are_never_one_course() -> None:
    slow = Machine("host-b", "d9")
    found = courses(on_another(history(100, {50: 1.5}), slow, 50))
    assert [(c.machine.name, len(c.entries), c.changes) for c in found] == [
        ("host-a", 50, ()),
        ("host-b", 50, ()),
    ]


def test_a_step_between_two_results_of_one_commit_is_neither_the_codes_nor_the_machines() -> None:
    made = history(100, {50: 1.2})
    made[50] = replace(made[50], commit=made[49].commit)
    (change,) = course_of(made).changes
    assert change.cause == "neither"


def test_files_that_are_not_committed_may_be_the_cause_and_a_result_without_a_commit_says_nothing() -> None:
    made = history(100, {50: 1.2})
    edited = replace(made[50], commit=made[49].commit, tags=("dirty",))
    assert course_of([*made[:50], edited, *made[51:]]).changes[0].cause == "commit"
    bare = [replace(entry, commit=None) for entry in made]
    assert course_of(bare).changes[0].cause == "not known"


def test_a_marked_commit_makes_its_step_expected_for_that_test_and_metric_alone() -> None:
    made = history(100, {50: 1.2})
    said = [Marked("sort", "elapsed", commit(50)[:9], "checksums are on")]
    assert course_of(made, said).changes[0].expected == "checksums are on"
    for other in (Marked("copy", None, commit(50), ""), Marked("sort", "user", commit(50), "")):
        assert course_of(made, [other]).changes[0].expected is None
    assert course_of(made, [Marked("sort", None, commit(53), "")]).changes[0].expected is None


def test_values_at_zero_give_a_step_in_their_unit() -> None:
    made = [replace(e, values=tuple(0.0 if d < 50 else 3.0 for _ in e.values))
            for d, e in enumerate(history(100))]  # fmt: skip
    course = course_of(made)
    assert not course.relative
    assert course.changes[0].size == 3.0


def test_what_trials_explain_of_the_variance_between_results_is_told() -> None:
    made = history(200, noise=0.02, trials=4)
    course = course_of(made)
    assert course.within == pytest.approx(0.25 / 4 / (1 + 0.25 / 4), rel=0.5)
    own = mean(variance(np.log(e.values)) / len(e.values) for e in made)
    assert course.within == pytest.approx(own / course.found.noise.deviation**2)
    assert course_of(history(20, trials=1)).within is None


def test_a_result_without_a_finite_value_is_left_out() -> None:
    made = history(10)
    made[3] = replace(made[3], values=(float("nan"), 1.0))
    made[4] = replace(made[4], values=())
    (course,) = courses(made)
    assert len(course.entries) == 8
    assert course.machine == HOST


def test_a_slow_drift_is_told_as_one_and_is_no_change() -> None:
    made = history(100)
    drifting = [replace(e, values=tuple(v * 1.05 ** (k / 99) for v in e.values)) for k, e in enumerate(made)]
    course = course_of(drifting)
    assert course.changes == ()
    assert course.drift is not None
    assert course.drift.low <= 0.05 <= course.drift.high
    assert course.drift.worse
    assert course_of(made).drift is None


def daily(seed: int, rise: float) -> list[Entry]:
    """Six results on each of ten days, those of one day with luck of 2 % in common; a rise on the sixth day."""
    random = np.random.default_rng(seed)
    noise, luck = 0.005 * random.standard_normal(60), 0.02 * random.standard_normal(10)
    return [
        replace(
            e,
            values=tuple(0.5 * np.exp(noise[k] + luck[k // 6]) * rise ** (k >= 30) for _ in range(5)),
            measured=BEGIN + timedelta(days=k // 6, minutes=k % 6),
        )
        for k, e in enumerate(history(60))
    ]


@pytest.mark.parametrize("seed", range(4))
def test_results_lie_no_farther_from_their_level_than_they_show(seed: int) -> None:
    course = course_of(daily(seed, 1.1))
    around = np.array([np.log(e.values[0]) for e in course.entries])
    assert course.found.noise.deviation < 1.5 * float(np.std(around, ddof=1))


def test_a_drift_whose_interval_holds_none_is_neither_for_the_worse_nor_told_as_sure() -> None:
    rising = [
        replace(e, values=tuple(v * (1.0 + 0.03 * k / 11) for v in e.values))
        for k, e in enumerate(history(12, seed=6, noise=0.02))
    ]
    course = course_of(rising)
    assert course.drift is not None
    assert course.drift.low < 0.0 < course.drift.high
    assert course.drift.worse is None
    assert drift_line(course, course.drift).startswith("Perhaps")
    assert "%" not in limits_text(course, -0.9, 1155.0)
    assert limits_text(course, -0.1, 0.2).count("%") == 2


def test_levels_beside_a_drift_are_not_those_of_the_drift() -> None:
    made = [
        replace(e, values=tuple(v * 1.05 ** (k / 99) for v in e.values))
        for k, e in enumerate(history(100, {50: 1.05}))
    ]
    course = course_of(made)
    assert course.drift is not None
    assert len(course.changes) == 1
    assert " ms to " not in drift_line(course, course.drift)


def test_what_the_results_of_a_day_have_in_common_is_no_step() -> None:
    luck = np.exp(0.02 * np.random.default_rng(5).standard_normal(12))
    made = [
        replace(
            e,
            values=tuple(v * luck[k // 5] for v in e.values),
            measured=BEGIN + timedelta(days=k // 5, hours=k % 5),
        )
        for k, e in enumerate(history(60))
    ]
    assert course_of(made).changes == ()


def commanded(entries: list[Entry], commands: Mapping[int, str | None]) -> list[Entry]:
    """With the command of each result from those places on."""
    found, command = [], None
    for place, entry in enumerate(entries):
        command = commands.get(place, command)
        found.append(replace(entry, command=command))
    return found


def test_a_step_where_another_command_is_measured_is_not_the_codes() -> None:
    course = course_of(commanded(history(100, {50: 1.1}), {0: "old", 50: "new"}))
    (change,) = course.changes
    assert (change.cause, change.differences) == ("test", ("command: old → new",))
    far = course_of(commanded(history(100, {50: 1.1}), {0: "old", 70: "new"}))
    assert far.changes[0].cause == "commit"
    assert far.commands == ((70, "command: old → new"),)
    unknown = course_of(commanded(history(100, {50: 1.1}), {50: "sort b"}))
    assert unknown.changes[0].cause == "commit"


def test_a_step_where_machine_and_command_change_is_the_machines_and_names_both() -> None:
    made = on_another(commanded(history(100, {50: 1.1}), {0: "old", 50: "new"}), UPGRADED, 50)
    (change,) = course_of(made).changes
    assert change.cause == "machine"
    assert change.differences == ("kernel: 6.1 → 6.2", "command: old → new")
