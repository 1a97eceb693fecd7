"""From a path to what is judged: small and large results of ours say the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from etude.errors import InputError
from etude.report import reading
from etude.report.reading import read_subject
from etude.report.subject import Subject
from etude.report.summaries import Summaries
from etude.report.verdict import verdict
from support.builders import measurement, results_directory
from support.golden import Golden
from support.places import DATA

PLAN = {"kind": "script", "primary": "elapsed"}


def interleaved(directory: Path, **roles: str) -> Path:
    """Two tests in blocks, the first run of each set aside."""
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


def read(path: Path, metrics: list[str] | None = None) -> Subject:
    found = read_subject(str(path), metrics=metrics)
    assert isinstance(found, Subject)
    return found


def test_large_results_say_what_small_ones_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    path = interleaved(tmp_path / "r")
    small = read(path)
    monkeypatch.setattr(reading, "LARGE_BYTES", 0)
    large = read(path)
    assert small.notes == ()
    golden("\n".join(large.notes))
    one, other = verdict(small), verdict(large)
    assert [t.metrics for t in other.tests] == [t.metrics for t in one.tests]
    assert [t.set_aside for t in other.tests] == [{"first run": 1}] * 2
    assert other.comparisons == one.comparisons
    assert one.comparisons[0].ratio.count == 12


def test_of_large_results_only_what_is_shown_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGE_BYTES", 0)
    path = interleaved(tmp_path / "r")
    assert set(read(path, []).tests[0].columns) == {"elapsed", "user", "hits"}
    assert set(read(path, ["user"]).tests[0].columns) == {"user"}


@pytest.mark.parametrize("role", ["again", "shell"])
def test_large_results_have_the_reference_against_itself_and_the_shell_s_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    path = interleaved(tmp_path / "r", b=role)
    small = verdict(read(path))
    monkeypatch.setattr(reading, "LARGE_BYTES", 0)
    monkeypatch.setattr(reading, "load_results", None)  # one large file is not read line by line for these
    large = verdict(read(path))
    assert large.tests[0].metrics == small.tests[0].metrics
    of_both = [[*each.subject.twins, *filter(None, [each.subject.shell])] for each in (small, large)]
    assert [[series.test for series in each] for each in of_both] == [["b"]] * 2
    assert of_both[0][0].sample("elapsed").tolist() == of_both[1][0].sample("elapsed").tolist()


def test_a_shells_start_is_never_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGE_BYTES", 0)
    found = read(interleaved(tmp_path / "r", b="shell"))
    assert found.shell is not None
    assert [series.test for series in found.tests] == ["a"]


def test_what_is_no_file_is_one_line(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path / ("x" * 300)):
        with pytest.raises(InputError, match="cannot be read"):
            read_subject(str(path))


def test_summaries_are_told_apart(tmp_path: Path) -> None:
    sample = DATA / "readers" / "pytest-benchmark-summaries.json"
    found = read_subject(str(sample), confidence=0.9)
    assert isinstance(found, Summaries)
    assert found.rows
