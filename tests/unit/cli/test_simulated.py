"""A simulated result is known as one wherever it goes: in its status, in exports, in a store and its histories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from etude.analysis.load_subject import read_subject
from etude.analysis.subject import SIMULATED, Subject
from etude.analysis.verdict import verdict
from etude.cli.main import main
from etude.history.metric_history import stored_courses
from etude.present.sentences.history import simulated_lines
from etude.present.sentences.status import status_of
from etude.present.to_json import verdict_document
from etude.store.database import open_store

WITH_ROOM = ("conbench", "github-smaller", "go", "junit", "markdown", "openmetrics")


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("simulated") / "r"
    assert main(["peak", "--simulate", "mm1:700", "--within", "0.2", "-o", str(place)]) == 0
    return place


def test_it_is_the_first_word_of_the_status_of_its_trials(searched: Path) -> None:
    subject = read_subject(str(searched))
    assert isinstance(subject, Subject)
    assert status_of(judged := verdict(subject))[0] == SIMULATED
    assert verdict_document(judged)["status"][0] == SIMULATED


@pytest.mark.parametrize("form", WITH_ROOM)
def test_exports_with_room_for_it_have_the_word(
    searched: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["export", "--format", form, str(searched)]) == 0
    assert capsys.readouterr().out.count(SIMULATED) > 0


@pytest.mark.parametrize("form", ["hyperfine", "otava", "bencher"])
def test_exports_without_room_have_a_note_beside_them(
    searched: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["export", "--format", form, str(searched)]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Note:")]
    assert len(notes) == 1


def test_a_store_has_it_as_a_tag_and_its_history_a_line(
    searched: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(tmp_path / "s.sqlite")
    assert main(["store", "add", str(searched), "--tag", "v1", "--store", place]) == 0
    capsys.readouterr()
    assert main(["store", "list", "--json", "--store", place]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert set(result["tags"]) == {"v1", SIMULATED}
    with open_store(place) as store:
        courses = stored_courses(store, store.tests()[0], None)
    assert all(len(list(simulated_lines(course.entries))) == 1 for course in courses)
