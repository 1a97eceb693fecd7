"""Figures of surfaces show what is known of each cell, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from etude.errors import InputError, UsageError
from etude.figures.data import Bars, Curve, Field, Figure, Line
from etude.figures.fields import edges, grid
from etude.figures.save import export, render
from etude.figures.style import Style
from etude.figures.surface import (
    KnownValue,
    Levels,
    contours,
    cost_against,
    cost_by_policy,
    iso_values,
    main_effects,
    over_levels,
    solid,
)
from etude.surface.effects import MainEffect, Ratio

DISKS = Levels("disks", ("1", "2", "3"), (1.0, 2.0, 3.0))
NFSDS = Levels("nfsds", ("1", "10", "100"), (1.0, 10.0, 100.0), log=True)
FS = Levels("fs", ("ext4", "xfs"))
KNOWN = [
    KnownValue(x, y, 100.0 * (x + 1) * (y + 1), state="measured" if x == y else "predicted")
    for x in range(3)
    for y in range(3)
    if (x, y) != (2, 0)
] + [KnownValue(2, 0, None, state="failed")]
POLICIES = {"DB_TP": {"linear": 300.0, "ours": 9.0}, "Mail": {"linear": 700.0}}


def field_of(figure: Figure) -> Field:
    (field,) = (layer for panel in figure.panels for layer in panel.layers if isinstance(layer, Field))
    return field


def curves(figure: Figure) -> list[Curve]:
    return [layer for panel in figure.panels for layer in panel.layers if isinstance(layer, Curve)]


@pytest.mark.parametrize("draw", [contours, solid])
def test_each_cell_stands_at_its_levels_with_its_state(draw: Any) -> None:
    figure = draw(DISKS, NFSDS, KNOWN, "peak rate (1/s)")
    field = field_of(figure)
    assert field.x == (1.0, 2.0, 3.0)
    assert field.y == (0.0, 1.0, 2.0), "logs of a logarithmic factor"
    assert figure.panels[0].y.ticks == ((0.0, "1"), (1.0, "10"), (2.0, "100"))
    values = grid(field)
    assert values[2, 2] == 900
    assert values[1, 0] == 200
    assert np.isnan(values[0, 2])
    assert {s.state for s in field.spots if s.x - 1 == s.y} == {"measured"}
    assert field.levels == tuple(float(n) for n in range(200, 900, 100))


def test_iso_lines_are_at_nice_values_within() -> None:
    assert iso_values(112.0, 742.0) == (200.0, 300.0, 400.0, 500.0, 600.0, 700.0)
    assert iso_values(0.0012, 0.0061, 5) == (0.002, 0.003, 0.004, 0.005, 0.006)
    assert iso_values(5.0, 5.0) == ()
    for low, high in ((1e-9, 3e-9), (3.0, 3.0001), (1.0, 1e7)):
        found = iso_values(low, high)
        assert 3 <= len(found) <= 10
        assert all(low < value < high for value in found)


def test_edges_of_cells_lie_half_way() -> None:
    assert edges((0.0, 1.0, 3.0)) == [-0.5, 0.5, 2.0, 4.0]
    assert edges((5.0,)) == [4.5, 5.5]


def test_lines_have_intervals_and_predictions_are_hollow() -> None:
    known = [
        KnownValue(0, 0, 1.0, 0.9, 1.1), KnownValue(1, 0, 2.0, 1.5, 2.5, "predicted"), KnownValue(2, 0, 3.0, 2.9, 3.1),
        KnownValue(0, 1, 4.0), KnownValue(1, 1, None, state="failed"),
    ]  # fmt: skip
    figure = over_levels(NFSDS, ["ext4", "xfs"], known, "peak rate (1/s)")
    line, filled, hollow, other, dots = curves(figure)
    assert [(p.x, p.y, p.low, p.high) for p in line.points][1] == (1.0, 2.0, 1.5, 2.5)
    assert ([p.y for p in filled.points], filled.look) == ([1.0, 3.0], "filled")
    assert ([p.y for p in hollow.points], hollow.look) == ([2.0], "hollow")
    assert [p.y for p in other.points] == [p.y for p in dots.points] == [4.0], "a failed cell is left out"
    assert figure.names() == ("ext4", "xfs")


def test_words_stand_beside_each_other_without_a_line() -> None:
    known = [KnownValue(x, y, 1.0 + x + y) for x in range(2) for y in range(2)]
    first, second = curves(over_levels(FS, ["a", "b"], known, "time (s)"))
    assert {first.look, second.look} == {"filled"}
    assert first.points[0].x < 0 < second.points[0].x < first.points[1].x


def test_effects_of_all_factors_stand_beside_each_other() -> None:
    effects = [
        MainEffect("nfsds", ("1", "2"), (Ratio(1.0, 1.0, 1.0), Ratio(2.0, 1.8, 2.2))),
        MainEffect("fs", ("a", "b"), (Ratio(1.0, 1.0, 1.0), None)),
    ]
    figure = main_effects(effects, "peak rate")
    nfsds, fs = curves(figure)
    assert [(p.x, p.y, p.low, p.high) for p in nfsds.points] == [(0, 1, 1, 1), (1, 2.0, 1.8, 2.2)]
    assert [p.x for p in fs.points] == [2.0]
    assert figure.x.ticks == ((0.0, "1"), (1.0, "2"), (2.0, "a"), (3.0, "b"))
    assert any(isinstance(layer, Line) and layer.at == 1 for layer in figure.panels[0].layers)


def test_cost_of_policies_is_on_a_log_axis_by_workload() -> None:
    figure = cost_by_policy(POLICIES)
    linear, ours = (layer for layer in figure.panels[0].layers if isinstance(layer, Bars))
    assert [box.top for box in linear.boxes] == [300.0, 700.0]
    assert [box.top for box in ours.boxes] == [9.0]
    axis = figure.panels[0].y
    assert axis.scale == "log"
    assert axis.low is not None
    assert 0 < axis.low < 9
    assert figure.x.ticks == ((0.0, "DB_TP"), (1.0, "Mail"))


def test_cost_over_a_target_is_in_percent_and_on_a_log_axis_where_it_has_to_be() -> None:
    near = cost_against({"95 %": [(0.9, 30.0), (0.8, 10.0)]}, "accuracy")
    assert near.x.label == "accuracy (%)"
    assert [(p.x, p.y) for p in curves(near)[0].points] == [(80.0, 10.0), (90.0, 30.0)]
    assert near.panels[0].y.scale == "linear"
    far = cost_against({"a": [(0.1, 1.0)], "b": [(0.1, 50.0)]}, "width")
    assert far.panels[0].y.scale == "log"


def test_what_has_nothing_is_not_drawn() -> None:
    failed = [KnownValue(0, 0, None, state="failed")]
    for make in (
        lambda: contours(DISKS, NFSDS, failed, "x"),
        lambda: solid(DISKS, NFSDS, failed, "x"),
        lambda: over_levels(DISKS, ["a"], failed, "x"),
        lambda: main_effects([], "x"),
        lambda: cost_by_policy({"a": {}}),
        lambda: cost_against({}, "x"),
    ):
        with pytest.raises(InputError, match="nothing to draw"):
            make()
    with pytest.raises(UsageError, match=r"^30 "):
        over_levels(DISKS, [str(n) for n in range(30)], KNOWN, "x")


def test_ticks_whose_names_would_touch_are_left_out() -> None:
    many = Levels("n", tuple(str(n) for n in range(1000, 1060)), tuple(float(n) for n in range(1000, 1060)))
    ticks = many.axis().ticks
    assert ticks is not None
    assert 3 <= len(ticks) <= 15
    assert ticks[-1] == (1059.0, "1059")


FIGURES = {
    "contours": lambda: contours(DISKS, NFSDS, KNOWN, "peak rate (1/s)", "fs=xfs"),
    "one row": lambda: contours(DISKS, Levels("n", ("5",), (5.0,)), [KnownValue(0, 0, 5.0)], "x"),
    "flat": lambda: contours(DISKS, NFSDS, [KnownValue(x, y, 5.0) for x in range(3) for y in range(3)], "x"),
    "solid": lambda: solid(DISKS, NFSDS, KNOWN, "peak rate (1/s)", "fs=xfs"),
    "falling": lambda: solid(DISKS, FS, [KnownValue(x, y, 5.0 - x) for x in range(3) for y in range(2)], "x"),
    "lines": lambda: over_levels(DISKS, ["a"], [KnownValue(0, 0, 1.0, 0.5, 2.0)], "x"),
    "effects": lambda: main_effects([MainEffect("a", ("1", "2"), (Ratio(1, 1, 1), Ratio(2, 1, 3)))], "x"),
    "policies": lambda: cost_by_policy(POLICIES),
    "against": lambda: cost_against({"a": [(0.1, 2.0), (0.2, 1.0)]}, "width"),
}


@pytest.mark.parametrize("name", FIGURES)
def test_all_of_them_can_be_drawn_and_exported(name: str, tmp_path: Any) -> None:
    figure = FIGURES[name]()
    for kind, begin in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        picture, said = render(figure, kind, Style())
        assert picture.startswith(begin)
        assert said == []
        assert render(figure, kind, Style())[0] == picture, "the same figure is the same file"
    for path in export(figure, str(tmp_path), "figure"):
        assert Path(path).read_text()
    compile((tmp_path / "figure.py").read_text(), "figure.py", "exec")
