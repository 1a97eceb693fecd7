"""The figure of a history: a point a result, levels between steps, and where the machine changes."""

from __future__ import annotations

from dataclasses import replace

from etude.figures.data import Band, Curve, Figure, Line
from etude.figures.history import MOST_PANELS
from etude.figures.history import history as figure_of
from etude.figures.save import render
from etude.figures.style import Style
from etude.history.metric_history import course_of, courses
from etude.store.entry import Machine
from support.made_histories import history, on_another

UPGRADED = Machine("host-a", "d2", (("kernel", "6.2"),))


def layers(figure: Figure, kind: type, panel: int = 0) -> list:
    return [layer for layer in figure.panels[panel].layers if isinstance(layer, kind)]


def test_each_result_is_a_point_and_each_stretch_a_level() -> None:
    figure = figure_of([course_of(history(60, {30: 1.2}))])
    points, *levels = layers(figure, Curve)
    assert len(points.points) == 60
    assert [[p.x for p in level.points] for level in levels] == [[-0.5, 29.5], [29.5, 59.5]]
    assert levels[1].points[0].y / levels[0].points[0].y > 1.15
    (band,) = layers(figure, Band)
    assert (band.low, band.high) == (29.5, 30.5)
    assert band.label.startswith("+2")


def test_a_result_has_the_interval_of_its_own_trials_and_none_of_a_single_one() -> None:
    made = history(10)
    made[3] = replace(made[3], values=made[3].values[:1])
    (points, *_) = layers(figure_of([course_of(made)]), Curve)
    assert points.points[3].low is None
    assert all(p.low < p.y < p.high for n, p in enumerate(points.points) if n != 3)
    wide = replace(made[0], values=tuple(2 * v if n else v for n, v in enumerate(made[0].values)))
    (others, *_) = layers(figure_of([course_of([wide, *made[1:]])]), Curve)
    assert others.points[0].high - others.points[0].low > 10 * (points.points[0].high - points.points[0].low)


def test_a_change_of_the_machine_is_a_line_named_in_its_step_or_by_itself() -> None:
    (band,) = layers(figure := figure_of([course_of(on_another(history(60, {30: 1.2}), UPGRADED, 30))]), Band)
    assert band.label.endswith(", machine")
    assert [line.label for line in layers(figure, Line)] == [""]
    figure = figure_of([course_of(on_another(history(60), UPGRADED, 30))])
    assert [(line.at, line.label) for line in layers(figure, Line)] == [(29.5, "machine")]


def test_several_machines_stand_below_each_other_on_one_axis_of_time() -> None:
    made = [*history(40), *history(20, machine=Machine("host-b", "d3"))]
    figure = figure_of(courses(made))
    assert [panel.title for panel in figure.panels] == ["sort on host-a", "sort on host-b"]
    assert [layers(figure, Curve, n)[0].points[-1].x for n in (0, 1)] == [39.0, 19.0]


def test_machines_beyond_those_that_fit_are_told() -> None:
    made = [e for n in range(MOST_PANELS + 2) for e in history(3, machine=Machine(f"host-{n}", "d"))]
    figure = figure_of(courses(made))
    assert len(figure.panels) == MOST_PANELS
    assert [note for note in figure.notes if note.startswith("2 more machines ")]


def test_a_history_of_one_result_is_drawn() -> None:
    picture, said = render(figure_of([course_of(history(1))]), "svg", Style())
    assert b"<svg" in picture
    assert said == []
