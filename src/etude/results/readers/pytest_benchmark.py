"""pytest-benchmark: `pytest --benchmark-json` and `--benchmark-save`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from etude.errors import InputError
from etude.results.readers.source import items, members, number, read_json, text_of
from etude.results.table import Quantity, Rows, Summaries, Table
from etude.units.parsing import SECOND

NAME = "pytest-benchmark"

_FIGURES = {
    "mean": "mean",
    "stddev": "deviation",
    "median": "median",
    "min": "minimum",
    "q1": "q1",
    "q3": "q3",
    "max": "maximum",
}


def detect(path: Path, head: bytes) -> bool:
    return (
        head.lstrip().startswith(b"{")
        and b'"machine_info"' in head
        and (b'"commit_info"' in head or b'"benchmarks"' in head)
    )


def read(path: Path) -> Table:
    benchmarks = members(read_json(path)).get("benchmarks")
    if not isinstance(benchmarks, list) or not all(isinstance(each, dict) for each in benchmarks):
        raise InputError(f"{path}: is not what pytest-benchmark writes: expected a list of benchmarks")
    if not any(_rounds(benchmark) for benchmark in benchmarks):
        return _summaries(path, benchmarks)
    rows = Rows(path)
    for benchmark in benchmarks:
        for value in _rounds(benchmark):
            metrics = {"elapsed": Quantity(number(value), SECOND)}
            rows.add(_name(benchmark), metrics, parameters=_parameters(benchmark))
        if not _rounds(benchmark):
            rows.warn(f"{_name(benchmark)}: has no single rounds, and is left out")
    return rows.table()


def _rounds(benchmark: dict[str, Any]) -> list[Any]:
    return items(members(benchmark.get("stats")).get("data"))


def _name(benchmark: dict[str, Any]) -> str:
    return text_of(benchmark.get("fullname") or benchmark.get("name") or "?")


def _parameters(benchmark: dict[str, Any]) -> dict[str, str]:
    found = {name: text_of(value) for name, value in members(benchmark.get("params")).items()}
    return found if benchmark.get("group") is None else found | {"group": text_of(benchmark["group"])}


def _summaries(path: Path, benchmarks: list[dict[str, Any]]) -> Table:
    rows = Summaries(path)
    rows.warn("holds no single rounds (--benchmark-save-data keeps them), only figures of them")
    for benchmark in benchmarks:
        stats = members(benchmark.get("stats"))
        figures = {ours: number(stats.get(theirs)) for theirs, ours in _FIGURES.items()}
        if figures["mean"] is not None:
            rows.add(
                _name(benchmark),
                "elapsed",
                SECOND,
                figures,
                count=number(stats.get("rounds")),
                parameters=_parameters(benchmark),
            )
    return rows.table()
