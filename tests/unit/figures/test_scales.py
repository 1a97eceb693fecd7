"""A figure's kind, scales and bins follow from the values: names are no amounts, decades are logarithmic."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from etude.figures.data import GREY, Axis, Curve, Figure, Panel, Point, Shape
from etude.figures.draw import draw
from etude.figures.plot import make, usual_kind
from etude.figures.plot_options import PlotOptions
from etude.figures.sources import Sample, read_samples
from etude.figures.style import Style

NOISE = np.random.default_rng(1).lognormal(0.0, 0.05, 12)


def read(directory: Path, tests: dict[str, float], spread: float = 1.0) -> list[Sample]:
    rows = [
        f"{name},{n},{level * value**spread:g}"
        for name, level in tests.items()
        for n, value in enumerate(NOISE)
    ]
    file = directory / "values.csv"
    file.write_text("\n".join(["test,trial,elapsed", *rows]) + "\n")
    return read_samples([str(file)], PlotOptions())


def points(figure: Figure, panel: int = 0) -> list[Curve]:
    return [layer for layer in figure.panels[panel].layers if isinstance(layer, Curve)]


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["w0", "w1", "w2", "w3"], "bars"),
        (["run-1", "run-2", "run-3", "run-4"], "bars"),
        (["ext4:1", "ext4:2", "ext4:4", "ext4:8"], "lines"),
        (["a 1", "a 2", "a 3", "a 4", "b 1", "b 2", "b 3", "b 4"], "lines"),
        (["a 4K", "a 8K", "a 16K", "b 4K", "b 8K", "b 16K", "c 16K"], "lines"),
        (["a 4K", "b 4K", "a 8K"], "bars"),
    ],
    ids=["counted", "from-one", "amounts", "two-curves", "one-beside", "half"],
)
def test_numbers_that_only_count_the_tests_are_names(tmp_path: Path, names: list[str], kind: str) -> None:
    assert usual_kind(read(tmp_path, dict.fromkeys(names, 0.01)), PlotOptions()) == kind


@pytest.mark.parametrize(("log", "scale"), [("", "log"), ("none", "linear"), ("y", "linear")])
def test_an_x_axis_of_two_decades_is_logarithmic_unless_options_say_other(
    tmp_path: Path, log: str, scale: str
) -> None:
    samples = read(tmp_path, {f"size {4 << n}K": 0.01 for n in range(8)})
    assert make("lines", samples, PlotOptions(log=log)).x.scale == scale
    assert make("lines", samples[:4], PlotOptions()).x.scale == "linear"


@pytest.mark.parametrize("kind", ["ecdf", "histogram", "box", "violin"])
def test_values_over_decades_have_a_logarithmic_axis(tmp_path: Path, kind: str) -> None:
    figure = make(kind, read(tmp_path, {"quick": 0.001, "slow": 1.0}), PlotOptions())
    scales = figure.x.scale, figure.panels[0].y.scale
    assert scales == (("log", "linear") if kind in ("ecdf", "histogram") else ("linear", "log"))
    assert make(kind, read(tmp_path, {"quick": 0.001, "slow": 0.01}), PlotOptions()).x.scale == "linear"


def test_bins_are_as_narrow_as_the_narrowest_of_distant_tests_needs(tmp_path: Path) -> None:
    figure = make("histogram", read(tmp_path, {"quick": 0.01, "slow": 0.03}), PlotOptions())
    assert all(max(p.y for p in curve.points) < 0.9 for curve in points(figure))


def test_ratios_of_medians_have_intervals_that_hold_them(tmp_path: Path) -> None:
    tests = {f"{way} {n}": level * n for way, level in (("a", 0.01), ("b", 0.02)) for n in (1, 2, 4)}
    (ratio,) = points(make("ratio", read(tmp_path, tests), PlotOptions()), 1)
    assert all(p.low is not None and p.high is not None and p.low < p.y < p.high for p in ratio.points)
    assert all(p.low > 1.7 and p.high < 2.3 for p in ratio.points)


@pytest.mark.parametrize(
    ("again", "places"), [((), ()), (("a 2",), (2.0,)), (("a 1", "a 2", "a 4"), (1.0, 2.0, 4.0))]
)
def test_the_noise_of_the_reference_stands_around_one_where_it_is_known(
    tmp_path: Path, again: tuple[str, ...], places: tuple[float, ...]
) -> None:
    tests = {f"{way} {n}": level * n for way, level in (("a", 0.01), ("b", 0.02)) for n in (1, 2, 4)}
    samples = [
        replace(each, series=replace(each.series, blocks=each.series.trials))
        for each in read(tmp_path, tests)
        if each.series is not None
    ]
    twins = tuple(
        replace(
            each.series,
            test=f"{each.name} (again)",
            columns={"elapsed": column._replace(values=column.values[::-1])},
        )
        for each in samples
        if each.name in again
        for column in [each.series.columns["elapsed"]]
    )
    assert samples[0].subject is not None
    with_twins = replace(samples[0].subject, twins=twins)
    made = make("ratio", [replace(each, subject=with_twins) for each in samples], PlotOptions())
    grey = [each for each in made.panels[1].layers if isinstance(each, Shape | Curve) and each.colour == GREY]
    corners = [
        corner
        for each in grey
        for corner in (
            each.outline
            if isinstance(each, Shape)
            else [(p.x, end) for p in each.points for end in (p.low, p.high) if end]
        )
    ]
    assert sorted({x for x, _ in corners}) == list(places)
    for at in places:
        low, high = sorted(y for x, y in corners if x == at)
        assert 0.9 < low < 1.0 < high
        assert low * high == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("ends", "names"), [((2.0, 60.0), {"2", "5", "10", "20", "50"}), ((1.0, 1e6), {"10^3"})]
)
def test_numbers_on_an_axis_of_few_decades_are_plain(ends: tuple[float, float], names: set[str]) -> None:
    points = tuple(Point(at, at) for at in ends)
    canvas = draw(Figure(Axis(scale="log"), (Panel(Axis(scale="log"), (Curve("a", points),)),)), Style())
    canvas.draw_without_rendering()
    ticks = canvas.axes[0].xaxis
    shown = {
        re.sub(r"\$\\mathdefault\{(.*)\}\$", r"\1", label.get_text()) for label in ticks.get_majorticklabels()
    }
    assert names <= {text.replace("{", "").replace("}", "") for text in shown}
    assert not any(label.get_text() for label in ticks.get_minorticklabels())
