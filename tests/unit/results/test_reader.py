"""Reading results back: whole, torn, of another version, or not ours at all."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from etude.errors import InputError
from etude.results.reader import drop_torn_trial, load_results, read_measurements
from support.builders import document, line, measurement, results_directory

ROWS = [measurement(trial=trial, command=["é" * trial, "\n"]) for trial in range(3)]


def test_a_last_line_cut_at_any_byte_is_dropped_and_reported(tmp_path: Path) -> None:
    whole, last = b"".join(line(row) for row in ROWS[:2]), line(ROWS[2])
    results_directory(tmp_path, {"a": ROWS})
    file = tmp_path / "a" / "results.jsonl"
    for length in range(1, len(last)):
        file.write_bytes(whole + last[:length])
        results = load_results(tmp_path)
        assert results.measurements["a"] == tuple(ROWS[:2])
        assert results.torn == (str(file),)


def test_dropping_a_torn_line_cuts_it_and_nothing_else(tmp_path: Path) -> None:
    whole, last = b"".join(line(row) for row in ROWS[:2]), line(ROWS[2])
    file = tmp_path / "results.jsonl"
    for length in range(1, len(last)):
        file.write_bytes(whole + last[:length])
        assert drop_torn_trial(file)
        assert file.read_bytes() == whole


@pytest.mark.parametrize("length", [1, 4095, 4096, 4097, 8192, 20_000])
def test_a_torn_line_of_any_length_is_found(tmp_path: Path, length: int) -> None:
    file = tmp_path / "results.jsonl"
    for before in (b"", b"whole\n"):
        file.write_bytes(before + b"x" * length)
        assert drop_torn_trial(file)
        assert file.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"whole\n", b"a\nb\n", b"x" * 4095 + b"\n", b"x" * 4096 + b"\n"])
def test_whole_lines_are_not_touched(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "results.jsonl"
    file.write_bytes(content)
    assert not drop_torn_trial(file)
    assert file.read_bytes() == content


def test_a_file_that_was_never_written_is_not_torn(tmp_path: Path) -> None:
    assert not drop_torn_trial(tmp_path / "results.jsonl")
    assert read_measurements(tmp_path / "results.jsonl") == ((), True)


BAD_LINES: list[bytes] = [
    b"",
    b"{",
    b"null",
    b"[]",
    b'"text"',
    b"\xff\xfe",
    b"{}",
    b'{"test":"a"}',
    b"[" * 100_000,
    b"9" * 5000,
    line(measurement(metrics={"elapsed": [float("nan"), "s"]})),
    line(measurement(metrics={"elapsed": [float("inf"), "s"]})),
    line(measurement(metrics={"elapsed": [10**400, "s"]})),
]


@pytest.mark.parametrize("bad", BAD_LINES, ids=lambda bad: repr(bad[:6] + bad[-20:-1]))
def test_a_bad_line_in_the_middle_is_one_error_that_names_file_and_line(tmp_path: Path, bad: bytes) -> None:
    results_directory(tmp_path, {"a": []})
    file = tmp_path / "a" / "results.jsonl"
    file.write_bytes(line(ROWS[0]) + bad.strip() + b"\n" + line(ROWS[1]))
    with pytest.raises(InputError) as error:
        load_results(tmp_path)
    assert str(error.value).startswith(f"{file}:2: not a measurement: ")
    assert "\n" not in str(error.value)


WRONG_MEMBERS: list[tuple[str, Any]] = [
    ("trial", "1"),
    ("trial", None),
    ("trial", 1.5),
    ("block", []),
    ("sitting", "first"),
    ("inner", 0),
    ("test", 7),
    ("command", "true"),
    ("command", [1]),
    ("exit_status", "0"),
    ("kept", "yes"),
    ("metrics", []),
    ("metrics", {"elapsed": 1.0}),
    ("metrics", {"elapsed": []}),
    ("metrics", {"elapsed": [1.0]}),
    ("metrics", {"elapsed": ["1.0", "s"]}),
    ("metrics", {"elapsed": [True, "s"]}),
    ("metrics", {"elapsed": [1.0, 7]}),
    ("stdout", "text"),
    ("stdout", {}),
    ("notes", 3),
    ("rows", 0),
    ("rows", "2"),
    ("rows", True),
    ("rows", None),
    ("kernel", {}),
    ("kernel", [{"ns": 1, "level": "4", "text": "x"}]),
    ("kernel", ["x"]),
    ("throttled", -1),
    ("accepted", 256),
    ("cache", {}),
    ("cache", "warm"),
    ("cache", {"declared": "hot", "performed": None}),
    ("cache", {"declared": None, "performed": None}),
    ("cache", {"declared": "warm", "performed": ["warm"]}),
]


@pytest.mark.parametrize(("member", "value"), WRONG_MEMBERS)
def test_a_member_of_a_wrong_type_is_an_error_that_names_file_and_line(
    tmp_path: Path, member: str, value: object
) -> None:
    results_directory(tmp_path, {"a": []})
    file = tmp_path / "a" / "results.jsonl"
    wrong = json.loads(line(ROWS[0])) | {member: value}
    file.write_text(json.dumps(wrong) + "\n")
    with pytest.raises(InputError, match=r"results\.jsonl:1: not a measurement: ") as error:
        load_results(tmp_path)
    assert member in str(error.value) or "metric" in str(error.value)


def test_a_newer_version_is_refused_with_what_to_do(tmp_path: Path) -> None:
    results_directory(tmp_path, {"a": ROWS}, version=2)
    with pytest.raises(InputError, match=r"version 2 .* up to 1\b"):
        load_results(tmp_path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{}", "is not ours"),
        ("[]", "is not ours"),
        ('{"format": "asv"}', "is not ours"),
        ("", "JSON"),
        ('{"format": "etude-exp', "JSON"),
        ("[" * 100_000, "JSON"),
        ('{"format": "etude-experiment", "version": "1"}', "version"),
        ('{"format": "etude-experiment", "version": 1}', "lacks tests, plan, sittings"),
    ],
)
def test_what_is_not_ours_is_named(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "experiment.json").write_text(content)
    with pytest.raises(InputError, match=says) as error:
        load_results(tmp_path)
    assert str(tmp_path / "experiment.json") in str(error.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"tests": {}},
        {"tests": "a"},
        {"tests": ["a"]},
        {"tests": [{}]},
        {"tests": [{"name": "a", "role": "test", "parameters": {}}]},
        {"tests": [{"name": 1, "directory": "a", "role": "test", "parameters": {}}]},
        {"tests": [{"name": "a", "directory": "../a", "role": "test", "parameters": {}}]},
        {"tests": [{"name": "a", "directory": "/etc", "role": "test", "parameters": {}}]},
        {"tests": [{"name": "a", "directory": "..", "role": "test", "parameters": {}}]},
        {"tests": [{"name": "a", "directory": "", "role": "test", "parameters": {}}]},
        {"tests": [{"name": "a", "directory": "\0", "role": "test", "parameters": {}}]},
        {"tests": [{"name": "a", "directory": "\ud800", "role": "test", "parameters": {}}]},
        {"tests": [{"name": "a", "directory": "a", "role": "test", "parameters": []}]},
        {"plan": []},
        {"sittings": {}},
        {"sittings": [1]},
        {"earlier_rules": {}},
        {"earlier_rules": [{"sitting": "1"}]},
        {"began_as": "x"},
        {"machine": {"before": {"directory": "x"}}},
        {"machine": {"before": {"directory": {"type": 5}}}},
        {"machine": {"before": {"disks": {"sda": "x"}}}},
        {"machine": {"before": {"memory": {"page_bytes": "x"}}}},
        {"tests": [{"name": "a", "directory": "a", "role": "test", "parameters": {}, "file_system": "x"}]},
        {"command_line": "etude bench a"},
        {"command_line": ["etude bench", 7]},
    ],
)
def test_members_that_cannot_be_meant_are_one_error(tmp_path: Path, changes: dict[str, Any]) -> None:
    (tmp_path / "experiment.json").write_text(json.dumps(document(**changes)))
    with pytest.raises(InputError, match=r"experiment\.json: "):
        load_results(tmp_path)


def test_a_directory_that_is_missing_or_empty_or_a_file_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="/missing: no results"):
        load_results(tmp_path / "missing")
    with pytest.raises(InputError, match=f"{tmp_path}: no results"):
        load_results(tmp_path)
    with pytest.raises(InputError, match="/file: is a file"):
        load_results(tmp_path / "file")
    with pytest.raises(InputError, match=os.strerror(errno.ENAMETOOLONG)):
        load_results(tmp_path / ("x" * 300))


def test_results_that_are_a_directory_are_an_error(tmp_path: Path) -> None:
    results_directory(tmp_path, {"a": []})
    (tmp_path / "a" / "results.jsonl").unlink()
    (tmp_path / "a" / "results.jsonl").mkdir()
    with pytest.raises(InputError, match="Is a directory"):
        load_results(tmp_path)


def test_roles_and_names_are_those_of_the_document(tmp_path: Path) -> None:
    results_directory(tmp_path, {"a": ROWS, "b": []})
    content = json.loads((tmp_path / "experiment.json").read_text())
    content["tests"][1]["role"] = "again"
    (tmp_path / "experiment.json").write_text(json.dumps(content))
    results = load_results(tmp_path)
    assert (results.names(), results.names("again"), results.names("shell")) == (("a",), ("b",), ())
    assert results.role("b") == "again"


def test_a_trial_that_lacks_a_worker_is_no_trial(tmp_path: Path) -> None:
    rows = [measurement(trial=trial, worker=worker) for trial in range(2) for worker in range(3)]
    for written in range(len(rows) + 1):
        directory = tmp_path / str(written)
        results_directory(directory, {"a": rows[:written]})
        document = json.loads((directory / "experiment.json").read_text())
        document["tests"][0]["workers"] = 3
        (directory / "experiment.json").write_text(json.dumps(document))
        results = load_results(directory)
        assert len(results.measurements["a"]) == written // 3 * 3
        assert bool(results.torn) == (written % 3 != 0)
        assert drop_torn_trial(directory / "a" / "results.jsonl", workers=3) == (written % 3 != 0)
        assert not load_results(directory).torn


def test_a_trial_with_fewer_lines_than_its_rows_say_is_no_trial(tmp_path: Path) -> None:
    """Of two workers, one runs three commands and the other one; the trial after has one line only."""
    shapes = [[(0, 4), (0, 4), (0, 4), (1, 4)], [(0, 1)], [(0, 2), (0, 2)]]
    trials = [[measurement(trial=i, worker=w, rows=n) for w, n in shape] for i, shape in enumerate(shapes)]
    rows = [row for trial in trials for row in trial]
    for written in range(len(rows) + 1):
        directory = tmp_path / str(written)
        results_directory(directory, {"a": rows[:written]})
        document = json.loads((directory / "experiment.json").read_text())
        document["tests"][0]["workers"] = 2
        (directory / "experiment.json").write_text(json.dumps(document))
        whole = max(n for n in (0, 4, 5, 7) if n <= written)
        results = load_results(directory)
        assert len(results.measurements["a"]) == whole
        assert bool(results.torn) == (whole != written)
        assert drop_torn_trial(directory / "a" / "results.jsonl", workers=2) == (whole != written)
        assert not load_results(directory).torn


def test_a_line_that_says_how_many_rows_there_are_needs_no_worker_count(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_bytes(line(measurement(rows=2)))
    assert drop_torn_trial(file)
    file.write_bytes(line(measurement(rows=2)) * 2)
    assert not drop_torn_trial(file)


@pytest.mark.parametrize("rows", ["2", 0, -3, 10**30, True, None, [2]])
def test_rows_that_cannot_be_meant_cut_nothing(tmp_path: Path, rows: object) -> None:
    file = tmp_path / "results.jsonl"
    content = json.dumps({"trial": 1, "rows": rows}).encode() + b"\n"
    file.write_bytes(content)
    assert not drop_torn_trial(file)
    assert file.read_bytes() == content
