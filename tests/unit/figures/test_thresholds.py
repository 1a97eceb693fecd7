"""Names of lines and marks stand neither on each other nor on curves."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure as Canvas
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from etude.figures.data import Axis, Curve, Figure, Line, Mark, Panel, Point
from etude.figures.draw import draw
from etude.figures.style import Style
from etude.figures.thresholds import AROUND, Span, spots

CACHES = (
    (2**12, "page"),
    (2**15, "L1"),
    (288 * 2**10, "TLB"),
    (2**20, "L2"),
    (2**21, "huge page"),
    (12 * 2**20, "L2 TLB"),
)


def rises_and_falls() -> Curve:
    x = 2.0 ** np.arange(3, 25)
    y = x / (200.0 + x / 10.0) * np.where(x > 2**20, 0.6, 1.0)
    return Curve("read", tuple(Point(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)))


def with_lines(*layers: Line | Mark, title: str = "") -> Figure:
    panel = Panel(Axis("bandwidth"), (rises_and_falls(), *layers), title=title)
    return Figure(Axis("buffer", "log"), (panel,))


def names(canvas: Canvas) -> dict[str, Bbox]:
    """Where each name stands, after the last layout."""
    canvas.draw_without_rendering()
    (axes,) = canvas.axes
    return {text.get_text(): _words(text) for text in axes.texts if text.get_text()}


def _words(text: object) -> Bbox:
    assert isinstance(text, Annotation)
    return text.get_window_extent()


def crowded(count: int) -> list[Curve]:
    """Curves that cross the whole panel, one higher than the other at every second size."""
    x = 2.0 ** np.arange(9, 25)
    found = []
    for number in range(count):
        y = np.where(np.arange(16) % 2 == number % 2, 0.8 + number, 12.0 - number)
        points = tuple(Point(a, b, 0.9 * b, 1.1 * b) for a, b in zip(x.tolist(), y.tolist(), strict=True))
        found.append(Curve(f"curve {number}", points, number))
    return found


@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("upright", [False, True])
@pytest.mark.parametrize("key", ["best", "off"])
def test_neither_key_nor_name_lies_on_a_curve_that_crosses_the_panel(
    count: int, upright: bool, key: str
) -> None:
    lines = [Line(at, name, "x") for at, name in CACHES] if upright else []
    layers = [*crowded(count), *lines, Line(1.0, "storage (O_DIRECT), 688.6 MiB/s")]
    figure = Figure(Axis("buffer", "log"), (Panel(Axis("bandwidth"), tuple(layers)),), key=key)
    canvas = draw(figure, Style())
    within = [box for box in names(canvas).values() if box.y0 < canvas.axes[0].bbox.y1]
    (axes,) = canvas.axes
    keys = [key for key in (axes.get_legend(), *canvas.legends) if key]
    boxes = [*within, *(key.get_window_extent() for key in keys)]
    for box in boxes:
        assert not any(on_the_curve(canvas, box, curve) for curve in crowded(count))
        assert canvas.bbox.x0 - 1 <= box.x0 < box.x1 <= canvas.bbox.x1 + 1
        assert canvas.bbox.y0 - 1 <= box.y0
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)
    written = {*names(canvas), *(text.get_text() for key in keys for text in key.get_texts())}
    curves = {curve.name for curve in crowded(count)} if key == "best" else set()
    assert written == {layer.label for layer in layers if isinstance(layer, Line)} | curves
    assert axes.bbox.height > 0.3 * canvas.bbox.height


def test_a_key_that_has_room_stands_in_the_panel_off_the_curve() -> None:
    canvas = draw(with_lines(*(Line(at, name, "x") for at, name in CACHES)), Style())
    canvas.draw_without_rendering()
    (axes,) = canvas.axes
    key = axes.get_legend()
    assert key is not None
    assert not on_the_curve(canvas, key.get_window_extent())
    assert not canvas.legends


def on_the_curve(canvas: Canvas, box: Bbox, curve: Curve | None = None) -> bool:
    (axes,) = canvas.axes
    corners = axes.transData.transform([(p.x, p.y) for p in (curve or rises_and_falls()).points])
    along = np.linspace(0.0, 1.0, 50)[:, None]
    points = np.concatenate([a + along * (b - a) for a, b in pairwise(corners)])
    return bool(box.count_contains(points))


@pytest.mark.parametrize(("width", "font"), [(3.3, 8.0), (5.0, 10.0), (7.0, 8.0)])
@pytest.mark.parametrize("long", [False, True])
def test_names_of_upright_lines_stand_above_the_panel_beside_each_other(
    width: float, font: float, long: bool
) -> None:
    lines = [Line(at, f"{name} {at / 1024:.0f} KiB" if long else name, "x") for at, name in CACHES]
    canvas = draw(with_lines(*lines), Style(width=width, font=font))
    found = names(canvas)
    (axes,) = canvas.axes
    assert len(found) == len(lines)
    for box in found.values():
        assert box.y0 >= axes.bbox.y1
        assert -1 <= box.x0 < box.x1 <= canvas.bbox.x1 + 1
        assert box.y1 <= canvas.bbox.y1 + 1
    for one, other in combinations(found.values(), 2):
        assert not one.overlaps(other)
    for line in lines:
        place = axes.transData.transform((line.at, 1.0))[0]
        own = found[line.label]
        lower = [box for box in found.values() if box.y0 < own.y0]
        assert min(abs(own.x0 - place), abs(own.x1 - place)) < 4 * canvas.dpi / 72
        assert not any(box.x0 < place < box.x1 for box in lower)


def test_a_title_stands_above_the_names() -> None:
    canvas = draw(with_lines(*(Line(at, name, "x") for at, name in CACHES), title="this machine"), Style())
    highest = max(box.y1 for box in names(canvas).values())
    (axes,) = canvas.axes
    title = next(t for t in axes.get_children() if getattr(t, "get_text", str)() == "this machine")
    assert title.get_window_extent().y0 >= highest - 1


@pytest.mark.parametrize("at", [1.0, 3.0, 5.5, 9.0])
@pytest.mark.parametrize("side", ["left", "right"])
def test_the_name_of_a_level_line_stands_where_no_curve_runs(at: float, side: str) -> None:
    canvas = draw(with_lines(Line(at, "storage", side=side)), Style())  # type: ignore[arg-type]
    box = names(canvas)["storage"]
    assert not on_the_curve(canvas, box)
    (axes,) = canvas.axes
    place = axes.transData.transform((8.0, at))[1]
    assert min(abs(box.y0 - place), abs(box.y1 - place)) < 4 * canvas.dpi / 72


def test_names_of_level_lines_keep_off_each_other() -> None:
    canvas = draw(with_lines(Line(7.0, "one"), Line(7.3, "other"), Line(7.6, "third")), Style())
    boxes = names(canvas)
    assert boxes.keys() == {"one", "other", "third"}
    for one, other in combinations(boxes.values(), 2):
        assert not one.overlaps(other)


def test_the_word_of_a_mark_stands_beside_the_curve() -> None:
    top = rises_and_falls().points[12]
    canvas = draw(with_lines(Mark(top.x, top.y, "8 KiB", top.x / 2, top.x * 2)), Style())
    assert not on_the_curve(canvas, names(canvas)["8 KiB"])


def test_the_word_of_a_mark_between_a_falling_curve_and_level_lines_stands_farther_off() -> None:
    y = [1.7] * 14 + [1.65, 1.7, 1.57, 1.56, 1.48, 1.34, 1.19, 1.18, 1.19, 1.18, 1.11, 1.06, 1.02]
    curve = Curve("dynamic", tuple(Point(2.0**n, value) for n, value in enumerate(y)), look="both")
    lines = [Line(level, "") for level in (1.0, 1.01, 1.05)]
    panel = Panel(Axis("ratio"), (curve, *lines, Mark(2.0**25.2, 1.05, "37.1 MiB")))
    canvas = draw(Figure(Axis("size", "log"), (panel,)), Style(width=6.5, height=3.0, font=10.0))
    box = names(canvas)["37.1 MiB"]
    assert not on_the_curve(canvas, box, curve)
    (axes,) = canvas.axes
    for point in axes.transData.transform([(p.x, p.y) for p in curve.points]):
        assert not box.overlaps(Bbox.from_extents(*(point - 1), *(point + 1)))
    assert axes.bbox.x0 <= box.x0
    assert box.x1 <= axes.bbox.x1 + 3


def test_a_name_is_measured_once_a_place_however_many_others_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured: list[Annotation] = []
    extent = Annotation.get_window_extent

    def counted(name: Annotation, *given: object, **named: object) -> Bbox:
        measured.append(name)
        return extent(name, *given, **named)

    monkeypatch.setattr(Annotation, "get_window_extent", counted)
    points = rises_and_falls().points[4:16]
    draw(with_lines(*(Mark(point.x, point.y, f"{point.x:g}") for point in points)), Style())
    # Of each mark all places, the best once more, and the names before it; and of each when the figure is drawn.
    assert len(measured) <= len(points) * (len(AROUND) + 1 + len(points)) + 2 * len(points)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.floats(1.0, 40.0)), min_size=1, max_size=9),
    st.floats(0.0, 80.0),
)
def test_no_name_lies_on_another_nor_on_its_leader(drawn: list[tuple[int, float]], right: float) -> None:
    spans = [Span(float(at), width) for at, width in sorted(drawn)]
    found = list(zip(spans, spots(spans, right), strict=True))
    for span, spot in found:
        assert spot.begin in (span.at, span.at - span.width)
    for (one, mine), (other, its) in combinations(found, 2):
        if mine.row == its.row:
            assert mine.begin + one.width <= its.begin + 1e-9 or its.begin + other.width <= mine.begin + 1e-9
    for (one, mine), (other, its) in ((a, b) for a in found for b in found if a is not b):
        if mine.row < its.row:
            assert not mine.begin + 1e-9 < other.at < mine.begin + one.width - 1e-9


def test_names_that_have_room_stand_in_one_row() -> None:
    assert [spot.row for spot in spots([Span(0.0, 10.0), Span(20.0, 10.0), Span(40.0, 10.0)], 100.0)] == [
        0,
        0,
        0,
    ]
    turned = spots([Span(0.0, 10.0), Span(20.0, 10.0), Span(95.0, 10.0)], 100.0)
    assert [spot.begin for spot in turned] == [0.0, 20.0, 85.0]


def test_the_picture_has_the_same_bytes_again(tmp_path: Path) -> None:
    figure = with_lines(*(Line(at, name, "x") for at, name in CACHES), Line(4.0, "storage"))
    for n in (1, 2):
        draw(figure, Style()).savefig(tmp_path / f"{n}.png")
    assert (tmp_path / "1.png").read_bytes() == (tmp_path / "2.png").read_bytes()
