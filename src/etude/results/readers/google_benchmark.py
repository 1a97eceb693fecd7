"""Google Benchmark: `--benchmark_format=json` or `csv`, and `--benchmark_out`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from etude.errors import InputError
from etude.results.readers.source import (
    UNFITTING,
    csv_rows,
    head_of,
    members,
    number,
    read_json,
    read_lines,
    text_of,
    whole,
)
from etude.results.table import Quantity, Rows, Summaries, Table
from etude.units.parsing import BYTES_PER_SECOND, ONE, PER_SECOND, TIME, Unit, number_in

NAME = "google-benchmark"

_METRICS = {"real_time": "elapsed", "cpu_time": "cpu_time"}
_RATES = {"bytes_per_second": BYTES_PER_SECOND, "items_per_second": PER_SECOND}
_FIGURES = {"mean": "mean", "median": "median", "stddev": "deviation", "min": "minimum", "max": "maximum"}
_NO_COUNTERS = (
    "family_index",
    "per_family_instance_index",
    "repetitions",
    "repetition_index",
    "threads",
    "iterations",
)
_HEADING = "name,iterations,real_time,cpu_time,time_unit,"
_TEXTS = ("name", "time_unit", "label", "error_message", "skip_message")


def detect(path: Path, head: bytes) -> bool:
    return b"\n" + _HEADING.encode() in b"\n" + head or (
        head.lstrip().startswith(b"{")
        and b'"context"' in head
        and (b'"num_cpus"' in head or b'"library_build_type"' in head or b'"real_time"' in head)
    )


def read(path: Path) -> Table:
    benchmarks, left_out = _of_csv(path) if _HEADING.encode() in head_of(path) else (_of_json(path), [])
    single = [each for each in benchmarks if _aggregate(each) is None]
    if len(single) < len(benchmarks) and all(map(_skipped, single)):
        return _summaries(path, benchmarks, left_out)
    rows = Rows(path)
    for text in left_out:
        rows.warn(text)
    for benchmark in single:
        name = _name(benchmark)
        if _skipped(benchmark):
            reason = benchmark.get("error_message") or benchmark.get("skip_message") or "no reason given"
            rows.warn(f"{name}: skipped: {text_of(reason)[:80]}")
            rows.add(name, {}, kept=False, attributes=_attributes(benchmark))
            continue
        metrics = {
            m: Quantity(number(benchmark[n]), unit) for n, (m, unit) in _metrics(rows, benchmark).items()
        }
        if "iterations" in benchmark:
            metrics["iterations"] = Quantity(number(benchmark["iterations"]), ONE)
        rows.add(name, metrics, attributes=_attributes(benchmark))
    there = set(map(_name, single))
    for name in dict.fromkeys(_base_name(each) for each in benchmarks):
        if name not in there:
            rows.warn(f"{name}: has no single repetitions, only aggregates, and is left out")
    return rows.table()


def _of_json(path: Path) -> list[dict[str, Any]]:
    benchmarks = members(read_json(path)).get("benchmarks")
    if not isinstance(benchmarks, list) or not all(isinstance(each, dict) for each in benchmarks):
        raise InputError(f"{path}: is not what Google Benchmark writes: expected a list of benchmarks")
    return benchmarks


def _of_csv(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows as the objects that they are in JSON, and notes on skipped lines. The context may precede them."""
    lines, cut = read_lines(path)
    start = next((place for place, line in enumerate(lines) if line.startswith(_HEADING)), None)
    if start is None:
        raise InputError(f"{path}: holds no whole row")
    header, *rest = csv_rows(path, lines[start:])
    found, left_out = [], ["a last line that was cut short is left out"] if cut else []
    for cells in rest:  # a row ends early where nothing follows
        row: dict[str, Any] = {name: cell for name, cell in zip(header, cells, strict=False) if cell != ""}
        if len(cells) > len(header) or number_in(row.get("time_unit", "")) is not None:
            left_out.append(UNFITTING)
            continue
        failed = "error_occurred" in row
        row |= {name: number_in(cell) for name, cell in row.items() if name not in _TEXTS}
        found.append(row | {"error_occurred": failed})
    return found, left_out


def _base_name(benchmark: Mapping[str, Any]) -> str:
    """Its name without the aggregate's, which older versions append."""
    name = _name(benchmark)
    return name if "run_type" in benchmark else name.removesuffix(f"_{_aggregate(benchmark)}")


def _skipped(benchmark: Mapping[str, Any]) -> bool:
    return benchmark.get("error_occurred") is True or bool(benchmark.get("skipped"))


def _name(benchmark: Mapping[str, Any]) -> str:
    return text_of(benchmark.get("run_name") or benchmark.get("name") or "?")


def _aggregate(benchmark: Mapping[str, Any]) -> str | None:
    """The name of its aggregate; older versions have it only at the end of the benchmark's name."""
    if benchmark.get("run_type") == "aggregate":
        return text_of(benchmark.get("aggregate_name", "?"))
    if "run_type" in benchmark:
        return None
    ending = text_of(benchmark.get("name", "")).rpartition("_")[2]
    return ending if ending in ("mean", "median", "stddev", "cv", "BigO", "RMS") else None


def _attributes(benchmark: Mapping[str, Any]) -> dict[str, str]:
    """Attributes that are in the name already, or differ from run to run."""
    return {name: text_of(benchmark[name]) for name in ("threads", "label") if name in benchmark}


def _metrics(warner: Rows | Summaries, benchmark: Mapping[str, Any]) -> dict[str, tuple[str, Unit]]:
    stated = benchmark.get("time_unit", "ns")
    time = TIME.get(stated) if isinstance(stated, str) else None
    if time is None:
        warner.warn(
            f"{_name(benchmark)}: its time unit {text_of(stated)[:40]} is not known; its times are left out"
        )
    found = {n: (m, time) for n, m in _METRICS.items() if n in benchmark and time is not None}
    found |= {name: (name, unit) for name, unit in _RATES.items() if name in benchmark}
    counters = {name: (name, ONE) for name, value in benchmark.items() if number(value) is not None}
    return {n: v for n, v in counters.items() if n not in (*_METRICS, *_RATES, *_NO_COUNTERS)} | found


def _summaries(path: Path, benchmarks: list[dict[str, Any]], left_out: list[str]) -> Table:
    rows = Summaries(path)
    for text in ("holds no single repetitions, only aggregates of them", *left_out):
        rows.warn(text)
    found: dict[tuple[str, str, Unit], dict[str, float | None]] = {}
    counts: dict[str, int | None] = {}
    for benchmark in benchmarks:
        aggregate, name = _aggregate(benchmark), _base_name(benchmark)
        if aggregate is None:
            rows.warn(f"{name}: skipped")
            continue
        if aggregate not in _FIGURES:
            if aggregate != "cv":
                rows.warn(f"{name}: the aggregate {aggregate} is left out")
            continue
        counts.setdefault(name, whole(benchmark.get("iterations")))
        for theirs, (metric, unit) in _metrics(rows, benchmark).items():
            figures = found.setdefault((name, metric, unit), {})
            figures[_FIGURES[aggregate]] = number(benchmark[theirs])
    for (name, metric, unit), figures in found.items():
        rows.add(name, metric, unit, figures, count=counts[name])
    return rows.table()
