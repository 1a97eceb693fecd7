"""Rust's criterion: the directory `target/criterion`, and its files raw.csv, sample.json and estimates.json."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from etude.errors import InputError
from etude.results.readers.source import (
    csv_rows,
    items,
    members,
    number,
    read_json,
    read_lines,
    text_of,
)
from etude.results.table import Quantity, Rows, Summaries, Table
from etude.units.parsing import NANOSECOND, ONE, TIME, Unit, number_in

NAME = "criterion"

_HEADING = "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count"
_FIGURES = {"mean": "mean", "median": "median", "std_dev": "deviation"}
_DEEPEST = 4
_MAX_BENCHMARKS = 10_000


def detect(path: Path, head: bytes) -> bool:
    if path.is_dir():
        return next(iter(_samples(path)), None) is not None
    start = head.lstrip()[:200]
    return (
        start.startswith(_HEADING.encode())
        or (start.startswith(b"{") and b'"sampling_mode"' in start and b'"iters"' in head)
        or (start.startswith(b"{") and b'"point_estimate"' in head and b'"median_abs_dev"' in head)
    )


def read(path: Path) -> Table:
    rows = Rows(path)
    if path.is_dir():
        for number_, sample in enumerate(_samples(path)):
            if number_ == _MAX_BENCHMARKS:
                raise InputError(f"{path}: holds more than {_MAX_BENCHMARKS} benchmarks; name one of them")
            _sample(rows, sample, members(read_json(sample)))
        return rows.table()
    if path.suffix != ".json" and read_lines(path)[0][:1] == [_HEADING]:
        _csv(rows, rows.lines()[1:])
        return rows.table()
    document = members(read_json(path))
    if "iters" not in document:
        return _estimates(path, document)
    _sample(rows, path, document)
    return rows.table()


def _samples(directory: Path) -> Iterable[Path]:
    for depth in range(1, _DEEPEST + 1):
        yield from sorted(directory.glob("/".join(["*"] * depth) + "/new/sample.json"))


def _name(path: Path) -> str:
    """Name of the benchmark, from benchmark.json beside the file; else of the directory above `new` or `base`."""
    beside = path.with_name("benchmark.json")
    try:
        found = members(read_json(beside)).get("full_id") if beside.is_file() else None
    except InputError:
        found = None
    if isinstance(found, str) and found:
        return text_of(found)
    return path.parent.parent.name if path.parent.name in ("new", "base") else path.stem


def _sample(rows: Rows, path: Path, document: dict[str, Any]) -> None:
    """Add the samples: each is the time of many iterations, whose number grows from sample to sample."""
    counts, times = items(document.get("iters")), items(document.get("times"))
    if not counts or len(counts) != len(times):
        raise InputError(
            f"{path}: is not what criterion writes: expected as many times as numbers of iterations"
        )
    for count, time in zip(counts, times, strict=True):
        _add(rows, _name(path), number(count), number(time), NANOSECOND)


def _csv(rows: Rows, lines: list[str]) -> None:
    for fields in csv_rows(rows.path, lines):
        if len(fields) != 8:
            rows.warn("a line that is no sample is left out")
            continue
        *names, _, _, total, unit, count = fields
        test = "/".join(name for name in names if name)
        _add(rows, test or rows.test, number_in(count), number_in(total), TIME.get(unit) or Unit(unit))


def _add(rows: Rows, test: str, count: float | None, total: float | None, unit: Unit) -> None:
    if not count or count < 0 or total is None:
        rows.warn(f"{test}: a sample without iterations or time is left out")
        return
    metric = "elapsed" if unit.base == "s" else "value"
    rows.add(test, {metric: Quantity(total / count, unit), "iterations": Quantity(count, ONE)})


def _estimates(path: Path, document: dict[str, Any]) -> Table:
    rows = Summaries(path)
    rows.warn("holds no samples (sample.json beside it does), only what criterion made of them")
    known = {name: members(document.get(name)) for name in (*_FIGURES, "slope")}
    figures = {ours: number(known[theirs].get("point_estimate")) for theirs, ours in _FIGURES.items()}
    mean, error = figures["mean"], number(known["mean"].get("standard_error"))
    if mean is None:
        raise InputError(f"{path}: is not what criterion writes: expected the estimate of a mean")
    relative = 100 * error / mean if error is not None and mean > 0 else None
    rows.add(_name(path), "elapsed", NANOSECOND, figures, error=relative)
    slope = number(known["slope"].get("point_estimate"))
    if slope is not None:
        rows.add(_name(path), "slope", NANOSECOND, {"mean": slope})
    return rows.table()
