"""The verdict on whole experiments, from the trials on disk to what it says of them."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from etude.analysis.comparisons import _noise
from etude.analysis.verdict import Verdict, verdict
from etude.analysis.verdict_options import VerdictOptions
from etude.errors import MachineRefuses, UsageError
from etude.experiment.plan import make_plan
from etude.experiment.run import run
from etude.experiment.test import Test, make_test
from etude.export.gather import gather
from etude.present.export import to_csv, to_json, to_markdown, write
from etude.present.sentences.comparison import basis_line, comparison_lines, precision_line
from etude.present.sentences.extension import limit_line, reaching_command
from etude.present.sentences.extra_statistics import percentile_lines
from etude.present.sentences.result_notes import missing_reason
from etude.present.sentences.status import status_of
from etude.present.sentences.verdict import status_line, verdict_lines
from etude.present.sentences.warnings import found_text, group_text
from etude.results.reader import load_results
from etude.results.results import Results
from etude.stats.ratio import noise_floor, paired_ratio
from support.builders import as_if_killed, measurement, results_directory
from support.fakes import World, around
from support.golden import Golden

STEPS = (-0.004, 0.001, 0.004, -0.001, 0.002, -0.003, 0.001)


def results(directory: Path, times: dict[str, Any], *tests: Any, **options: Any) -> Results:
    asked = make_plan(tests or tuple(times), **{"seed": 1, **options})
    return run(asked, directory=directory, make_engine=World(times).make_engine).results


@pytest.fixture
def compared(tmp_path: Path) -> Verdict:
    times = {"a": around(0.010, *STEPS), "b": around(0.012, *STEPS[::-1])}
    return verdict(results(tmp_path / "r", times, trials=24))


def test_sameness_is_judged_by_the_ratio_that_the_sentence_claims(tmp_path: Path) -> None:
    skewed = (-0.2, -0.1, 0.5, -0.15, -0.1, 0.6, -0.2)
    times = {"a": around(0.010, *STEPS), "b": around(0.010, *skewed)}
    found = verdict(
        results(tmp_path / "r", times, trials=24), verdict_options=VerdictOptions(same_within=0.02)
    )
    (c,) = found.comparisons
    assert c.equivalence is not None
    assert c.typical is not None
    assert c.equivalence.ratio == pytest.approx(c.ratio.ratio, rel=1e-9)
    assert abs(c.typical.ratio - c.ratio.ratio) > 0.01


def test_a_clear_difference_is_found_with_base_value_and_noise_floor(compared: Verdict) -> None:
    (c,) = compared.comparisons
    assert (c.base, c.other, c.ratio.method, c.ratio.count) == ("a", "b", "paired", 24)
    assert c.differs
    assert c.ratio.ratio == pytest.approx(1.2, rel=0.01)
    assert c.base_mean == pytest.approx(0.010, rel=0.001)
    assert c.floor_pairs == 9
    assert c.floor is not None
    assert 0.0 < c.floor < 0.01
    said = verdict_lines(compared)
    assert [line for line in comparison_lines(c) if line not in said] == []


def test_a_metric_without_a_match_is_noted_whatever_the_table_shows(tmp_path: Path) -> None:
    metrics = {"elapsed": [0.01, "s"], "rate": [None, "1/s", "the pattern matched nothing in the output"]}
    rows = [measurement(trial=trial, metrics=metrics) for trial in range(1, 13)]
    found = verdict(
        load_results(results_directory(tmp_path / "r", {"a": rows}, plan={"kind": "script"})), ("elapsed",)
    )
    assert (found.every[0].kind, found.every[0].metric) == ("no-match", "rate")
    assert [m.metric for m in found.tests[0].metrics] == ["elapsed"]


RULE = "getstats --columns {} --predicate '$delta < 0.05 * $mean'"


def scripted(directory: Path, rules: dict[str, str | None], group: int | None = 1) -> Verdict:
    """Tests of a script with these stop programs; each has a rate and a latency beside its time."""
    entries = [
        {
            "name": name,
            "directory": name,
            "role": "test",
            "parameters": {},
            "group": group,
            "stop_program": rule,
            "minimum": 5,
        }
        for name, rule in rules.items()
    ]
    rows = {
        name: [
            measurement(
                test=name,
                trial=trial,
                sitting=1,
                metrics={
                    "elapsed": [10.0, "s"],
                    "iops": [(1 + place) * (1000 + trial % 7), "1/s"],
                    f"p99_{name}": [0.001, "s"],
                },
            )
            for trial in range(1, 13)
        ]
        for place, name in enumerate(rules)
    }
    plan = {"kind": "script", "primary": "elapsed"}
    return verdict(load_results(results_directory(directory, rows, plan=plan, tests=entries)))


def test_a_script_is_judged_by_what_its_stop_rules_name(tmp_path: Path) -> None:
    found = scripted(tmp_path / "r", {"a": RULE.format("iops"), "b": RULE.format("iops,elapsed"), "c": None})
    assert (found.primary, found.judged) == ("iops", ("iops", "elapsed"))
    first = [(c.other, c.metric) for c in found.comparisons]
    assert first == [(other, metric) for metric in ("iops", "elapsed") for other in ("b", "c")]
    assert found.comparisons[0].ratio.ratio == pytest.approx(2.0)


def test_stop_rules_that_have_nothing_in_common_are_judged_by_the_time_and_by_their_own(
    tmp_path: Path,
) -> None:
    found = scripted(tmp_path / "r", {"a": RULE.format("p99_a"), "b": RULE.format("p99_b")})
    assert found.judged == ("elapsed", "p99_a", "p99_b")
    assert [c.metric for c in found.comparisons] == ["elapsed"]


@pytest.mark.parametrize("rule", [None, "true", "getstats --no-such", "getstats --predicate '$count > 3'"])
def test_rules_that_name_no_metric_leave_the_time(tmp_path: Path, rule: str | None) -> None:
    found = scripted(tmp_path / "r", {"a": rule, "b": rule})
    assert (found.primary, [c.metric for c in found.comparisons]) == ("elapsed", ["elapsed"])


def test_identical_commands_show_no_difference(tmp_path: Path) -> None:
    times = {"a": around(0.010, *STEPS), "b": around(0.010, *STEPS[::-1])}
    found = verdict(results(tmp_path, times, trials=12))
    (c,) = found.comparisons
    assert not c.differs
    assert c.ratio.half_width < 0.01
    assert (c.floor is not None, c.floor_pairs) == (True, 6)
    assert comparison_lines(c)[0] in verdict_lines(found)


def test_a_claim_about_time_is_about_mean_time(tmp_path: Path) -> None:
    sigma = math.sqrt(math.log1p(0.4**2))
    rng = np.random.default_rng(8)
    steps = np.exp(rng.normal(0.0, sigma, 250)) - 1.0
    times = {"a": around(0.010, *STEPS), "b": around(0.010 / float(1.0 + steps.mean()), *steps)}
    (c,) = verdict(results(tmp_path, times, trials=200)).comparisons
    assert c.typical is not None
    assert c.typical.high < 1.0
    assert not c.differs
    written = json.loads(to_json(verdict(load_results(tmp_path))))
    means = [test["metrics"]["elapsed"]["mean"] for test in written["tests"]]
    assert c.ratio.ratio == pytest.approx(means[1] / means[0])


def test_one_estimator_stops_claims_and_plans(tmp_path: Path) -> None:
    """The stop rule, the printed ± and the pairs that would reach the target are those of the printed ratio."""
    steps = np.exp(np.random.default_rng(3).normal(0.0, 0.5, 250)) - 1.0
    times = {"a": around(0.010, *STEPS), "b": around(0.010, *steps)}
    found = results(tmp_path / "r", times, max_trials=40)
    (c,) = verdict(found).comparisons
    assert c.missed
    assert c.typical is not None
    width = f"± {100 * c.ratio.half_width:.2g} %"
    assert width != f"± {100 * c.typical.half_width:.2g} %"
    (decision,) = found.experiment["sittings"][-1]["decisions"]
    assert width in decision
    error = c.ratio.standard_error * math.sqrt(c.ratio.count)
    needed = (1.96 * error / math.log1p(c.finer)) ** 2
    assert c.more == pytest.approx(needed - c.ratio.count, rel=0.01)


def with_cpu(tmp_path: Path, noise: float, cpu_noise: float) -> Results:
    """A command 1 % slower than the other, by its elapsed and its CPU time, in thirty blocks."""
    rng = np.random.default_rng(12)

    def rows(cpu_s: float) -> Iterator[dict[str, Any]]:
        while True:
            spent, waited = (1.0 + rng.normal(0.0, of) for of in (cpu_noise, noise))
            cpu = {"user": [0.8 * cpu_s * spent, "s"], "system": [0.2 * cpu_s * spent, "s"]}
            yield {"metrics": {"elapsed": [2.0 * cpu_s * waited, "s"]} | cpu}

    return results(tmp_path, {"a": rows(0.010), "b": rows(0.0101)}, trials=30)


def test_a_metric_that_the_trials_know_far_better_is_named(tmp_path: Path) -> None:
    (c,) = verdict(with_cpu(tmp_path / "r", 0.05, 0.002)).comparisons
    assert c.ratio.low < 1.01 < c.ratio.high
    assert c.quieter is not None
    found = c.quieter.ratio
    assert (c.quieter.metric, found.factor, found.count) == ("CPU time", c.ratio.factor, 30)
    assert 1.0 < found.low < 1.01 < found.high
    assert 3.0 * found.half_width < c.ratio.half_width
    assert c.floor is not None
    assert c.quieter.floor is not None
    assert 3.0 * c.quieter.floor < c.floor
    assert comparison_lines(c)[1].startswith("CPU time ")
    (written,) = json.loads(to_json(verdict(load_results(tmp_path / "r"))))["comparisons"]
    assert written["quieter"]["ratio"]["ratio"] == pytest.approx(found.ratio)
    assert written["quieter"]["floor"] == pytest.approx(c.quieter.floor)


def test_a_metric_as_noisy_or_without_any_spread_is_not_named(tmp_path: Path) -> None:
    for name, noise, cpu_noise in (("noisy", 0.05, 0.04), ("constant", 0.05, 0.0)):
        (c,) = verdict(with_cpu(tmp_path / name, noise, cpu_noise)).comparisons
        assert c.quieter is None


def test_a_metric_that_is_itself_hardly_known_is_not_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)

    def rows(_: float) -> Iterator[dict[str, Any]]:
        while True:
            cpu = {"user": [math.exp(rng.normal(0.0, 0.5)), "s"], "system": [0.0, "s"]}
            yield {"metrics": {"elapsed": [math.exp(rng.normal(0.0, 9.0)), "s"]} | cpu}

    (c,) = verdict(results(tmp_path, {"a": rows(1.0), "b": rows(1.0)}, trials=4)).comparisons
    assert c.ratio.half_width > 10.0
    assert c.quieter is None


def test_of_several_commands_each_claim_counts_the_others(tmp_path: Path) -> None:
    noise = np.random.default_rng(4).normal(0.0, 0.01, (11, 40))
    times = {f"t{i}": around(0.010, *steps) for i, steps in enumerate(noise)}
    found = verdict(results(tmp_path / "all", times, trials=20))
    alone = [c.ratio.for_many(1) for c in found.comparisons]
    assert len(alone) == 10
    assert any(i.low > 1.0 or i.high < 1.0 for i in alone)
    assert not any(c.differs for c in found.comparisons)
    written = json.loads(to_json(found))["comparisons"]
    assert [c["differs"] for c in written] == [False] * 10
    assert [c["ratio"]["together"] for c in written] == [10] * 10
    assert all(c["ratio"]["low"] < 1.0 < c["ratio"]["high"] and c["adjusted_p"] >= 0.05 for c in written)


def test_the_set_aside_first_run_is_in_no_figure(tmp_path: Path) -> None:
    def slow_first(then: float) -> Iterator[float]:
        yield 100.0
        yield from around(then, *STEPS)

    found = verdict(results(tmp_path, {"a": slow_first(0.01), "b": slow_first(0.02)}, trials=10))
    assert found.tests[0].made == 11 + 0
    assert found.tests[0].kept == 10
    summary = found.tests[0].metric("elapsed")
    assert summary
    assert summary.summary
    assert summary.summary.maximum < 0.02
    assert found.comparisons[0].ratio.ratio == pytest.approx(2.0, rel=0.01)


def rounded(count: int) -> str:
    return f"{float(f'{count:.2g}'):,.0f}"


def test_a_mean_that_did_not_converge_says_what_it_would_take(tmp_path: Path, golden: Golden) -> None:
    found = verdict(results(tmp_path, {"a": around(0.01, -0.5, 0.7, 0.1, -0.3, 0.9, -0.7)}))
    (test,) = found.tests
    assert found.asked.precision == 0.05
    assert test.more > 0
    line = precision_line(test, found.asked)
    assert line is not None
    for part in (" a ", "5.0 %", f"{' to '.join(map(rounded, test.more_range))} more trials"):
        assert part in line
    assert line in verdict_lines(found)
    golden(line)


def apart(found: Results, seconds: float) -> Results:
    """The same with so much time from the start of one trial to that of the next, whichever test's."""
    rows = sorted((m for each in found.measurements.values() for m in each), key=lambda m: m.start_ns or 0)
    starts = {(m.test, m.trial): 1 + int(n * seconds * 1e9) for n, m in enumerate(rows)}
    moved = {
        name: tuple(m._replace(start_ns=starts[m.test, m.trial]) for m in each)
        for name, each in found.measurements.items()
    }
    return replace(found, measurements=moved)


def test_a_comparison_knows_over_how_much_time_its_trials_are_spread(tmp_path: Path) -> None:
    times = {"a": around(0.010, *STEPS), "b": around(0.012, *STEPS)}
    made = results(tmp_path, times, trials=10, again_every=0)
    (c,) = verdict(apart(made, 3.0)).comparisons
    assert c.span_s == pytest.approx(19 * 3.0, abs=0.1)
    assert "57 s" in basis_line(c)
    (unknown,) = verdict(replace(made, measurements=unplaced(made))).comparisons
    assert unknown.span_s is None


def unplaced(found: Results) -> dict[str, Any]:
    """Its measurements, without when they were made."""
    return {name: tuple(m._replace(start_ns=None) for m in each) for name, each in found.measurements.items()}


@pytest.mark.parametrize("names", ["a", "ab"])
def test_what_more_trials_take_is_time_by_the_clock(tmp_path: Path, names: str) -> None:
    """Also the trials of other tests of a block, and the reference against itself, are repeated with it."""
    times = {name: around(0.01, -0.5, 0.7, 0.1, -0.3, 0.9, -0.7) for name in names}
    found = apart(results(tmp_path, times, again_every=1), 3.0)
    judged = verdict(found)
    (more, more_s) = (
        (judged.tests[0].more, judged.tests[0].more_s)
        if names == "a"
        else (judged.comparisons[0].more, judged.comparisons[0].more_s)
    )
    in_block = sum(len(each) for each in found.measurements.values()) / len(found.measurements["a"])
    assert more > 0
    assert more_s == pytest.approx(more * 3.0 * in_block, rel=0.1)


def test_a_ratio_that_did_not_converge_says_so(tmp_path: Path) -> None:
    times = {"a": around(0.01, -0.5, 0.7, 0.1, -0.3, 0.9, -0.7), "b": around(0.01, *STEPS)}
    found = verdict(results(tmp_path, times))
    (c,) = found.comparisons
    assert c.asked is not None
    assert c.ratio.half_width > c.asked
    assert c.more > 0
    last = comparison_lines(c)[-1]
    for part in ("2.0 %", f"{' to '.join(map(rounded, c.more_range))} more trials of each"):
        assert part in last
    assert last in verdict_lines(found)


def test_no_command_is_printed_for_a_target_that_is_out_of_reach(tmp_path: Path) -> None:
    times = {"a": around(0.01, -0.9, 3.0, 1.0, -0.6, 5.0, 0.2, 2.0), "b": around(0.01, *STEPS)}
    found = apart(results(tmp_path, times), 3.0)
    judged = verdict(found)
    (c,) = judged.comparisons
    assert c.missed
    assert not c.within_reach
    assert reaching_command(judged) is None
    near = replace(judged, comparisons=(replace(c, more=5, more_s=1.0),))
    assert reaching_command(near) is not None


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"max_trials": 12}, "Ended by --max-trials 12."),
        ({"budget_s": 0.3}, "Ended by --time 0.3."),
        ({"precision": 0.9}, None),
        ({"trials": 12}, None),
        ({"max_trials": None, "least_s": 0.0}, "Ended by --max-trials 50."),
        ({"max_trials": None, "least_s": 3.0}, "Ended by --max-trials 50 (the default), and not before 3 s."),
    ],
)
def test_the_limit_that_ended_a_bench_before_its_target_is_named(
    tmp_path: Path, options: dict[str, float], line: str | None
) -> None:
    times = {"a": around(0.01, -0.5, 0.7, 0.1, -0.3, 0.9, -0.7), "b": around(0.01, *STEPS)}
    assert limit_line(verdict(results(tmp_path, times, **options))) == line


def test_a_time_that_is_not_above_the_shells_own_start_is_refused(tmp_path: Path) -> None:
    starts = {True: around(0.02, *STEPS), False: around(0.01, *STEPS)}
    times = {"/bin/sh": lambda launch: next(starts[launch.workers[0].argv[-1] == ":"])}
    found = verdict(results(tmp_path, times, make_test("x", shell="/bin/sh"), shell="/bin/sh", trials=8))
    (test,) = found.tests
    elapsed = test.metric("elapsed")
    assert elapsed is not None
    assert elapsed.summary is None
    assert "--shell" in (missing_reason(elapsed) or "")
    assert "refused" in status_of(found)
    assert "shell" in {each.kind for each in found.every}
    points = gather([str(tmp_path)]).points
    (point,) = (point for point in points if point.metric == "elapsed")
    assert (point.values, point.figures) == ((), None), "no time below zero"
    assert "--shell" in point.reason


def test_no_time_below_zero_is_made_of_a_mean_above_the_shells_start(tmp_path: Path) -> None:
    times = {
        "/bin/sh": lambda launch: 0.02 if launch.workers[0].argv[-1] == ":" else next(trials),
    }
    trials = itertools.cycle([0.03, 0.09, 0.019])
    test = make_test("x", shell="/bin/sh")
    found = verdict(results(tmp_path, times, test, shell="/bin/sh", max_trials=10))
    assert status_of(found)[-1:] == ("refused",)
    elapsed = found.tests[0].metric("elapsed")
    assert elapsed is not None
    assert elapsed.summary is None
    assert found.tests[0].more == 0, "more trials do not help"
    assert {"shell", "not-converged"} & {each.kind for each in found.every} == {"shell"}


def test_percentiles_are_of_times_less_the_shells_start(tmp_path: Path) -> None:
    times = {"/bin/sh": lambda launch: 0.01 if launch.workers[0].argv[-1] == ":" else 0.03}
    found = verdict(results(tmp_path, times, make_test("x", shell="/bin/sh"), shell="/bin/sh", trials=8))
    (test,) = found.tests
    elapsed = test.metric("elapsed")
    assert elapsed is not None
    (line,) = percentile_lines(found.subject.tests[0], elapsed, (0.5,), VerdictOptions())
    assert "20.00 ms" in line


def test_tests_in_turn_are_not_compared(tmp_path: Path) -> None:
    found = verdict(results(tmp_path, {"a": around(1.0), "b": around(2.0)}, schedule="in-turn"))
    assert found.comparisons == ()


@pytest.mark.parametrize(
    ("printed", "sizes"),
    [
        ("12345", ["5 B", "10 B"]),
        ("1234567890123", ["13 B", "10 B"]),
        ("123456789x", ["10 B"]),
    ],
)
def test_output_that_differs_is_said_before_any_number(
    tmp_path: Path, golden: Golden, printed: str, sizes: list[str]
) -> None:
    times = {"a": {"stdout": "1234567890"}, "b": {"stdout": printed}}
    found = verdict(results(tmp_path, times, trials=2))
    first = found.warnings[0].first
    assert first.kind == "different-work"
    assert re.findall(r"\d+ B", found_text(first)) == sizes
    assert status_of(found) == ("outputs differ",)
    assert verdict_lines(found)[0] == status_line(found)
    golden(found_text(first))


def test_output_that_is_the_same_is_not_mentioned(tmp_path: Path) -> None:
    times = {"a": {"stdout": "same"}, "b": {"stdout": "same"}}
    assert {w.kind for w in verdict(results(tmp_path, times, trials=2)).warnings} == {"too-few"}


def test_endings_that_differ_are_said_first(tmp_path: Path, golden: Golden) -> None:
    found = verdict(results(tmp_path, {"b": {"exit_status": 1}}, "a", "b", trials=2, ignore_failure=True))
    first = found.warnings[0].first
    assert first.kind == "different-work"
    assert re.match(r"b .*\b1, a .*\b0$", found_text(first))
    golden(found_text(first))


def test_a_test_that_ends_now_so_now_so_is_named(tmp_path: Path, golden: Golden) -> None:
    def fickle() -> Iterator[dict[str, int]]:
        for status in (0, 0, 1, 0, 1, 1, 0):
            yield {"exit_status": status}

    found = verdict(results(tmp_path, {"a": fickle()}, trials=4, ignore_failure=True))
    first = found.warnings[0].first
    assert first.kind == "different-work"
    assert re.match(r"a .* 0, .* 1$", found_text(first))
    golden(found_text(first))


def test_output_of_each_trial_is_compared_on_request(tmp_path: Path, golden: Golden) -> None:
    outputs = ({"stdout": str(n)} for n in range(9))
    found = verdict(results(tmp_path, {"a": outputs}, trials=4, check_output="each"))
    first = found.warnings[0].first
    assert first.kind == "different-work"
    assert found_text(first).startswith("a ")
    golden(found_text(first))


def test_a_torn_last_line_is_said(tmp_path: Path) -> None:
    results(tmp_path, {"a": around(0.01)}, trials=3)
    file = tmp_path / "a" / "results.jsonl"
    file.write_bytes(file.read_bytes()[:-5])
    notes = [each for each in verdict(load_results(tmp_path)).warnings if each.kind == "note"]
    assert [group_text(note).partition(": ")[0] for note in notes] == [str(file)]


def test_a_metric_that_is_not_there_is_an_error_of_usage(compared: Verdict) -> None:
    with pytest.raises(UsageError, match=r"'nosuch': no test .* elapsed, user"):
        verdict(load_results(compared.directory), ["nosuch"])


def test_a_metric_that_one_test_lacks_is_judged_of_the_others(tmp_path: Path) -> None:
    rows = {
        name: [
            measurement(name, trial=n, metrics={"elapsed": [1.0, "s"]} | metrics)
            for n in range(1, 7)
            for metrics in [{} if name == "b" else {"rate": [100.0 + n, "1/s"]}]
        ]
        for name in "abc"
    }
    found = verdict(load_results(results_directory(tmp_path / "r", rows, plan={"kind": "res"})), ["rate"])
    assert [test.metric("rate") is not None for test in found.tests] == [True, False, True]
    (told,) = [group_text(each) for each in found.warnings if each.kind == "note"]
    assert re.search(r"\brate of b\b", told)
    with pytest.raises(UsageError, match=r"'nosuch': no test .* elapsed, rate\Z"):
        verdict(load_results(tmp_path / "r"), ["nosuch"])


def test_a_metric_without_values_has_its_reason(tmp_path: Path) -> None:
    found = verdict(results(tmp_path, {"a": {"metrics": {"cycles": [None, "1", "no such event"]}}}, trials=2))
    cycles = found.tests[0].metric("cycles")
    assert cycles
    assert (cycles.summary, cycles.reason) == (None, "no such event")


def test_results_without_any_trial_have_a_verdict(tmp_path: Path, compared: Verdict) -> None:
    shutil.copytree(compared.directory, tmp_path / "empty")
    for file in (tmp_path / "empty").rglob("results.jsonl"):
        file.unlink()
    as_if_killed(tmp_path / "empty")
    found = verdict(load_results(tmp_path / "empty"))
    assert [test.kept for test in found.tests] == [0, 0]
    assert found.comparisons == ()
    verdict_lines(found), to_json(found), to_csv(found), to_markdown(found)


@pytest.mark.parametrize("trials", [1, 2, 3])
def test_few_trials_have_a_verdict(tmp_path: Path, trials: int) -> None:
    found = verdict(results(tmp_path, {"a": around(0.01, *STEPS), "b": around(0.02, *STEPS)}, trials=trials))
    assert len(found.comparisons) == (1 if trials > 1 else 0)
    verdict_lines(found), to_json(found), to_csv(found), to_markdown(found)


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def test_json_is_strict_and_holds_the_verdict(compared: Verdict) -> None:
    document = json.loads(to_json(compared), parse_constant=refuse)
    assert (document["format"], document["version"]) == ("etude-verdict", 1)
    assert [test["test"] for test in document["tests"]] == ["a", "b"]
    assert document["tests"][0]["metrics"]["elapsed"]["mean"] == pytest.approx(0.01, rel=0.01)
    (comparison,) = document["comparisons"]
    assert comparison["ratio"]["ratio"] == pytest.approx(1.2, rel=0.01)
    assert comparison["differs"] is True
    assert document["text"] == verdict_lines(compared)


@pytest.mark.filterwarnings("ignore:overflow")
def test_what_is_infinite_is_null_in_json(tmp_path: Path) -> None:
    times = {"a": iter([1e-300, 1e-300, 1e300] * 9), "b": iter([1e-300, 1e300, 1e-300] * 9)}
    text = to_json(verdict(results(tmp_path, times, trials=2)))
    assert json.loads(text, parse_constant=refuse)["comparisons"][0]["ratio"]["high"] is None


def test_csv_has_a_line_for_each_test_and_metric_with_their_parameters(tmp_path: Path) -> None:
    tests = [Test(f'x, "{n}"', ("a",), parameters={"n": n}) for n in ("1", "2")]
    found = verdict(results(tmp_path, {"a": around(0.01)}, *tests, trials=3))
    rows = list(csv.DictReader(io.StringIO(to_csv(found))))
    assert [(r["test"], r["n"], r["metric"], r["unit"], r["count"]) for r in rows] == [
        ('x, "1"', "1", "elapsed", "s", "3"),
        ('x, "1"', "1", "user", "s", "3"),
        ('x, "2"', "2", "elapsed", "s", "3"),
        ('x, "2"', "2", "user", "s", "3"),
    ]
    assert float(rows[0]["mean"]) == pytest.approx(0.01, rel=0.02)


def test_markdown_is_one_table_whatever_a_command_is_called(tmp_path: Path) -> None:
    names = ["x | y", "x\ny", "`a|b`", "a\\"]
    tests = [Test(name, ("a",)) for name in names]
    text = to_markdown(verdict(results(tmp_path, {"a": around(0.01)}, *tests, trials=3)))
    table = text.split("\n\n")[0].splitlines()
    assert len(table) == 2 + len(names)
    bars = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in table]
    assert set(bars) == {bars[1]}, "as many cells in each row"
    assert "| x \\| y |" in text


def test_an_export_that_cannot_be_written_is_one_line(tmp_path: Path, compared: Verdict) -> None:
    with pytest.raises(MachineRefuses, match=re.escape(str(tmp_path / "nowhere" / "out.csv"))):
        write(compared, "csv", tmp_path / "nowhere" / "out.csv")
    for form in ("csv", "json", "markdown"):
        write(compared, form, tmp_path / form)
        assert (tmp_path / form).read_text().endswith("\n")


def on_machines(directory: Path, ratios: dict[str, float], speeds: dict[str, float]) -> Verdict:
    """Ten blocks of a and b in two sessions on each machine, which has a speed and a ratio of its own."""
    rows: dict[str, list[Any]] = {"a": [], "b": []}
    sittings = []
    for machine, ratio in ratios.items():
        for _ in range(2):
            number = len(sittings) + 1
            sittings.append(
                {"sitting": number, "boot_id": machine, "host": machine, "start": "", "end": None}
            )
            for trial in range(1, 6):
                step = 1.0 + STEPS[(trial + number) % len(STEPS)]
                where = {"sitting": number, "host": machine, "boot_id": machine, "block": trial}
                count = len(rows["a"]) + 1
                rows["a"].append(measurement("a", count, 0.01 * speeds[machine] * step, **where))
                other = 0.01 * speeds[machine] * ratio * (2.0 - step)
                rows["b"].append(measurement("b", count, other, **where))
    results_directory(directory, rows, sittings=sittings, plan=a_plan(directory.parent / "plan"))
    return verdict(load_results(directory))


def a_plan(directory: Path, **options: Any) -> dict[str, Any]:
    """As experiment.json has it, of a and b."""
    times = {"a": around(0.01, *STEPS), "b": around(0.01, *STEPS)}
    plan: dict[str, Any] = results(directory, times, trials=2, **options).experiment["plan"]
    return plan


def test_machines_of_different_speed_are_no_spread_of_the_ratio(tmp_path: Path, golden: Golden) -> None:
    found = on_machines(tmp_path / "r", {"n1": 1.2, "n2": 1.2}, {"n1": 1.0, "n2": 2.0})
    (c,) = found.comparisons
    assert c.ratio.ratio == pytest.approx(1.2, rel=0.01)
    assert c.ratio.half_width < 0.01
    assert [(m.machine, m.pairs) for m in c.machines] == [("n1", 10), ("n2", 10)]
    assert c.sittings == 4
    assert c.machines_p is not None
    assert c.machines_p > 0.05
    first, *others = comparison_lines(c)
    assert "2 machines" in basis_line(c)
    assert "4 sessions" in basis_line(c)
    assert not [line for line in others if "machines" in line]
    by_kind = {warning.kind: warning for warning in found.every}
    assert by_kind.keys() == {"several-machines", "machine-apart", "note"}
    assert "(n1, n2)" in found_text(by_kind["several-machines"])
    assert re.search(r"elapsed .* n2 is 2 times", found_text(by_kind["machine-apart"]))
    golden(
        "\n".join(
            [first, basis_line(c), *(f"{kind}: {found_text(warning)}" for kind, warning in by_kind.items())]
        )
    )


def test_a_ratio_that_is_another_on_each_machine_is_said(tmp_path: Path, golden: Golden) -> None:
    found = on_machines(tmp_path / "r", {"n1": 1.0, "n2": 1.5}, {"n1": 1.0, "n2": 1.0})
    (c,) = found.comparisons
    assert c.machines_p is not None
    assert c.machines_p < 0.0001
    line = comparison_lines(c)[1]
    assert re.search(r"\(p < 0\.0001\): n1 1\.00\d+, n2 1\.50\d", line)
    assert line in verdict_lines(found)
    assert c.ratio.half_width < 0.01
    assert c.more < 100
    golden(line)


def test_tests_of_different_machines_are_not_compared(tmp_path: Path) -> None:
    def of(machine: str, test: str) -> list[Any]:
        return [measurement(test, n, 0.01 + n / 1e5, host=machine) for n in range(1, 6)]

    plan = a_plan(tmp_path / "plan", schedule="in-turn")
    results_directory(tmp_path / "r", {"a": of("n1", "a"), "b": of("n2", "b")}, plan=plan)
    found = verdict(load_results(tmp_path / "r"), verdict_options=VerdictOptions(reference="a"))
    assert found.comparisons == ()
    (reason,) = [found_text(each) for each in found.every if each.kind == "note"]
    assert re.search(r"\belapsed .*\bb\b.* a: .*\bn1\b.*\bn2\b", reason)


def test_the_noise_is_not_below_a_steady_difference_of_the_reference_from_itself() -> None:
    rng = np.random.default_rng(1)
    base = 0.01 * np.exp(rng.normal(0.0, 0.001, 100))
    again = 1.02 * base * np.exp(rng.normal(0.0, 0.001, 100))
    steady, alike = paired_ratio(base, again), paired_ratio(base, base[::-1])
    assert _noise((base, again), 100, 1.0, steady, "cost", 0.95) == pytest.approx(0.02, rel=0.1)
    assert _noise((base, base[::-1]), 100, 1.0, alike, "cost", 0.95) == noise_floor(
        base, base[::-1], pairs=100
    )


@pytest.mark.parametrize(("reference", "pairs"), [("a", 12), ("b", 0)])
def test_only_the_test_that_ran_against_itself_has_noise_of_its_own(
    tmp_path: Path, reference: str, pairs: int
) -> None:
    times = {"a": around(0.010, *STEPS), "b": around(0.020, *STEPS[::-1])}
    made = results(tmp_path, times, trials=12, again_every=1)
    (c,) = verdict(made, verdict_options=VerdictOptions(reference=reference)).comparisons
    assert c.floor_pairs == pairs
    assert (c.floor is None) == (pairs == 0)


def test_a_metric_in_which_the_reference_differs_from_itself_is_not_judged(tmp_path: Path) -> None:
    """Memory has an offset of each test; `system` has a value of 0."""
    random = np.random.default_rng(7)

    def rows(name: str, offset: float) -> list[Any]:
        found = []
        for trial in range(1, 13):
            metrics = {
                "elapsed": [float(0.01 * np.exp(0.02 * random.standard_normal())), "s"],
                "tree_peak_memory": [float((1e6 + offset) * np.exp(0.001 * random.standard_normal())), "B"],
                "system": [0.001 * (trial % 3), "s"],
                # Of the reference's twin one value is 0.
                "user": [0.0 if offset == 2e5 and trial == 5 else 0.001 + 1e-6 * trial, "s"],
            }
            found.append(measurement(name, trial, metrics=metrics))
        return found

    names = ("a", "b", "a (again)")
    entries = [
        {"name": name, "directory": name, "role": role, "parameters": {}, "group": 1}
        for name, role in zip(names, ("test", "test", "again"), strict=True)
    ]
    made = {"a": rows("a", 0.0), "b": rows("b", 3e5), "a (again)": rows("a (again)", 2e5)}
    script = {"kind": "script", "primary": "elapsed"}
    place = results_directory(tmp_path / "r", made, tests=entries, plan=script)
    (c,) = verdict(load_results(place), verdict_options=VerdictOptions(full=True, reference="a")).comparisons
    assert c.floor_pairs == 12
    judged = {s.metric: s.unsteady for s in c.secondary}
    assert judged == {"tree_peak_memory": True, "user": False}
    assert c.uncompared == ("system",)
