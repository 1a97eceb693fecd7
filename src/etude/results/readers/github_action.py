"""The history of github-action-benchmark: data.js, or plain JSON with `external-data-json-path`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from etude.errors import InputError
from etude.results.readers.source import items, members, number, parse_json, read_bytes, text_of
from etude.results.table import Quantity, Rows, Table
from etude.units.parsing import Unit, unit_of

NAME = "github-action-benchmark"

_PREFIX = b"window.BENCHMARK_DATA"
_METRICS = {"s": "elapsed", "B": "memory", "1/s": "rate"}
_KINDS = {"customBiggerIsBetter": "rate", "customSmallerIsBetter": "cost"}


def detect(path: Path, head: bytes) -> bool:
    start = head.lstrip()
    return start.startswith(_PREFIX) or (
        start.startswith(b"{") and b'"lastUpdate"' in head and b'"entries"' in head
    )


def read(path: Path) -> Table:
    data = read_bytes(path).strip()
    if data.startswith(_PREFIX):
        data = data[len(_PREFIX) :].lstrip().removeprefix(b"=").rstrip(b"; \t\r\n")
    entries = members(parse_json(path, data)).get("entries")
    if not isinstance(entries, dict):
        raise InputError(f"{path}: is not what github-action-benchmark writes: expected entries by suite")
    rows = Rows(path)
    for suite, commits in entries.items():
        for commit in map(members, items(commits)):
            for bench in map(members, items(commit.get("benches"))):
                _bench(rows, suite, commit, bench)
    return rows.table()


def _bench(rows: Rows, suite: str, commit: dict[str, Any], bench: dict[str, Any]) -> None:
    name = text_of(bench.get("name", "?"))
    stated = text_of(bench.get("unit", "1"))
    unit = unit_of(stated) or Unit(stated)
    kind = _KINDS.get(text_of(commit.get("tool", "")))
    metrics = {_METRICS.get(unit.base, "value"): Quantity(number(bench.get("value")), unit, kind)}
    revision = text_of(members(commit.get("commit")).get("id", "?"))
    attributes = {"commit": revision, "tool": text_of(commit.get("tool", "?"))}
    rows.add(name, metrics, parameters={"suite": suite}, attributes=attributes)
