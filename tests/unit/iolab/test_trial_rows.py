"""Trials of sweeps as rows."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np

import etude
from etude.iolab.lab import COLUMNS, csv_text
from etude.iolab.points import Over, Points, Swept


def swept(over: Over, metric: str, *names: str) -> Swept:
    curves = tuple(Points(name, np.array([512.0, 4096.0]), (np.array([0.1, 1 / 3]),) * 2) for name in names)
    return Swept(over, metric, curves, None, {})


def test_each_trial_is_a_row_and_its_number_comes_back_as_it_was() -> None:
    text = csv_text([swept("buffer", "bandwidth", "a, b"), swept("total", "elapsed", "static", "dynamic")])
    head, *lines = csv.reader(io.StringIO(text))
    assert tuple(head) == COLUMNS
    assert len(lines) == 4 + 8
    assert lines[1] == ["buffer", "a, b", "512", "2", "bandwidth", repr(1 / 3), "B/s"]
    assert lines[-1] == ["total", "dynamic", "4096", "2", "elapsed", repr(1 / 3), "s"]


def test_rows_of_results_are_the_kept_trials(laboratory: Any) -> None:
    results = laboratory.sweep(buffers="4K,8K", curves=["touched"], trials=3, storage=False)
    rows = etude.io.rows(results)
    assert [(row["size_bytes"], row["trial"]) for row in rows] == [
        (n, t) for n in (4096, 8192) for t in (1, 2, 3)
    ]
    kept = [m.metrics["bandwidth"][0] for m in results.measurements["buffer=4KiB touched"] if m.kept]
    assert [row["value"] for row in rows[:3]] == kept
