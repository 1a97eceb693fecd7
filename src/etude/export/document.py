"""The exported document: each metric of each test in each result, as plain data, whatever it was read from.

Also names and numbers as narrow formats can hold them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from etude.errors import UsageError
from etude.store.entry import Machine


@dataclass(frozen=True)
class Figures:
    """Statistics of the values, in their unit; None where one is not known."""

    count: int | None
    mean: float | None
    """The one that fits the metric's kind (docs/explanation/statistics.md)."""
    low: float | None
    """Lower end of the mean's interval, …"""
    high: float | None
    """… and the upper one."""
    median: float | None
    minimum: float | None
    maximum: float | None
    deviation: float | None
    """Standard deviation with n-1."""
    which: str = ""
    """Kind of mean: arithmetic, harmonic, geometric or proportion; empty where it is not known."""


@dataclass(frozen=True)
class Run:
    """One result: what was measured in one experiment on one machine."""

    source: str
    """Directory or file."""
    machine: Machine | None = None
    """None where the file does not say on which it was measured."""
    measured: datetime | None = None
    """Begin of the measurement, UTC."""
    commit: str | None = None
    committed: datetime | None = None
    """Time of that commit, UTC."""
    branch: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Point:
    """One metric of one test in one run."""

    run: Run
    test: str
    metric: str
    unit: str
    kind: str
    """cost, rate, ratio, count or binary."""
    values: tuple[float | None, ...]
    """Values of the included trials in the order of their making: the same trials for all metrics of a test. None where
    a trial has none. Empty where only statistics are known."""
    figures: Figures | None
    """None where no included trial has a value."""
    reason: str = ""
    """Reason for missing statistics."""
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def known(self) -> tuple[float, ...]:
        """The values that are there."""
        return tuple(value for value in self.values if value is not None)


@dataclass(frozen=True)
class Compared:
    """One test beside another, as a verdict says it."""

    base: str
    other: str
    metric: str
    ratio: float
    low: float
    high: float
    worse: bool | None
    """True if the whole interval says that `other` is worse; None where the better direction is not known."""
    sentences: tuple[str, ...]
    differs: bool = True
    """True if a difference is claimed where the interval excludes 1."""


@dataclass(frozen=True)
class Document:
    """All that is exported at once."""

    points: tuple[Point, ...]
    """Points in the order of the runs, then of their tests; each test's metrics are consecutive."""
    primary: str
    """The metric that is judged."""
    compared: tuple[Compared, ...] = ()
    notes: tuple[str, ...] = ()
    """Warnings of the verdicts."""
    repository: str | None = None
    """URL of the project's repository."""
    reason: str | None = None
    """Reason of the run, such as `commit` or `nightly`."""

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Those that have a point, in order."""
        return tuple(dict.fromkeys(point.run for point in self.points))

    @cached_property
    def machines(self) -> tuple[Machine | None, ...]:
        """Machines of the runs, each once."""
        return tuple(dict.fromkeys(run.machine for run in self.runs))

    def name(self, point: Point) -> str:
        """The test's name in a format without a place for machines: with its machine, where there are several."""
        called = point.run.machine.name if point.run.machine else "unknown machine"
        return f"{point.test} @ {called}" if len(self.machines) > 1 else point.test


@dataclass(frozen=True)
class NotExported:
    """A value that a format cannot hold."""

    test: str
    """Empty where it is of none."""
    metric: str
    """Empty where it is of none."""
    why: str

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.test, self.metric, self.why)))


@dataclass(frozen=True)
class Exported:
    """A document in some format."""

    text: str
    left_out: tuple[NotExported, ...] = ()


def by_test(points: Sequence[Point]) -> Iterator[tuple[Point, ...]]:
    """The metrics of each test of each run, together."""
    groups: dict[tuple[Run, str], list[Point]] = {}
    for point in points:
        groups.setdefault((point.run, point.test), []).append(point)
    return (tuple(group) for group in groups.values())


def omit_point(point: Point, why: str = "") -> NotExported:
    """Note that a point is left out, by default because it has no statistics."""
    return NotExported(point.test, point.metric, why or point.reason or "no included trial has a value")


def lost_lines(lost: Sequence[NotExported]) -> list[str]:
    """A line for each reason, with all metrics that it holds for, and in which tests."""
    reasons: dict[str, list[NotExported]] = {}
    for each in lost:
        reasons.setdefault(each.why, []).append(each)
    return [_line(why, found) for why, found in reasons.items()]


def _line(why: str, found: Sequence[NotExported]) -> str:
    tests = [test for test in dict.fromkeys(each.test for each in found) if test]
    metrics = [metric for metric in dict.fromkeys(each.metric for each in found) if metric]
    of = f" of {tests[0]}" if len(tests) == 1 else f" of {len(tests)} tests" if tests else ""
    return f"{', '.join(metrics)}{of}: {why}" if metrics else why


def one_line(text: str) -> str:
    """The text without line ends, control characters and repeated or outer blanks; `?` for an empty one.

    What is no character (an undecodable byte of a file name) becomes U+FFFD.
    """
    printable = "".join(c if c.isprintable() or c.isspace() else "\ufffd" for c in text)
    return " ".join(printable.split()) or "?"


def word(text: str) -> str:
    """One line without blanks, …"""
    return one_line(text).replace(" ", "_")


def identifier(text: str) -> str:
    """… and of ASCII letters, digits and `_` only, not beginning with a digit."""
    found = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_") or "unnamed"
    return f"_{found}" if found[0].isdigit() else found


def at_most(text: str, limit: int) -> str:
    """Cut to that many characters; what was cut differs from what else begins alike by a digest at its end."""
    if len(text) <= limit:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{text[: limit - 9].rstrip()}~{digest}"


def name_advice(one: Point, other: Point, what: str) -> str:
    """Difference of two points that a file of `what` would give one name, and the option that chooses one."""
    if one.run.commit != other.run.commit:
        return f"a file of {what} holds one run; choose one with --commit, or export one result at a time"
    if one.run != other.run:
        return f"a file of {what} holds one run; export one result at a time"
    if one.test != other.test:
        return f"these are tests {one.test!r} and {other.test!r}; choose one with --test"
    if one.metric != other.metric:
        return f"these are metrics {one.metric!r} and {other.metric!r}; choose one with --metric"
    if one.values and one.values == other.values:
        return "name each result once"
    return "give these tests names that differ, and measure again"


def require_one_run(document: Document, what: str) -> tuple[list[Point], list[NotExported]]:
    """The points, each name and metric once; and a list for what is left out.

    Raises:
        UsageError: two runs on one machine have a test of one name.
    """
    found: dict[tuple[str, str], Point] = {}
    for point in document.points:
        place = one_line(document.name(point)), one_line(point.metric)
        if place in found:
            both = " and ".join(dict.fromkeys((found[place].run.source, point.run.source)))
            raise UsageError(
                f"test {place[0]!r} has {place[1]} twice, in {both}: {name_advice(found[place], point, what)}"
            )
        found[place] = point
    return list(found.values()), []
