"""Readings of a session's monitor as arrays, and their means over intervals of time.

docs/howto/monitor.md has the format.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from etude.errors import EDITED, InputError
from etude.results.regular import read_regular

FORMAT, VERSION = "etude-monitor", 1
KINDS = ("interval", "level")
MAX_TIME_NS = 2**62

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


class Column(NamedTuple):
    """One of the monitor's series."""

    unit: str
    kind: str
    """interval: amount since the previous reading; level: present value."""
    values: Floats
    """Shape (samples,); NaN for missing values."""


class Process(NamedTuple):
    """A process of the top list of one reading."""

    pid: int
    name: str
    start: int
    """Start time in ticks, which identifies a process whose id may be reused."""
    cpu_s: float
    """CPU time in the interval, including that of its children which ended in it."""
    rss_bytes: int
    read_bytes: float | None
    written_bytes: float | None
    cgroup: str


class Message(NamedTuple):
    """A line of the kernel log."""

    ns: int
    """CLOCK_MONOTONIC of that boot."""
    level: int
    """Level from 0, an emergency, to 7."""
    text: str


@dataclass(frozen=True, eq=False)
class Monitor:
    """One session's readings. Reading n covers the time from `edges_ns[n]` to `edges_ns[n + 1]`."""

    path: Path
    start: str
    """Wall-clock time of the initial reading, UTC."""
    boot_id: str
    every_s: float
    cpus: int
    """Number of CPUs at the start."""
    pid: int
    """Process id of the monitor itself."""
    edges_ns: Whole
    """Shape (samples + 1,): CLOCK_MONOTONIC of that boot, like `start_ns` of a measurement."""
    columns: Mapping[str, Column]
    absent: Mapping[str, str]
    """Series that this machine does not provide, with reasons."""
    top: Sequence[tuple[Process, ...]]
    """Processes that used most, for each reading."""
    unseen_s: Floats
    """Shape (samples,): CPU time of processes that ended before they were read; NaN if unknown."""
    messages: tuple[Message, ...]
    cost: Mapping[str, Any] | None
    """Cost of the monitor itself, as it reports; None if its file is truncated."""
    torn: bool
    """True if the last line was torn; it was dropped."""

    @property
    def samples(self) -> int:
        """Number of readings."""
        return len(self.edges_ns) - 1

    @property
    def lengths_s(self) -> Floats:
        """Shape (samples,): length of each reading's interval."""
        return np.diff(self.edges_ns) / 1e9

    def rate(self, name: str) -> Floats:
        """Shape (samples,): amount per second of an interval column, or the level itself."""
        column = self.columns[name]
        return column.values / self.lengths_s if column.kind == "interval" else column.values

    def names(self, group: str, end: str = "") -> tuple[str, ...]:
        """The columns of a group, such as `disk`, with this suffix, such as `.busy`."""
        return tuple(name for name in self.columns if name.startswith(f"{group}.") and name.endswith(end))

    def mean(self, rate: Floats, start_ns: Whole, end_ns: Whole) -> Floats:
        """Shape (stretches,): the mean of a rate, shape (samples,), over stretches of time.

        A reading that a stretch covers partly counts in proportion, as if its rate were constant. NaN if less than
        half of the stretch was read.
        """
        known = np.isfinite(rate)
        lengths = self.lengths_s
        area = np.concatenate(([0.0], np.cumsum(np.where(known, rate, 0.0) * lengths)))
        time = np.concatenate(([0.0], np.cumsum(np.where(known, lengths, 0.0))))
        low, high = self._seconds(start_ns), self._seconds(end_ns)
        edges = self._seconds(self.edges_ns)
        sums = np.interp(high, edges, area) - np.interp(low, edges, area)
        covered = np.interp(high, edges, time) - np.interp(low, edges, time)
        with np.errstate(divide="ignore", invalid="ignore"):
            found: Floats = np.where((covered > 0) & (2 * covered >= high - low), sums / covered, np.nan)
        return found

    def processes(self, start_ns: int, end_ns: int) -> Iterator[tuple[Process, float]]:
        """The entries of the top lists in a stretch of time, each with the share of its interval that is in it."""
        first = max(0, int(np.searchsorted(self.edges_ns, start_ns, "right")) - 1)
        last = min(self.samples, int(np.searchsorted(self.edges_ns, end_ns, "left")))
        for place in range(first, last):
            low, high = int(self.edges_ns[place]), int(self.edges_ns[place + 1])
            share = (min(high, end_ns) - max(low, start_ns)) / (high - low)
            if share > 0:
                for process in self.top[place]:
                    yield process, share

    def _seconds(self, ns: Whole) -> Floats:
        """Seconds since the first reading: small enough for exact arithmetic."""
        found: Floats = (ns - self.edges_ns[0]) / 1e9
        return found


def file_name(sitting: int) -> str:
    """Name of a session's file in the results directory."""
    return f"monitor-{sitting}.jsonl"


def load(directory: str | os.PathLike[str], sitting: int) -> Monitor | None:
    """The readings of a session; None if there are none.

    Raises:
        InputError: the file exists and cannot be read.
    """
    path = Path(directory) / file_name(sitting)
    try:
        text = read_regular(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    return read(path, text)


def read(path: Path, text: bytes) -> Monitor | None:
    """The readings of a file's text; None if not even its first line is complete.

    Raises:
        InputError: an invalid line, or a newer version.
    """
    *lines, rest = text.split(b"\n")
    if not lines:
        return None
    head = _parsed(path, 1, lines[0], _head)
    reading = _Reading(head["start_ns"])
    for number, line in enumerate(lines[1:], 2):
        _parsed(path, number, line, reading.take)
    try:
        columns = reading.columns()
    except EDITED as error:
        raise InputError(f"{path}: a reading is invalid: {error}; was it edited?") from None
    return Monitor(
        path=path,
        start=head["start"],
        boot_id=head["boot_id"],
        every_s=float(head["every_s"]),
        cpus=len(head["cpus"]),
        pid=head["pid"],
        edges_ns=np.array(reading.edges, dtype=np.int64),
        columns=columns,
        absent=reading.absent,
        top=tuple(reading.top),
        unseen_s=np.array(reading.unseen, dtype=np.float64),
        messages=tuple(reading.messages),
        cost=reading.cost,
        torn=rest != b"",
    )


def _parsed(path: Path, number: int, line: bytes, take: Any) -> Any:
    try:
        members = orjson.loads(line)
        if type(members) is not dict:
            raise ValueError("expected an object")
        return take(members)
    except _Newer as error:
        raise InputError(f"{path}: {error}") from None
    except EDITED as error:
        reason = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(
            f"{path}:{number}: is no line of the monitor's: {reason}; was it edited or copied in part?"
        ) from None


class _Newer(Exception):
    """A file of a later version."""


def _head(line: Mapping[str, Any]) -> Mapping[str, Any]:
    if line["format"] != FORMAT:
        raise ValueError(f'expected "format": "{FORMAT}"')
    if type(line["version"]) is not int or line["version"] > VERSION:
        raise _Newer(
            f"version {line['version']!r} of the monitor's format; this Étude reads up to {VERSION}: use a newer Étude"
        )
    for name in ("start", "boot_id"):
        if type(line[name]) is not str:
            raise ValueError(f"{name} must be a text")
    for name in ("start_ns", "pid"):
        _count(line, name)
    if type(line["cpus"]) is not list:
        raise ValueError("cpus must be a list")
    if type(line["every_s"]) not in (int, float) or not 0 < line["every_s"] < 1e9:
        raise ValueError("every_s must be seconds above 0")
    return line


def _count(line: Mapping[str, Any], name: str) -> int:
    value = line[name]
    if type(value) is not int or not 0 <= value < MAX_TIME_NS:
        raise ValueError(f"{name} must be a whole number of 0 or more")
    return value


class _Reading:
    def __init__(self, start_ns: int) -> None:
        self.start_ns = start_ns
        self.edges = [start_ns]
        self.top: list[tuple[Process, ...]] = []
        self.unseen: list[float | None] = []
        self.messages: list[Message] = []
        self.absent: dict[str, str] = {}
        self.cost: Mapping[str, Any] | None = None
        self._names: tuple[str, ...] = ()
        self._kinds: dict[str, tuple[str, str]] = {}
        self._groups: list[tuple[tuple[str, ...], list[Sequence[float | None]]]] = []

    def take(self, line: Mapping[str, Any]) -> None:
        if "v" in line:
            self._sample(line)
        elif "columns" in line:
            self._header(line)
        elif "kernel" in line:
            level = _count(line, "level")
            if type(line["kernel"]) is not str or level > 7:
                raise ValueError("kernel must be a text, and level from 0 to 7")
            self.messages.append(Message(self.start_ns + _count(line, "ns"), level, line["kernel"]))
        elif line.get("end") is True:
            cost = line.get("cost")
            self.cost = cost if type(cost) is dict else None
        else:
            raise ValueError("expected columns, v, kernel or end")

    def _header(self, line: Mapping[str, Any]) -> None:
        names = tuple(entry["name"] for entry in line["columns"])
        if len(set(names)) != len(names) or not all(type(name) is str for name in names):
            raise ValueError("columns must have different names")
        for entry in line["columns"]:
            kind = entry["unit"], entry["kind"]
            if type(kind[0]) is not str or kind[1] not in KINDS:
                raise ValueError(f"column {entry['name']}: kind must be interval or level, and unit a text")
            if self._kinds.setdefault(entry["name"], kind) != kind:
                raise ValueError(f"column {entry['name']}: is of another unit or kind than before")
        self._names = names
        self._groups.append((names, []))
        self.absent |= {str(name): str(why) for name, why in (line.get("absent") or {}).items()}

    def _sample(self, line: Mapping[str, Any]) -> None:
        values = line["v"]
        if type(values) is not list or len(values) != len(self._names):
            raise ValueError(f"v must be a list of {len(self._names)} numbers")
        if not {*map(type, values)} <= {int, float, type(None)}:
            raise ValueError("v must hold numbers and nulls")
        at = self.start_ns + _count(line, "ns")
        if at <= self.edges[-1] or not self._groups:
            raise ValueError("a reading must be later than that before it, and behind its columns")
        top = tuple(map(_process, line.get("top") or ()))
        unseen = line.get("unseen")
        if unseen is not None and type(unseen) not in (int, float):
            raise ValueError("unseen must be seconds or null")
        self.edges.append(at)
        self._groups[-1][1].append(values)
        self.top.append(top)
        self.unseen.append(unseen)

    def columns(self) -> dict[str, Column]:
        count = len(self.edges) - 1
        found = {name: Column(*kind, np.full(count, np.nan)) for name, kind in self._kinds.items()}
        place = 0
        for names, rows in self._groups:
            if not rows:
                continue
            values = np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
            if np.isinf(values).any():
                raise ValueError("a number is infinite")
            for at, name in enumerate(names):
                found[name].values[place : place + len(rows)] = values[:, at]
            place += len(rows)
        return found


def _process(entry: Mapping[str, Any]) -> Process:
    name, cpu, children = entry["name"], entry["cpu"], entry.get("children") or 0
    if type(name) is not str or not all(type(each) in (int, float) for each in (cpu, children)):
        raise ValueError("top: name must be a text, and cpu seconds")
    read, written = (entry.get(member) for member in ("read", "written"))
    for value in (read, written):
        if value is not None and type(value) not in (int, float):
            raise ValueError("top: read and written must be numbers or null")
    return Process(
        _count(entry, "pid"),
        name,
        _count(entry, "start"),
        float(cpu) + float(children),
        _count(entry, "rss"),
        read,
        written,
        str(entry.get("cgroup") or ""),
    )
