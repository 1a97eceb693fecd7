"""The sample files, and what is always true of a table."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path
from types import ModuleType

import polars

from etude.results.table import MORE_PLACES, PLACES, SUMMARY, Table
from support.places import DATA, entry_points_of

DATA = DATA / "readers"
SAMPLES = sorted(path for path in DATA.iterdir() if path.suffix != ".md")

MODULES = entry_points_of("etude.readers")
STARTS = {"etude-": "etude", "getstats-": "getstats", "time-": "gnu-time", "table.": "csv", "perf-": "perf"}
"""By the beginning of a sample's name; others begin with the name of their format."""


def module(name: str) -> ModuleType:
    return import_module(MODULES[name])


def format_of(sample: Path) -> str:
    found = [name for start, name in STARTS.items() if sample.name.startswith(start)]
    found += [name for name in sorted(MODULES, key=len, reverse=True) if sample.name.startswith(name)]
    assert found, f"{sample}: its name begins with that of no format"
    return found[0]


def check_table(table: Table) -> None:
    """What is true of every table, whatever was read."""
    frame = table.frame
    assert frame.height > 0
    assert tuple(table.units) == tuple(table.kinds) or set(table.units) == set(table.kinds)
    assert set(table.kinds.values()) <= {"cost", "rate", "ratio", "count", "binary"}
    assert all("\n" not in line and line for line in table.warnings)
    assert len(table.warnings) <= 25
    numbers = [name for name in frame.columns if frame.schema[name] == polars.Float64]
    for name in numbers:
        assert all(math.isfinite(value) for value in frame[name].drop_nulls())
    if table.summary_only:
        assert set(frame["metric"]) <= set(table.units)
        assert set(numbers) <= set(SUMMARY)
        return
    assert numbers == list(table.units)
    assert {"test", "trial", "worker", "kept"} <= set(frame.columns)
    assert frame["test"].null_count() == frame["trial"].null_count() == frame["kept"].null_count() == 0
    assert frame["trial"].min() >= 0
    assert frame["worker"].min() >= 0
    places = {*PLACES, *MORE_PLACES}
    assert set(frame.columns) == {*table.parameters, *table.attributes, *table.units} | (
        places & set(frame.columns)
    )
