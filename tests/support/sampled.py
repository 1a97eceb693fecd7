"""The sample files, and what is always true of a table."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path
from types import ModuleType

import polars

from etude.results.table import MORE_PLACES, PLACES, SUMMARY, Table
from support.places import DATA

DATA = DATA / "readers"
SAMPLES = sorted(path for path in DATA.iterdir() if path.suffix != ".md")

MODULES = {
    "ab": "ab",
    "asv": "asv",
    "autopilot": "autopilot",
    "criterion": "criterion",
    "csv": "csv_table",
    "etude": "own",
    "filebench": "filebench",
    "fio": "fio",
    "getstats": "getstats",
    "github-action-benchmark": "github_action",
    "gnu-time": "gnu_time",
    "go": "go",
    "google-benchmark": "google_benchmark",
    "hey": "hey",
    "hyperfine": "hyperfine",
    "io-lab": "io_lab",
    "iperf3": "iperf3",
    "jmh": "jmh",
    "perf": "perf_stat",
    "pgbench": "pgbench",
    "postmark": "postmark",
    "pyperf": "pyperf",
    "pytest-benchmark": "pytest_benchmark",
    "stress-ng": "stress_ng",
    "sysbench": "sysbench",
    "wrk": "wrk",
}
STARTS = {"etude-": "etude", "getstats-": "getstats", "time-": "gnu-time", "table.": "csv", "perf-": "perf"}
"""By the beginning of a sample's name; others begin with the name of their format."""


def module(name: str) -> ModuleType:
    return import_module(f"etude.results.readers.{MODULES[name]}")


def format_of(sample: Path) -> str:
    found = [name for start, name in STARTS.items() if sample.name.startswith(start)]
    return (
        found + [name for name in sorted(MODULES, key=len, reverse=True) if sample.name.startswith(name)]
    )[0]


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
