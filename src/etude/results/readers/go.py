"""Go's benchmark text: output of `go test -bench`, also with `-json`, and other programs in that format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import orjson

from etude.errors import InputError
from etude.results.readers.source import head_of, members, text_of
from etude.results.table import Quantity, Rows, Table
from etude.units.parsing import ONE, Unit, number_in, unit_of

NAME = "go"

_LINE = re.compile(r"Benchmark(?P<name>\S*)[ \t]+(?P<count>[0-9]+)(?P<rest>(?:[ \t]+\S+[ \t]+\S+)+)[ \t]*")
_NAMED = re.compile(r"(?P<name>.*?)(?:-(?P<procs>[0-9]+))?", re.DOTALL)
_CONFIGURATION = re.compile(r"(?P<key>[a-z][^\s:A-Z]*):[ \t]+(?P<value>.*)")
_UNIT = re.compile(r"Unit[ \t]+(?P<unit>\S+)[ \t]+.*\bbetter=(?P<better>higher|lower)\b.*")
_FAILED = re.compile(r"(?:--- FAIL: |FAIL\t)(?P<what>\S+).*")
_METRICS = {
    "ns/op": "elapsed",
    "sec/op": "elapsed",
    "B/op": "allocated",
    "allocs/op": "allocations",
    "MB/s": "throughput",
    "B/s": "throughput",
}
_MAX_PAIRS = 1000


def detect(path: Path, head: bytes) -> bool:
    if _is_json(head):
        return b'"Output":"Benchmark' in head
    return any(_LINE.fullmatch(line.rstrip("\r")) for line in _starts(head))


def _is_json(head: bytes) -> bool:
    return head.lstrip().startswith(b"{") and b'"Action":"' in head[:1000]


def _starts(head: bytes) -> list[str]:
    text = head.decode("utf-8", "replace")
    return [line for line in text.split("\n") if line.startswith("Benchmark") and len(line) < 10_000]


def read(path: Path) -> Table:
    rows, configuration, better = Rows(path), dict[str, str](), dict[str, str]()
    lines = rows.lines()
    for line in _printed(rows, lines) if _is_json(head_of(path)) else lines:
        if match := _LINE.fullmatch(line):
            _benchmark(rows, match, configuration, better)
        elif match := _CONFIGURATION.fullmatch(line):
            configuration[match["key"]] = match["value"].strip()
        elif match := _UNIT.fullmatch(line):
            better[match["unit"]] = match["better"]
        elif match := _FAILED.fullmatch(line):
            rows.warn(f"{match['what']} failed")
        elif line.startswith("Benchmark") and "\t" in line:
            rows.warn(f"a line of {line.split()[0][:100]} that does not hold its figures is left out")
    if not len(rows):
        raise InputError(f"{path}: holds no whole line of a Go benchmark")
    return rows.table()


def _printed(rows: Rows, events: list[str]) -> Iterator[str]:
    """The lines of each package in turn: a benchmark's name is printed before it runs, and its values after it."""
    pieces: dict[str, list[str]] = {}
    for line in events:
        try:
            event = members(orjson.loads(line))
        except ValueError:
            rows.warn("a line that is no event of go test -json is left out")
            continue
        if event.get("Action") == "output":
            pieces.setdefault(text_of(event.get("Package")), []).append(text_of(event.get("Output", "")))
    for printed in pieces.values():
        *lines, _ = "".join(printed).split("\n")
        yield from lines


def _benchmark(
    rows: Rows, match: re.Match[str], configuration: dict[str, str], better: dict[str, str]
) -> None:
    words = match["rest"].split()
    if len(words) > 2 * _MAX_PAIRS:
        raise InputError(f"{rows.path}: a line has more than {_MAX_PAIRS} values")
    metrics = {"iterations": Quantity(number_in(match["count"]), ONE)}
    for text, stated in zip(words[::2], words[1::2], strict=True):
        name, unit = _named(stated)
        kind = {"higher": "rate", "lower": "cost"}.get(better.get(stated, ""))
        metrics[name] = Quantity(number_in(text), unit, kind)
    named = _NAMED.fullmatch(match["name"])
    name, processes = named.groups() if named else (match["name"], None)
    parts = (part.partition("=") for part in name.split("/")[1:])
    keys = {key: value for key, equals, value in parts if equals and key}
    gomaxprocs = {} if processes is None else {"gomaxprocs": processes}
    rows.add(name or "Benchmark", metrics, parameters=configuration | keys | gomaxprocs)


def _named(stated: str) -> tuple[str, Unit]:
    """A metric's name and unit: `p99-ns/op` is p99 in ns/op; an unknown unit is its own name."""
    known = unit_of(stated)
    if known is not None:
        return _METRICS.get(stated, stated), known
    name, dash, rest = stated.rpartition("-")
    known = unit_of(rest) if dash and name else None
    return (name, known) if known is not None else (stated, Unit(stated))
