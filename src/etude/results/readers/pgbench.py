"""pgbench: its logs (`-l`) of single transactions and of intervals, and its summary."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from etude.errors import InputError
from etude.results.readers.source import head_of, read_bytes
from etude.results.table import Quantity, Rows, Table, warning_lines
from etude.units.parsing import MICROSECOND, MILLISECOND, ONE, PER_SECOND, Unit, number_in

if TYPE_CHECKING:
    import polars

NAME = "pgbench"

_SECONDS = r"[0-9]{9,11}"
_TRANSACTION = re.compile(
    rf"[0-9]+ [0-9]+ (?:[0-9.]+|[a-z]+) [0-9]+ {_SECONDS} [0-9]{{1,6}}(?: [0-9.]+)?(?: [0-9]+)?"
)
_INTERVAL = re.compile(
    rf"{_SECONDS} [0-9]+(?: [0-9]+){{4}}(?:(?: [0-9]+){{4}}(?: [0-9]+(?:(?: [0-9]+){{4}})?)?)?"
)
_SUMMARY = b"number of transactions actually processed: "

_AGGREGATES = ("transactions", "latency_sum", "", "latency_minimum", "latency_maximum")
_LAGS = ("lag_sum", "", "lag_minimum", "lag_maximum")
_COUNTS = ("skipped", "retried", "retries", "serialization_failures", "deadlock_failures")

_N = r"([0-9]+(?:\.[0-9]+)?)"
_LINES: Mapping[str, tuple[str, Unit, str | None]] = {
    rf"number of transactions actually processed: {_N}(?:/[0-9]+)?": ("transactions", ONE, None),
    rf"number of failed transactions: {_N} .*": ("failed", ONE, "cost"),
    rf"number of transactions skipped: {_N} .*": ("skipped", ONE, "cost"),
    rf"latency average(?: =|:) {_N} ms": ("latency_mean", MILLISECOND, None),
    rf"latency stddev(?: =|:) {_N} ms": ("latency_deviation", MILLISECOND, None),
    rf"initial connection time = {_N} ms": ("connection_time", MILLISECOND, None),
    rf"average connection time = {_N} ms": ("connection_time", MILLISECOND, None),
    rf"tps = {_N} \((?:without initial connection time|excluding connections establishing)\)": (
        "tps",
        PER_SECOND,
        None,
    ),
    rf"tps = {_N} \(including (?:reconnection times|connections establishing)\)": (
        "tps_with_connecting",
        PER_SECOND,
        None,
    ),
}
_PATTERNS = [(re.compile(pattern), found) for pattern, found in _LINES.items()]
_PARAMETER = re.compile(
    r"(transaction type|scaling factor|query mode|number of clients|number of threads): (.*)"
)
_NUMBERED = re.compile(r"(?<=.)\.[0-9]+(?:\.[0-9]+)?\Z")
_LAST = ("tps", "tps_with_connecting")


def detect(path: Path, head: bytes) -> bool:
    if _SUMMARY in head and b"tps = " in head:
        return True
    return _log(head) is not None


def _log(head: bytes) -> re.Pattern[str] | None:
    lines = [line.rstrip("\r") for line in head.decode("utf-8", "replace").split("\n")]
    whole = [line for line in lines[:-1][:20] if len(line) < 1000]
    for pattern in (_TRANSACTION, _INTERVAL):
        if whole and all(map(pattern.fullmatch, whole)):
            return pattern
    return None


def read(path: Path) -> Table:
    kind = _log(head_of(path))
    if kind is _TRANSACTION:
        return _transactions(path)
    return _intervals(path) if kind is _INTERVAL else _summaries(path)


def _transactions(path: Path) -> Table:
    import polars

    data = read_bytes(path)
    whole = data[: data.rfind(b"\n") + 1]
    warnings = {"a last line that was cut short is left out": 1} if len(whole) < len(data) else {}
    if b"\0" in whole:
        raise InputError(f"{path}: is no text: it holds a zero byte")
    lines = polars.Series("line", whole.decode("utf-8", "replace").split("\n")[:-1]).str.strip_chars_end("\r")
    fields = lines.str.extract_groups(
        rf"^(?<client>[0-9]{{1,9}}) (?<number>[0-9]{{1,18}}) (?<time>[0-9.]+|[a-z]+) (?<script>[0-9]{{1,9}}) "
        rf"{_SECONDS} [0-9]{{1,6}}(?: (?<lag>[0-9.]+) (?<retries>[0-9]{{1,9}})| (?<either>[0-9.]+))?$"
    ).struct.unnest()
    known = fields.filter(polars.col("client").is_not_null())
    if len(known) < len(fields):
        warnings["a line that is no transaction is left out"] = len(fields) - len(known)
    if known["either"].null_count() < len(known):
        warnings[
            "the seventh column is left out: it may be a lag (-R) or a number of retries (--max-tries)"
        ] = 1
    return _of_transactions(path, known, warnings)


def _of_transactions(path: Path, fields: polars.DataFrame, warnings: dict[str, int]) -> Table:
    import polars

    if not len(fields):
        raise InputError(f"{path}: holds no transaction")
    elapsed = _seconds(fields["time"])
    metrics = {
        "elapsed": (elapsed, "s", "cost"),
        "schedule_lag": (_seconds(fields["lag"]), "s", "cost"),
        "retries": (fields["retries"].cast(polars.Float64), "1", "count"),
    }
    there = {name: found for name, found in metrics.items() if found[0].null_count() < len(fields)}
    for how, count in fields["time"].filter(elapsed.is_null()).value_counts().sort("time").iter_rows():
        warnings[f"a transaction ({str(how)[:40]}) has no time and is not kept"] = count
    frame = polars.DataFrame(
        [
            polars.repeat(_prefix(path), len(fields), dtype=polars.String, eager=True).alias("test"),
            polars.int_range(1, len(fields) + 1, dtype=polars.Int64, eager=True).alias("trial"),
            polars.zeros(len(fields), dtype=polars.Int64, eager=True).alias("worker"),
            elapsed.is_not_null().alias("kept"),
            fields["client"],
            fields["script"],
            *(values.alias(name) for name, (values, _, _) in there.items()),
        ]
    )
    return Table(
        frame,
        {name: unit for name, (_, unit, _) in there.items()},
        {name: kind for name, (_, _, kind) in there.items()},
        ("script",),
        str(path),
        warning_lines(warnings),
        attributes=("client",),
    )


def _prefix(path: Path) -> str:
    """Common prefix of the logs of all threads of a run: PREFIX.PID, PREFIX.PID.THREAD."""
    return _NUMBERED.sub("", path.name) if _NUMBERED.search(path.name) else path.stem or path.name


def _seconds(microseconds: polars.Series) -> polars.Series:
    """Seconds; null for non-finite numbers. Divided by numpy: polars multiplies by a rounded reciprocal."""
    import numpy
    import polars

    values = microseconds.cast(polars.Float64, strict=False).to_numpy()
    with numpy.errstate(invalid="ignore"):
        seconds = numpy.where(numpy.isfinite(values), values / 1e6, numpy.nan)
    return polars.Series(microseconds.name, seconds, nan_to_null=True)


def _intervals(path: Path) -> Table:
    rows, test = Rows(path), _prefix(path)
    lines = rows.lines()
    for line in lines:
        if not _INTERVAL.fullmatch(line):
            rows.warn("a line that is no interval is left out")
            continue
        values = [number_in(text) for text in line.split()]
        metrics = {n: Quantity(v, MICROSECOND) for n, v in zip(_AGGREGATES, values[1:6], strict=True) if n}
        metrics["transactions"] = Quantity(values[1], ONE)
        if values[1]:
            metrics["latency_mean"] = Quantity((values[2] or 0.0) / values[1], MICROSECOND)
        else:  # zeros mean that nothing happened
            metrics = {"transactions": metrics["transactions"]}
        if any(values[6:10]):
            metrics |= {n: Quantity(v, MICROSECOND) for n, v in zip(_LAGS, values[6:10], strict=True) if n}
        metrics |= {n: Quantity(v, ONE) for n, v in zip(_COUNTS, values[10:], strict=False)}
        rows.add(test, metrics)
    return rows.table()


def _summaries(path: Path) -> Table:
    rows, parameters = Rows(path), dict[str, str]()
    found = dict[str, Quantity]()
    lines = rows.lines()
    for line in map(str.strip, lines):
        if line.startswith("transaction type: "):
            _end(rows, found, parameters)
            found, parameters = {}, {}
        if match := _PARAMETER.fullmatch(line):
            parameters[match[1].replace(" ", "_")] = match[2]
            continue
        for pattern, (name, unit, kind) in _PATTERNS:
            if match := pattern.fullmatch(line):
                found[name] = Quantity(number_in(match[1]), unit, kind)
    _end(rows, found, parameters)
    return rows.table()


def _end(rows: Rows, found: Mapping[str, Quantity], parameters: Mapping[str, str]) -> None:
    if found and not any(name in found for name in _LAST):
        rows.warn("a run that was cut short is left out")
    elif found:
        rows.add(rows.test, found, parameters=parameters)
