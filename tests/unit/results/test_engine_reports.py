"""Outputs of replays and loads are recognised and read, and what is wrong in one is named."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import InputError
from etude.results.engine_reports import (
    LoadReport,
    ReplayReport,
    holds_report,
    is_report,
    read_report,
    reports_of_tests,
)
from etude.results.printed_json import MOST_NESTED, json_objects
from golden.corpus import lay_out
from support import pages
from support.places import DATA

REPLAY, LOAD = "replays/changed.json", "load/overloaded.jsonl"


def test_a_replay_is_read_with_its_other_results_and_dropped_calls(tmp_path: Path) -> None:
    report = read_report(lay_out(REPLAY, tmp_path))
    assert isinstance(report, ReplayReport)
    assert (report.mismatches, len(report.other_results)) == (4, 4)
    assert report.unplayed.bytes_share > 0.1
    assert report.lateness_s is not None
    assert report.original.timed


def test_a_load_is_read_with_its_windows_and_summary(tmp_path: Path) -> None:
    report = read_report(lay_out(LOAD, tmp_path))
    assert isinstance(report, LoadReport)
    assert report.summary is not None
    assert report.summary.asked_rate == 80.0
    assert len(report.windows) == 4
    assert report.drained is not None
    assert sum(w["completed"] for w in (*report.windows, report.drained)) == report.summary.completed


@pytest.mark.parametrize("cut", [100, 300])
def test_a_load_that_is_cut_short_has_the_whole_windows_and_no_summary(tmp_path: Path, cut: int) -> None:
    path = lay_out(LOAD, tmp_path)
    path.write_bytes(path.read_bytes()[:-cut])
    report = read_report(path)
    assert isinstance(report, LoadReport)
    assert report.summary is None
    assert len(report.windows) == 4


@pytest.mark.parametrize(
    ("name", "old", "new", "wrong"),
    [
        (REPLAY, '"calls":', '"calls": -1, "other":', "calls"),
        (REPLAY, '"p99":', '"p99": "late", "other":', "lateness_s.p99"),
        (LOAD, '"busy":', '"busy": null, "other":', "summary.busy"),
        (LOAD, '"completed":', '"completed": 1.5, "other":', "window 1"),
        (LOAD, "HISTFA", "HISTFB", "window 1"),
    ],
)
def test_a_wrong_member_is_named_with_its_file(
    tmp_path: Path, name: str, old: str, new: str, wrong: str
) -> None:
    path = lay_out(name, tmp_path)
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(InputError) as error:
        read_report(path)
    assert str(path) in str(error.value)
    assert wrong in str(error.value)


def test_two_outputs_in_a_file_are_refused(tmp_path: Path) -> None:
    path = lay_out(REPLAY, tmp_path)
    path.write_text(path.read_text() * 2)
    with pytest.raises(InputError, match="2 reports"):
        read_report(path)


def test_nothing_else_in_the_test_data_is_taken_for_a_report() -> None:
    files = [path for path in sorted(DATA.rglob("*")) if path.is_file()]
    assert len(files) > 50
    assert [path for path in files if is_report(path)] == []
    assert not holds_report("")
    assert not holds_report(json.dumps({"summary": {}}, indent=1))


def replaying(directory: Path, logs: dict[str, str]) -> Path:
    """Three trials of A, the second excluded, and of B, with these outputs."""
    path = pages.results(directory, {"A": [0.1, 0.2, 0.3], "B": [0.1, 0.2, 0.3]})
    for name, text in logs.items():
        log = path / "test-0" / "logs" / name
        log.parent.mkdir(exist_ok=True)
        log.write_text(text)
    return path


def test_the_outputs_of_included_trials_are_read_by_test(tmp_path: Path) -> None:
    text = lay_out(REPLAY, tmp_path).read_text()
    logs = {
        "0001-0.log": f"Note: something\n{text}",
        "0002-0.log": text,
        "0003-0.stdout": text,
        "0003-1.log": text,
    }
    path = replaying(tmp_path / "r", logs)
    (found,) = reports_of_tests(path, {"A": [1, 3], "B": [1, 2, 3]})
    assert (found.test, sorted(found.reports), found.missing) == ("A", [1, 3], 0)


def test_outputs_beyond_the_bound_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = lay_out(REPLAY, tmp_path).read_text()
    monkeypatch.setattr("etude.results.engine_reports.MOST_BYTES", 2 * len(text))
    path = replaying(tmp_path / "r", {f"{trial:04d}-0.log": text for trial in (1, 2, 3)})
    (found,) = reports_of_tests(path, {"A": [1, 2, 3]})
    assert (sorted(found.reports), found.missing) == ([1, 2], 1)


@pytest.mark.parametrize("first", [None, "hello\n", "cut"])
def test_a_trial_without_a_whole_report_hides_no_other(tmp_path: Path, first: str | None) -> None:
    text = lay_out(REPLAY, tmp_path).read_text()
    outputs = {"0001-0.log": text[:-9] if first == "cut" else first, "0002-0.log": text}
    path = replaying(tmp_path / "r", {name: output for name, output in outputs.items() if output})
    (found,) = reports_of_tests(path, {"A": [1, 2, 3], "B": [1]})
    assert (sorted(found.reports), found.missing) == ([2], 2)


def objects(text: str) -> list[object]:
    """The outermost objects by trial of every place; quadratic."""
    decoder, found, end = json.JSONDecoder(), [], 0
    while match := re.compile(r"^[ \t]*(?=\{)", re.MULTILINE).search(text, end):
        end = match.end() + 1
        with contextlib.suppress(ValueError):
            document, end = decoder.raw_decode(text, match.end())
            found.append(document)
    return found


LINES = st.sampled_from(
    [
        "{",
        "}",
        "{}",
        ' {"a": 1} x',
        '"b": {',
        '"c": "}{\\""',
        '{"a":',
        '"',
        "{'a': 1}",
        "1}",
        ',"d": [{}]',
        "[",
        " ",
    ]
)


@given(st.lists(LINES, max_size=12), st.sampled_from(["\n", "\r\n", "\n\n\t"]))
def test_all_outermost_objects_are_found(lines: list[str], end: str) -> None:
    assert list(json_objects(end.join(lines))) == objects(end.join(lines))


@pytest.mark.parametrize(
    "line", ["{'a': 1}", '{"a":', "{", '{"', "{[", "{}{", '{"a": [{\n}]', "{\n}", '{"a": "\\'], ids=range(9)
)
def test_objects_are_searched_in_linear_time(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = 0

    class Counting(json.JSONDecoder):
        def raw_decode(self, s: str, idx: int = 0) -> tuple[object, int]:
            nonlocal parsed
            parsed += len(s)
            return super().raw_decode(s, idx)

    monkeypatch.setattr(json, "JSONDecoder", Counting)
    text = f"{line}\n" * 20_000 + "}" * 20_000
    assert all(isinstance(each, dict) for each in json_objects(text))
    assert parsed <= 2 * MOST_NESTED * len(text)
