"""One trial: workers, inner launches, the program's own metrics, failures, time limits, the shell's share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from etude.analysis.verdict import verdict
from etude.engine import Launch
from etude.errors import CommandFailed, EtudeError, UsageError
from etude.experiment import loop
from etude.experiment.plan import Plan, make_plan
from etude.experiment.run import run
from etude.experiment.test import MetricPattern, Test, make_test
from etude.results.model import Measurement
from etude.results.reader import load_results
from etude.results.results import Results
from etude.stats.stopping import Decision, SamplesSoFar
from support.builders import series_of_rows
from support.fakes import World, around, is_hook

RATE = MetricPattern("rate", r"rate (\S+)", "B/s")


def sample_of(rows: Sequence[Measurement], metric: str) -> list[float]:
    return series_of_rows(rows).sample(metric).tolist()


def results(directory: Path, times: dict[str, Any], *tests: Test, **options: Any) -> tuple[Results, World]:
    world = World(times)
    asked = make_plan(tests, **{"trials": 3, "seed": 1, **options})
    return run(asked, directory=directory, make_engine=world.make_engine).results, world


def printing(*texts: str) -> Iterator[dict[str, str]]:
    return ({"stdout": text} for text in texts)


def values(found: Results, metric: str = "rate") -> list[Any]:
    return [m.metrics[metric] for m in found.measurements["a"]]


def test_a_metric_is_the_first_group_of_its_pattern(tmp_path: Path) -> None:
    test = Test("a", ("a",), metrics=(MetricPattern("rate", r"rate (\d+) of (\d+)", "B/s"),))
    found, _ = results(tmp_path, {"a": printing(*["x\nrate 12 of 99\n"] * 4)}, test)
    assert values(found) == [[12.0, "B/s"]] * 4
    assert found.experiment["metrics"]["rate"] == {"unit": "B/s", "kind": "rate"}


def test_a_metric_is_kept_in_the_base_of_its_unit(tmp_path: Path) -> None:
    test = Test("a", ("a",), metrics=(MetricPattern("rate", r"(\S+) KBytes/sec", "KiB/s"),))
    found, _ = results(tmp_path, {"a": printing(*["2.50 KBytes/sec\n"] * 4)}, test)
    assert values(found) == [[2560.0, "B/s"]] * 4
    assert found.experiment["metrics"]["rate"] == {"unit": "B/s", "kind": "rate"}


def test_programs_that_print_a_measurement_are_not_expected_to_print_the_same(tmp_path: Path) -> None:
    from etude.analysis.verdict import verdict

    rates = (MetricPattern("rate", r"rate (\d+)", "B/s"),)
    tests = [Test(name, (name,), metrics=rates) for name in "ab"]
    outputs = {"a": {"stdout": "rate 12"}, "b": {"stdout": "rate 345"}}
    found, _ = results(tmp_path, outputs, *tests)
    assert not [w for w in verdict(found).warnings if "same work" in str(w)]


@pytest.mark.parametrize(
    ("regex", "text", "value"),
    [
        (r"\d+", "took 12 s", 12.0),
        (r"^\d+$", "took 5 s\n12\n", 12.0),
        (r"rate ([\d,]+)", "rate 1,234,567", 1234567.0),
        (r"rate (\S+)", "rate -1.5e3", -1500.0),
    ],
)
def test_a_metric_without_a_group_is_the_whole_match(
    tmp_path: Path, regex: str, text: str, value: float
) -> None:
    test = Test("a", ("a",), metrics=(MetricPattern("rate", regex),))
    found, _ = results(tmp_path, {"a": {"stdout": text}}, test)
    assert values(found) == [[value, "1"]] * 4


def test_a_metric_may_stand_in_the_error_output(tmp_path: Path) -> None:
    found, _ = results(tmp_path, {"a": {"stderr": "rate 7"}}, Test("a", ("a",), metrics=(RATE,)))
    assert values(found) == [[7.0, "B/s"]] * 4


@pytest.mark.parametrize(
    ("text", "names"),
    [("nothing", "nothing"), ("rate fast", "'fast'"), ("rate nan", "'nan'"), ("rate inf", "'inf'")],
)
def test_a_pattern_that_does_not_fit_the_first_output_ends_at_once_and_later_is_null(
    tmp_path: Path, text: str, names: str
) -> None:
    test = Test("a", ("a",), metrics=(RATE,))
    with pytest.raises(UsageError) as error:
        results(tmp_path / "first", {"a": {"stdout": text}}, test)
    assert "rate of 'a': " in str(error.value)
    assert names in str(error.value)
    found, _ = results(tmp_path / "later", {"a": printing("rate 1", "rate 2", text, "rate 3")}, test)
    assert [value[:2] for value in values(found)] == [[1.0, "B/s"], [2.0, "B/s"], [None, "B/s"], [3.0, "B/s"]]
    assert names in values(found)[2][2]
    assert all(m.kept for m in found.measurements["a"][1:])
    assert sample_of(found.measurements["a"], "rate") == [2.0, 3.0]


def test_a_pattern_whose_group_took_no_part_is_null_with_its_reason(tmp_path: Path) -> None:
    test = Test("a", ("a",), metrics=(MetricPattern("rate", r"rate (\d+)?"),))
    found, _ = results(tmp_path, {"a": printing("rate 1", "rate 1", "rate x", "rate 2")}, test)
    value, unit, reason = values(found)[2]
    assert (value, unit) == (None, "1")
    assert "None" in reason


@pytest.mark.parametrize("names", [("elapsed",), ("rate", "rate")])
def test_metrics_that_would_hide_one_another_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=f"metric {names[0]}"):
        Test("a", ("a",), metrics=tuple(MetricPattern(name, "x") for name in names))


def test_inner_auto_repeats_a_short_command_until_a_trial_takes_fifty_milliseconds(tmp_path: Path) -> None:
    found, world = results(tmp_path, {"a": 0.004}, Test("a", ("a",), inner="auto"))
    assert [(m.inner, m.why) for m in found.measurements["a"]] == [
        (1, "first run"),
        (1, "calibration"),
        *[(13, None)] * 3,
    ]
    assert [test.inner for test in verdict(found).tests] == [13]
    assert [launch.inner for launch in world.log] == [1, 1, 13]


@pytest.mark.parametrize(("elapsed", "inner"), [(0.05, 1), (3.0, 1), (0.0, 1), (0.049, 2), (0.0003, 167)])
def test_inner_auto_never_repeats_what_is_long_enough(tmp_path: Path, elapsed: float, inner: int) -> None:
    found, _ = results(tmp_path, {"a": elapsed}, Test("a", ("a",), inner="auto"))
    assert {m.inner for m in found.measurements["a"] if m.kept} == {inner}


def test_compared_tests_and_the_twin_repeat_alike_in_every_block(tmp_path: Path) -> None:
    tests = [Test(name, (name,), inner="auto") for name in "ab"]
    found, _ = results(tmp_path, {"a": 0.01, "b": 0.025}, *tests, trials=4)
    inner = {name: {m.inner for m in rows if m.kept} for name, rows in found.measurements.items()}
    assert inner == {"a": {5}, "b": {2}, "a (again)": {5}}


def test_the_first_run_is_a_single_launch(tmp_path: Path) -> None:
    found, _ = results(tmp_path, {}, Test("a", ("a",), inner=7))
    assert [m.inner for m in found.measurements["a"]] == [1, 7, 7, 7]


def test_workers_start_in_one_launch_and_are_joined(tmp_path: Path) -> None:
    elapsed = iter([0.1, 0.3, 0.2] * 4)
    found, world = results(tmp_path, {"a": elapsed}, Test("a", ("a",), workers=3, prepare=":"))
    assert all(len(launch.workers) == 3 for launch in world.log if not is_hook(launch))
    assert [m.worker for m in found.measurements["a"]] == [0, 1, 2] * 4
    rows = found.measurements["a"]
    assert sample_of(rows, "elapsed") == [0.3] * 3
    assert sample_of(rows, "user") == pytest.approx([0.3] * 3)


def test_workers_get_a_cpu_each_and_are_refused_when_there_are_fewer(tmp_path: Path) -> None:
    _, world = results(tmp_path, {}, Test("a", ("a",), workers=2, cpus=(4, 5)))
    assert [worker.cpus for worker in world.log[0].workers] == [(4,), (5,)]
    with pytest.raises(UsageError, match="3 workers on CPUs 4,5"):
        Test("a", ("a",), workers=3, cpus=(4, 5))


def test_one_worker_that_fails_fails_its_trial(tmp_path: Path) -> None:
    outcomes = iter([0.1] * 4 + [0.1, {"exit_status": 3}])
    with pytest.raises(CommandFailed, match=r"a: trial 2: .*\b3\b"):
        results(tmp_path, {"a": outcomes}, Test("a", ("a",), workers=2, prepare=":"))


ENDINGS: list[tuple[dict[str, Any], str]] = [
    ({"exit_status": 3}, "exit status 3"),
    ({"exit_status": None, "signal": 11}, "killed by signal 11 (SIGSEGV)"),
    ({"exit_status": None, "signal": 15, "timed_out": True}, "ended after its timeout"),
    ({"exit_status": None, "error": "no such file"}, "not started: no such file"),
]


@pytest.mark.parametrize(("changes", "says"), ENDINGS)
def test_a_failure_ends_the_experiment_with_its_trial_on_disk(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(CommandFailed) as error:
        results(tmp_path, {"b": changes}, Test("a", ("a",)), Test("b", ("b",)))
    assert f"b: trial 0: {says}" in str(error.value)
    rows = load_results(tmp_path).measurements["b"]
    assert [(m.kept, m.why) for m in rows] == [(False, "failed")]


@pytest.mark.parametrize(("changes", "says"), ENDINGS)
def test_ignore_failure_keeps_what_ended_by_itself_only(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    def attempt() -> Results:
        return results(tmp_path, {"a": changes}, Test("a", ("a",)), ignore_failure=True)[0]

    if changes.get("timed_out") or changes.get("error"):
        with pytest.raises(CommandFailed, match=says.split(":")[0]):
            attempt()
    else:
        kept = [m for m in attempt().measurements["a"] if m.kept]
        assert len(kept) == 3
        assert all(m.failed for m in kept)


def test_a_duet_is_kept_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    outcomes = iter([{}, {}, {"exit_status": 1}])
    tests = [Test("a", ("a",)), Test("b", ("b",))]
    with pytest.raises(CommandFailed, match=r"b: trial 2: .*\b1\b"):
        results(tmp_path, {"b": outcomes}, *tests, schedule="duet")
    rows = load_results(tmp_path).measurements
    assert [[(m.block, m.kept, m.why) for m in rows[name]][1:] for name in "ab"] == [
        [(1, True, None), (2, False, "failed")]
    ] * 2


def test_the_worker_that_failed_by_itself_is_named_and_not_those_that_ended_with_it(tmp_path: Path) -> None:
    ends = iter([{"exit_status": None, "cancelled": True}, {"exit_status": None, "error": "no pipe"}])
    with pytest.raises(CommandFailed, match="no pipe"):
        results(tmp_path, {"a": ends}, Test("a", ("a",), workers=2))


def test_a_failure_advises_only_what_helps(tmp_path: Path) -> None:
    def message(name: str, changes: dict[str, Any]) -> str:
        with pytest.raises(CommandFailed) as error:
            results(tmp_path / name, {"a": changes}, Test("a", ("a",)))
        return str(error.value)

    assert "--ignore-failure" in message("1", {"exit_status": 1})
    assert "--ignore-failure" not in message("2", {"error": "no such file"})


def test_time_limits_are_the_engines_to_keep_and_the_shortest_holds_in_a_duet(tmp_path: Path) -> None:
    tests = [Test("a", ("a",), timeout_s=5.0), Test("b", ("b",), timeout_s=2.0)]
    _, world = results(tmp_path, {}, *tests, schedule="duet")
    assert {launch.timeout_s for launch in world.log if len(launch.workers) == 2} >= {2.0}
    alone = [launch.timeout_s for launch in world.log if len(launch.workers) == 1]
    assert sorted(limit for limit in alone if limit) == [2.0, 5.0]


def test_the_twin_is_what_the_reference_is_but_for_set_up_and_clean_up(tmp_path: Path) -> None:
    reference = Test("a", ("a", "x"), setup="s", prepare="p", cpus=(1,), environment={"X": "1"})
    _, world = results(tmp_path, {}, reference, Test("b", ("b",)), trials=4)
    runs = [launch for launch in world.log if not is_hook(launch) and launch.workers[0].argv[0] == "a"]
    assert len(runs) == 7
    assert (
        len({worker for launch in runs for worker in [str(launch.workers[0]).replace("capture", "null")]})
        == 1
    )
    assert world.story.count("s") == 1
    assert world.story.count("p") == 7


def test_a_shell_is_run_empty_in_every_block(tmp_path: Path) -> None:
    tests = [make_test(line, shell="/bin/sh") for line in ("x | y", "z")]
    found, world = results(tmp_path, {}, *tests, shell="/bin/sh", trials=4)
    assert found.names("shell") == ("/bin/sh -c :",)
    assert sum(m.kept for m in found.measurements["/bin/sh -c :"]) == 4
    assert {launch.workers[0].argv[:2] for launch in world.log} == {("/bin/sh", "-c")}


def test_the_shells_start_is_taken_off_with_its_error(tmp_path: Path) -> None:
    def shell(launch: Launch) -> float:
        return next(empty if launch.workers[0].argv[-1] == ":" else full)

    empty, full = around(0.002, -0.1, 0.1), around(0.012)
    found, _ = results(
        tmp_path, {"/bin/sh": shell}, make_test("x", shell="/bin/sh"), shell="/bin/sh", trials=20
    )
    said = verdict(found).tests[0].metric("elapsed")
    assert said
    assert said.summary
    assert said.summary.mean_interval
    assert said.corrected_s == pytest.approx(0.002)
    assert said.summary.mean == pytest.approx(0.010)
    assert said.summary.mean_interval.half_width > 1.96 * 0.0002 / 20**0.5


def test_a_stop_rule_sees_times_less_the_mean_start_of_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shell(launch: Launch) -> float:
        return next(empty) if launch.workers[0].argv[-1] == ":" else 0.012

    def judged(plan: Plan, seen: Callable[[], SamplesSoFar]) -> Decision:
        looks.append(seen())
        return decide(plan, lambda: looks[-1])

    empty, decide = around(0.002, 0.0, -0.5, 0.8), loop.decide_on_samples
    looks: list[SamplesSoFar] = []
    monkeypatch.setattr(loop, "decide_on_samples", judged)
    found, _ = results(
        tmp_path, {"/bin/sh": shell}, make_test("x", shell="/bin/sh"), shell="/bin/sh", trials=6
    )
    starts = sample_of(found.measurements["/bin/sh -c :"], "elapsed")
    assert looks[-1].values[0].tolist() == pytest.approx([0.012 - mean(starts)] * 6)


def test_captured_output_is_kept_in_a_log_and_its_tail_in_the_line(tmp_path: Path) -> None:
    text = "".join(f"line {n}\n" for n in range(2000))
    found, _ = results(tmp_path, {"a": {"stdout": text, "stderr": "oops"}}, Test("a", ("a",)))
    first: Measurement = found.measurements["a"][0]
    assert first.stdout
    assert first.stdout["bytes"] == len(text)
    assert (tmp_path / "a" / "logs" / "0000-0.stdout").read_text() == text
    assert (tmp_path / "a" / "logs" / "0000-0.stderr").read_text() == "oops"
    line = (tmp_path / "a" / "results.jsonl").read_bytes().splitlines()[0]
    assert len(line) < 8000


def test_the_errors_of_trials_within_the_engine_are_kept_in_logs_as_those_of_others(tmp_path: Path) -> None:
    found, _ = results(tmp_path, {"a": {"stderr": "oops"}}, Test("a", ("a",)))
    names = [f"{m.trial:04d}-0.stderr" for m in found.measurements["a"]]
    assert sorted(path.name for path in (tmp_path / "a" / "logs").iterdir()) == names


def test_cgroups_and_counters_are_asked_for_unless_switched_off(tmp_path: Path) -> None:
    _, world = results(tmp_path / "on", {}, Test("a", ("a",)))
    assert world.log[0].counters == "auto"
    assert world.log[0].cgroup
    _, world = results(tmp_path / "off", {}, Test("a", ("a",)), cgroup=False, counters="off")
    assert (world.log[0].counters, world.log[0].cgroup) == ("off", None)


@pytest.mark.parametrize(
    ("command", "words"),
    [("a 'b c' \"d\"", ("a", "b c", "d")), ("a\\ b", ("a b",)), ("a '|' b", ("a", "|", "b"))],
)
def test_a_command_line_is_split_as_a_shell_splits_words(command: str, words: tuple[str, ...]) -> None:
    test = make_test(command)
    assert (test.name, test.command) == (command, words)
    assert make_test(command, shell="sh").command == ("sh", "-c", command)


@pytest.mark.parametrize("command", ["", "  ", "''", "a 'b", 'a "b', "a\\", "a | b"])
def test_a_command_line_that_is_none_is_refused(command: str) -> None:
    with pytest.raises(UsageError):
        make_test(command)


@pytest.mark.parametrize(
    "options",
    [
        {"workers": 0},
        {"timeout_s": 0},
        {"inner": 0},
        {"inner": "many"},
        {"inner": 1.5},
        {"inner": 2, "workers": 2},
        {"inner": "auto", "workers": 2},
    ],
)
def test_a_test_that_cannot_be_meant_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="'a'"):
        Test("a", ("a",), **options)


@pytest.mark.parametrize("command", [("cat", "\udcff"), ("\udcff",)])
def test_a_command_that_is_not_utf_8_is_refused_before_anything_is_written(command: tuple[str, ...]) -> None:
    with pytest.raises(EtudeError, match="UTF-8"):
        Test("a", command)


def killing(group: Path, *counts: int) -> Iterator[float]:
    for count in counts:
        (group / "memory.events").write_text(f"low 0\noom_kill {count}\n")
        yield 1.0


def test_a_trial_in_whose_cgroup_a_process_was_killed_is_excluded_and_named(tmp_path: Path) -> None:
    test = Test("a", ("a",), groups=(str(tmp_path),))
    found, _ = results(tmp_path / "r", {"a": killing(tmp_path, 0, 0, 2, *[2] * 9)}, test)
    excluded = [m for m in found.measurements["a"] if m.why == "oom-killed"]
    assert [(m.trial, m.kept) for m in excluded] == [(2, False)]
    assert "ended 2 processes" in excluded[0].notes[0]
    assert sum(m.kept for m in found.measurements["a"]) == 3


def test_where_each_trial_loses_a_process_the_experiment_ends(tmp_path: Path) -> None:
    test = Test("a", ("a",), groups=(str(tmp_path),))
    with pytest.raises(CommandFailed):
        results(tmp_path / "r", {"a": killing(tmp_path, *range(1, 20))}, test)
