"""Results of airspeed velocity: one file a commit and environment, of versions 1 and 2."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from etude.errors import InputError
from etude.results.readers.source import items, members, number, read_json, text_of
from etude.results.table import Quantity, Rows, Table
from etude.units.parsing import BYTE, ONE, SECOND, Unit

NAME = "asv"

_METRICS: Mapping[str, tuple[str, Unit]] = {
    "time": ("elapsed", SECOND),
    "timeraw": ("elapsed", SECOND),
    "mem": ("memory", BYTE),
    "peakmem": ("peak_memory", BYTE),
}
_MAX_COMBINATIONS = 100_000


def detect(path: Path, head: bytes) -> bool:
    return (
        head.lstrip().startswith(b"{")
        and b'"commit_hash"' in head
        and (b'"env_name"' in head or b'"requirements"' in head or b'"result_columns"' in head)
    )


def read(path: Path) -> Table:
    document = members(read_json(path))
    results = document.get("results")
    if not isinstance(results, dict):
        raise InputError(f"{path}: is not what asv writes: expected results by the name of a benchmark")
    rows, columns = Rows(path), items(document.get("result_columns"))
    for name, result in results.items():
        _benchmark(rows, name, _entry(result, columns))
    return rows.table()


def _entry(result: Any, columns: list[Any]) -> dict[str, Any]:
    """One benchmark's members: version 2 has a list in the order of the columns, version 1 an object or a number."""
    if isinstance(result, dict):
        return result
    if columns and isinstance(result, list):
        return {text_of(column): value for column, value in zip(columns, result, strict=False)}
    return {"result": result}


def _benchmark(rows: Rows, name: str, entry: dict[str, Any]) -> None:
    kind = name.rpartition(".")[2].partition("_")[0].lower()
    metric, unit = _METRICS.get(kind, ("value", ONE))
    results = entry.get("result")
    values = results if isinstance(results, list) else [results]
    samples = items(entry.get("samples"))
    combinations = _combinations(items(entry.get("params")))
    parameters: Mapping[str, str]
    for index, value in enumerate(values):
        parameters = next(combinations, {})
        measured = items(samples[index]) if index < len(samples) else []
        if value is None or number(value) is None:
            rows.warn(f"{name}: {'failed' if value is None else 'was skipped'}: no value")
            rows.add(name, {}, kept=False, parameters=parameters)
            continue
        if not measured and kind in ("time", "timeraw"):
            rows.warn("medians stand for times without samples (asv run --record-samples keeps them)")
        for each in measured or [value]:
            rows.add(name, {metric: Quantity(number(each), unit)}, parameters=parameters)


def _combinations(params: list[Any]) -> Iterator[Mapping[str, str]]:
    """The parameters of each value in turn: the last varies fastest. Their names are not in this file."""
    lists = [[text_of(value) for value in items(values)] for values in params]
    if sum(map(len, lists)) > _MAX_COMBINATIONS:
        return
    for values in itertools.product(*lists):
        yield {f"param{number}": value for number, value in enumerate(values, 1)}
