"""A search has a part of its own in a report: its answer, its trials over load, and their table."""

from __future__ import annotations

from pathlib import Path

import pytest

from etude.cli.analyse.report import parts_of
from etude.cli.main import main
from etude.figures.data import Curve, Mark
from etude.peak.task import Answer, Criterion, Goal, Task, Trial
from etude.peak.window import Window
from etude.present.section import cell_text
from etude.present.sections.peak import HIGHEST, Search, peak_section, readings_figure
from support import pages

TASK = Task(Goal((Criterion("mean", 0.04),)), 50.0, 5000.0)


def made(load: float, mean_s: float, **changes: object) -> Trial:
    window = Window(10.0, int(load * 10), int(load * 10), 0, mean_s)
    return Trial(load, 180.0, (window,) * 2, 190.0, **changes)  # type: ignore[arg-type]


TRIALS = (made(100, 0.01), made(200, 0.02), made(400, 0.4), made(250, 0.036, note="late"))
ANSWER = Answer(255.0, 240.0, 270.0, 0.95, True, "it is bracketed")


def test_trials_are_drawn_over_their_load_with_the_answer() -> None:
    layers = readings_figure(TASK, TRIALS, ANSWER).panels[0].layers
    points, beyond = (layer for layer in layers if isinstance(layer, Curve))
    assert [(p.x, pytest.approx(p.y)) for p in points.points] == [(100, 0.25), (200, 0.5), (250, 0.9)]
    assert [(p.x, p.y) for p in beyond.points] == [(400, HIGHEST)]
    (mark,) = (layer for layer in layers if isinstance(layer, Mark))
    assert (mark.x, mark.y, mark.low, mark.high) == (255.0, 1.0, 240.0, 270.0)


def test_what_is_not_drawn_is_said_and_stands_in_the_table() -> None:
    part = peak_section(Search("r", TASK, TRIALS, ANSWER))
    assert "1 beyond 3 times" in part.pictures[0].caption
    *_, table = part.tables  # loads next to the answer stand before it
    assert [[cell_text(cell) for cell in row][:4] for row in table.rows][2] == [
        "3",
        "400.0",
        "400.0 ms",
        "1000 %",
    ]
    assert table.rows[3][-1] == "late"
    assert part.paragraphs[0].lines[0].startswith("Peak rate: 255.0/s")


def test_a_search_without_an_answer_has_no_mark_and_one_without_trials_no_picture() -> None:
    none = Answer(None, 200.0, 400.0, 0.95, False, "the budget is spent")
    assert not any(isinstance(layer, Mark) for layer in readings_figure(TASK, TRIALS, none).panels[0].layers)
    part = peak_section(Search("r", TASK, (), none))
    assert part.pictures == ()
    assert part.tables[0].rows == ()


def test_a_stored_search_stands_in_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(tmp_path / "r")
    main(["peak", "--simulate", "mm1:700", "-o", place])
    capsys.readouterr()
    assert main(["report", place, "--format", "markdown"]) == 0
    text = capsys.readouterr().out
    assert "### Peak rate" in text
    assert "**Trials of " in text
    assert main(["report", place]) == 0
    assert '<section id="peak-0"' in Path(place, "report.html").read_text()
    headings = [part.heading for part in parts_of([str(pages.plain(tmp_path / "other")), place, place])]
    assert headings[1:] == [f"Peak rate of {place}"] * 2
    assert headings[0].startswith("Peak rates ")


def test_other_results_have_none(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("test,elapsed\na,1\n")
    assert parts_of([str(pages.plain(tmp_path / "r")), str(file)]) == ()
