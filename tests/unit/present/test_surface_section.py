"""A surface's part of a report: sentences, a row a cell, and figures of every setting."""

from __future__ import annotations

import pytest

from etude.errors import InputError
from etude.figures.data import Field
from etude.figures.surface import figures_of
from etude.present.section import cell_text
from etude.present.sections.surface import surface_section
from support.made_surfaces import DISKS, FS, NFSDS, power, soft_minimum, surface


def test_every_cell_is_a_row_with_what_is_known_of_it() -> None:
    mapped = surface(
        (DISKS, NFSDS), soft_minimum, predicted=lambda n: n == 1, failed=[(1, 0)], bounded=[(0, 2)]
    )
    part = surface_section(mapped, "surface-0", "Surface of r")
    cells, effects = part.tables
    assert len(cells.rows) == 32
    rows = {tuple(map(cell_text, row[:2])): [cell_text(cell) for cell in row[2:]] for row in cells.rows}
    assert rows["1", "1"][2:4] == ["measured", "nfsds"]
    assert rows["1", "1"][-2:] == ["9", "30 min"]
    assert rows["1", "2"][2] == "predicted"
    assert rows["1", "2"][-1] == "–"
    assert [rows["2", "1"][n] for n in (2, 3, 0)] == ["failed: it died", "–", "failed"]
    assert rows["1", "4"][2] == "bounded"
    assert rows["1", "4"][0].startswith("> ")
    assert [row[0] for row in effects.rows].count("nfsds") == 8
    assert cells.key == "surface-0-cells"
    assert {each.heading for each in part.paragraphs} >= {"Optimum", "What limits", "Cost"}


def test_without_costs_those_of_the_samples_are_shown() -> None:
    (cells, _) = surface_section(surface((DISKS,), lambda d: d, costs=())).tables
    assert [cell_text(cell) for cell in cells.rows[0]][-2:] == ["9", "30 min"]


def test_findings_are_told() -> None:
    part = surface_section(surface((DISKS,), lambda d: d, findings=("disks=2: stalling",)))
    assert part.paragraphs[-1].lines == ("disks=2: stalling",)


def test_two_factors_that_rise_are_a_surface_and_a_map_for_each_setting_of_the_others() -> None:
    found = figures_of(surface((DISKS, FS, NFSDS), lambda d, fs, n: power(d, n)))
    assert list(found) == [
        "surface-fs=ext4", "map-fs=ext4", "surface-fs=xfs", "map-fs=xfs", "surface-fs=btrfs", "map-fs=btrfs",
        "effects",
    ]  # fmt: skip
    (field,) = found["map-fs=xfs"].panels[0].layers
    assert isinstance(field, Field)
    assert len(field.spots) == 32
    assert found["map-fs=xfs"].title == "fs=xfs"


def test_one_factor_is_a_line_and_a_categorical_one_makes_a_line_each() -> None:
    assert list(figures_of(surface((NFSDS,), lambda n: n))) == ["surface"]
    found = figures_of(surface((FS, NFSDS), lambda fs, n: n))
    assert list(found) == ["surface", "effects"]
    assert found["surface"].names() == ("ext4", "xfs", "btrfs")
    assert found["surface"].x.label == "nfsds"


def test_of_three_that_rise_the_two_with_the_largest_effects_are_the_axes() -> None:
    from etude.surface.factors import Factor

    little = Factor("little", "linear", (1.0, 2.0))
    found = figures_of(surface((little, DISKS, NFSDS), lambda a, d, n: power(d, n) * (1 + a / 1000)))
    assert list(found)[:2] == ["surface-little=1", "map-little=1"]
    assert found["map-little=1"].x.label == "disks"


def test_a_surface_of_which_nothing_is_known_has_no_figure() -> None:
    nothing = surface((DISKS,), lambda d: d, failed=[(n,) for n in range(4)])
    assert surface_section(nothing).pictures == ()
    with pytest.raises(InputError):
        figures_of(nothing)
