"""Output of `perf stat`, also with `-x SEPARATOR` and `-j`, and with `-r`, `-I`, `-A` and the like."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import orjson

from etude.errors import InputError
from etude.results.readers.perf_text import (
    NO_VALUE,
    Reading,
    foreign_number,
    is_text,
    text_runs,
    unit_of_event,
)
from etude.results.readers.rows import Quantity, Rows, Summaries
from etude.results.readers.source import members, number, number_in, read_lines, text_of
from etude.results.table import Table
from etude.units.parsing import SECOND

NAME = "perf"

SEPARATORS = (";", "\t", "|", ",", ":", "#", "!", "@", "^", "~", "&", "+", "\\", " ")
_UNITS = frozenset(["", "msec", "ns", "Joules", "MiB", "KiB", "Bytes", "C", "degC"])
_EVENT = re.compile(r"(?=.*[A-Za-z])[A-Za-z_][^\s<>]*")
_SHARE = re.compile(r"[0-9]+(?:\.[0-9]+)?%")
_NAMES = {"duration_time": "elapsed", "user_time": "user", "system_time": "system"}
_MAX_BEFORE = 4


def detect(path: Path, head: bytes) -> bool:
    lines = head.decode("utf-8", "replace").split("\n")[:-1][:40]
    if any(line.startswith("{") and '"counter-value"' in line for line in lines):
        return True
    lines = [line.rstrip("\r") for line in lines if len(line) < 2000]
    return is_text(lines) or _separator(lines) is not None


def read(path: Path) -> Table:
    lines, cut = read_lines(path)
    filled = [line for line in lines if line.strip()]
    if is_text(filled) and (strange := foreign_number(filled)) is not None:
        raise InputError(f"{path}: has numbers of another locale ({strange}); run perf by LC_ALL=C")
    runs = list(text_runs(filled) if is_text(filled) else _runs(path, filled))
    if not any(runs):
        raise InputError(f"{path}: is not what perf stat writes: no line of a counter")
    repeated = any(reading.error is not None for run in runs for reading in run)
    table: Rows | Summaries = Summaries(path) if repeated else Rows(path)
    if cut:
        table.warn("a last line that was cut short is left out")
    for run in runs:
        for reading in run:
            if reading.value is None:
                table.warn(f"{reading.event}: {reading.why}")
            elif reading.running is not None and reading.running < 100.0:
                table.warn(
                    f"{reading.event}: was counted for a part of the time; perf's estimate for all of it"
                )
        _summarise(table, run) if isinstance(table, Summaries) else _add(table, run)
    return table.table()


def _runs(path: Path, lines: list[str]) -> Iterator[list[Reading]]:
    """Each run's readings: a run begins with a comment, or with a repeated event."""
    readings: list[Reading] = []
    seen: set[tuple[float | None, str, str]] = set()
    separator = _separator(lines[:1000])
    for line in lines:
        reading = (
            _of_json(line) if line.startswith("{") else _of_fields(line, separator) if separator else None
        )
        key = reading and (reading.interval, reading.place, reading.event)
        if line.startswith("# started on") or key in seen:
            yield readings
            readings, seen = [], set()
        if reading is not None and key is not None:
            readings.append(reading)
            seen.add(key)
    yield readings


def _separator(lines: list[str]) -> str | None:
    """The first separator that splits a line of the file into the fields of a counter."""
    for separator in SEPARATORS:
        if any(separator in line and _of_fields(line, separator) for line in lines):
            return separator
    return None


def _of_fields(line: str, separator: str) -> Reading | None:
    fields = [field.strip() for field in line.split(separator)]
    if len(fields) > 100:
        return None
    for at in range(min(_MAX_BEFORE + 1, len(fields) - 3)):
        joined = _whole_event(fields, at + 2, separator)
        counter, unit, event, *rest = joined[at:]
        if (
            (counter in NO_VALUE or number_in(counter) is not None)
            and unit in _UNITS
            and _EVENT.fullmatch(event)
        ):
            return _reading(joined[:at], counter, unit, event, rest)
    return None


def _whole_event(fields: list[str], at: int, separator: str) -> list[str]:
    """The fields with `cpu/event=1,umask=2/` as one, though it contains the separator."""
    if fields[at].count("/") != 1:
        return fields
    for end in range(at + 1, len(fields)):
        if "/" in fields[end]:
            return [*fields[:at], separator.join(fields[at : end + 1]), *fields[end + 1 :]]
    return fields


def _reading(before: list[str], counter: str, unit: str, event: str, rest: list[str]) -> Reading | None:
    error = None
    if rest and _SHARE.fullmatch(rest[0]):
        error, rest = number_in(rest[0][:-1]), rest[1:]
    if len(rest) < 2 or number_in(rest[0]) is None or number_in(rest[1]) is None:
        return None
    interval = number_in(before[0]) if before and re.fullmatch(r"[0-9]+\.[0-9]{3,}", before[0]) else None
    places = before[0 if interval is None else 1 :]
    place = next((field for field in places if field), "")
    cut_in_two = _cut_in_two(places)
    return Reading(
        interval,
        "" if cut_in_two else place,
        event,
        None if cut_in_two else number_in(counter),
        unit_of_event(event, unit),
        "its number has a decimal comma, which parts fields, too: run perf by LC_ALL=C"
        if cut_in_two
        else counter,
        error,
        number_in(rest[1]),
    )


def _cut_in_two(places: list[str]) -> bool:
    """True if the field before the counter is a part of it: whole, and no number of CPUs after a place."""
    counted = places[1:2] if places and not places[0].isdecimal() and not places[0].startswith("CPU") else []
    return any(field.isdecimal() for field in places[:1] + places[1 + len(counted) :])


def _of_json(line: str) -> Reading | None:
    try:
        found = members(orjson.loads(line))
    except ValueError:
        return None
    if "counter-value" not in found or not isinstance(found.get("event"), str):
        return None
    counter, event = text_of(found["counter-value"]), text_of(found["event"])
    place = next((text_of(found[name]) for name in _PLACES if name in found), "")
    return Reading(
        number(found.get("interval")),
        place,
        event,
        number_in(counter),
        unit_of_event(event, text_of(found.get("unit", ""))),
        counter if counter in NO_VALUE else "a value that is no finite number is left out",
        number(found.get("variance")),
        number(found.get("pcnt-running")),
    )


_PLACES = ("cpu", "core", "socket", "die", "node", "cluster", "cache", "thread", "cgroup")


def _name(event: str) -> str:
    return _NAMES.get(event) or event.replace("-", "_")


def _add(rows: Rows, run: list[Reading]) -> None:
    """Add one row for each interval and place."""
    grouped: dict[tuple[float | None, str], dict[str, Quantity]] = {}
    for reading in run:
        metrics = grouped.setdefault((reading.interval, reading.place), {})
        if reading.interval is not None:
            metrics["interval_end"] = Quantity(reading.interval, SECOND, "count")
        if reading.value is not None:
            metrics[_name(reading.event)] = Quantity(reading.value, reading.unit)
    for (_, place), metrics in grouped.items():
        rows.add(rows.test, metrics, parameters={"place": place} if place else {})


def _summarise(table: Summaries, run: list[Reading]) -> None:
    for reading in run:
        if reading.value is not None:
            table.add(
                table.path.stem or table.path.name,
                _name(reading.event),
                reading.unit,
                {"mean": reading.value},
                error=reading.error,
                count=reading.runs,
                parameters={"place": reading.place} if reading.place else {},
            )
