"""`etude bisect` with bad input: one line, its exit code, and nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.c_history import QUIET, CHistory, c_history, git
from support.fakes import World

Etude = Callable[..., int]
Captured = pytest.CaptureFixture[str]

GOOD = ("v1", "main", "--build", "true")
END = ("--", "true")

USAGE = [
    (),
    ("v1",),
    ("v1", "main"),
    ("v1", "main", "--build", "true"),
    ("v1", "main", "--", "true"),
    ("v1", "main", "--build", "", *END),
    ("v1", "main", "--build", " \n", *END),
    ("v1", "main", "--build", "true", "--", ""),
    ("v1", "main", "--build", "true", "--", "a 'b"),
    ("v1", "main", "--build", "true", "--", "a | b"),
    ("v1", "main", "--build", "true", "--", "a\udcff"),
    ("v1\udcff", "main", "--build", "true", *END),
    ("v1", "main", "--build", "true\udcff", *END),
    (*GOOD, "--cache", "1e30", *END),
    (*GOOD, "--metric", "", *END),
    (*GOOD, "--metric", "speed", *END),
    (*GOOD, "--metric", "speed=(", *END),
    (*GOOD, "--metric", "=x (.*)", *END),
    (*GOOD, "--metric", "user=x (.*)", *END),
    (*GOOD, "--at-least", "0", *END),
    (*GOOD, "--at-least", "3", *END),
    (*GOOD, "--at-least", "-3%", *END),
    (*GOOD, "--at-least", "nan", *END),
    (*GOOD, "--confidence", "100", *END),
    (*GOOD, "--confidence", "0", *END),
    (*GOOD, "--confidence", "x", *END),
    (*GOOD, "--budget", "0", *END),
    (*GOOD, "--budget", "-1s", *END),
    (*GOOD, "--budget", "soon", *END),
    (*GOOD, "--build-timeout", "0", *END),
    (*GOOD, "--timeout", "0", *END),
    (*GOOD, "--seed", "-1", *END),
    (*GOOD, "--seed", "x", *END),
    (*GOOD, "--cache", "0", *END),
    (*GOOD, "--cache", "much", *END),
    (*GOOD, "-o", "", *END),
    (*GOOD, "--builds", "", *END),
    (*GOOD, "--page", "", *END),
    (*GOOD, "--nosuch", *END),
    ("v1", "main", "--resume", "results"),
    ("--resume", "results", "--", "true"),
    ("--resume", "results", "-o", "x"),
    ("--resume", "results", "--build", "true"),
    ("--resume", "results", "--metric", "user"),
    ("--resume", "results", "--at-least", "1%"),
    ("--resume", "results", "--confidence", "90"),
    ("--resume", "results", "--seed", "1"),
    ("--resume", "results", "--ancestry"),
    ("--resume", "results", "--repository", "r"),
    ("--resume", "results", "--builds", "b"),
    ("--resume", "results", "--cache", "1G"),
    ("--resume", "results", "--timeout", "1s"),
    ("--resume", "results", "--build-timeout", "1s"),
    ("--resume", ""),
]
WRONG = [
    ("nothere", "main", "--build", "true", *END),
    ("v1", "nothere", "--build", "true", *END),
    ("", "main", "--build", "true", *END),
    ("v1", "v1", "--build", "true", *END),
    ("main", "v1", "--build", "true", *END),
    ("v1..main", "main", "--build", "true", *END),
    ("main~5^2", "main", "--build", "true", *END),
    ("v1", "main", "--repository", "nowhere", "--build", "true", *END),
    ("v1", "main", "--repository", "..", "--build", "true", *END),
    ("--resume", "nowhere"),
    ("--resume", "."),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> CHistory:
    return c_history(tmp_path_factory.mktemp("history") / "r", commits=16)


@pytest.fixture
def repository(made: CHistory, world: World, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, which is a repository."""
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    here = Path.cwd() / "r"
    shutil.copytree(made.repository, here)
    monkeypatch.chdir(here)
    return here


def check_one_line(capsys: Captured) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("etude: "), err
    assert err.count("\n") == 1, err
    return err


@pytest.mark.needs_program("git")
@pytest.mark.parametrize(
    ("words", "code"),
    [*((each, 2) for each in USAGE), *((each, 3) for each in WRONG)],
    ids=lambda each: str(each),
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(
    etude: Etude, repository: Path, capsys: Captured, words: tuple[str, ...], code: int
) -> None:
    before = sorted(os.listdir())
    assert etude("bisect", *words) == code
    check_one_line(capsys)
    assert sorted(os.listdir()) == before


def test_a_directory_that_holds_results_is_refused(etude: Etude, repository: Path, capsys: Captured) -> None:
    Path("results").mkdir()
    Path("results/experiment.json").write_text("{}")
    assert etude("bisect", *GOOD, "-o", "results", *END) == 3
    check_one_line(capsys)


def test_a_shallow_clone_is_refused(etude: Etude, repository: Path, capsys: Captured) -> None:
    git(repository.parent, "clone", "--quiet", "--depth", "3", f"file://{repository}", "shallow")
    assert etude("bisect", "main~6", "main", "--repository", "../shallow", "--build", "true", *END) == 3
    check_one_line(capsys)


EDITS: list[tuple[str, object]] = [
    ("request", None),
    ("request", []),
    ("commits", []),
    ("commits", [{"sha": 1, "subject": "x"}]),
    ("commits", [{"sha": "0" * 40, "subject": "x", "merge": False}]),
    ("request.command", []),
    ("request.command", ["a\0b"]),
    ("request.at_least", -1.0),
    ("request.at_least", "much"),
    ("request.confidence", 2.0),
    ("request.seed", -1),
    ("request.budget_s", 0),
    ("request.unknown", 1),
]


@pytest.mark.parametrize(("member", "value"), EDITS, ids=lambda each: str(each))
def test_results_that_were_edited_are_refused(
    etude: Etude, world: World, capsys: Captured, member: str, value: object
) -> None:
    commits = [{"sha": f"{n:040x}", "subject": f"Commit {n}", "merge": False} for n in range(3)]
    request = {"repository": ".", "good": "a", "bad": "b", "build": "true", "command": ["true"]}
    plan: dict[str, object] = {"kind": "bisect", "primary": "elapsed", "request": request, "commits": commits}
    document = {
        "format": "etude-experiment",
        "version": 1,
        "name": "bisect",
        "verb": "bisect",
        "command_line": [],
    }
    document |= {"digest": "", "plan": plan, "tests": [], "metrics": {}, "versions": {}, "sittings": []}
    document |= {"machine": {"before": None, "after": None}}
    Path("results").mkdir()
    file = Path("results/experiment.json")
    file.write_text(json.dumps(document))
    assert etude("report", "results", "-o", "report.html") == 0
    capsys.readouterr()
    place, _, name = member.partition(".")
    (plan if not name else request)[name or place] = value
    file.write_text(json.dumps(document))
    for words in (("bisect", "--resume", "results"), ("report", "results"), ("plot", "results")):
        assert etude(*words) == 3
        check_one_line(capsys)
