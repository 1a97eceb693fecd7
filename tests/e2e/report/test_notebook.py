"""The tutorial's notebook runs from its first cell to its last, and what its text says of the results is so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

import etude
from support.notebooks import executed
from support.places import DOCS

pytestmark = pytest.mark.beside

NOTEBOOK = DOCS / "tutorials" / "io-lab.ipynb"
QUICK = {
    "ETUDE_LAB_TRIALS": "2",
    "ETUDE_LAB_BUFFERS": "1K,2K,4K,1M",
    "ETUDE_LAB_TOTALS": "1,1K,1M",
    "ETUDE_LAB_PLACE": ".",
}


@pytest.fixture(scope="module")
def notebook() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the notebook is run, in `here`."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def ran(notebook: Any, home: Path) -> Any:
    """The notebook with its outputs."""
    return executed(notebook, home, QUICK)


def test_it_is_kept_without_outputs(notebook: Any) -> None:
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(cells) > 10
    assert [cell.source for cell in cells if cell.outputs or cell.execution_count is not None] == []


def test_its_variables_stand_in_its_text(notebook: Any) -> None:
    for name in QUICK:
        assert f"| `{name}` |" in notebook.cells[0].source
        assert f'"{name}"' in notebook.cells[1].source


def test_no_cell_fails_and_each_figure_comes_out(ran: Any) -> None:
    outputs = {cell.source: cell.outputs for cell in ran.cells if cell.cell_type == "code"}
    assert [output for found in outputs.values() for output in found if output.output_type == "error"] == []
    pictures = {
        source.strip().splitlines()[-1]: len(found)
        for source, found in outputs.items()
        if any("image/png" in output.get("data", ()) for output in found)
    }
    assert list(pictures) == [
        "throughput",
        "plt.show()",
        'figures["linking"]',
        'figures["significance"]',
        'etude.plot(methods, parameter="buffer", log="x", bars="min-max")',
    ]
    said = "".join(output.get("text", "") for found in outputs.values() for output in found)
    for part in (
        "L1 Data: ",
        "untouched: the largest median ",
        "Note: ",
        "a call costs ",
        " 5 %",
    ):
        assert part in said


def test_both_figures_by_hand_come_out(ran: Any) -> None:
    shown = [cell for cell in ran.cells if cell.cell_type == "code" and cell.source.endswith("plt.show()")]
    assert len(shown) == 2
    assert all(any("image/png" in output.get("data", ()) for output in cell.outputs) for cell in shown)


def test_the_frames_have_the_columns_that_the_text_names(ran: Any, home: Path) -> None:
    found = {
        path.name.rpartition("-")[0]: etude.load_results(path)
        for path in (home / "here" / "etude-results").iterdir()
    }
    frame = found["io-read-totals"].frame()
    assert {"total", "total_bytes", "curve", "block", "kept", "elapsed"} <= set(frame.columns)
    assert set(frame["total_bytes"]) == {1.0, 1024.0, 1048576.0}
    first = next(
        path for path in sorted((home / "here" / "etude-results").iterdir()) if "buffers" in path.name
    )
    frame = etude.load_results(first).frame()
    assert {"buffer", "buffer_bytes", "curve", "block", "kept", "bandwidth", "elapsed"} <= set(frame.columns)
    assert set(frame["curve"]) >= {"untouched", "touched", "huge"}
    assert set(zip(frame["buffer"], frame["buffer_bytes"], strict=True)) >= {
        ("4KiB", 4096.0),
        ("1MiB", 1048576.0),
    }
    assert frame.filter(frame["kept"].not_())["trial"].unique().to_list() == [0]
