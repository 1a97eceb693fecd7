"""The lab's figures are made of its results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import etude
from etude.analysis.subject import subject_of
from etude.errors import InputError
from etude.figures.data import Curve, Line
from etude.iolab.lab import draw
from support.builders import as_if_killed


def etude_sweep(laboratory: Any, **options: Any) -> Any:
    from etude.iolab.sweeps import make_sweep

    return make_sweep(laboratory.directory, trials=2, **options)


def layers(plot: Any, kind: type, panel: int = 0) -> list[Any]:
    return [layer for layer in plot.data.panels[panel].layers if isinstance(layer, kind)]


def test_throughput_has_quartiles_this_machine_and_its_storage(laboratory: Any) -> None:
    results = laboratory.sweep(buffers="512..8M", trials=5)
    (found,) = etude.io.figures(results).values()
    curves = layers(found, Curve)
    assert [curve.name for curve in curves] == ["untouched", "touched", "huge"]
    assert all(point.low <= point.y <= point.high for curve in curves for point in curve.points)
    marks = {line.label: line.axis for line in layers(found, Line)}
    assert {
        "page (4 KiB)": "x",
        "L1 (32 KiB)": "x",
        "L2 (1 MiB)": "x",
        "huge page (2 MiB)": "x",
    }.items() <= marks.items()
    assert [axis for name, axis in marks.items() if name.startswith("storage (O_DIRECT)")] == ["y"]
    assert "L3 (32 MiB)" not in marks
    (wide,) = etude.io.figures(laboratory.run(etude_sweep(laboratory, buffers="512..16M"), "wide")).values()
    assert "L3 (32 MiB)" in [line.label for line in layers(wide, Line)]
    assert wide.data.x.high > 32 << 20
    assert found.data.x.scale == "log"
    assert found.data.panels[0].y.scale == "linear"


def test_linking_has_the_ratio_and_its_levels_and_significance_p_of_ten_and_of_all(laboratory: Any) -> None:
    results = laboratory.sweep(totals="1..16M", trials=12)
    found = etude.io.figures(results)
    assert set(found) == {"linking", "significance"}
    assert (found["linking"].data.x.scale, found["linking"].data.panels[0].y.scale) == ("log", "log")
    assert {line.at for line in layers(found["linking"], Line, 1)} >= {1.0, 1.01, 1.05}
    assert [curve.name for curve in layers(found["significance"], Curve, 1)] == [
        "all trials",
        "first 10 trials",
        "all trials, Mann-Whitney",
    ]
    for curve in layers(found["significance"], Curve, 1):
        assert all(point.y < 0.05 for point in curve.points), "0.3 ms at every size"


def test_a_plot_shows_itself_and_is_saved(laboratory: Any, tmp_path: Path) -> None:
    plot = etude.plot(laboratory.sweep(buffers="512..4K", curves=["touched"], trials=3), log="x")
    assert plot._repr_png_().startswith(b"\x89PNG")
    plot.save(tmp_path / "a.svg")
    assert "<svg" in (tmp_path / "a.svg").read_text()
    assert plot.figure().axes
    assert plot.notes


def test_a_single_curve_over_totals_is_drawn_alone(laboratory: Any, tmp_path: Path) -> None:
    subject = subject_of(laboratory.sweep(totals="1..1K", curves=["static"], trials=3))
    assert list(draw(subject, tmp_path, "svg")) == ["linking"]


@pytest.mark.parametrize("lines", [(2,), (1, 2), (0, 1, 2), (0, 1, 3), (0, 3, 3, 3)])
@pytest.mark.parametrize("options", [{"buffers": "512..8K"}, {"totals": "1..16"}])
def test_an_interrupted_sweep_is_read_and_drawn_as_far_as_it_came(
    laboratory: Any, tmp_path: Path, options: dict[str, str], lines: tuple[int, ...]
) -> None:
    directory = laboratory.sweep(trials=3, **options).directory
    for number, path in enumerate(sorted(directory.glob("*/results.jsonl"))):
        rows = path.read_text().splitlines(keepends=True)
        path.write_text("".join(rows[: lines[number % len(lines)]]))
    as_if_killed(directory)
    results = etude.load_results(directory)
    assert etude.io.explain(results).findings
    assert set(draw(subject_of(results), tmp_path, "svg")) <= {"throughput", "linking", "significance"}


def test_results_of_another_kind_have_no_such_figures(tmp_path: Path) -> None:
    from support.builders import measurement, results_directory

    results_directory(tmp_path / "r", {"a": [measurement()]}, plan={"kind": "script"})
    with pytest.raises(InputError, match="is no sweep"):
        etude.io.figures(etude.load_results(tmp_path / "r"))
