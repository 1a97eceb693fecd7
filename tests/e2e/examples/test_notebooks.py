"""The notebooks of examples/notebooks run from their first cell to their last, and measure what they say."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest

import etude
from support.notebooks import executed, images
from support.places import DOCS, ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
MOST_CELLS = 15


def run(name: str, home: Path, **environment: str) -> Any:
    """A notebook with its outputs, beside the examples that it uses."""
    shutil.copytree(ROOT / "examples" / "peak", home / "peak")
    shutil.copytree(ROOT / "examples" / "lib", home / "lib")
    notebook = nbformat.read(ROOT / "examples" / "notebooks" / f"{name}.ipynb", as_version=4)
    return executed(notebook, home, environment)


@pytest.mark.quick
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_short_kept_without_outputs_and_listed(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert len(notebook.cells) <= MOST_CELLS
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.source for cell in cells if cell.outputs or cell.execution_count is not None] == []
    assert f"notebooks/{path.name})" in (DOCS / "tutorials" / "notebooks.md").read_text("utf-8")


def test_two_commands_are_compared(tmp_path: Path) -> None:
    ran = run("ab-comparison", tmp_path, TRIALS="5")
    (directory,) = (tmp_path / "here" / "etude-results").iterdir()
    assert [test.kept for test in etude.stats(directory).tests] == [5, 5]
    assert images(ran) == 2


@pytest.mark.parametrize(
    "fresh",
    [
        False,
        pytest.param(True, marks=[pytest.mark.needs_root, pytest.mark.needs_program("mkfs.xfs", "xfsprogs")]),
    ],
)
def test_file_systems_are_compared_and_nothing_stays_mounted(tmp_path: Path, fresh: bool) -> None:
    places = [tmp_path / "a", tmp_path / "b"]
    for place in places:
        place.mkdir()
    ran = run(
        "file-systems", tmp_path, TRIALS="3", FILES="50", PLACES="" if fresh else ":".join(map(str, places))
    )
    (directory,) = (tmp_path / "here" / "etude-results").iterdir()
    assert etude.load_results(directory).names() == (("ext4", "xfs") if fresh else tuple(map(str, places)))
    assert images(ran) == 1
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
    assert {path.name for path in (tmp_path / "here").iterdir()} == {"work.py", "etude-results"}


@pytest.mark.needs_program("curl")
def test_peak_rates_are_searched(tmp_path: Path) -> None:
    ran = run("peak-rate", tmp_path, BUDGET_S="30")
    known, found = (etude.PeakRate.read(tmp_path / "here" / name) for name in ("known", "http-server"))
    assert known.low <= 500 <= known.high
    assert found.search.trials
    assert images(ran) == 2


def test_a_program_is_recorded_and_replayed(tmp_path: Path) -> None:
    ran = run("traces", tmp_path)
    files = etude.Recording.read(tmp_path / "here" / "sort.trace").files()
    assert files.filter(written_bytes=0).height < files.height
    assert images(ran) == 1
