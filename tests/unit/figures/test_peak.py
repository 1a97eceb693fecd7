"""Figures of searches show what was measured, and nothing else."""

from __future__ import annotations

import pytest

from etude.errors import InputError
from etude.figures.data import Bars, Curve, Figure, Line
from etude.figures.peak import (
    Course,
    Varying,
    load_factors,
    readings_over_load,
    readings_over_runlength,
    time_at_loads,
    trials_needed,
)
from etude.figures.save import render
from etude.figures.style import Style

FAST = Course("ours", 500.0, (250.0, 600.0, 500.0, 500.5), (200.0, 200.0, 400.0, 400.0))
SLOW = Course("linear", 500.0, (50.0, 100.0), (7200.0, 3600.0))


def curves(figure: Figure) -> list[Curve]:
    return [layer for panel in figure.panels for layer in panel.layers if isinstance(layer, Curve)]


def test_load_factors_stand_at_the_bench_time_at_which_a_trial_ended() -> None:
    path, marks = curves(load_factors([FAST]))
    assert [p.x for p in marks.points] == pytest.approx([200 / 60, 400 / 60, 800 / 60, 20.0])
    assert [p.y for p in marks.points] == pytest.approx([0.5, 1.2, 1.0, 1.001])
    assert (path.points[0].x, path.points[0].y) == (0.0, 0.5)
    assert path.points[2].x == path.points[1].x
    assert load_factors([FAST]).x.label.endswith(" (min)")


def test_several_searches_share_their_time_and_have_a_key() -> None:
    figure = load_factors([FAST, SLOW])
    assert figure.x.label.endswith(" (h)")
    assert figure.names() == ("ours", "linear")
    assert len({curve.colour for curve in curves(figure)}) == 2


def test_time_at_loads_adds_up_to_the_bench_time() -> None:
    figure = time_at_loads([FAST, SLOW])
    for panel, course in zip(figure.panels, (FAST, SLOW), strict=True):
        (bars,) = (layer for layer in panel.layers if isinstance(layer, Bars))
        assert sum(box.top for box in bars.boxes) * 3600 == pytest.approx(sum(course.costs_s))
        assert panel.title.startswith(f"{course.name}: {len(course.loads)} trials")
    (first, _) = figure.panels
    (bars,) = (layer for layer in first.layers if isinstance(layer, Bars))
    assert len(bars.boxes) == 3, "loads that one bar covers are taken together"


def test_a_search_without_trials_is_not_drawn() -> None:
    empty = Course("none", 500.0, (), ())
    for draw in (load_factors, time_at_loads):
        for courses in ([], [empty], [FAST, empty]):
            with pytest.raises(InputError, match="no trial"):
                draw(courses)


def test_calibrations_show_each_trial_and_the_limit() -> None:
    trials = Varying("trials", (450.0, 150.0, 450.0), (21.0, 6.0, 24.0))
    figure = readings_over_load(trials, "mean response (ms)", 40.0)
    assert [(p.x, p.y) for p in curves(figure)[0].points] == [(150.0, 6.0), (450.0, 21.0), (450.0, 24.0)]
    assert any(isinstance(layer, Line) and layer.at == 40.0 for layer in figure.panels[0].layers)
    lengths = readings_over_runlength([trials, trials], "mean response (ms)")
    assert len(lengths.panels) == 2
    needed = trials_needed({"ρ = 0.9": [(180.0, 5.0), (60.0, 12.0)]}, sweet_s=180.0)
    assert [p.x for p in curves(needed)[0].points] == [60.0, 180.0]


def test_all_of_them_can_be_drawn() -> None:
    trials = Varying("trials", (450.0, 150.0), (21.0, 6.0))
    for figure in (
        load_factors([FAST, SLOW]),
        time_at_loads([FAST, SLOW]),
        readings_over_load(trials, "mean response (ms)", 40.0),
        readings_over_runlength([trials], "mean response (ms)"),
        trials_needed({"ρ = 0.9": [(180.0, 5.0), (60.0, 12.0)]}, sweet_s=180.0),
    ):
        picture, said = render(figure, "png", Style())
        assert picture.startswith(b"\x89PNG")
        assert said == []
