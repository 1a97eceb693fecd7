"""Output of `perf stat`, also with `-x SEPARATOR` and `-j`, and with `-r`, `-I`, `-A` and the like."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson

from etude.errors import InputError
from etude.results.readers.source import members, number, read_lines, text_of
from etude.results.table import Quantity, Rows, Summaries, Table
from etude.units.parsing import MILLISECOND, ONE, SECOND, Unit, number_in, unit_of

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


NO_VALUE = ("<not counted>", "<not supported>")


class Reading(NamedTuple):
    """One event of one interval, or of the whole run."""

    interval: float | None
    place: str
    """CPU, core, socket, thread or cgroup; empty for all."""
    event: str
    value: float | None
    unit: Unit
    why: str
    """Reason for a missing value."""
    error: float | None
    """Standard error of the mean in percent, from -r."""
    running: float | None
    """Percent of the time in which it was counted."""
    runs: float | None = None
    """Number of runs, from -r, if known."""


def unit_of_event(event: str, stated: str) -> Unit:
    """The unit of an event's count, in perf's terms."""
    if stated:
        return unit_of({"msec": "ms", "Bytes": "B"}.get(stated, stated)) or Unit(stated)
    if event.partition(":")[0] in ("task-clock", "cpu-clock"):
        return MILLISECOND  # unstated before Linux 4.16
    return ONE


_RUN = re.compile(r" Performance counter stats for .*?(?: \((?P<runs>[0-9]+) runs\))?:")
_INTERVALS = re.compile(r"#\s+time\b.*\bcounts\s+(?:unit\s+)?events.*")
_COUNT = r"<not counted>|<not supported>|[0-9]+(?:[,\u00a0\u202f ][0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?"
_LINE = re.compile(
    rf"(?:(?P<place>\S+)\s+(?:[0-9]+\s+)?)??(?P<count>{_COUNT})\s+(?:(?P<unit>msec|ns|Joules|MiB|KiB|Bytes)\s+)?"
    r"(?P<event>[A-Za-z_][^\s#]*)(?:\s+#.*?)??(?:\s+\(\s*\+-\s*(?P<error>[0-9.]+)%\s*\))?(?:\s+\((?P<running>[0-9.]+)%\))?"
)
_TIME = re.compile(
    r"(?P<seconds>[0-9.]+)(?:\s+\+-\s+[0-9.]+)?\s+seconds\s+(?P<what>time elapsed|user|sys)"
    r"(?:\s+\(\s*\+-\s*(?P<error>[0-9.]+)%\s*\))?"
)
_AT = re.compile(r"\s*(?P<time>[0-9]+\.[0-9]{6,})\s+(?P<rest>\S.*)")
_FOREIGN = re.compile(
    r"(?:^|\s)(?P<number>[0-9]{1,3}(?:[.'’][0-9]{3})+(?:,[0-9]+)?|[0-9]+,[0-9]{1,2}|[0-9]+,[0-9]+(?=\s.*seconds))(?=\s)"
)
_PLAIN_NAMES = {"time elapsed": "duration_time", "user": "user_time", "sys": "system_time"}


def is_text(lines: list[str]) -> bool:
    """True if lines of a file are of this kind."""
    return any(_RUN.fullmatch(line) or _INTERVALS.fullmatch(line) for line in lines)


def foreign_number(lines: list[str]) -> str | None:
    """The first number with a decimal comma, or with points between thousands: perf writes whole numbers without a
    point, and others with two decimals. Seconds have as many as needed.
    """
    for line in lines:
        counted = (
            line.partition("#")[0].partition("(")[0] if len(line) < 1000 and not _RUN.fullmatch(line) else ""
        )
        match = _FOREIGN.search(counted)
        if match and ("," in match["number"] or "seconds" not in counted):
            return match["number"]
    return None


def text_runs(lines: list[str]) -> Iterator[list[Reading]]:
    """Each run's readings."""
    readings: list[Reading] = []
    intervals, repeated = False, None
    for line in lines:
        if (run := _RUN.fullmatch(line)) or _INTERVALS.fullmatch(line):
            yield readings
            readings, intervals, repeated = [], run is None, number_in(run["runs"] or "") if run else None
            continue
        reading = _text_reading(line, intervals, repeated) if len(line) < 1000 else None
        if reading is not None and not any(_same(reading, other) for other in readings[-100:]):
            readings.append(reading)
    yield readings


def _same(one: Reading, other: Reading) -> bool:
    """True for two readings of one event: `duration_time` is counted, and repeated at the end as the time elapsed."""
    return (one.interval, one.place, one.event) == (other.interval, other.place, other.event)


def _text_reading(line: str, intervals: bool, repeated: float | None) -> Reading | None:
    """repeated: the number of runs; perf leaves out a spread that is 0."""
    none = None if repeated is None else 0.0
    if match := _TIME.fullmatch(line.strip()):
        error = number_in(match["error"]) if match["error"] else none
        seconds = number_in(match["seconds"])
        return Reading(
            None, "", _PLAIN_NAMES[match["what"]], seconds, SECOND, "no number", error, None, repeated
        )
    at = _AT.fullmatch(line) if intervals else None
    if intervals and at is None:
        return None
    match = _LINE.fullmatch((at["rest"] if at else line).strip())
    if match is None:
        return None
    event, counted = match["event"], match["count"]
    value = None if counted in NO_VALUE else number_in(re.sub(r"[,\u00a0\u202f ]", "", counted))
    error = number_in(match["error"]) if match["error"] else none
    return Reading(
        number_in(at["time"]) if at else None,
        match["place"] or "",
        event,
        value,
        unit_of_event(event, match["unit"] or ""),
        counted,
        error,
        number_in(match["running"]) if match["running"] else None,
        repeated,
    )
