"""Several searches in one report: their peaks beside each other, in sentences, a figure and a table."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from etude.cli.peaks_part import Search, figure_of, names_of, peaks_part
from etude.figures.data import Curve, Mark
from etude.workbench.goal import Criterion, Goal
from etude.workbench.task import Answer, Finding, Task, Trial
from etude.workbench.window import Window

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


def test_the_first_is_what_others_are_compared_with() -> None:
    part = peaks_part([ONE, TWO])
    lines = part.paragraphs[0].lines
    assert lines[0] == "fs=ext4: peak rate 255.0/s, in 240.0 … 270.0/s with 95 % confidence."
    assert lines[2].startswith("fs=xfs against fs=ext4: 2 times the peak rate, in 1.8")
    assert lines[2].endswith("100 % more; the interval leaves out 1.")
    assert len(part.paragraphs) == 1
    ((one, two),) = (table.rows for table in part.tables)
    assert [cell.text for cell in one][:4] == ["fs=ext4", "255.0/s", "240.0 … 270.0/s", "1"]
    assert [cell.text for cell in two][3:6] == ["2", "1.84–2.17", "2"]
    assert part.pictures[0].caption.endswith("1 trials beyond 3 times the limit are not drawn.")


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


def test_what_speaks_against_an_answer_stands_beside_it() -> None:
    doubtful = Answer(
        510.0, 480.0, math.inf, 0.9, False, "the budget is spent", (Finding("stalling", "one of 40"),)
    )
    limited = replace(
        TWO, answer=doubtful, trials=(*TWO.trials, replace(made(600, 0.1), limited="generator"))
    )
    part = peaks_part([ONE, limited])
    assert part.paragraphs[1].lines == (
        "fs=xfs: the promise is not kept: the budget is spent.",
        "fs=xfs: stalling: one of 40",
        "fs=xfs: in 1 of 3 trials the generator was the limit.",
    )
    ((_, row),) = (table.rows for table in part.tables)
    assert [cell.text for cell in row][-2:] == ["not kept", "stalling"]


def test_searches_with_other_goals_are_shown_and_not_compared() -> None:
    other = replace(TWO, task=replace(TASK, goal=Goal((Criterion("percentile", 0.1, 95.0),))))
    part = peaks_part([ONE, other])
    assert "their goals differ" in part.paragraphs[0].lines[-1]
    ((_, row),) = (table.rows for table in part.tables)
    assert row[3].text == "–"


def test_searches_are_named_by_the_factors_in_which_they_differ() -> None:
    paths = ("r/a", "r/b")
    assert names_of([{"fs": "xfs", "disks": "1"}, {"fs": "ext4", "disks": "1"}], paths) == (
        "fs=xfs",
        "fs=ext4",
    )
    assert names_of([{"fs": "xfs"}, {"fs": "xfs"}], paths) == ("a", "b")
