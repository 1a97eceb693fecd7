"""When there is enough: counts, precision, the cap and the time; nothing runs for ever."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from etude.api import make_plan, run
from etude.errors import EtudeError, MachineRefuses, UsageError
from etude.experiment.plan import Plan, RuleSpec
from etude.experiment.run import Outcome
from etude.experiment.test import MetricPattern, Test
from support.fakes import World, around

STEADY = (-0.001, 0.001)
WILD = (-0.5, 0.7, 0.1, -0.3, 0.9, -0.7)


def outcome(directory: Path, times: dict[str, Any], *commands: str | Test, **options: Any) -> Outcome:
    asked = make_plan(commands or ("a",), seed=1, **options)
    return run(asked, directory=directory, make_engine=World(times).make_engine)


def kept(found: Outcome, test: str = "a") -> int:
    return sum(m.kept for m in found.results.measurements[test])


def test_a_steady_command_stops_at_ten_trials(tmp_path: Path) -> None:
    found = outcome(tmp_path, {"a": around(0.01, *STEADY)})
    assert kept(found) == 10
    assert found.decisions[0].converged
    assert "after 10 trials, below 5 %" in found.decisions[0].why


def test_a_steady_comparison_stops_at_ten_pairs(tmp_path: Path) -> None:
    times = {"a": around(0.01, *STEADY), "b": around(0.02, *STEADY[::-1])}
    found = outcome(tmp_path, times, "a", "b")
    assert (kept(found), kept(found, "b")) == (10, 10)
    assert "after 10 pairs, below 2 %" in found.decisions[0].why


@pytest.mark.parametrize("commands", [("a",), ("a", "b")])
def test_a_wild_command_stops_at_fifty_and_says_not_converged(
    tmp_path: Path, commands: tuple[str, ...]
) -> None:
    found = outcome(tmp_path, {"a": around(0.01, *WILD), "b": 0.01}, *commands)
    assert kept(found) == 50
    assert found.decisions[0].converged is False
    assert found.decisions[0].why.startswith("not converged: ")
    decisions = found.results.experiment["sittings"][0]["decisions"]
    assert decisions == [found.decisions[0].why]


def test_the_time_is_a_budget_once_the_minimum_is_done(tmp_path: Path) -> None:
    found = outcome(tmp_path, {"a": around(1.0, *WILD)}, budget_s=20.0)
    assert 17 <= kept(found) <= 23
    assert "20 s used" in found.decisions[0].why
    short = outcome(tmp_path / "short", {"a": around(100.0, *WILD)}, budget_s=1.0)
    assert kept(short) == 10
    assert short.decisions[0].converged is False


def test_set_aside_runs_and_the_references_twin_do_not_use_up_the_budget(tmp_path: Path) -> None:
    def slow_first() -> Iterator[float]:
        yield 1000.0
        yield from around(0.5, *WILD)

    found = outcome(tmp_path, {"a": slow_first(), "b": around(0.5, *WILD)}, "a", "b", budget_s=30.0)
    assert kept(found) >= 25


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("commands", [("a",), ("a", "b")])
def test_a_count_is_kept_to_exactly(tmp_path: Path, count: int, commands: tuple[str, ...]) -> None:
    found = outcome(tmp_path, {"a": around(0.01, *WILD)}, *commands, trials=count)
    assert {kept(found, name) for name in commands} == {count}
    assert "as asked" in found.decisions[0].why


def test_each_test_in_turn_has_a_decision_of_its_own(tmp_path: Path) -> None:
    times = {"a": around(0.01, *STEADY), "b": around(0.01, *WILD)}
    found = outcome(tmp_path, times, "a", "b", schedule="in-turn")
    assert [d.converged for d in found.decisions] == [True, False]
    assert (kept(found), kept(found, "b")) == (10, 50)


RULES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"precision": 0.05, "minimum": 10, "maximum": 50, "budget_s": 30.0}),
    ({"min_trials": 3}, {"precision": 0.05, "minimum": 3, "maximum": 50, "budget_s": 30.0}),
    ({"min_trials": 80}, {"precision": 0.05, "minimum": 80, "maximum": 80, "budget_s": 30.0}),
    ({"max_trials": 5}, {"precision": 0.05, "minimum": 5, "maximum": 5, "budget_s": 30.0}),
    ({"max_trials": 200}, {"precision": 0.05, "minimum": 10, "maximum": 200, "budget_s": 30.0}),
    ({"precision": 0.01, "budget_s": 5}, {"precision": 0.01, "minimum": 10, "maximum": 50, "budget_s": 5}),
    ({"trials": 4}, {"count": 4}),
]


@pytest.mark.parametrize(("options", "parameters"), RULES)
def test_options_shape_the_rule(options: dict[str, Any], parameters: dict[str, Any]) -> None:
    assert make_plan(["a"], **options).rule.parameters == parameters


def test_a_comparison_asks_for_two_percent_of_the_ratio() -> None:
    rule = make_plan(["a", "b"]).rule
    assert (rule.kind, rule.parameters["precision"]) == ("ratio-precision", 0.02)
    assert make_plan(["a", "b"], schedule="in-turn").rule.kind == "mean-precision"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"trials": 0}, "--trials 0: at least 1"),
        ({"trials": 5, "min_trials": 2}, "--trials"),
        ({"trials": 5, "precision": 0.1}, "--trials"),
        ({"min_trials": 1}, r"--min-trials 1: .*\b2\b"),
        ({"max_trials": 1}, r"-trials 1: .*\b2\b"),
        ({"min_trials": 9, "max_trials": 5}, "--max-trials 5: .*--min-trials 9"),
        ({"precision": 0}, "--precision 0"),
        ({"precision": 1}, "--precision 1"),
        ({"precision": float("nan")}, "--precision nan"),
        ({"budget_s": 0}, "--time 0"),
        ({"budget_s": float("nan")}, "--time nan"),
    ],
)
def test_values_that_cannot_be_meant_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        make_plan(["a"], **options)


NO_CYCLES = {"metrics": {"cycles": [None, "1", "no such event on this machine"]}}


@pytest.mark.parametrize("commands", [("a",), ("a", "b")])
@pytest.mark.parametrize("trials", [None, 3])
def test_a_primary_metric_that_is_not_there_is_refused_after_the_first_run(
    tmp_path: Path, commands: tuple[str, ...], trials: int | None
) -> None:
    with pytest.raises(UsageError, match=r"'nosuch': '[ab]' .*elapsed, user"):
        outcome(tmp_path / "1", {}, *commands, primary="nosuch", trials=trials)
    times = dict.fromkeys(commands, NO_CYCLES)
    with pytest.raises(MachineRefuses, match=r"\bcycles .*'[ab]': no such event"):
        outcome(tmp_path / "2", times, *commands, primary="cycles", trials=trials)


@pytest.mark.parametrize("commands", [("a",), ("a", "b")])
def test_a_primary_metric_that_most_trials_lack_ends_as_well(
    tmp_path: Path, commands: tuple[str, ...]
) -> None:
    def seldom() -> Iterator[dict[str, Any]]:
        yield {"stdout": "rate 7"}
        for number in itertools.count():
            yield {"stdout": "rate 8" if number % 20 == 0 else "nothing"}

    tests = [Test(name, (name,), metrics=(MetricPattern("rate", r"rate (\d+)"),)) for name in commands]
    times = {name: seldom() for name in commands}
    found = outcome(tmp_path, times, *tests, primary="rate")
    assert kept(found) == 100
    assert not found.decisions[0].enough


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_values_that_no_ratio_can_be_made_of_are_one_error(tmp_path: Path, value: float) -> None:
    times = {name: {"metrics": {"faults": [value, "1"]}} for name in "ab"}
    with pytest.raises(UsageError, match=r"metric faults: .*positive"):
        outcome(tmp_path, times, "a", "b", primary="faults")


def test_commands_no_longer_than_their_shell_are_one_error(tmp_path: Path) -> None:
    with pytest.raises(EtudeError, match=r"metric elapsed: .*positive"):
        outcome(tmp_path, {"/bin/sh": around(0.001, *WILD)}, "true", ":", shell="/bin/sh")


def test_the_plan_is_the_same_after_a_trip_through_its_document() -> None:
    from etude.experiment.plan import digest, from_document, to_document

    test = Test("a", ("a", "b"), cpus=(0, 2), metrics=(MetricPattern("m", "x"),), environment={"A": None})
    plan = make_plan([test, "c"], seed=3)
    again = from_document(to_document(plan), "here")
    assert again == plan
    assert digest(again) == digest(plan) != digest(make_plan([test, "c"], seed=4))


@pytest.mark.parametrize(
    "rule", [RuleSpec("odd", {}), RuleSpec("fixed-count", {"n": 1}), RuleSpec("fixed-count", {"count": 0})]
)
def test_a_stop_rule_of_a_later_etude_is_an_input_error(rule: RuleSpec) -> None:
    with pytest.raises(EtudeError, match="stop rule"):
        Plan("n", (Test("a", ("a",)),), rule).rule.make()
