"""Plans from pilots: what they count, what time costs, what they refuse."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from etude.analysis.comparison import within_reach
from etude.analysis.planning import PlanTargets, TrialPlan, plan_from
from etude.analysis.subject import subject_of, subject_of_table
from etude.analysis.time_breakdown import seconds_per_trial
from etude.analysis.verdict import verdict
from etude.errors import InputError, UsageError
from etude.experiment.plan import make_plan
from etude.experiment.run import run
from etude.present.sections import plan as plan_text
from etude.results.reader import load_results
from etude.results.readers import read_table
from etude.results.results import Results
from etude.results.trials import series_of_columns, trials_of_results
from etude.stats.intervals import effective_count
from etude.stats.planning import noise_of_pairs, plan_for_deadline, plan_for_effect, trials_for_mean
from etude.units.formatting import duration
from support.builders import measurement, results_directory
from support.fakes import World
from support.golden import Golden

RNG = np.random.default_rng(31)
A, B, C = (0.1 * np.exp(0.02 * RNG.normal(size=12)) for _ in range(3))
SCRIPT = {"kind": "script", "primary": "elapsed", "check_output": "first"}


def results(directory: Path, times: dict[str, Any], **options: Any) -> Results:
    asked = make_plan(tuple(times), **{"seed": 1, "again_every": 0, **options})
    return run(asked, directory=directory, make_engine=World(times).make_engine).results


def columns(directory: Path, gap_s: float = 1.0, **samples: Any) -> Results:
    """A script's tests, one after the other, a trial every `gap_s` seconds."""
    rows = {
        name: [
            measurement(name, i, float(x), start_ns=int(1e9 * gap_s * i) + 1) for i, x in enumerate(values, 1)
        ]
        for name, values in samples.items()
    }
    return load_results(results_directory(directory, rows, plan=SCRIPT))


def plans(found: Results, **wanted: Any) -> tuple[TrialPlan, ...]:
    return plan_from(subject_of(found), PlanTargets(**wanted))


def pilot(directory: Path, **options: Any) -> Results:
    """Two tests in twelve blocks; the excluded first runs are other than all that follow."""
    times = {"a": iter([9.0, *A]), "b": iter([9.0, *B])}
    return results(directory, times, trials=12, **options)


def test_a_plan_names_the_metric_that_needs_far_fewer_trials(tmp_path: Path, golden: Golden) -> None:
    rng = np.random.default_rng(2)

    def rows(cpu_noise: float) -> Any:
        while True:
            user = 0.01 * (1.0 + rng.normal(0.0, cpu_noise))
            elapsed = 0.02 * (1.0 + rng.normal(0.0, 0.05))
            yield {"metrics": {"elapsed": [elapsed, "s"], "user": [user, "s"], "system": [0.001, "s"]}}

    for name, cpu_noise in (("quiet", 0.002), ("noisy", 0.04)):
        found = results(tmp_path / name, {"a": rows(cpu_noise), "b": rows(cpu_noise)}, trials=15)
        (plan,) = plans(found)
        assert (plan.quieter is not None) == (name == "quiet")
        if plan.quieter is not None:
            assert plan.noise is not None
            assert (plan.metric, plan.quieter.metric) == ("elapsed", "CPU time")
            assert plan.quieter.deviation < plan.noise.deviation / 3.0
            assert plan.row.trials is not None
            assert plan.quieter.trials < plan.row.trials / 9.0
            lines = list(plan_text.lines(plan, None))
            (told,) = (line for line in lines if f"{plan.quieter.trials:,}" in line and "CPU time" in line)
            golden(told)


def test_the_quieter_metric_is_planned_by_its_own_noisiest_pair(tmp_path: Path) -> None:
    """In elapsed time b is the noisiest, in CPU time c."""
    rng = np.random.default_rng(2)

    def rows(elapsed_noise: float, cpu_noise: float) -> Any:
        while True:
            user, elapsed = (
                0.01 * (1.0 + rng.normal(0.0, cpu_noise)),
                0.02 * (1.0 + rng.normal(0.0, elapsed_noise)),
            )
            yield {"metrics": {"elapsed": [elapsed, "s"], "user": [user, "s"], "system": [0.001, "s"]}}

    noises = {"a": (0.05, 0.001), "b": (0.1, 0.001), "c": (0.05, 0.02)}
    found = results(tmp_path / "r", {name: rows(*both) for name, both in noises.items()}, trials=15)
    (plan,) = plans(found)
    assert plan.tests == ("a", "b")
    assert plan.quieter is not None
    assert plan.quieter.deviation == pytest.approx(0.02 * 10 / 11, rel=0.5)


def test_a_pilot_in_blocks_is_planned_by_its_pairs(tmp_path: Path) -> None:
    (plan,) = plans(pilot(tmp_path), effect=0.03, deadline_s=3600.0, power=0.9)
    assert plan.noise is not None
    assert (plan.tests, plan.pilot, plan.noise.design) == (("a", "b"), 12, "paired")
    expected = noise_of_pairs(A, B, seconds_per_trial=plan.noise.seconds_per_trial)
    assert plan.noise == expected
    assert [row.share for row in plan.rows] == [0.05, 0.03, 0.02, 0.01, 0.005]
    for row in plan.rows:
        one = plan_for_effect(expected, row.share, power=0.9)
        assert one is not None
        assert (row.trials, row.likely) == (one.trials, one.likely_trials)
        assert row.seconds == pytest.approx(one.hours * 3600.0)
    deadline = plan_for_deadline(expected, 1.0, power=0.9)
    assert deadline is not None
    assert plan.fit is not None
    assert (plan.fit.trials, plan.fit.share) == (deadline.trials, deadline.effect)


def test_the_command_of_a_plan_makes_what_is_needed_or_what_fits(tmp_path: Path) -> None:
    found, made = pilot(tmp_path), []
    for deadline_s in (None, 36000.0, 20.0):
        (plan,) = plans(found, effect=0.01, deadline_s=deadline_s)
        *_, last = plan_text.lines(plan, None)
        made.append(int(last.split("--trials ")[1].split()[0]))
        assert made[-1] == min(plan.row.trials or 0, plan.fit.trials or 0 if plan.fit else math.inf)
    assert made[0] == made[1] > made[2]


def test_one_percent_is_what_a_plan_is_for_unless_another_effect_is_named(tmp_path: Path) -> None:
    (plan,) = plans(pilot(tmp_path))
    assert plan.asked == 0.01
    assert plan.row.share == 0.01
    assert plan.fit is None


def test_a_trial_costs_what_is_done_around_it_too(tmp_path: Path) -> None:
    found = columns(tmp_path, 2.5, a=A, b=B)
    (plan,) = plans(found)
    assert plan.cost.seconds == pytest.approx(2.5)
    assert plan.cost.lacking == ""
    assert plan.row.trials is not None
    assert plan.row.seconds == pytest.approx(2 * plan.row.trials * 2.5)


def test_time_between_sessions_is_not_of_a_trial(tmp_path: Path) -> None:
    starts = [0, 1, 2, 3, 100, 101, 102]
    rows = [
        measurement("a", i, 0.1, start_ns=1 + 10**9 * s, sitting=1 + (s >= 100), boot_id=str(s >= 100))
        for i, s in enumerate(starts, 1)
    ]
    found = load_results(results_directory(tmp_path, {"a": rows}, plan=SCRIPT))
    assert seconds_per_trial(series_of_columns(trials_of_results(found).columns)) == pytest.approx(1.0)


def test_where_starts_are_unknown_a_trial_costs_its_elapsed_and_this_is_told(tmp_path: Path) -> None:
    rows = {
        name: [measurement(name, i, float(x), start_ns=None) for i, x in enumerate(values, 1)]
        for name, values in (("a", A), ("b", B))
    }
    (plan,) = plans(load_results(results_directory(tmp_path, rows, plan=SCRIPT)))
    assert plan.cost.seconds == pytest.approx((A.mean() + B.mean()) / 2)
    assert plan.cost.lacking == "starts"
    assert plan_text.LACKING["starts"] in plan_text.pilot_line(plan)


def test_tests_that_did_not_take_turns_are_planned_unpaired_and_told_so(
    tmp_path: Path, golden: Golden
) -> None:
    (plan,) = plans(columns(tmp_path, a=A, b=B))
    assert plan.noise is not None
    assert plan.noise.design == "unpaired"
    golden("\n".join([plan_text.pilot_line(plan), *plan_text.lines(plan, None)]))


def test_of_several_tests_the_noisiest_pair_is_planned_and_all_share_the_time(tmp_path: Path) -> None:
    wild = 0.1 * np.exp(0.2 * RNG.normal(size=12))
    times = {"a": iter([1.0, *A]), "b": iter([1.0, *B]), "w": iter([1.0, *wild])}
    (plan,) = plans(results(tmp_path, times, trials=12), deadline_s=600.0)
    assert (plan.tests, plan.of, plan.others) == (("a", "w"), 3, ("b",))
    assert plan.row.trials is not None
    assert plan.cost.seconds is not None
    assert plan.row.seconds == pytest.approx(3 * plan.row.trials * plan.cost.seconds)
    assert plan.fit is not None
    assert plan.fit.trials == int(600.0 / (3 * plan.cost.seconds))
    asked = next(plan_text.lines(plan, None))
    assert f"{plan.row.trials:,} trials" in asked
    assert "3 tests" in asked
    assert duration(plan.row.seconds) in asked


def test_a_plan_of_several_comparisons_is_for_the_level_at_which_the_verdict_judges_each(
    tmp_path: Path,
) -> None:
    times = {name: iter([1.0, *values]) for name, values in zip("abc", (A, B, C), strict=True)}
    found = results(tmp_path, times, trials=12)
    (plan,), (two,) = plans(found, deadline_s=600.0), plans(found, tests=("a", "b"))
    (first, *_) = verdict(found).comparisons
    assert plan.noise is not None
    assert (plan.together, two.together) == (first.ratio.together, 1)
    at_its_level = plan_for_effect(plan.noise, 0.01, confidence=1 - 0.05 / 2)
    assert at_its_level is not None
    assert plan.row.trials == at_its_level.trials
    assert plan.fit is not None
    fitting = plan_for_deadline(plan.noise, 600.0 / 3600.0 * 2 / 3, confidence=1 - 0.05 / 2)
    assert fitting is not None
    assert plan.fit.share == fitting.effect


def test_two_of_several_tests_can_be_named(tmp_path: Path) -> None:
    (plan,) = plans(columns(tmp_path, a=A, b=B, c=C), tests=("c", "a"))
    assert plan.tests == ("c", "a")
    with pytest.raises(UsageError, match="no test 'x'"):
        plans(columns(tmp_path / "other", a=A), tests=("x",))


def test_a_single_test_is_planned_for_its_mean(tmp_path: Path) -> None:
    (plan,) = plans(columns(tmp_path, 2.0, a=A), deadline_s=200.0)
    assert plan.noise is None
    assert plan.row.trials == trials_for_mean(A, 0.01)
    assert plan.row.trials is not None
    assert plan.row.seconds == pytest.approx(2.0 * plan.row.trials)
    assert plan.fit is not None
    assert plan.fit.trials == 100
    assert plan.fit.share is not None
    reached = trials_for_mean(A, plan.fit.share * 1.0001)
    assert reached is not None
    assert reached <= 100
    assert trials_for_mean(A, plan.fit.share * 0.97) > 100  # type: ignore[operator]
    with pytest.raises(UsageError, match="only 'a'"):
        plans(columns(tmp_path / "again", a=A), effect=0.01)


def test_the_trials_of_a_mean_have_their_likely_range_too(tmp_path: Path) -> None:
    """By the chi squared distribution of a variance of eleven degrees of freedom, 5.578 and 17.28 at 10 and 90 %."""
    (plan,) = plans(columns(tmp_path, a=A), precision=0.001)
    assert plan.row.trials is not None
    assert plan.row.likely is not None
    low, high = plan.row.likely
    assert low == pytest.approx(plan.row.trials * 11 / 17.28, rel=0.01)
    assert high == pytest.approx(plan.row.trials * 11 / 5.578, rel=0.01)


def test_a_plan_of_a_mean_tells_what_dependent_trials_are_worth(tmp_path: Path) -> None:
    values = [1.0 + 0.05 * math.sin(place / 5) + 0.001 * (place % 3) for place in range(40)]
    (plan,) = plans(columns(tmp_path, a=values), precision=0.01)
    assert plan.worth == pytest.approx(effective_count(np.array(values)) / 40)
    assert plan.worth < 0.5
    assert f"{plan.worth:.2f}" in plan_text.pilot_line(plan)
    (free,) = plans(columns(tmp_path / "free", a=A), precision=0.01)
    assert free.worth > plan.worth


def test_a_precision_is_of_each_tests_mean(tmp_path: Path) -> None:
    found = plans(columns(tmp_path, a=A, b=B), precision=0.02)
    assert [plan.tests for plan in found] == [("a",), ("b",)]
    assert {plan.asked for plan in found} == {0.02}


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (A[:4], B[:4], r"\b5\b.*\b4;.*--trials 10"),
        ([*A[:5], 0.0], B[:6], r" 0$"),
        ([0.1] * 6, [0.1] * 6, "not vary"),
    ],
)
def test_a_pilot_that_cannot_carry_a_plan_is_refused(tmp_path: Path, a: Any, b: Any, told: str) -> None:
    with pytest.raises(InputError, match=rf"\belapsed .*{told}"):
        plans(columns(tmp_path, a=a, b=b))


def test_a_mean_of_values_at_or_below_zero_or_of_few_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\belapsed .* 0\b"):
        plans(columns(tmp_path / "zero", a=[0.0, *A]))
    with pytest.raises(InputError, match=r"\belapsed .*\b5\b.*\b3;"):
        plans(columns(tmp_path / "few", a=A[:3]))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"effect": 0.0}, "--effect 0: "),
        ({"effect": -0.01}, "--effect -0.01: "),
        ({"effect": math.nan}, "--effect nan: "),
        ({"precision": 99.0}, "--precision 99: "),
        ({"effect": 0.1, "precision": 0.1}, "--effect .* --precision"),
        ({"power": 0.05}, "--power 0.05"),
        ({"power": 1.0}, "--power 1"),
        ({"deadline_s": 0.0}, "--deadline"),
        ({"metric": "nonsense"}, "'nonsense': .*elapsed"),
    ],
)
def test_a_question_that_cannot_be_meant_is_refused(
    tmp_path: Path, wanted: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        plans(columns(tmp_path, a=A, b=B), **wanted)


def test_a_table_of_another_program_is_a_pilot_whose_time_may_not_be_known(tmp_path: Path) -> None:
    file = tmp_path / "pilot.csv"
    file.write_text("test,rate\n" + "".join(f"a,{x}\nb,{y}\n" for x, y in zip(A, B, strict=True)))
    subject = subject_of_table(read_table(file))
    (plan,) = plan_from(subject, PlanTargets(deadline_s=60.0))
    assert (plan.row.seconds, plan.fit) == (None, None)
    assert plan.row.trials is not None
    assert plan.cost.seconds is None
    assert plan.cost.lacking == "times"
    assert plan_text.LACKING["times"] in plan_text.pilot_line(plan)


def test_what_cannot_be_reached_is_said(tmp_path: Path, golden: Golden) -> None:
    wild = np.exp(9.0 * RNG.normal(size=12))
    (plan,) = plans(columns(tmp_path, a=wild, b=1.0 / wild), effect=0.0001, deadline_s=1.5)
    assert plan.row.trials is None
    assert plan.fit is not None
    assert plan.fit.trials is None
    asked, fits, *rest = plan_text.lines(plan, None)
    assert asked.startswith("0.01 % ")
    assert "1.5 s" in fits
    assert "etude bench" not in " ".join(rest)
    golden("\n".join([" | ".join(plan_text.cells(plan, plan.row)), asked, fits]))


def test_the_words_say_what_a_pilot_does_not_know(tmp_path: Path, golden: Golden) -> None:
    (plan,) = plans(pilot(tmp_path))
    assert plan.noise is not None
    lines = [plan_text.pilot_line(plan), *plan_text.lines(plan, None)]
    low, high = plan.noise.likely
    assert f" {high / low:.1f} apart" in " ".join(lines)
    assert "12 pairs" in lines[0]
    golden("\n".join(lines))


def test_the_command_line_is_that_of_the_pilot_with_another_number_of_trials(tmp_path: Path) -> None:
    (plan,) = plans(pilot(tmp_path))
    line = ["etude bench", "--precision", "2%", "-o", "old", "a b", "--prepare", "sync", "c", "--json"]
    said = list(plan_text.lines(plan, {"verb": "bench", "command_line": line}))[-1]
    assert said.endswith(f": etude bench --trials {plan.row.trials} 'a b' --prepare sync c")
    script = list(plan_text.lines(plan, {"verb": "run", "command_line": ["etude run", "x.ap"]}))[-1]
    assert "etude run" in script
    assert f"{plan.row.trials} trials" in script
    assert "TEST" in script


def test_a_plan_of_some_tests_is_a_command_of_these(tmp_path: Path) -> None:
    times = {name: iter([9.0, *x]) for name, x in (("a", A), ("b", B), ("c", C))}
    found = results(tmp_path, times, trials=12)
    (plan,) = plans(found, tests=("a", "c"))
    assert found.experiment["plan"]["tests"][1]["command"] == ["b"]

    def command(*words: str, tests: tuple[str, ...] = ("a", "b", "c")) -> list[str]:
        document = {
            "verb": "bench",
            "command_line": ["etude bench", *words],
            "plan": {
                "tests": [
                    {**test, "name": name}
                    for test, name in zip(found.experiment["plan"]["tests"], tests, strict=False)
                ]
            },
        }
        line = list(plan_text.lines(plan, document))[-1]
        return shlex.split(line.partition(": ")[2])[4:]

    assert command("a", "b", "c") == ["a", "c"]
    assert command("-n", "x", "b", "-i", "a", "c", tests=("a", "x", "c")) == ["-i", "a", "c"]
    by_hand = ["COMMAND of a", "COMMAND of c"]
    assert command("{p}", "-P", "p=a,b,c") == by_hand
    assert command("-p", "1", "-p", "2", "-p", "3", "a", "b", "c") == by_hand


def test_a_plan_that_takes_too_long_is_no_command(tmp_path: Path) -> None:
    wild = np.exp(0.5 * RNG.normal(size=12))
    (plan,) = plans(columns(tmp_path, gap_s=5.0, a=wild, b=wild[::-1]), effect=0.005)
    assert plan.row.trials is not None
    assert not within_reach(plan.row.trials, plan.pilot, plan.row.seconds or 0.0)
    document = {"verb": "bench", "command_line": ["etude bench", "a", "b"]}
    assert "etude bench" not in " ".join(plan_text.lines(plan, document))


@given(
    st.lists(st.sampled_from(["--trials", "5", "--time=3", "-o", "-oX", "--", "a", "--runs=3", "-n", "N"]))
)
@example(["a", "--", "--trials", "5"])
@example(["--trials"])
def test_of_a_command_line_only_the_rule_and_the_output_are_taken_away(words: list[str]) -> None:
    kept = plan_text.without_rule(words)
    before = kept[: kept.index("--")] if "--" in kept else kept
    assert not {"--trials", "--time=3", "-o", "-oX", "--runs=3"} & set(before)
    rest = iter(words)
    assert all(any(word == other for other in rest) for word in kept)  # the others stay, in their order


def test_a_gate_of_the_pilot_is_none_of_its_plan() -> None:
    gate = ["--fail-if", "elapsed > baseline * 1.5", "--undecided=fail", "--between-sessions", "3%"]
    assert plan_text.without_rule(["-i", *gate, "a", "b"]) == ["-i", "a", "b"]


def test_a_plan_is_also_data(tmp_path: Path) -> None:
    found = plans(pilot(tmp_path), deadline_s=60.0)
    (document,) = plan_text.to_document("pilot", found)["plans"]
    assert document["design"] == "paired"
    assert [need["share"] for need in document["needs"]] == [0.05, 0.02, 0.01, 0.005]
    assert document["deadline"]["trials"] == found[0].fit.trials  # type: ignore[union-attr]
