"""Python's pyperf: a suite or one benchmark as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from etude.errors import InputError
from etude.results.readers.source import items, members, number, read_json, text_of
from etude.results.table import Quantity, Rows, Table
from etude.units.parsing import BYTE, ONE, SECOND, Unit

NAME = "pyperf"

_METRICS: dict[str, tuple[str, Unit]] = {
    "second": ("elapsed", SECOND),
    "byte": ("memory", BYTE),
    "integer": ("value", ONE),
}


def detect(path: Path, head: bytes) -> bool:
    return (
        head.lstrip().startswith(b"{")
        and b'"benchmarks"' in head
        and b'"runs"' in head
        and b'"metadata"' in head
    )


def read(path: Path) -> Table:
    document = members(read_json(path))
    benchmarks = document.get("benchmarks")
    if not isinstance(benchmarks, list) or not all(isinstance(each, dict) for each in benchmarks):
        raise InputError(f"{path}: is not what pyperf writes: expected a list of benchmarks")
    rows, common = Rows(path), members(document.get("metadata"))
    for benchmark in benchmarks:
        _benchmark(rows, benchmark, common | members(benchmark.get("metadata")))
    return rows.table()


def _benchmark(rows: Rows, benchmark: dict[str, Any], metadata: dict[str, Any]) -> None:
    test = text_of(metadata.get("name", rows.test))
    stated = text_of(metadata.get("unit", "second"))
    if stated not in _METRICS:
        rows.warn(f"{test}: its unit {stated[:40]} is not known, and is kept as it is")
    metric, unit = _METRICS.get(stated, ("value", Unit(stated)))
    trial = 0
    for process, run in enumerate(map(members, items(benchmark.get("runs"))), 1):
        values = items(run.get("values"))
        warmups = [items(warmup) for warmup in items(run.get("warmups"))] if values else []
        measured = [(pair[1], False) for pair in warmups if len(pair) == 2] + [(v, True) for v in values]
        for value, kept in measured:
            trial += 1
            rows.add(
                test,
                {metric: Quantity(number(value), unit)},
                trial=trial,
                kept=kept,
                process=process,
            )
    if not trial:
        rows.warn(f"{test}: has no values, and is left out")
