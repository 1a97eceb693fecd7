"""Labels of one figure: different names stay different, however alike and however long they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.figures.data import LONGEST, Axis, Bars, Box, Figure, Panel, labels
from etude.figures.draw import draw
from etude.figures.plot import make
from etude.figures.plot_options import PlotOptions
from etude.figures.sources import read_samples
from etude.figures.style import Style

ALIKE = [
    f"config alpha io_uring O_DIRECT ext4 4KiB mid{n} run of the server in the cellar" for n in "abcdefg"
]


LONG = ["a" * 5000, *(f"test {letter}" for letter in "bcdefghijklmno")]


def made(directory: Path, kind: str, names: list[str]) -> Figure:
    file = directory / "values.csv"
    rows = [
        f'"{name}",{trial},{0.01 + 0.001 * (trial * place % 5)}'
        for place, name in enumerate(names, 1)
        for trial in range(6)
    ]
    file.write_text("\n".join(["test,trial,elapsed", *rows]) + "\n")
    return make(kind, read_samples([str(file)], PlotOptions()), PlotOptions())


@pytest.mark.parametrize("kind", ["bars", "lines", "box", "violin", "ecdf", "histogram", "percentiles"])
def test_names_that_differ_in_their_middle_have_labels_of_their_own(tmp_path: Path, kind: str) -> None:
    figure = made(tmp_path, kind, ALIKE)
    shown = (
        [name for _, name in figure.x.ticks or ()]
        if kind in ("bars", "lines", "box", "violin")
        else figure.names()
    )
    assert len(set(shown)) == len(ALIKE)
    assert all(any(f"mid{letter}" in name for name in shown) for letter in "abcdefg")


@pytest.mark.parametrize("height", [None, 2.0])
@pytest.mark.parametrize("kind", ["bars", "lines", "box"])
def test_beside_long_names_the_values_keep_their_room(
    tmp_path: Path, kind: str, height: float | None
) -> None:
    canvas = draw(made(tmp_path, kind, LONG), Style(height=height))
    canvas.draw_without_rendering()
    (axes,) = canvas.axes
    assert axes.get_window_extent().height > 0.4 * canvas.bbox.height
    assert height is None or canvas.get_figheight() == height


@pytest.mark.parametrize("kind", ["bars", "lines", "box"])
def test_a_long_label_of_the_values_is_not_cut(tmp_path: Path, kind: str) -> None:
    figure = made(tmp_path, kind, LONG)
    (panel,) = figure.panels
    wide = replace(figure, panels=(replace(panel, y=replace(panel.y, label="w" * LONGEST)),))
    canvas = draw(wide, Style(height=2.0))
    canvas.draw_without_rendering()
    box = canvas.axes[0].yaxis.label.get_window_extent()
    assert box.y0 >= -1
    assert box.y1 <= canvas.bbox.height + 1


def test_names_beside_an_axis_leave_room_for_it() -> None:
    ticks = tuple((float(n), f"{letter}{'n' * 30}") for n, letter in enumerate("abc"))
    bars = Bars("", tuple(Box(1.0, 1.0, n - 0.3, n + 0.3) for n in range(3)))
    canvas = draw(Figure(Axis("s"), (Panel(Axis("", ticks=ticks), (bars,)),), key="off"), Style())
    canvas.draw_without_rendering()
    assert canvas.axes[0].get_window_extent().width > 0.45 * canvas.bbox.width


def test_a_blank_name_and_names_that_differ_in_blanks_are_seen() -> None:
    found = labels(["x y", "x  y", "x\ny", " ", "  "])
    assert len(set(found.values())) == 5
    assert all(text.strip() for text in found.values())


@given(
    st.lists(st.text("ab \n\u202e", min_size=1, max_size=70) | st.text(min_size=1), unique=True),
    st.integers(12, LONGEST),
)
def test_no_two_names_have_one_label(names: list[str], longest: int) -> None:
    found = labels(names, longest)
    assert set(found) == set(names)
    assert len(set(found.values())) == len(names)
    assert all(len(text) <= longest for text in found.values())
