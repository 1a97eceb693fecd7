"""Several searches in one report: their peaks beside each other, in sentences, a figure and a table."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from etude.figures.data import Curve, Mark
from etude.peak.task import Answer, Criterion, Finding, Goal, Task, Trial
from etude.peak.window import Window
from etude.present.section import cell_text
from etude.present.sections.peak import Search
from etude.present.sections.peaks import figure_of, names_of, peaks_section
from support.golden import Golden

TASK = Task(Goal((Criterion("mean", 0.04),)), 50.0, 5000.0)


def made(load: float, mean_s: float) -> Trial:
    window = Window(10.0, int(load * 10), int(load * 10), 0, mean_s)
    return Trial(load, 180.0, (window,), 190.0)


ONE = Search(
    "fs=ext4",
    TASK,
    (made(100, 0.01), made(100, 0.02), made(400, 1.0)),
    Answer(255.0, 240.0, 270.0, 0.95, True, ""),
)
TWO = Search("fs=xfs", TASK, (made(300, 0.01), made(500, 0.036)), Answer(510.0, 480.0, 540.0, 0.95, True, ""))


def test_the_first_is_what_others_are_compared_with(golden: Golden) -> None:
    part = peaks_section([ONE, TWO])
    lines = part.paragraphs[0].lines
    assert lines[0].startswith("fs=ext4: ")
    assert all(part in lines[0] for part in ("255.0/s", "240.0 … 270.0/s", "95 %"))
    assert lines[2].startswith("fs=xfs against fs=ext4: 2 times ")
    assert " 100 % more" in lines[2]
    golden("\n".join([*lines, part.pictures[0].caption]))
    assert len(part.paragraphs) == 1
    ((one, two),) = (table.rows for table in part.tables)
    assert [cell_text(cell) for cell in one][:4] == ["fs=ext4", "255.0/s", "240.0 … 270.0/s", "1"]
    assert [cell_text(cell) for cell in two][3:6] == ["2", "1.84–2.17", "2"]
    assert "1 trial beyond 3 " in part.pictures[0].caption


def test_curves_are_in_the_unit_of_the_goal_with_each_peak_at_the_limit() -> None:
    figure = figure_of([ONE, TWO])
    (panel,) = figure.panels
    assert panel.y.label == "mean response (ms)"
    first, second = (layer for layer in panel.layers if isinstance(layer, Curve))
    (point,) = first.points
    assert (point.x, point.y, point.low, point.high) == (100.0, pytest.approx(15.0), 10.0, 20.0)
    assert [p.x for p in second.points] == [300.0, 500.0]
    marks = [layer for layer in panel.layers if isinstance(layer, Mark)]
    assert [(mark.label, mark.x, mark.low, mark.high) for mark in marks] == [
        ("fs=ext4", 255.0, 240.0, 270.0),
        ("fs=xfs", 510.0, 480.0, 540.0),
    ]


def test_what_speaks_against_an_answer_stands_beside_it(golden: Golden) -> None:
    doubtful = Answer(
        510.0, 480.0, math.inf, 0.9, False, "the budget is spent", (Finding("stalling", "one of 40"),)
    )
    limited = replace(
        TWO, answer=doubtful, trials=(*TWO.trials, replace(made(600, 0.1), limited="generator"))
    )
    part = peaks_section([ONE, limited])
    target, finding, limit = part.paragraphs[1].lines
    assert "not met" in target
    assert doubtful.why in target
    assert finding == "fs=xfs: stalling: one of 40"
    assert "1 of 3 trials" in limit
    assert "generator" in limit
    golden("\n".join(part.paragraphs[1].lines))
    ((_, row),) = (table.rows for table in part.tables)
    assert [cell_text(cell) for cell in row][-2:] == ["not met", "stalling"]


def test_searches_with_other_goals_are_shown_and_not_compared() -> None:
    other = replace(TWO, task=replace(TASK, goal=Goal((Criterion("percentile", 0.1, 95.0),))))
    part = peaks_section([ONE, other])
    assert "their goals differ" in part.paragraphs[0].lines[-1]
    ((_, row),) = (table.rows for table in part.tables)
    assert cell_text(row[3]) == "–"


def test_searches_are_named_by_the_factors_in_which_they_differ() -> None:
    paths = ("r/a", "r/b")
    assert names_of([{"fs": "xfs", "disks": "1"}, {"fs": "ext4", "disks": "1"}], paths) == (
        "fs=xfs",
        "fs=ext4",
    )
    assert names_of([{"fs": "xfs"}, {"fs": "xfs"}], paths) == ("a", "b")
