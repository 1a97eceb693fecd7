"""`etude store add` and `etude store`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.cli.main import main
from support.golden import Golden
from support.stored import directory


@pytest.fixture
def etude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs `etude …` in an empty directory, in which there is a result `r` of two tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ETUDE_STORE", raising=False)
    directory(tmp_path / "r", {"sort": [1.0, 1.5], "scan": [2.0]})
    return lambda *words: main(list(words))


def test_results_are_added_listed_and_taken_out(
    etude: Callable[..., int], capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    assert etude("store", "add", "r", "--commit", "abcdef", "--committed", "2026-01-01", "--tag", "v1") == 0
    assert etude("store", "add", "r") == 0
    said = capsys.readouterr().out
    added, again = said.splitlines()
    assert all("result 1 " in line and "2 tests" in line for line in (added, again))
    assert "commit abcdef" in added
    assert "already" in again
    golden(said)
    assert etude("store", "list") == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("abcdef", "2026-01-01 00:00", "v1", "here"))
    assert etude("store", "tests") == 0
    assert capsys.readouterr().out.splitlines() == ["scan: elapsed", "sort: elapsed"]
    assert etude("store", "check") == 0
    assert "nothing is wrong" in capsys.readouterr().out
    assert etude("store", "forget", "1") == 0
    capsys.readouterr()
    assert etude("store", "list") == 0
    assert capsys.readouterr().out.endswith(": no results\n")


def test_json_has_what_the_list_has(
    etude: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    etude("store", "add", "r", "--branch", "main")
    capsys.readouterr()
    assert etude("store", "list", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["format"], document["version"]) == ("etude-store-list", 1)
    (result,) = document["results"]
    assert (result["number"], result["branch"], result["trials"]) == (1, "main", 3)
    assert result["source"] == str(tmp_path / "r")
    assert etude("store", "tests", "--json") == 0
    assert json.loads(capsys.readouterr().out)["tests"] == {"scan": ["elapsed"], "sort": ["elapsed"]}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["store", "list"], 3, "etude-store.sqlite: "),
        (["store", "list", "7"], 2, "takes no RESULT"),
        (["store", "forget"], 2, "etude store forget: "),
        (["store", "forget", "x"], 2, "not 'x'"),
        (["store", "gather"], 2, "invalid choice"),
        (["store", "add", "none"], 3, "No such file"),
        (["store", "add", "r", "--store", "mysql://h/d"], 2, "--store: 'mysql'"),
        (["store", "add", "r", "--committed", "2026-01-01"], 2, "no commit"),
        (["store", "add", "r", "--committed", "soon"], 2, "--committed: 'soon'"),
        (["store", "add", "r", "--dirty"], 2, "--dirty is about"),
        (["store", "add", "r", "--repository", "none"], 3, "--repository none: "),
        (["store", "add", "r", "--tag", ""], 2, "'': "),
        (["store", "add", "r", "--tag", "two\nlines"], 2, r"'two\nlines': "),
        (["store", "tests", "--store", "r/experiment.json"], 3, "r/experiment.json: is no store"),
        (["store", "add", "r", "--store", "r/experiment.json"], 3, "r/experiment.json: is no store"),
    ],
    ids=lambda value: "-".join(value).replace("/", ".") if isinstance(value, list) else None,
)
def test_what_cannot_be_is_said_in_one_line(
    etude: Callable[..., int], capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    assert ended(etude, words) == code
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def ended(etude: Callable[..., int], words: list[str]) -> object:
    try:
        return etude(*words)
    except SystemExit as end:
        return end.code


def test_what_is_before_a_directory_that_cannot_be_read_is_stored(
    etude: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert etude("store", "add", "r", "none") == 3
    assert "added as result 1" in capsys.readouterr().out


def test_check_ends_with_1_where_it_finds_something(
    etude: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    import sqlite3

    etude("store", "add", "r")
    with sqlite3.connect("etude-store.sqlite") as connection:
        connection.execute("UPDATE entry SET count = 9 WHERE id = 1")
    assert etude("store", "check") == 1
    assert "result 1, entry 1" in capsys.readouterr().out


def test_a_name_of_several_lines_is_one_line(
    etude: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory(tmp_path / "n", {"a\nb\x1b[2J": [1.0]})
    assert etude("store", "add", "n") == 0
    assert etude("store", "tests") == 0
    lines = capsys.readouterr().out.split("\n")
    assert all(line.isprintable() for line in lines)
    assert lines[1:] == ["a\\nb\\x1b[2J: elapsed", ""]
