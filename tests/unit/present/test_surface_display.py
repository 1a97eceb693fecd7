"""A surface on the screen: a matrix of two factors, a list of more, what they say; the same as JSON."""

from __future__ import annotations

import io
import json

import pytest

from etude.present.sections.surface import surface_document, surface_section
from etude.present.terminal import Terminal, show
from etude.surface.surface_result import SurfaceResult
from support.golden import Golden
from support.made_surfaces import DISKS, FS, NFSDS, power, soft_minimum, surface
from support.places import DOCS


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def said(mapped: SurfaceResult, columns: int = 100, **options: float) -> str:
    stream = Screen()
    show(surface_section(mapped, drawn=False, **options), Terminal(stream, {"COLUMNS": str(columns)}))  # type: ignore[arg-type]
    return stream.getvalue()


def test_two_factors_are_a_matrix_with_intervals() -> None:
    text = said(
        surface(
            (DISKS, NFSDS),
            power,
            predicted=lambda n: n == 1,
            failed=[(1, 0)],
            bounded=[(0, 2)],
            loo=(0.1,) * 3,
        )
    )
    lines = [line.split("  ") for line in text.splitlines()]
    rows = {line[0].strip(): [cell.strip() for cell in line[1:] if cell.strip()] for line in lines if line[0]}
    assert rows["nfsds"] == ["disks=1", "disks=2", "disks=3", "disks=4"]
    assert rows["1"][0] == "100.0/s ± 2.0 %"
    assert rows["1"][1] == "–"
    assert rows["2"][0] == "~ 118.9/s ± 4.0 %"
    assert rows["4"][0] == "> 141.4/s"
    assert "~ predicted by quadratic" in text


def test_what_it_says_follows(golden: Golden) -> None:
    text = said(surface((DISKS, NFSDS), soft_minimum, findings=("cell x: stalling",)), target=300.0)
    for part in (
        "Best",
        "limits",
        "from 1 to 8",
        "Main effects:",
        "300 from",
        "benchmarking time",
        "cell x: stalling",
    ):
        assert part in text, part
    golden(text)
    assert "Accuracy" not in text, "nothing was predicted"


def test_more_factors_are_a_list_and_a_long_one_has_only_what_was_measured() -> None:
    mapped = surface((DISKS, FS, NFSDS), lambda d, fs, n: power(d, n), predicted=lambda n: n % 4 > 0)
    text = said(mapped)
    assert "disks=1 fs=ext4 nfsds=1 " in text
    assert "disks=1 fs=ext4 nfsds=2 " not in text
    assert "72 more configurations" in text
    one = said(surface((NFSDS,), lambda n: n))
    assert one.count("nfsds=") >= 8


def test_no_line_is_wider_than_the_screen() -> None:
    text = said(
        surface((DISKS, NFSDS), power, predicted=lambda n: n % 2 == 0, loo=(0.1,) * 5), 60, target=150.0
    )
    assert max(map(len, text.splitlines())) <= 60


def test_the_document_has_every_cell_and_what_they_say() -> None:
    mapped = surface(
        (DISKS, NFSDS),
        soft_minimum,
        predicted=lambda n: n == 1,
        failed=[(1, 0)],
        bounded=[(0, 2)],
        loo=(0.1,) * 3,
    )
    found = json.loads(json.dumps(surface_document(mapped, target=300.0), allow_nan=False))
    assert len(found["cells"]) == 32
    states = {tuple(cell["factors"].values()): cell for cell in found["cells"]}
    assert states["1", "1"]["state"] == "measured"
    assert states["1", "1"]["limits"]["factor"] == "nfsds"
    assert (
        states["2", "1"] | {"state": "failed", "value": None, "low": None, "high": None} == states["2", "1"]
    )
    assert states["1", "4"]["state"] == "bounded"
    assert found["optimum"]["edges"] == ["disks=4", "nfsds=100"]
    assert found["mape"]["mape"] == pytest.approx(0.1)
    assert found["cost"]["failed"] == 1
    assert {each["factor"] for each in found["effective_ranges"]} == {"disks", "nfsds"}
    assert found["break_evens"]


def test_the_page_names_every_member_of_the_document() -> None:
    page = (DOCS / "howto" / "surfaces.md").read_text()
    mapped = surface(
        (DISKS, FS, NFSDS), lambda d, fs, n: power(d, n) * (n**0.1 if fs == "xfs" else 1.2), loo=(0.1,) * 3
    )

    def names(value: object) -> set[str]:
        if isinstance(value, dict):
            return {str(name) for name in value}.union(*map(names, value.values()))
        return set().union(*map(names, value)) if isinstance(value, list | tuple) else set()

    found = names(surface_document(mapped, target=200.0)) - {"disks", "fs", "nfsds"}
    assert {name for name in found if f"`{name}`" not in page} == set()
    assert {"alike", "shown_to", "surely", "over", "mape", "bench_s"} <= found
