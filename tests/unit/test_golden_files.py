"""`make golden` removes what no test compares any more, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from support import golden as module
from support.places import TESTS


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Golden files of two modules and two inputs, of which this session compared one each."""
    words = tmp_path / "words"
    monkeypatch.setattr(module, "WORDS", words)
    monkeypatch.setattr(module, "MODE", "anew")
    monkeypatch.setattr(module, "WRITING", True)
    for name in ("written", "whole_files", "with_skips"):
        monkeypatch.setattr(module, name, {} if name == "written" else set())
    for name in ("a", "b"):
        module.write(words / f"{name}.txt", {"test_now": "1\n", "test_former": "1\n"})
        (tmp_path / "verbs").mkdir(exist_ok=True)
        (tmp_path / "verbs" / f"{name}.txt").write_text("1\n")
    module.written[words / "a.txt"] = {"test_now": "2\n"}
    module.compare_file(tmp_path / "verbs/a.txt", "2\n")
    return tmp_path


def found(place: Path) -> dict[str, list[str]]:
    return {
        str(file.relative_to(place)): list(module.sections(file)) or [file.read_text()]
        for file in sorted(place.rglob("*.txt"))
    }


def test_after_a_session_that_passed_only_what_it_compared_is_left(place: Path) -> None:
    module.write_golden_files(passed=True)
    assert found(place) == {"verbs/a.txt": ["2\n"], "words/a.txt": ["test_now"]}
    assert module.sections(place / "words/a.txt")["test_now"] == "2\n"


def test_after_one_that_failed_or_was_interrupted_nothing_is_removed(place: Path) -> None:
    before = found(place)
    module.write_golden_files(passed=False)
    assert found(place).keys() == before.keys()
    assert found(place)["words/a.txt"] == before["words/a.txt"]
    assert module.sections(place / "words/a.txt")["test_now"] == "2\n"


ALL = ["tests/golden", "tests/unit", "tests/property"]


@pytest.mark.parametrize(
    ("args", "chosen", "every"),
    [
        (ALL, {}, True),
        (ALL[:2], {}, False),
        (["tests/unit/test_api.py"], {}, False),
        (ALL, {"keyword": "fio"}, False),
        (ALL, {"markexpr": "golden"}, False),
        (ALL, {"deselect": ["tests/unit/test_api.py"]}, False),
    ],
)
def test_a_part_of_the_tests_removes_nothing(
    args: list[str], chosen: dict[str, object], every: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TESTS.parent)
    option = SimpleNamespace(**({"keyword": "", "markexpr": "", "deselect": None} | chosen))
    assert module.runs_all(cast(pytest.Config, SimpleNamespace(args=args, option=option))) is every


def test_golden_files_are_written_by_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WRITING", True)
    with pytest.raises(pytest.UsageError):
        module.runs_all(cast(pytest.Config, SimpleNamespace(workerinput={})))


def test_what_a_skipped_test_compares_stays(place: Path) -> None:
    for name in ("unit/test_a.py", "unit/test_b.py", "golden/test_verbs.py"):
        module.note_skip(TESTS / name)
    before = found(place)
    module.write_golden_files(passed=True)
    assert found(place).keys() == before.keys()
    assert found(place)["words/a.txt"] == before["words/a.txt"]


ONE_OF_MANY = re.compile(
    r"(?<![\w.,–…\"=] )(?<![\w.,])1 (?:more )?(?:trial|pair|test|time|session|sitting|value|call|file|outlier|worker|"
    r"machine|window|load|request|thread|step|job|node|metric|search|result|process|note|byte)e?s\b"
)


def test_one_of_something_is_never_written_as_many() -> None:
    verbs = (TESTS / "golden" / "verbs").rglob("*.txt")
    # `etude script` lists what it dropped as a table.
    texts = [*module.WORDS.rglob("*.txt"), *(path for path in verbs if path.parent.name != "script")]
    assert len(texts) > 50
    wrong = {f"{path.name}: {found}" for path in texts for found in ONE_OF_MANY.findall(path.read_text())}
    assert wrong == set()
