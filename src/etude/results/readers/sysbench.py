"""Report of sysbench 1.0; runs may be appended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from etude.results.table import Quantity, Rows, Table
from etude.units.parsing import MEBIBYTE, MILLISECOND, ONE, PER_SECOND, SECOND, Unit, number_in

NAME = "sysbench"

_N = r"([0-9]+(?:\.[0-9]+)?)"
_MEBIBYTES = MEBIBYTE._replace(base="B/s")
_PLAIN: Mapping[str, tuple[str, Unit]] = {
    rf"total time:\s+{_N}s": ("elapsed", SECOND),
    rf"time elapsed:\s+{_N}s": ("elapsed", SECOND),
    rf"total number of events:\s+{_N}": ("events", ONE),
    rf"events per second:\s+{_N}": ("event_rate", PER_SECOND),
    rf"events/s \(eps\):\s+{_N}": ("event_rate", PER_SECOND),
    rf"reads/s:\s+{_N}": ("read_rate", PER_SECOND),
    rf"writes/s:\s+{_N}": ("write_rate", PER_SECOND),
    rf"fsyncs/s:\s+{_N}": ("fsync_rate", PER_SECOND),
    rf"read, MiB/s:\s+{_N}": ("read_throughput", _MEBIBYTES),
    rf"written, MiB/s:\s+{_N}": ("written_throughput", _MEBIBYTES),
}
_PAIRS: Mapping[str, tuple[tuple[str, Unit], tuple[str, Unit]]] = {
    rf"Total operations:\s+{_N}\s+\(\s*{_N} per second\)": (
        ("operations", ONE),
        ("operation_rate", PER_SECOND),
    ),
    rf"{_N} MiB transferred \({_N} MiB/sec\)": (("transferred", MEBIBYTE), ("throughput", _MEBIBYTES)),
    rf"transactions:\s+{_N}\s+\(\s*{_N} per sec\.\)": (
        ("transactions", ONE),
        ("transaction_rate", PER_SECOND),
    ),
    rf"queries:\s+{_N}\s+\(\s*{_N} per sec\.\)": (("queries", ONE), ("query_rate", PER_SECOND)),
    rf"ignored errors:\s+{_N}\s+\(\s*{_N} per sec\.\)": (("errors", ONE), ("error_rate", PER_SECOND)),
    rf"reconnects:\s+{_N}\s+\(\s*{_N} per sec\.\)": (("reconnects", ONE), ("reconnect_rate", PER_SECOND)),
}
_LATENCY = re.compile(rf"(?:(min|avg|max)|([0-9]+)(?:st|nd|rd|th) percentile):\s+{_N}")
_FIGURES = {"min": "minimum", "avg": "mean", "max": "maximum"}
_SIMPLE = [(re.compile(pattern), found) for pattern, found in _PLAIN.items()]
_DOUBLE = [(re.compile(pattern), found) for pattern, found in _PAIRS.items()]
_START, _THREADS = re.compile(r"sysbench [0-9][^:]*"), re.compile(r"Number of threads:\s+([0-9]+)")
_END = "execution time (avg/stddev):"


def detect(path: Path, head: bytes) -> bool:
    text = head.decode("utf-8", "replace")
    return re.search(r"(?m)^sysbench [0-9]+\.[0-9]", text) is not None and "Number of threads" in text


def read(path: Path) -> Table:
    rows, parameters = Rows(path), dict[str, str]()
    found, latency = dict[str, Quantity](), False
    lines = rows.lines()
    for line in map(str.strip, lines):
        if _START.fullmatch(line):
            _left_out(rows, found)
            found, parameters, latency = {}, {}, False
        elif match := _THREADS.fullmatch(line):
            parameters["threads"] = match[1]
        elif line.startswith(_END) and found:
            rows.add(rows.test, found, parameters=parameters)
            found, latency = {}, False
        elif line.startswith("FATAL:"):
            rows.warn(line[:120])
        else:
            latency = line.startswith("Latency (ms)") or (latency and line != "")
            found |= _latency(line) if latency else _values(line)
    _left_out(rows, found)
    return rows.table()


def _left_out(rows: Rows, found: Mapping[str, Quantity]) -> None:
    if found:
        rows.warn("a run that was cut short is left out")


def _values(line: str) -> dict[str, Quantity]:
    for pattern, (name, unit) in _SIMPLE:
        if match := pattern.fullmatch(line):
            return {name: Quantity(number_in(match[1]), unit)}
    for pattern, names in _DOUBLE:
        if match := pattern.fullmatch(line):
            values = zip(names, match.groups(), strict=True)
            return {name: Quantity(number_in(text), unit) for (name, unit), text in values}
    return {}


def _latency(line: str) -> dict[str, Quantity]:
    match = _LATENCY.fullmatch(line)
    if match is None or match[2] == "0":  # the percentile was turned off
        return {}
    name = _FIGURES[match[1]] if match[1] else f"p{match[2]}"
    return {f"latency_{name}": Quantity(number_in(match[3]), MILLISECOND)}
