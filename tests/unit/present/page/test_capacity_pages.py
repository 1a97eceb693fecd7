"""Pages of peak searches and of surfaces: what their loads and configurations lack, and what only they have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from etude.figures.data import Field, Mark
from etude.figures.surface import figures_of
from etude.peak.search_store import SearchSpec, open_store
from etude.peak.task import Answer, Criterion, GeneratorPart, Goal, Task, Trial, TrialRequest
from etude.peak.window import Window
from etude.present.page import content_of, gather
from etude.present.section import Section, cell_text, number, page_table
from etude.present.sections.peak import peak_section, stored_search
from etude.present.sections.surface import cells_table, surface_section
from etude.present.sentences.peak import ran_of_text, ran_text, served_text, target_text
from etude.surface.summary import summarise
from support.builders import still_machine
from support.made_surfaces import DISKS, NFSDS, power, surface

TASK = Task(Goal((Criterion("mean", 0.04),)), 50.0, 5000.0, runlength_s=30.0)
HARNESS = '[commands]\nstart = "server --here"\nload = "load --rate {load}"\n'
SPEC = SearchSpec("web", TASK, "posterior", HARNESS)
MET = Answer(500.0, 480.0, 520.0, 0.96, True, "")


def trial(load: float, ran_s: float = 30.0, ended: str = "whole") -> Trial:
    return Trial(load, 30.0, (Window(ran_s, 100, 100, 0, 0.03),), 40.0, ended)  # type: ignore[arg-type]


def searched(place: Path, answer: Answer | None = MET) -> Path:
    with open_store(place, SPEC) as kept:
        for load in (300.0, 500.0, 500.0):
            kept.keep(TrialRequest(load, 30.0, "next"), trial(load))
        if answer is not None:
            kept.answered(answer)
    return place


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    still_machine(monkeypatch)


def test_a_load_that_was_tried_once_has_no_chart(tmp_path: Path) -> None:
    content = content_of(gather([str(searched(tmp_path / "r"))]))
    assert [each.test for each in content.shown] == ["load=500"]
    assert len(content.tests.rows) == 2
    assert [source.title.split()[1] for source in content.sources] == ["harness"]


def test_the_end_of_a_search_and_its_target_open_its_page(tmp_path: Path) -> None:
    section = peak_section(stored_search(searched(tmp_path / "r")))
    assert target_text(TASK) in section.answer[-1]
    assert len(section.answer) == 2
    unfinished = peak_section(stored_search(searched(tmp_path / "open", None)))
    assert not any(line.startswith("Ended") for line in unfinished.answer)


def test_a_page_names_the_server_and_where_its_load_came_from(tmp_path: Path) -> None:
    section = peak_section(stored_search(searched(tmp_path / "r")))
    (where,) = section.questions["where"]
    assert "“server --here”" in where
    assert "“load --rate {load}”" in where
    other = replace(trial(300.0), generators=(GeneratorPart("alpha"), GeneratorPart("beta")))
    assert {"alpha", "beta"} <= set(served_text(SPEC, [other]).replace(",", "").replace(".", "").split())
    simulated = replace(stored_search(tmp_path / "r"), sought=replace(SPEC, harness="simulate mm1:500"))
    assert "where" not in peak_section(simulated).questions


@pytest.mark.parametrize(
    ("made", "short"),
    [(trial(1.0, 8.0, "early"), True), (trial(1.0, 30.0, "early"), False), (trial(1.0), False)],
)
def test_a_trial_ended_early_only_if_it_was_shorter_than_planned(made: Trial, short: bool) -> None:
    assert made.cut_short == short
    alike = replace(made, runlength_s=180.0, windows=(Window(160.0, 100, 100, 0, 0.03),), ended="early")
    assert ran_text(alike).split()[:2] == ran_of_text(alike).split()[:2] == ["160", "s"]
    assert ran_of_text(made) == ("8.0 s of 30 s" if short else "30 s")


def test_a_column_of_texts_is_no_column_of_numbers() -> None:
    table = page_table("k", "", ("load", "ran", "note"), [(number("1", 1), "2 … 3", "a text")], 0, ("note",))
    assert table.numeric == (True, True, False)


def test_a_surface_names_what_missed_its_target_and_marks_its_row() -> None:
    mapped = surface((DISKS, NFSDS), power, findings=("1 of 32 configurations did not meet their target",))
    wrong = replace(mapped.samples[3], kept=False, why="budget")
    mapped = replace(mapped, samples=(*mapped.samples[:3], wrong, *mapped.samples[4:]))
    (missed,) = summarise(mapped).missed
    assert (missed.name, missed.why) == ("disks=1 nfsds=8", "budget")
    section = surface_section(mapped, drawn=False, goal=str(TASK.goal.criteria[0]))
    assert sum(missed.name in line for line in section.questions["against"]) == 1
    assert str(TASK.goal.criteria[0]) in section.questions["what"][0]
    assert _states(section) == {"measured": 31, "measured, target not met": 1}


def _states(section: Section) -> dict[str, int]:
    table = next(each for each in section.tables if each.key.endswith("cells"))
    texts = [cell_text(row[table.headings.index("known by")]) for row in table.rows]
    return {text: texts.count(text) for text in texts}


def test_the_response_comes_right_after_its_configuration() -> None:
    mapped = surface((DISKS, NFSDS), power)
    assert cells_table(mapped, summarise(mapped)).headings[:3] == ("disks", "nfsds", mapped.response)


def test_the_best_configuration_and_its_ties_have_rings_in_the_map() -> None:
    mapped = surface((DISKS, NFSDS), power, sd=0.05)
    best = summarise(mapped).optimum
    assert best is not None
    field, *rings = figures_of(mapped, best)["map"].panels[0].layers
    assert isinstance(field, Field)
    assert {(ring.x, round(10**ring.y)) for ring in rings if isinstance(ring, Mark)} == {
        (DISKS.levels[a], NFSDS.levels[b]) for a, b in (best.best.cell, *best.alike)
    }
