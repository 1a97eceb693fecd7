"""What is said of METRICs that only some workers printed."""

from __future__ import annotations

from typing import Any

from etude.experiment.output_metric import OutputMetric
from etude.results.windows import NewWindows
from etude.script.rows import rows_of


def row(**metrics: Any) -> dict[str, Any]:
    return {
        "metrics": {"elapsed": [1.0, "s"], **metrics},
        "timed_out": False,
        "cancelled": False,
        "error": None,
    }


def notes_of(*values: float | None) -> list[str]:
    """The notes of each worker's row, where each printed that value of a rate, or none."""
    printed = [
        [OutputMetric("rate", [value, "1/s"] if value else [None, "1/s", "no match"])] for value in values
    ]
    rows, _ = rows_of(
        [row() for _ in values],
        [[] for _ in values],
        printed,
        [NewWindows([], []) for _ in values],
        ["x"],
        [],
    )
    return [note for row in rows for note in row.get("notes", ())]


def test_a_metric_that_some_workers_did_not_print_is_noted_once_with_how_many() -> None:
    (note,) = notes_of(5.0, None, 7.0, None)
    assert "rate: 2 of 4 workers" in note
    assert "thread 2 " in note
    assert "no match" in note


def test_a_metric_of_all_or_of_none_is_not() -> None:
    assert notes_of(5.0, 6.0) == []
    assert notes_of(None, None) == []
