"""Java's JMH: `-rf json` and `-rf csv`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from etude.errors import InputError
from etude.results.readers.source import (
    UNFITTING,
    csv_rows,
    head_of,
    items,
    members,
    number,
    read_json,
    shuffled,
    text_of,
    whole,
)
from etude.results.table import Quantity, Rows, Summaries, Table
from etude.units.parsing import MEBIBYTE, ONE, Unit, number_in, unit_of

NAME = "jmh"

_UNITS = {"MB/sec": MEBIBYTE._replace(base="B/s"), "counts": ONE}
"""JMH's own unit names: its profilers count powers of 1024."""
_METRICS = {"s": "elapsed", "1/s": "operation_rate"}
_MAX_SAMPLES = 1_000_000


_HEADING = '"Benchmark","Mode","Threads","Samples","Score",'


def detect(path: Path, head: bytes) -> bool:
    return head.startswith(_HEADING.encode()) or (
        head.lstrip().startswith(b"[") and b'"primaryMetric"' in head and b'"benchmark"' in head
    )


def read(path: Path) -> Table:
    if head_of(path).startswith(_HEADING.encode()):
        return _of_csv(path)
    benchmarks = items(read_json(path))
    if not benchmarks or not all(isinstance(members(each).get("primaryMetric"), dict) for each in benchmarks):
        raise InputError(f"{path}: is not what JMH writes: expected a list of benchmarks")
    rows, summaries = Rows(path), Summaries(path)
    for benchmark in benchmarks:
        before = len(rows)
        _benchmark(rows, benchmark)
        if len(rows) == before:
            _summarise(summaries, benchmark)
    if len(rows):
        for benchmark in {_name(each): None for each in benchmarks if not _forks(each["primaryMetric"])}:
            rows.warn(f"{benchmark}: has no single iterations, only its score, and is left out")
        return rows.table()
    summaries.warn("holds no single iterations, only scores")
    return summaries.table()


def _name(benchmark: Mapping[str, Any]) -> str:
    return text_of(benchmark.get("benchmark", "?"))


def _parameters(benchmark: Mapping[str, Any]) -> dict[str, str]:
    """`mode` and `threads`: the same benchmark may be run in several of each."""
    found = {name: text_of(value) for name, value in members(benchmark.get("params")).items()}
    return {n: text_of(benchmark[n]) for n in ("mode", "threads") if n in benchmark} | found


def _benchmark(rows: Rows, benchmark: Mapping[str, Any]) -> None:
    """One row per iteration, or per sample in the sampling mode; forks are processes."""
    primary, secondary = benchmark["primaryMetric"], members(benchmark.get("secondaryMetrics"))
    others = {text_of(name).lstrip("·"): (members(m), _forks(members(m))) for name, m in secondary.items()}
    sampled = bool(items(primary.get("rawDataHistogram")))
    taken = 0
    for fork, iterations in enumerate(_forks(primary)):
        for place, value in enumerate(iterations):
            taken += 1
            if taken > _MAX_SAMPLES:
                raise InputError(f"{rows.path}: holds more than {_MAX_SAMPLES} samples of one benchmark")
            metrics = dict([_quantity(primary, value)])
            for name, (metric, forks) in others.items():
                if not sampled and fork < len(forks) and place < len(forks[fork]):
                    metrics[name] = _quantity(metric, forks[fork][place])[1]
            rows.add(
                _name(benchmark),
                metrics,
                trial=taken,
                process=fork + 1,
                parameters=_parameters(benchmark),
            )
    if sampled:
        rows.warn(f"{_name(benchmark)}: in which order the samples of an iteration were made is not known")


def _quantity(metric: Mapping[str, Any], value: Any) -> tuple[str, Quantity]:
    stated = text_of(metric.get("scoreUnit", "?"))
    unit = _UNITS.get(stated) or unit_of(stated) or Unit(stated)
    return _METRICS.get(unit.base, "score"), Quantity(number(value), unit)


def _forks(metric: Mapping[str, Any]) -> list[list[Any]]:
    """The values of each fork's iterations; a histogram's values are repeated by their counts."""
    histograms = items(metric.get("rawDataHistogram"))
    if not histograms:
        return [items(fork) for fork in items(metric.get("rawData")) if items(fork)]
    return [
        [value for iteration in items(fork) for value in shuffled(list(_sampled(iteration)))]
        for fork in histograms
    ]


def _sampled(iteration: Any) -> Iterator[Any]:
    for pair in map(items, items(iteration)):
        count = whole(pair[1]) if len(pair) == 2 else None
        if count is not None and 0 < count <= _MAX_SAMPLES:
            for _ in range(count):
                yield pair[0]


def _summarise(rows: Summaries, benchmark: Mapping[str, Any]) -> None:
    primary = benchmark["primaryMetric"]
    name, quantity = _quantity(primary, primary.get("score"))
    if quantity.value is not None:
        rows.add(
            _name(benchmark), name, quantity.unit, {"mean": quantity.value}, parameters=_parameters(benchmark)
        )


def _of_csv(path: Path) -> Table:
    """One line per score, without iterations; its error is half of an interval at 99.9 %: not read."""
    rows = Summaries(path)
    lines = rows.lines()
    table = csv_rows(path, lines)
    for cells in table[1:]:
        if len(cells) != len(table[0]):
            rows.warn(UNFITTING)
            continue
        row = dict(zip(table[0], cells, strict=True))
        score, stated = number_in(row.get("Score", "")), row.get("Unit", "")
        if score is None or not stated:
            rows.warn("a line without score or unit is left out")
            continue
        unit = _UNITS.get(stated) or unit_of(stated) or Unit(stated)
        parameters = {
            name.removeprefix("Param: "): text for name, text in row.items() if name.startswith("Param: ")
        }
        rows.add(
            row["Benchmark"],
            _METRICS.get(unit.base, "score"),
            unit,
            {"mean": score},
            count=number_in(row.get("Samples", "")),
            parameters={"mode": row["Mode"], "threads": row["Threads"]} | parameters,
        )
    rows.warn("holds no single iterations (-rf json does), only scores")
    return rows.table()
