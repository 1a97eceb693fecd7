"""The data and the scripts beside a figure redraw it: by Gnuplot, and by Python without Étude."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image

from etude.figures.data import Axis, Band, Bars, Box, Curve, Figure, Line, Mark, Panel, Point, Shape, blocks
from etude.figures.save import export

NASTY = [
    "$x^2$",
    "_hidden",
    "a_b{c}",
    'it\'s "so"',
    "back\\slash\\",
    "<b>&amp;",
    "@macro",
    "%s {x}",
    "`id`",
    "é–漢",
]


def hostile() -> Figure:
    """Every kind of layer, with names that scripts could take for something else."""
    a, b, c, d, e, f, g, h, i, j = NASTY
    layers = (
        Curve(a, (Point(1, 2, 1.5, 2.5), Point(2, 3))),
        Curve(b, (Point(1, 1),), 1, "dots"),
        Bars(c, (Box(1, 0.4, 0, 1, 0.5, 1.5), Box(2, 0.4, 0, 2)), 2),
        Shape(d, ((1, 1), (2, 1), (1.5, 2)), 3),
        Line(2.5, e),
        Line(1.5, f, "x"),
        Band(1, 2, g),
        Mark(1, 2, h, 0.9, 1.3),
    )
    axis = Axis(i, ticks=((1.0, a), (2.0, j)), rotate=30)
    return Figure(
        axis, (Panel(Axis(d), layers, title=h), Panel(Axis(e), (Line(1, "1"), Line(2, "2")))), title=c
    )


def gnuplot(directory: Path, stem: str) -> str:
    """What it drew; nothing may be said on the way."""
    done = subprocess.run(
        ["gnuplot", f"{stem}.gnuplot"], cwd=directory, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return (directory / f"{stem}.gnuplot.svg").read_text(encoding="utf-8")


RUN_EACH = """
import runpy, sys
for script in sys.argv[1:]:
    sys.argv = [script]
    runpy.run_path(script, run_name="__main__")
"""


def python(directory: Path, *stems: str) -> list[Path]:
    """What scripts drew, in one process, which takes long to start."""
    scripts = [directory / f"{stem}.py" for stem in stems]
    assert not any("etude" in script.read_text(encoding="utf-8") for script in scripts)
    done = subprocess.run(
        [sys.executable, "-W", "error::SyntaxWarning", "-c", RUN_EACH, *scripts],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "Error" not in done.stderr
    return [directory / f"{stem}.py.png" for stem in stems]


@pytest.mark.needs_program("gnuplot", package="gnuplot-nox")
def test_gnuplot_draws_every_figure_again(example: Any, tmp_path: Path) -> None:
    assert export(example.figure, str(tmp_path / "new"), "it") == [
        str(tmp_path / "new" / f"it.{suffix}") for suffix in ("dat", "gnuplot", "py")
    ]
    drawn = gnuplot(tmp_path / "new", "it")
    ElementTree.fromstring(drawn)
    for name in example.figure.names() if example.figure.key != "off" else ():
        assert name in drawn


@pytest.mark.more
def test_python_draws_every_figure_again(figures: dict[str, Figure], tmp_path: Path) -> None:
    for name, figure in figures.items():
        export(figure, str(tmp_path), name)
    for picture in python(tmp_path, *figures):
        with Image.open(picture) as image:
            shades = image.convert("L").getextrema()
        assert shades[0] < 100 < shades[1], picture


def test_names_that_look_like_markup_are_letters_to_python(tmp_path: Path) -> None:
    export(hostile(), str(tmp_path), "a b")
    python(tmp_path, "a b")
    said = (tmp_path / "a b.py").read_text(encoding="utf-8")
    assert "label=label(' _hidden')" in said  # matplotlib leaves out what begins with an underscore
    assert not (tmp_path / "id").exists()


@pytest.mark.needs_program("gnuplot", package="gnuplot-nox")
def test_names_that_look_like_markup_are_letters_to_gnuplot(tmp_path: Path) -> None:
    export(hostile(), str(tmp_path), "it's")
    texts = "".join(ElementTree.fromstring(gnuplot(tmp_path, "it's")).itertext())
    for name in NASTY:
        assert name in texts


def test_the_data_file_holds_all_numbers(tmp_path: Path) -> None:
    figure = hostile()
    export(figure, str(tmp_path), "it")
    parts = (tmp_path / "it.dat").read_text(encoding="utf-8").split("\n\n\n")
    assert len(parts) == len(list(blocks(figure))) == 10
    rows = [line.split() for line in parts[0].splitlines() if not line.startswith("#")]
    assert rows == [["1", "2", "1.5", "2.5"], ["2", "3", "NaN", "NaN"]]
    columns = [line.split()[1:] for line in parts[2].splitlines() if line.startswith("# x ")]
    assert columns == [["x", "bottom", "top", "width", "low", "high", "bar_x"]]
    *_, names, mark = parts[7].splitlines()
    assert names.split() == ["#", "x", "y", "low", "high"]
    assert mark == "1 2 0.9 1.3"


def test_the_interval_of_a_mark_is_in_both_scripts(tmp_path: Path) -> None:
    export(hostile(), str(tmp_path), "it")
    assert "from 0.9, 2 to 1.3, 2 heads" in (tmp_path / "it.gnuplot").read_text(encoding="utf-8")
    assert "axes.plot([0.9, 1.3], [2, 2]" in (tmp_path / "it.py").read_text(encoding="utf-8")
