"""The text output of `perf stat`, as readings (`perf_stat` makes a table of them)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from etude.results.readers.source import number_in
from etude.units.parsing import MILLISECOND, ONE, SECOND, Unit, unit_of

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
_NAMES = {"time elapsed": "duration_time", "user": "user_time", "sys": "system_time"}


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
        reading = _reading(line, intervals, repeated) if len(line) < 1000 else None
        if reading is not None and not any(_same(reading, other) for other in readings[-100:]):
            readings.append(reading)
    yield readings


def _same(one: Reading, other: Reading) -> bool:
    """True for two readings of one event: `duration_time` is counted, and repeated at the end as the time elapsed."""
    return (one.interval, one.place, one.event) == (other.interval, other.place, other.event)


def _reading(line: str, intervals: bool, repeated: float | None) -> Reading | None:
    """repeated: the number of runs; perf leaves out a spread that is 0."""
    none = None if repeated is None else 0.0
    if match := _TIME.fullmatch(line.strip()):
        error = number_in(match["error"]) if match["error"] else none
        seconds = number_in(match["seconds"])
        return Reading(None, "", _NAMES[match["what"]], seconds, SECOND, "no number", error, None, repeated)
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
