"""Readers of load commands that report no windows: tools by name, JSON paths, regular expressions."""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from etude.errors import EDITED
from etude.patterns import compile_pattern
from etude.peak.harnesses.load_report import (
    MOST,
    LoadReport,
    Reader,
    ReaderOf,
    Run,
    Unreadable,
    bounded_text,
    excerpt,
)
from etude.peak.harnesses.tools import fio, hey, httperf, k6, pgbench, sysbench, vegeta
from etude.peak.window import Window
from etude.results.histograms import Histogram
from etude.units.parsing import QuantityError, Unit, duration


@dataclass(frozen=True, slots=True)
class Tool:
    """A load generator whose native report is read."""

    reader: ReaderOf
    needs: str
    """Part of its command line without which there is no such report."""
    spins: bool = False
    """True if it polls the clock."""
    histogram: str = ""
    """Option needed for percentiles."""
    summary: bool = False
    """True if it reports nothing before its end."""
    first_window_uncertain: bool = False
    """True if it does not report the time of its first report, so that a warm-up is the beginning of the trial."""


TOOLS = {
    "pgbench": Tool(pgbench.Pgbench, "{log}"),
    "httperf": Tool(httperf.Httperf, "httperf", spins=True, histogram="-v -v", summary=True),
    "fio": Tool(fio.Fio, "fio", histogram="json+", first_window_uncertain=True),
    "sysbench": Tool(sysbench.Sysbench, "sysbench", histogram="--histogram"),
    "hey": Tool(hey.reader, "csv", summary=True),
    "vegeta": Tool(vegeta.reader, "csv"),
    "k6": Tool(k6.reader, "json="),
}

MOST_S = 1e9
"""Upper bound of times, s: larger values are invalid."""

PRINTED = "printed"
"""Pseudo-unit of numbers printed with their unit."""


@dataclass
class ToolReader:
    """Reader of a tool in `TOOLS`; corrupt output raises a one-line error."""

    run: Run
    tool: str
    _seen: str = ""

    def __post_init__(self) -> None:
        self._reader: Reader = TOOLS[self.tool].reader(self.run)

    def feed(self, text: str) -> list[LoadReport]:
        self._seen = (self._seen + text)[-2048:]
        return self._judged(lambda: self._reader.feed(text))

    def end(self) -> list[LoadReport]:
        return self._judged(self._reader.end)

    def _judged(self, read: Callable[[], list[LoadReport]]) -> list[LoadReport]:
        try:
            found = read()
        except Unreadable:
            raise
        except EDITED as error:
            raise Unreadable(f"{self._where()} has a number that is none ({error})") from None
        for each in found:
            window = each.window
            counts = (window.offered, window.completed, window.failed)
            times = (window.duration_s, window.mean_s or 0.0)
            if not all(0 <= number <= MOST for number in (*counts, *times)) or not window.duration_s:
                raise Unreadable(f"{self._where()} reports an invalid window: {counts}, {times} s")
        return found

    def _where(self) -> str:
        return f"what {self.tool} printed, which ends with {excerpt(self._seen)!r},"


@dataclass(frozen=True, slots=True)
class Place:
    """Location of one figure in the output, and its unit."""

    where: str
    """A path such as $.jobs[0].read.iops, or a regular expression with one group."""
    unit: Unit | None
    """None: printed with its unit, such as `1.83ms`."""

    def steps(self) -> list[str | int]:
        """Steps of the path: names and indices."""
        parts = re.findall(r"\.([^.\[\]]+)|\[(\d+)\]|\[\"([^\"]+)\"\]", self.where.removeprefix("$"))
        return [int(index) if index else name or quoted for name, index, quoted in parts]


FIGURES = ("duration", "offered", "sent", "completed", "failed", "mean", "max")
"""Figures that a reader of one summary looks for, besides percentiles (`p95`)."""


@dataclass
class Figures:
    """Reader that makes one window at the end from single figures."""

    run: Run
    places: Mapping[str, Place]
    find: Callable[[str, Mapping[str, Place]], Mapping[str, float]]
    """Extracts the figures from the output, in base units (rates in 1/s). Raises Unreadable."""
    _text: list[str] = field(default_factory=list)
    _size: int = 0

    def feed(self, text: str) -> list[LoadReport]:
        self._size += len(text)
        bounded_text(self._size, "a report")
        self._text.append(text)
        return []

    def end(self) -> list[LoadReport]:
        found = self.find("".join(self._text), self.places)
        duration_s = found.get("duration", self.run.runlength_s)
        if duration_s <= 0:
            raise Unreadable(f"the duration is {duration_s:g} s: expected more than 0")
        for name in sorted(found.keys() - {"offered", "sent", "completed", "failed"}):
            if found[name] > MOST_S:
                raise Unreadable(f"{name} is {found[name]:g} s: expected at most {MOST_S:g} s")

        def number(name: str) -> int:
            value = found.get(name, 0.0) * (duration_s if self._is_rate(name) else 1)
            if value > MOST:
                raise Unreadable(f"{name} is {value:g}: expected a count of requests")
            return round(value)

        failed = number("failed")
        begun: int | None
        if "completed" in self.places:
            completed = number("completed")
            begun = number("sent") if "sent" in self.places else completed + failed
        else:  # open loop: due requests count as answered
            completed = max(self.run.due(0.0, duration_s, 0) - failed, 0)
            begun = number("sent") if "sent" in self.places else None
        due = self.run.due(0.0, duration_s, begun or 0)
        offered = number("offered") if "offered" in self.places else due
        mean_s = found.get("mean") if completed else None
        window = Window(duration_s, offered, completed, failed, mean_s, coarse(found, completed))
        return [LoadReport(window, begun)]

    def _is_rate(self, name: str) -> bool:
        unit = self.places[name].unit if name in self.places else None
        return unit is not None and unit.base == "1/s"


def coarse(found: Mapping[str, float], completed: int) -> Histogram | None:
    """Histogram with classes between the known percentiles; the top class is the maximum or the last percentile."""
    known = sorted((float(name[1:]), s) for name, s in found.items() if re.fullmatch(r"p[0-9.]+", name))
    if not known or not completed:
        return None
    upper = [*known, (100.0, max(found.get("max", 0.0), known[-1][1]))]
    # Nearest rank: this many responses are at most the percentile.
    ranks = [math.ceil(completed * percent / 100) for percent, _ in upper]
    counts = np.diff([0, *ranks])
    values = np.array([max(round(s * 1e9), 1) for _, s in upper], dtype=np.int64)
    kept = counts > 0
    return Histogram(values[kept], counts[kept].astype(np.int64))


def by_path(text: str, places: Mapping[str, Place]) -> Mapping[str, float]:
    """Figures from a JSON document, with or without other text before it."""
    begins = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    try:
        document, _ = json.JSONDecoder().raw_decode(text, begins) if begins >= 0 else (None, 0)
    except EDITED:
        document = None
    if document is None:
        raise Unreadable(f"what it printed ends with {excerpt(text)!r}: expected JSON")
    found = {}
    for name, place in places.items():
        value = document
        for step in place.steps():
            try:
                value = value[step]
            except EDITED:
                raise Unreadable(f"{name}: {place.where} is not in what it printed") from None
        if value is None and name not in ("completed", "duration"):
            continue  # a tool without answers reports no latency
        found[name] = _number(name, place, value)
    return found


def by_expression(text: str, places: Mapping[str, Place]) -> Mapping[str, float]:
    """Figures from lines of text: the last match counts."""
    found = {}
    for name, place in places.items():
        last = deque(compile_pattern(place.where, multiline=True).values(text), maxlen=1)
        if not last:
            raise Unreadable(
                f"{name}: nothing it printed matches {place.where!r}: it ends with {excerpt(text)!r}"
            )
        found[name] = _number(name, place, last[0])
    return found


def _number(name: str, place: Place, value: Any) -> float:
    if place.unit is None:
        try:
            return duration(str(value), bare=None)
        except QuantityError:
            raise Unreadable(
                f"{name}: {str(value)[:40]!r} at {place.where} is no time with its unit, as 1.83ms: name the unit"
            ) from None
    try:
        number = float(value)
    except EDITED:
        number = math.nan
    if isinstance(value, bool) or not 0 <= number < math.inf:
        raise Unreadable(f"{name}: {str(value)[:40]!r} at {place.where} is no number of 0 or more")
    return place.unit.of(number)
