"""What stands on the screen: the verdict on standard output, and where the results are last."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from etude.analysis.verdict import verdict
from etude.analysis.warnings.facts import NoMatch
from etude.analysis.warnings.warning import warning
from etude.present.sections.bench import notes_blocks
from etude.present.terminal import show
from etude.results.reader import load_results
from support.fakes import World, around
from support.golden import Golden

Etude = Callable[..., int]
Captured = pytest.CaptureFixture[str]


def test_the_verdict_and_last_where_the_results_are(etude: Etude, capsys: Captured, golden: Golden) -> None:
    assert etude("bench", "a", "b", "-o", "r", "--seed", "1", "--min-time", "0") == 0
    out, _ = capsys.readouterr()
    lines = out.splitlines()
    assert any(re.search(r"^ *elapsed .* ratio *$", line) for line in lines)
    assert any(re.match(r"b takes 1\.\d+ × .*\(95 %: ", line) for line in lines)
    assert lines[-1] == "Results: r"
    golden(out)


def test_without_a_name_results_go_below_etude_results(etude: Etude, capsys: Captured) -> None:
    assert etude("bench", "/usr/bin/a b", "--trials", "2") == 0
    (made,) = Path("etude-results").iterdir()
    assert re.fullmatch(r"a-\d{8}T\d{6}Z", made.name)
    assert capsys.readouterr().out.splitlines()[-1] == f"Results: {made}"
    assert etude("bench", "a", "-n", "my name", "--trials", "2") == 0
    assert any(path.name.startswith("my-name-") for path in Path("etude-results").iterdir())


def test_options_reach_the_experiment(etude: Etude, world: World) -> None:
    assert (
        etude(
            *["bench", "a {n}", "-n", "A {n}", "-P", "n=1..4*2", "-o", "r", "--seed", "7", "--trials", "2"],
            *["--setup", "s {n}", "--timeout", "2m", "--cpu", "0,2-3", "--schedule", "in-turn"],
            *["--no-cgroup", "--counters", "off", "--metric", "rate:B/s=.*", "--ignore-failure"],
        )
        == 2
    ), "the pattern matches no number"
    document = load_results("r").experiment
    assert [test["name"] for test in document["tests"]] == ["A 1", "A 2", "A 4"]
    assert [test["parameters"] for test in document["tests"]] == [{"n": "1"}, {"n": "2"}, {"n": "4"}]
    plan = document["plan"]
    first = plan["tests"][0]
    assert (first["command"], first["setup"]) == (["a", "1"], "s 1")
    assert (first["timeout_s"], first["cpus"]) == (120.0, [0, 2, 3])
    assert first["metrics"] == [{"name": "rate", "regex": ".*", "unit": "B/s", "join": ""}]
    assert (plan["seed"], plan["schedule"], plan["cgroup"], plan["counters"]) == (7, "in-turn", False, "off")
    assert plan["ignore_failure"] is True
    assert document["verb"] == "bench"
    assert document["command_line"][:2] == ["etude bench", "a {n}"]


def test_options_may_stand_anywhere_and_shell_takes_no_command_for_itself(etude: Etude, world: World) -> None:
    assert etude("bench", "--shell", "a | b", "-o", "r", "c", "--trials", "2", "--seed", "1") == 0
    assert {launch.workers[0].argv for launch in world.log} == {
        ("/bin/sh", "-c", "a | b"),
        ("/bin/sh", "-c", "c"),
        ("/bin/sh", "-c", ":"),
    }


@pytest.mark.parametrize("option", ["--runs", "--trials"])
def test_the_names_of_others_are_understood(etude: Etude, world: World, option: str) -> None:
    assert etude("bench", "a", option, "3", "-o", "r") == 0
    assert sum(m.kept for m in load_results("r").measurements["a"]) == 3


NAMES = ["grep '[a-z]' [/red] [bold]x[/bold]", "sed :smile: \\[x]", "x" * 200]


@pytest.mark.parametrize("name", NAMES)
def test_a_command_is_shown_as_it_was_typed(etude: Etude, capsys: Captured, name: str) -> None:
    assert etude("bench", "a", "b", "-n", "A", "-n", name, "-o", "r", "--min-time", "0") == 0
    shown = capsys.readouterr().out
    assert re.sub(r"\s", "", name)[:20] in re.sub(r"\s", "", shown.split("ratio", 1)[1].split("takes")[0])
    assert etude("stats", "r") == 0
    assert f"{name}: 10 trials, " in re.sub(r"\n(?!\n)", "", capsys.readouterr().out)


def test_json_is_the_only_thing_on_standard_output(etude: Etude, capsys: Captured) -> None:
    assert etude("bench", "a", "b", "-o", "r", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "etude-verdict"
    assert document["results"] == "r"
    assert etude("stats", "r", "--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert again["comparisons"][0].pop("secondary"), "only etude stats looks at other metrics"
    assert document["comparisons"][0].pop("secondary") == []
    assert again == document


@pytest.mark.parametrize("form", ["csv", "go"])
def test_an_export_that_cannot_be_written_is_not_taken_for_the_results(
    etude: Etude, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    assert etude("bench", "-o", "r", "-r", "2", "a", "--export", f"{form}=/dev/full") == 5
    told = capsys.readouterr().err.splitlines()[-1]
    assert "/dev/full" in told
    assert "--resume" not in told


@pytest.mark.parametrize("place", ["nowhere/x.json", "."])
def test_an_export_that_cannot_be_written_is_refused_before_anything_is_measured(
    etude: Etude, place: str
) -> None:
    assert etude("bench", "-o", "r", "-r", "2", "a", "--export", f"json={place}") == 5
    assert not Path("r").exists()


def test_exports_go_beside_the_results_or_where_they_are_told(etude: Etude) -> None:
    exports = [
        "--export",
        "csv",
        "--export",
        "markdown=out.md",
        "--export",
        "json",
        "--export",
        "json=r/own.json",
    ]
    assert etude("bench", "a", "-o", "r", *exports) == 0
    lines = Path("r/summary.csv").read_text().splitlines()
    assert [row["test"] for row in csv.DictReader(lines)] == ["a", "a"]
    assert Path("out.md").read_text().startswith("| elapsed | mean |")
    assert json.loads(Path("r/summary.json").read_text())["format"] == "etude-verdict"


def test_a_baseline_of_another_sitting_is_refused_unless_the_spread_between_sessions_is_known(
    etude: Etude, world: World, capsys: Captured, golden: Golden
) -> None:
    assert etude("bench", "a", "-o", "old", "--min-time", "0") == 0
    world.times = {"a": around(0.02)}
    capsys.readouterr()
    before = len(world.log)
    assert etude("bench", "a", "-o", "new", "--baseline", "old") == 7
    refused = capsys.readouterr().err
    assert refused.startswith("etude: old: ")
    assert "--between-sessions" in refused
    assert (len(world.log), Path("new").exists()) == (before, False)
    newer = ["bench", "a", "-o", "newer", "--min-time", "0"]
    assert etude(*newer, "--baseline", "old", "--between-sessions", "2%") == 0
    *others, last = capsys.readouterr().out.splitlines()
    (told,) = (line for line in others if line.startswith("a takes"))
    assert re.match(r"a takes (2|1\.99)\.?\d* × .*\(95 %: [\d.–]+; p [<=] [\d.]+; ", told)
    assert "2.0 %" in told
    assert re.search(r"(9\.9\d\d|10\.0\d) ms ", told)
    assert last == "Results: newer"
    golden(f"{refused}\n{told}")


def test_a_baseline_is_refused_where_the_metric_has_no_ratio_with_its_own(
    etude: Etude, world: World, capsys: Captured
) -> None:
    said = {"a": {"elapsed": 0.01, "stdout": "rate 5"}}
    world.times = said
    rate = ["--primary", "rate", "--between-sessions", "2%", "-r", "3", "a", "--baseline", "old"]
    assert etude("bench", "-r", "3", "-o", "old", "a") == 0
    assert etude("bench", "--metric", r"rate:B/s=rate (\d)", *rate) == 7
    assert "test a has no rate" in capsys.readouterr().err
    assert etude("bench", "-r", "3", "-o", "rated", "--metric", r"rate:B=rate (\d)", "a") == 0
    before = len(world.log)
    assert etude("bench", "--metric", r"rate:B/s=rate (\d)", *rate[:-1], "rated") == 7
    assert {"B,", "B/s;"} <= set(capsys.readouterr().err.split())
    assert len(world.log) == before


def test_a_refused_baseline_names_the_line_that_measures_both(
    etude: Etude, world: World, capsys: Captured
) -> None:
    world.times = {"a": around(0.01)}
    assert etude("bench", "-o", "old", "a 'x y'") == 0
    assert etude("bench", "--baseline", "old", "a z") == 7
    assert shlex.join(["etude", "bench", "a 'x y'", "a z"]) in capsys.readouterr().err


def _spread(mean: float) -> Iterator[dict[str, object]]:
    """Rows whose time is not the same each time."""
    return ({"elapsed": elapsed} for elapsed in around(mean))


def test_two_equal_results_of_one_machine_do_not_differ(etude: Etude, world: World, capsys: Captured) -> None:
    world.times = {"a": (each | {"stdout": "1"} for each in _spread(0.01))}
    assert etude("bench", "-r", "5", "-o", "old", "--metric", "n=.+", "a") == 0
    capsys.readouterr()
    same = ["-r", "5", "--metric", "n=.+", "--baseline", "old", "--between-sessions", "2%", "--json"]
    assert etude("bench", *same, "a") == 0
    assert json.loads(capsys.readouterr().out)["machines"] == []


def test_differences_are_named_as_they_are_typed(etude: Etude, world: World, capsys: Captured) -> None:
    world.times = {"a": (each | {"stdout": "1"} for each in _spread(0.01))}
    assert etude("bench", "-r", "5", "-o", "old", "--metric", "n=.+", "-n", "t", "a 'x y'") == 0
    capsys.readouterr()
    other = ["-r", "6", "--metric", "n=1", "--baseline", "old", "--between-sessions", "2%", "--json"]
    assert etude("bench", *other, "-n", "t", "a") == 0
    (line,) = json.loads(capsys.readouterr().out)["machines"]
    assert "command line of t: a 'x y' → a" in line
    assert "--metric n: .+ → 1" in line
    assert "--trials: 5 → 6" in line
    assert "plan." not in line


def test_another_machine_than_the_baselines_is_noted_before_anything_runs(
    etude: Etude, world: World, capsys: Captured
) -> None:
    words = ("bench", "-r", "3", "--between-sessions", "2%", "a", "--baseline", "old")
    assert etude("bench", "-r", "3", "a", "-o", "old") == 0
    seen: list[str] = []
    world.before = lambda number, _: seen.append(capsys.readouterr().err)
    assert etude(*words) == 0
    assert seen[0] == ""
    file = Path("old/experiment.json")
    document = json.loads(file.read_text())
    document["machine"]["before"]["kernel"] = "other"
    file.write_text(json.dumps(document))
    seen.clear()
    assert etude(*words) == 0
    assert "kernel: other" in seen[0]


def test_fail_if_ends_with_1_when_the_whole_interval_is_beyond(
    etude: Etude, world: World, capsys: Captured
) -> None:
    world.times = {"a": around(0.01), "b": around(0.02)}
    assert etude("bench", "a", "b", "-o", "r", "--fail-if", "elapsed > baseline * 1.5") == 1
    assert re.search(r"^elapsed > baseline \* 1.5\? .*: yes: ", capsys.readouterr().out, re.MULTILINE)
    assert etude("stats", "r", "--fail-if", "elapsed > baseline * 3") == 0
    assert re.search(r"^elapsed > baseline \* 3\? .*: no: ", capsys.readouterr().out, re.MULTILINE)
    assert etude("bench", "a", "-o", "x", "--fail-if", "elapsed > base") == 2
    assert "--fail-if 'elapsed > base': " in capsys.readouterr().err


def test_a_gate_of_too_few_trials_names_the_line_that_decides_it(
    etude: Etude, world: World, capsys: Captured
) -> None:
    world.times = {"a": around(0.01), "b": around(0.02)}
    gate = ["--fail-if", "elapsed > baseline * 1.5", "--undecided", "fail"]
    assert etude("bench", "a", "b", "-r", "4", "-o", "r", *gate) == 8
    line = capsys.readouterr().out.splitlines()[-1].partition(": ")[2]
    assert shlex.split(line) == ["etude", "bench", "--resume", "r", "--trials", "10", *gate]
    assert etude(*shlex.split(line)[1:]) == 1
    assert etude("stats", "r", "--threshold", "few=20", *gate) == 8


def test_the_line_that_decides_a_bound_has_the_baseline_that_it_needs(
    etude: Etude, world: World, capsys: Captured
) -> None:
    world.times = {"a": around(0.01)}
    assert etude("bench", "a", "-r", "10", "-o", "old") == 0
    world.times = {"a": around(0.02)}
    beside = ["--baseline", "old", "--between-sessions", "3%"]
    gate = ["--fail-if", "elapsed > baseline * 1.5"]
    assert etude("bench", "a", "-r", "4", "-o", "new", *beside, *gate) == 0
    line = capsys.readouterr().out.splitlines()[-1].partition(": ")[2]
    assert etude(*shlex.split(line)[1:]) == 1


def test_a_bound_is_not_asked_of_what_the_baseline_compared(
    etude: Etude, world: World, capsys: Captured
) -> None:
    world.times = {"a": around(0.01), "b": around(0.02)}
    assert etude("bench", "a", "b", "-r", "10", "-o", "old") == 0
    world.times = {"a": around(0.01), "b": around(0.01)}
    assert etude("bench", "a", "b", "-r", "10", "-o", "new") == 0
    capsys.readouterr()
    gate = ["--fail-if", "elapsed > baseline * 1.5"]
    assert etude("stats", "old", "new", "--between-sessions", "3%", *gate) == 0
    assert len(re.findall(r"^elapsed > baseline \* 1.5\? ", capsys.readouterr().out, re.MULTILINE)) == 3


def test_a_bound_on_tests_that_are_not_compared_is_refused_before_they_run(
    etude: Etude, world: World, capsys: Captured
) -> None:
    world.times = {"a": around(0.01), "b": around(0.02)}
    gate = ["--fail-if", "elapsed > baseline * 1.5"]
    assert etude("bench", "a", "b", "-o", "r", "--schedule", "in-turn", *gate) == 2
    assert "in-turn" in capsys.readouterr().err
    assert not Path("r").exists()


def test_a_gate_that_its_precision_left_too_few_trials_is_measured_anew(
    etude: Etude, world: World, capsys: Captured
) -> None:
    world.times = {"a": around(0.01), "b": around(0.02)}
    gate = ["--fail-if", "elapsed > baseline * 1.5"]
    assert etude("bench", "a", "b", "-m", "3", "-M", "9", "--precision", "50%", "-o", "r", *gate) == 0
    line = capsys.readouterr().out.splitlines()[-1].partition(": ")[2]
    assert etude(*shlex.split(line)[1:]) == 1


def test_a_single_test_that_is_measured_anew_keeps_limits_that_were_given(
    etude: Etude, world: World, capsys: Captured
) -> None:
    world.times = {"a": iter([0.01, 0.02] * 200)}
    given = ["--max-trials", "20000", "--time", "1s", "--precision", "4%"]
    assert etude("bench", "a", "-o", "r", *given) == 0
    line = next(s for s in capsys.readouterr().out.splitlines() if s.startswith("To measure anew: "))
    words = shlex.split(line)
    assert words[words.index("--max-trials") + 1] == "20000"


def test_a_session_that_kept_no_trial_is_none_that_intervals_go_over(
    etude: Etude, world: World, capsys: Captured
) -> None:
    world.times = {"a": around(0.01, *[0.5, 1.5, 0.7]), "b": around(0.02)}
    assert etude("bench", "a", "b", "-M", "12", "--precision", "0.01%", "-o", "r") == 0
    experiment = Path("r/experiment.json")
    document = json.loads(experiment.read_text())
    document["sittings"].append({**document["sittings"][0], "sitting": 2})
    experiment.write_text(json.dumps(document))
    assert etude("stats", "r") == 0
    assert "sessions" not in capsys.readouterr().out
    assert etude("bench", "--resume", "r", "--max-trials", "24") == 0
    assert "these are 2 sessions" in capsys.readouterr().out


def test_a_resumed_mean_has_converged_only_if_the_interval_that_is_printed_has(
    etude: Etude, world: World, capsys: Captured
) -> None:
    world.times = {"a": chain(islice(around(0.0100), 13), around(0.0101))}
    assert etude("bench", "a", "--precision", "0.1%", "-M", "12", "-o", "r") == 0
    capsys.readouterr()
    assert etude("bench", "--resume", "r", "--precision", "4%", "--max-trials", "24") == 0
    assert "Not converged: the mean of a is known to " in " ".join(capsys.readouterr().out.split())
    (test,) = verdict(load_results(Path("r"))).tests
    assert (test.more, test.missed) == (0, True)


def test_a_bound_on_a_single_test_is_decided_by_one_session(
    etude: Etude, world: World, capsys: Captured
) -> None:
    world.times = {"a": around(0.01)}
    assert etude("bench", "a", "-r", "4", "-o", "r", "--fail-if", "elapsed > 5ms") == 0
    line = capsys.readouterr().out.splitlines()[-1].partition(": ")[2]
    assert shlex.split(line) == ["etude", "bench", "--trials", "10", "--fail-if", "elapsed > 5ms", "a"]
    assert etude("stats", "r", "--fail-if", "elapsed > 6ms") == 0
    assert "--resume" not in capsys.readouterr().out


def test_a_baseline_of_other_names_is_refused_before_anything_is_measured(
    etude: Etude, world: World, capsys: Captured, golden: Golden
) -> None:
    assert etude("bench", "a", "-o", "old") == 0
    before = len(world.log)
    capsys.readouterr()
    assert etude("bench", "b", "c", "-o", "new", "--baseline", "old") == 7
    refused = capsys.readouterr().err
    assert refused.startswith("etude: old: ")
    assert "(a)" in refused
    assert "(b, c)" in refused
    golden(refused)
    assert len(world.log) == before


def test_stats_shows_each_metric_and_the_comparison(etude: Etude, capsys: Captured, golden: Golden) -> None:
    assert etude("bench", "a", "b", "-o", "r", "--seed", "1", "--min-time", "0") == 0
    capsys.readouterr()
    assert etude("stats", "r") == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "r"
    assert re.search(r"^a: 10 .*, 1 ", out, re.MULTILINE)
    assert re.search(r"elapsed +10 +\d+ +(9\.9\d*|10\.0\d*) ms", out)
    assert re.search(r"^b takes 1\.\d+ × .*\(95 %: 1\.\d+–1\.\d+;", out, re.MULTILINE)
    assert "H0 (" in out
    golden(out)


def test_stats_of_one_metric_compares_that_metric(etude: Etude, capsys: Captured) -> None:
    assert etude("bench", "a", "b", "-o", "r") == 0
    capsys.readouterr()
    assert etude("stats", "r", "--metric", "user") == 0
    out = capsys.readouterr().out
    assert "elapsed" not in out
    assert "b's user is 1.2" in out or "b's user is 1.19" in out


def test_several_directories_are_shown_one_after_the_other(etude: Etude, capsys: Captured) -> None:
    for name in ("r1", "r2"):
        assert etude("bench", "a", "-o", name, "--trials", "2") == 0
    capsys.readouterr()
    assert etude("stats", "r1", "r2") == 0
    out = capsys.readouterr().out
    assert out.index("r1") < out.index("r2")


def test_what_differs_is_a_word_in_the_first_line_and_a_note_below_the_verdict(
    etude: Etude, world: World, capsys: Captured, golden: Golden
) -> None:
    world.times = {"a": {"stdout": "12"}, "b": {"stdout": "1"}}
    assert etude("bench", "a", "b", "-o", "r", "--trials", "3") == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert "differ" in first
    (note,) = (line for line in others if line.startswith("Note: b "))
    assert {"(1", "2"} <= set(note.split())
    assert others.index(note) > max(
        place for place, line in enumerate(others) if " × " in line or "ratio" in line
    )
    golden(f"{first}\n{note}")


def test_notes_on_machines_and_launches_count_among_the_three(capsys: Captured) -> None:
    quiet: Any = SimpleNamespace(subject=SimpleNamespace(label="r", file=None), every=(), tests=())
    show(notes_blocks([quiet], first=[f"b{n}: 2 launches in each trial" for n in range(7)]))
    *notes, rest = capsys.readouterr().out.splitlines()
    assert len(notes) == 3
    assert rest.startswith("4 more notes: ")


def test_a_metric_without_a_value_stands_before_notes_on_the_table(capsys: Captured) -> None:
    none = warning("no-match", "a", "rate", NoMatch(3, "none was found"))
    verdict: Any = SimpleNamespace(
        subject=SimpleNamespace(label="r", file=None), every=(none,), tests=(SimpleNamespace(test="a"),)
    )
    show(notes_blocks([verdict], first=["b: 2 launches in each trial"]))
    first, second = capsys.readouterr().out.splitlines()
    assert "rate" in first
    assert "launches" in second


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["help"], []])
def test_help_lists_verbs_and_exit_codes(etude: Etude, capsys: Captured, arguments: list[str]) -> None:
    assert etude(*arguments) == (0 if arguments else 2)
    out = capsys.readouterr().out
    for expected in ("  bench ", "  stats ", "  doctor ", "exit codes:", "128+n"):
        assert expected in out


@pytest.mark.parametrize("verb", ["bench", "stats", "doctor"])
def test_each_verb_has_help_of_its_own(etude: Etude, capsys: Captured, verb: str) -> None:
    assert etude(verb, "--help") == 0
    assert f"usage: etude {verb}" in capsys.readouterr().out


def test_the_version_is_said(etude: Etude, capsys: Captured) -> None:
    assert etude("--version") == 0
    assert etude("bench", "--version") == etude("io", "lab", "--version") == 0
    assert re.fullmatch(r"(etude \d+\.\d+\.\d+\n){3}", capsys.readouterr().out)
