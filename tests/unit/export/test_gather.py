"""From results on disk, files of other programs, and entries of a store to what is exported."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from etude.errors import InputError, UsageError
from etude.export import export_to
from etude.export.document import Document, Figures, Point, Run, require_one_run
from etude.export.gather import document_of, gather
from etude.present.page import content_of
from etude.present.page import gather as gather_page
from etude.present.section import cell_text
from etude.store.entry import Entry, Machine
from support.builders import measurement, results_directory
from support.places import DATA

FILES = DATA / "readers"
KIND = {"kind": "script", "primary": "elapsed"}


def test_kept_trials_are_exported_with_host_and_time(tmp_path: Path) -> None:
    rows = [
        measurement(trial=n, elapsed_s=n / 10, kept=n != 2, why=None if n != 2 else "slow") for n in (1, 2, 3)
    ]
    sitting = {"sitting": 1, "boot_id": "boot", "host": "here", "start": "2026-01-01T00:00:00Z", "end": None}
    place = results_directory(tmp_path / "r", {"a": rows}, plan=KIND, sittings=[sitting])
    (point,) = gather([str(place)], Run("", commit="c1")).points
    assert point.values == (0.1, 0.3)
    assert point.figures is not None
    assert point.figures.mean == pytest.approx(0.2)
    assert point.run.commit == "c1"
    assert point.run.machine is not None
    assert point.run.machine.name == "here"
    assert point.run.measured == datetime(2026, 1, 1, tzinfo=UTC)


def test_machines_of_one_result_are_not_pooled(tmp_path: Path) -> None:
    sittings = [
        {"sitting": n, "boot_id": f"b{n}", "host": f"lab{n}", "start": "2026-01-01T00:00:00Z", "end": None}
        for n in (1, 2)
    ]
    rows = [measurement(trial=n, elapsed_s=float(n), sitting=(n + 1) // 2) for n in (1, 2, 3, 4)]
    place = results_directory(tmp_path / "r", {"a": rows}, plan=KIND, sittings=sittings)
    first, second = gather([str(place)]).points
    assert first.values == (1.0, 2.0)
    assert second.values == (3.0, 4.0)
    assert second.figures is not None
    assert second.figures.mean == 3.5
    names = {first.run.machine and first.run.machine.name, second.run.machine and second.run.machine.name}
    assert names == {"lab1", "lab2"}


def test_a_test_that_was_given_up_before_its_first_trial_is_an_error_in_junit(tmp_path: Path) -> None:
    place = results_directory(tmp_path / "r", {"a": [measurement(test="a")], "b": []}, plan=KIND)
    document = gather([str(place)])
    lost = [point for point in document.points if point.test == "b"]
    assert [(point.metric, point.unit, point.figures) for point in lost] == [("elapsed", "s", None)]
    assert lost[0].reason
    suite = ElementTree.fromstring(export_to("junit", document).text).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("errors")) == ("2", "1")


def test_a_test_without_a_kept_trial_is_there_and_says_why(tmp_path: Path) -> None:
    rows = [measurement(kept=False, why="failed", exit_status=1)]
    place = results_directory(tmp_path / "r", {"a": rows}, plan=KIND)
    (point,) = gather([str(place)]).points
    assert point.figures is None
    assert point.values == ()
    assert point.reason


@pytest.mark.parametrize("name", ["hyperfine-1.json", "hyperfine-2.json", "go.txt", "pyperf.json"])
def test_files_of_other_programs_are_exported(name: str) -> None:
    document = gather([str(FILES / name)])
    assert json.loads(export_to("bencher", document).text)
    assert {point.run.machine for point in document.points} == {None}


def test_summaries_have_figures_and_no_values() -> None:
    document = gather([str(FILES / "hyperfine-summaries.json")])
    assert all(point.values == () and point.figures for point in document.points)


def test_entries_of_a_store_are_points_of_runs_with_their_commits() -> None:
    machine, began = Machine("lab", "d"), datetime(2026, 1, 2, tzinfo=UTC)
    old = Entry(1, "a", "elapsed", "s", "cost", machine, began, (1.0, 2.0), "c1", began, "main", (), "x")
    user = Entry(
        1, "a", "user", "s", "cost", machine, began.replace(hour=1), (0.5, 0.5), "c1", began, "main", (), "x"
    )
    document = document_of([old, user])
    assert document.primary == "elapsed"
    assert len(document.runs) == 1, "metrics of one result are of one run, whatever trial began them"
    assert document.runs[0].measured == began
    with pytest.raises(InputError, match="no entry"):
        document_of([])


def test_points_that_a_file_would_give_one_name_are_told_apart_with_an_option_that_chooses_one() -> None:
    figures = Figures(2, 1.5, None, None, 1.5, 1.0, 2.0, 0.7)

    def point(run: Run, test: str = "a b", metric: str = "x", value: float = 1.0) -> Point:
        return Point(run, test, metric, "s", "cost", (value, 2.0), figures)

    first = point(Run("r", commit="1"))
    for other, advice in (
        (point(Run("r", commit="2")), "choose one with --commit"),
        (point(Run("s", commit="1")), "export one result at a time"),
        (point(first.run, test="a  b"), "choose one with --test"),
        (point(first.run, metric="x "), "choose one with --metric"),
        (first, "name each result once"),
        (point(first.run, value=3.0), "names that differ"),
    ):
        with pytest.raises(UsageError, match=advice):
            require_one_run(Document((first, other), "x"), "Bencher")
    for other, advice in (
        (point(first.run, test="a  b"), "choose one with --test"),
        (first, "name each result once"),
    ):
        with pytest.raises(UsageError, match=advice):
            export_to("otava", Document((first, other), "x"))


def test_measures_that_bencher_would_give_one_name_are_left_out_but_the_first() -> None:
    run, figures = Run("r"), Figures(2, 1.5, None, None, 1.5, 1.0, 2.0, 0.7)
    points = tuple(
        Point(run, "a", metric, unit, "cost", (1.0, 2.0), figures)
        for metric, unit in (("x", "s"), ("x (s)", "1"))
    )
    found = export_to("bencher", Document(points, "x"))
    assert [(each.test, each.metric) for each in found.left_out] == [("a", "x (s)")]


@pytest.mark.parametrize(("unit", "marks"), [("1/s", 1), ("s", 0)])
def test_a_mean_that_is_not_arithmetic_has_its_mark_in_every_table(
    tmp_path: Path, unit: str, marks: int
) -> None:
    table = tmp_path / "r.csv"
    table.write_text(f"test,trial,speed[{unit}]\n" + "".join(f"a,{n},{10 + n}\n" for n in range(5)))
    found = gather([str(table)])
    assert export_to("markdown", found).text.partition("<details>")[0].count(" (h) |") == marks
    content = content_of(gather_page([str(table)]))
    cells = [cell_text(cell) for row in content.tests.rows for cell in row]
    assert sum(cell.endswith(" (h)") for cell in cells) == marks
