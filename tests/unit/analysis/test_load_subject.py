"""From a path to what is judged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from etude.analysis.load_subject import Summaries, read_subject
from etude.analysis.subject import Subject, work_differences
from etude.analysis.verdict import verdict
from etude.errors import InputError
from etude.results.reader import load_results
from etude.results.series import Failure
from etude.results.trials import read_trials, series_of_columns, trials_of_results
from support.builders import measurement, results_directory
from support.places import DATA

PLAN = {"kind": "script", "primary": "elapsed"}


def interleaved(directory: Path, **roles: str) -> Path:
    """Two tests in blocks, the first run of each excluded."""
    noise = np.random.default_rng(3).normal(1.0, 0.01, (2, 13))
    rows = {
        name: [
            measurement(
                name,
                trial=n,
                elapsed_s=float(level * x),
                kept=n > 0,
                why=None if n else "first run",
                metrics={"elapsed": [float(level * x), "s"], "user": [0.5, "s"], "hits": [3.0, "1"]},
            )
            for n, x in enumerate(noise[i])
        ]
        for i, (name, level) in enumerate((("a", 1.0), ("b", 1.1)))
    }
    tests = [
        {"name": name, "directory": name, "role": roles.get(name, "test"), "parameters": {}, "group": 1}
        for name in rows
    ]
    metrics = {"elapsed": {}, "user": {}, "hits": {}}
    return results_directory(directory, rows, plan=PLAN, tests=tests, metrics=metrics)


def read(path: Path) -> Subject:
    found = read_subject(str(path))
    assert isinstance(found, Subject)
    return found


def test_results_on_disk_say_what_those_in_memory_do(tmp_path: Path) -> None:
    path = interleaved(tmp_path / "r")
    one, other = verdict(load_results(path)), verdict(read(path))
    assert one.subject.notes == other.subject.notes == ()
    assert [t.metrics for t in other.tests] == [
        tuple(t.metric(m.metric) for m in test.metrics)
        for t, test in zip(one.tests, other.tests, strict=True)
    ]
    assert [t.set_aside for t in other.tests] == [{"first run": 1}] * 2
    assert other.comparisons == one.comparisons
    assert one.comparisons[0].ratio.count == 12
    assert set(other.subject.tests[0].columns) == {"elapsed", "user", "hits"}


@pytest.mark.parametrize("role", ["again", "shell"])
def test_the_reference_against_itself_and_the_shell_s_start_are_no_tests(tmp_path: Path, role: str) -> None:
    found = read(interleaved(tmp_path / "r", b=role))
    assert [series.test for series in found.tests] == ["a"]
    others = [*found.twins, *filter(None, [found.shell])]
    assert [series.test for series in others] == ["b"]
    assert others[0].sample("elapsed").size == 12


@pytest.mark.parametrize("in_memory", [True, False])
def test_what_a_few_trials_printed_is_looked_at(tmp_path: Path, in_memory: bool) -> None:
    """Outputs, caches, messages of the kernel, windows and accepted statuses, which most lines lack."""
    cache = {"declared": "drop", "performed": "drop"}
    first = {"kept": False, "why": "first run"}
    rows = {
        name: [
            measurement(name, 0, stdout={"bytes": 1, "sha256": name, "tail": ""}, **first),
            measurement(name, 1, start_ns=2, cache=cache, kernel=[{"ns": 1, "level": 3, "text": "x"}]),
            measurement(name, 2, start_ns=3, exit_status=3, accepted=3, throttled=2, windows=[{"by": {}}]),
        ]
        for name in "ab"
    }
    plan = {"check_output": "first", "tests": [{"name": name} for name in rows]}
    path = results_directory(tmp_path / "r", rows, plan=plan)
    trials = trials_of_results(load_results(path)) if in_memory else read_trials(path)
    assert [each.between for each in work_differences(trials)] == [False, False, True]
    a, _ = series_of_columns(trials.columns)
    assert a.caches == [None, cache, None]
    assert [each and each["throttled"] for each in a.kernel] == [None, 0, 2]
    assert a.windows == [None, None, [{"by": {}}]]
    assert a.failures == (Failure(2, 0, rows["a"][2].ending()),)


def test_what_is_no_file_is_one_line(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path / ("x" * 300)):
        with pytest.raises(InputError, match="cannot be read"):
            read_subject(str(path))


def test_summaries_are_told_apart(tmp_path: Path) -> None:
    sample = DATA / "readers" / "pytest-benchmark-summaries.json"
    found = read_subject(str(sample), confidence=0.9)
    assert isinstance(found, Summaries)
    assert found.rows
