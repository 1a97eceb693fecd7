"""What Google Benchmark writes with `--benchmark_format=json` or `--benchmark_out`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from etude.errors import InputError
from etude.results.readers.rows import Quantity, Rows, Summaries
from etude.results.readers.source import members, number, read_json, text_of, whole
from etude.results.table import Table
from etude.results.units import BYTES_PER_SECOND, ONE, PER_SECOND, TIME, Unit

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


def detect(path: Path, head: bytes) -> bool:
    return (
        head.lstrip().startswith(b"{")
        and b'"context"' in head
        and (b'"num_cpus"' in head or b'"library_build_type"' in head or b'"real_time"' in head)
    )


def read(path: Path) -> Table:
    benchmarks = members(read_json(path)).get("benchmarks")
    if not isinstance(benchmarks, list) or not all(isinstance(each, dict) for each in benchmarks):
        raise InputError(f"{path}: is not what Google Benchmark writes: expected a list of benchmarks")
    single = [each for each in benchmarks if _aggregate(each) is None]
    if len(single) < len(benchmarks) and all(map(_skipped, single)):
        return _summaries(path, benchmarks)
    rows = Rows(path)
    for benchmark in single:
        name = _name(benchmark)
        if _skipped(benchmark):
            reason = benchmark.get("error_message") or benchmark.get("skip_message") or "no reason given"
            rows.warn(f"{name}: skipped: {text_of(reason)[:80]}")
            rows.add(name, {}, kept=False, parameters=_parameters(benchmark))
            continue
        metrics = {
            m: Quantity(number(benchmark[n]), unit) for n, (m, unit) in _metrics(rows, benchmark).items()
        }
        if "iterations" in benchmark:
            metrics["iterations"] = Quantity(number(benchmark["iterations"]), ONE)
        rows.add(name, metrics, parameters=_parameters(benchmark))
    there = set(map(_name, single))
    for name in dict.fromkeys(_base_name(each) for each in benchmarks):
        if name not in there:
            rows.warn(f"{name}: has no single repetitions, only aggregates, and is left out")
    return rows.table()


def _base_name(benchmark: Mapping[str, Any]) -> str:
    """Its name without the aggregate's, which older versions append."""
    name = _name(benchmark)
    return name if "run_type" in benchmark else name.removesuffix(f"_{_aggregate(benchmark)}")


def _skipped(benchmark: Mapping[str, Any]) -> bool:
    return benchmark.get("error_occurred") is True or bool(benchmark.get("skipped"))


def _name(benchmark: Mapping[str, Any]) -> str:
    return text_of(benchmark.get("run_name") or benchmark.get("name") or "?")


def _aggregate(benchmark: Mapping[str, Any]) -> str | None:
    """The name of the aggregate that it is; older versions say so only at the end of the benchmark's name."""
    if benchmark.get("run_type") == "aggregate":
        return text_of(benchmark.get("aggregate_name", "?"))
    if "run_type" in benchmark:
        return None
    ending = text_of(benchmark.get("name", "")).rpartition("_")[2]
    return ending if ending in ("mean", "median", "stddev", "cv", "BigO", "RMS") else None


def _parameters(benchmark: Mapping[str, Any]) -> dict[str, str]:
    return {name: text_of(benchmark[name]) for name in ("threads", "label") if name in benchmark}


def _metrics(warner: Rows | Summaries, benchmark: Mapping[str, Any]) -> dict[str, tuple[str, Unit]]:
    """Ours by their name, and the unit."""
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


def _summaries(path: Path, benchmarks: list[dict[str, Any]]) -> Table:
    rows = Summaries(path)
    rows.warn("holds no single repetitions, only aggregates of them")
    found: dict[tuple[str, str, Unit], dict[str, float | None]] = {}
    about: dict[str, tuple[int | None, dict[str, str]]] = {}
    for benchmark in benchmarks:
        aggregate, name = _aggregate(benchmark), _base_name(benchmark)
        if aggregate is None:
            rows.warn(f"{name}: skipped")
            continue
        if aggregate not in _FIGURES:
            if aggregate != "cv":
                rows.warn(f"{name}: the aggregate {aggregate} is left out")
            continue
        about.setdefault(name, (whole(benchmark.get("iterations")), _parameters(benchmark)))
        for theirs, (metric, unit) in _metrics(rows, benchmark).items():
            figures = found.setdefault((name, metric, unit), {})
            figures[_FIGURES[aggregate]] = number(benchmark[theirs])
    for (name, metric, unit), figures in found.items():
        count, parameters = about[name]
        rows.add(name, metric, unit, figures, count=count, parameters=parameters)
    return rows.table()
