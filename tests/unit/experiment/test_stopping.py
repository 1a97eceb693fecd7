"""When there is enough: counts, precision, the cap and the time; nothing runs for ever."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from etude.errors import EtudeError, Interrupted, MachineRefuses, UsageError
from etude.experiment import progress as samples
from etude.experiment.plan import Plan, RuleSpec, make_plan
from etude.experiment.progress import Trial
from etude.experiment.run import Outcome, resume, run
from etude.experiment.test import MetricPattern, Test
from etude.stats.stopping import Decision, MeanPrecision, SamplesSoFar
from support.fakes import World, around

STEADY = (-0.001, 0.001)
WILD = (-0.5, 0.7, 0.1, -0.3, 0.9, -0.7)


def outcome(directory: Path, times: dict[str, Any], *commands: str | Test, **options: Any) -> Outcome:
    asked = make_plan(commands or ("a",), seed=1, **options)
    return run(asked, directory=directory, make_engine=World(times).make_engine)


def kept(found: Outcome, test: str = "a") -> int:
    return sum(m.kept for m in found.results.measurements[test])


def test_a_steady_command_stops_at_ten_trials(tmp_path: Path) -> None:
    found = outcome(tmp_path, {"a": around(0.4, *STEADY)})
    assert kept(found) == 10
    assert found.decisions[0].converged
    assert "after 10 trials, the target is ± 5 %" in found.decisions[0].why


def test_a_steady_comparison_stops_at_ten_pairs(tmp_path: Path) -> None:
    times = {"a": around(0.2, *STEADY), "b": around(0.4, *STEADY[::-1])}
    found = outcome(tmp_path, times, "a", "b")
    assert (kept(found), kept(found, "b")) == (10, 10)
    assert "after 10 pairs, the target is ± 2 %" in found.decisions[0].why


@pytest.mark.parametrize("commands", [("a",), ("a", "b")])
@pytest.mark.parametrize(
    ("options", "spent_s"),
    [
        ({}, 3.0),
        ({"least_s": 0.5}, 0.5),
        ({"least_s": 0.0}, 0.0),
        ({"budget_s": 1.0}, 1.0),
        ({"max_trials": 20}, 0.0),
    ],
    ids=["default", "half a second", "none", "the time is up", "a maximum"],
)
def test_steady_commands_of_milliseconds_are_measured_for_the_least_time(
    tmp_path: Path, commands: tuple[str, ...], options: dict[str, float], spent_s: float
) -> None:
    world = World({"a": around(0.01, *STEADY), "b": 0.01})
    found = run(make_plan(commands, seed=1, **options), directory=tmp_path, make_engine=world.make_engine)
    assert found.decisions[0].converged
    assert spent_s <= world.elapsed_s < spent_s + 0.5
    most = options.get("max_trials") or (10 if spent_s == 0.0 else 1000)
    assert min(most, 10) <= kept(found) <= most
    assert kept(found) == most or spent_s > 0.0


@pytest.mark.parametrize("commands", [("a",), ("a", "b")])
def test_a_wild_command_stops_at_fifty_and_says_not_converged(
    tmp_path: Path, commands: tuple[str, ...]
) -> None:
    found = outcome(tmp_path, {"a": around(0.1, *WILD), "b": 0.01}, *commands)
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


@pytest.mark.parametrize("commands", [("a",), ("a", "b")])
def test_a_wild_command_of_milliseconds_is_measured_for_three_seconds_before_it_is_given_up(
    tmp_path: Path, commands: tuple[str, ...]
) -> None:
    world = World({"a": around(0.01, *WILD), "b": 0.01})
    asked = make_plan(commands, seed=1)
    found = run(asked, directory=tmp_path, make_engine=world.make_engine)
    assert kept(found) > 50
    assert found.decisions[0].converged is False
    assert 3.0 <= world.elapsed_s < 3.1


def test_a_maximum_that_was_given_is_kept_to_however_short_the_trials(tmp_path: Path) -> None:
    found = outcome(tmp_path, {"a": around(0.001, *WILD)}, max_trials=50)
    assert kept(found) == 50
    assert found.decisions[0].enough


def test_a_time_below_three_seconds_is_kept_to(tmp_path: Path) -> None:
    world = World({"a": around(0.01, *WILD)})
    run(make_plan(["a"], seed=1, budget_s=1.0), directory=tmp_path, make_engine=world.make_engine)
    assert 1.0 <= world.elapsed_s < 1.1


def test_the_time_is_by_the_clock_with_all_that_goes_on_between_trials(tmp_path: Path) -> None:
    def slow_first() -> Iterator[float]:
        yield 16.0
        yield from around(0.5, *WILD)

    times = {"a": slow_first(), "b": around(0.5, *WILD), "prepare": 0.25}
    world = World(times)
    tests = [Test(name, (name,), prepare="prepare") for name in "ab"]
    found = run(make_plan(tests, seed=1, budget_s=40.0), directory=tmp_path, make_engine=world.make_engine)
    assert "40 s used" in found.decisions[0].why
    assert 40.0 <= world.elapsed_s < 43.0


class Looks:
    """A rule of a plan whose questions are counted: how many values it was shown each time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: list[int] = []
        judge = MeanPrecision.decide

        def counted(rule: MeanPrecision, seen: SamplesSoFar) -> Decision:
            self.counts.append(seen.fewest)
            return judge(rule, seen)

        monkeypatch.setattr(MeanPrecision, "decide", counted)


def test_a_long_series_is_looked_at_less_often_the_longer_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(monkeypatch)
    found = outcome(tmp_path, {"a": around(0.001, *WILD)}, max_trials=3000, precision=0.0001, budget_s=1e6)
    assert kept(found) == 3000
    assert looks.counts[:92] == [*range(10, 101), 102]
    assert looks.counts[-1] == 3000
    assert len(looks.counts) < 300
    assert sum(looks.counts) < 55 * 3000


def test_a_resumed_series_is_looked_at_where_it_would_have_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(number: int, world: World) -> None:
        if number == 120:
            world.signal(15)

    options: dict[str, Any] = {"max_trials": 300, "precision": 0.0001, "budget_s": 1e6}
    whole = Looks(monkeypatch)
    outcome(tmp_path / "whole", {"a": around(0.001, *WILD)}, **options)
    counts, whole.counts = whole.counts, []
    world = World({"a": around(0.001, *WILD)}, before=ended)
    asked = make_plan(["a"], seed=1, **options)
    with pytest.raises(Interrupted):
        run(asked, directory=tmp_path / "torn", make_engine=world.make_engine)
    resume(tmp_path / "torn", make_engine=World({"a": around(0.001, *WILD)}).make_engine)
    assert sorted(set(whole.counts)) == counts


def test_trials_between_two_looks_are_one_request_to_the_engine(tmp_path: Path) -> None:
    requests: list[int] = []
    world = World({"a": around(0.001, *WILD)}, before=lambda number, _: requests.append(number))
    asked = make_plan(["a"], seed=1, max_trials=3000, precision=0.0001, budget_s=1e6)
    found = run(asked, directory=tmp_path, make_engine=world.make_engine)
    assert kept(found) == 3000
    assert len(requests) < 300


def test_a_command_that_becomes_slow_between_two_looks_is_ended_by_the_time(tmp_path: Path) -> None:
    def slow_from(n: int) -> Iterator[float]:
        yield from itertools.islice(around(0.001, *WILD), n)
        yield from around(0.2, *WILD)

    world = World({"a": slow_from(1000)})
    asked = make_plan(["a"], seed=1, max_trials=10**6, precision=0.0001, budget_s=2.0)
    run(asked, directory=tmp_path, make_engine=world.make_engine)
    assert 2.0 <= world.elapsed_s < 2.6


def test_a_series_over_many_trials_takes_each_value_of_a_trial_once(tmp_path: Path) -> None:
    read: list[int] = []

    class Counted(Trial):
        def value(self, metric: str) -> float | None:
            read.append(self.first.trial)
            return super().value(metric)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(samples, "Trial", Counted)
        found = outcome(tmp_path, {"a": around(0.001, *WILD)}, max_trials=500, precision=0.0001)
    assert kept(found) == 500
    assert max(map(read.count, set(read))) <= 4


def test_the_count_and_the_sample_of_a_resumed_pair_are_those_of_its_whole_blocks(tmp_path: Path) -> None:
    def ended(number: int, world: World) -> None:
        if number == 8:
            world.signal(15)

    world = World({"a": 0.2, "b": 0.2}, after=ended)
    with pytest.raises(Interrupted):
        run(make_plan(["a", "b"], seed=1), directory=tmp_path, make_engine=world.make_engine)
    found = resume(tmp_path, make_engine=World({"a": 0.2, "b": 0.2}).make_engine)
    assert found.decisions[0].converged
    rows = found.results.measurements
    torn = {m.block for m in rows["a"] if m.kept and m.sitting == 1} ^ {
        m.block for m in rows["b"] if m.kept and m.sitting == 1
    }
    assert len(torn) == 1
    assert kept(found) == 11


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("commands", [("a",), ("a", "b")])
def test_a_count_is_kept_to_exactly(tmp_path: Path, count: int, commands: tuple[str, ...]) -> None:
    found = outcome(tmp_path, {"a": around(0.01, *WILD)}, *commands, trials=count)
    assert {kept(found, name) for name in commands} == {count}
    assert "as requested" in found.decisions[0].why


def test_each_test_in_turn_has_a_decision_of_its_own(tmp_path: Path) -> None:
    times = {"a": around(0.4, *STEADY), "b": around(0.01, *WILD)}
    found = outcome(tmp_path, times, "a", "b", schedule="in-turn")
    assert [d.converged for d in found.decisions] == [True, False]
    assert kept(found) == 10
    assert kept(found, "b") > 50


USUAL = {"precision": 0.05, "minimum": 10, "maximum": 50, "budget_s": 30.0}
RULES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, USUAL | {"least_s": 3.0}),
    ({"min_trials": 3}, USUAL | {"minimum": 3, "least_s": 3.0}),
    ({"min_trials": 80}, USUAL | {"minimum": 80, "maximum": 80, "least_s": 3.0}),
    ({"max_trials": 5}, USUAL | {"minimum": 5, "maximum": 5, "least_s": 3.0, "exact": True}),
    ({"max_trials": 200, "least_s": 1}, USUAL | {"maximum": 200, "least_s": 1, "exact": True}),
    ({"max_trials": 200, "least_s": 0}, USUAL | {"maximum": 200}),
    ({"precision": 0.01, "budget_s": 5}, USUAL | {"precision": 0.01, "budget_s": 5, "least_s": 3.0}),
    ({"least_s": 0.0}, USUAL),
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
        ({"least_s": -1.0}, "--min-time -1"),
        ({"least_s": float("nan")}, "--min-time nan"),
        ({"least_s": 9.0, "budget_s": 5.0}, "--min-time 9: .* 5"),
        ({"trials": 5, "least_s": 1.0}, "--min-time"),
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
