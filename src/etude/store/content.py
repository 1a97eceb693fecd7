"""Contents to store of a results directory, or of a file of another program: its points and its identity."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from etude.errors import InputError, UsageError
from etude.results.columns import columns_of_results
from etude.results.model import Measurement
from etude.results.reader import load_results
from etude.results.readers import read_table
from etude.results.results import Results, session_groups
from etude.results.series import Series, series_of_table
from etude.results.trials import series_of_columns
from etude.store.column_encoding import clean, key, pack, run_length_encode
from etude.store.entry import Machine, machine_of, of_facts


@dataclass(frozen=True, slots=True)
class Point:
    """One metric of one test on one machine."""

    test: str
    metric: str
    unit: str
    kind: str
    machine: Machine
    measured: datetime
    values: tuple[float, ...]
    sittings: tuple[int, ...]
    """Session of each value; empty if unknown."""
    command: str | None = None
    """Command of the first trial, on one line; None if unknown."""


@dataclass(frozen=True, slots=True)
class Content:
    """Contents of a results directory or file."""

    source: str
    origin: str
    """Identity of the experiment, constant while it grows; for another program's file, of its numbers."""
    trials: int
    points: tuple[Point, ...]

    @property
    def measured(self) -> datetime:
        """Start time of the first trial, UTC."""
        return min(point.measured for point in self.points)

    @property
    def digest(self) -> str:
        """Digest of the numbers, and of the machines."""
        return _digest(self.trials, self.points)


def read_content(path: str, machine: str | None = None) -> Content:
    """Read anything that `etude stats` reads.

    machine: name of the machine; needed if a file does not name it.

    Raises:
        InputError: it cannot be read, or holds nothing to store.
        UsageError: `machine` is missing, or is one name for results of several machines.
    """
    place = Path(path)
    if (place / "experiment.json").is_file():
        results = load_results(place)
        if results.experiment["plan"].get("kind") == "bisect":
            raise InputError(f"{path}: a bisection, of several commits: the store takes results of one")
        series, machines = _joined(results), _machines(results)
        starts, within = _starts(path, results.measurements), _within(results)
        commands = {test: rows[0].command_line for test, rows in results.measurements.items() if rows}
    else:
        series, machines, starts, within, commands = _of_table(path), {}, {}, "", {}
    places = _called(path, series, machines, machine)
    points = tuple(_points(series, places, starts, commands, _written(path), within))
    if not points:
        raise InputError(f"{path}: no trial of it was kept, so there is nothing to store")
    trials = sum(len(each.trials) for each in series)
    origin = _origin(results.experiment) if starts else _digest(trials, points)
    return Content(clean(str(place.absolute())), origin, trials, points)


def _joined(results: Results) -> tuple[Series, ...]:
    """The series of all tests, joined across restarts."""
    parts, names = session_groups(results.experiment["sittings"]), results.names()
    return tuple(
        replace(each, stretches=np.array([parts.get(int(n), int(n)) for n in each.sittings], dtype=np.int64))
        if each.sittings is not None
        else each
        for each in series_of_columns(columns_of_results(results))
        if each.test in names
    )


def _of_table(path: str) -> tuple[Series, ...]:
    table = read_table(path)
    if table.summary_only:
        raise InputError(f"{path}: holds summaries, no trials; the store keeps trials")
    return series_of_table(table)


def _within(results: Results) -> str:
    """Prefix of the tests of searches and surfaces, such as `load=175`, to tell different servers apart."""
    named = results.experiment.get("verb") in ("peak", "surface")
    return f"{results.experiment['name']}: " if named else ""


_Place = tuple[int, str]
"""A session, and a host of it."""
_Trial = tuple[str, int, int]
"""A test, a session, and the number of a trial in it."""


def _machines(results: Results) -> dict[_Place, Machine]:
    """Étude's machine of each session, and the other hosts of a script."""
    first = (results.experiment.get("machine") or {}).get("before")
    found: dict[_Place, Machine] = {}
    for sitting in results.experiment["sittings"]:
        number, here = sitting["sitting"], str(sitting.get("host") or "")
        found[number, here] = machine_of(here, sitting.get("machine") or first)
        for name, host in (sitting.get("hosts") or {}).items():
            known = {"architecture": "machine", "kernel": "kernel", "cores": "cpus"}
            facts = {fact: str(host[member]) for fact, member in known.items() if host.get(member)}
            found.setdefault((number, name), of_facts(name, facts))
    return found


def _called(
    path: str, series: Sequence[Series], machines: Mapping[_Place, Machine], name: str | None
) -> dict[_Place, Machine]:
    places = sorted({place for each in series for place in _places(each)})
    found = {place: machines.get(place) or Machine(clean(place[1]), "") for place in places}
    if name is None:
        if any(not each.name for each in found.values()):
            raise UsageError(f"{path}: has no record of its machine; name it, as in --machine NAME")
        return found
    if len(set(found.values())) > 1:
        several = ", ".join(sorted({each.name for each in found.values()}))
        raise UsageError(f"{path}: was measured on several machines ({several}); leave out --machine")
    return {place: replace(each, name=clean(name)) for place, each in found.items()}


def _places(series: Series) -> list[_Place]:
    count = len(series.trials)
    sittings = series.sittings.tolist() if series.sittings is not None else [1] * count
    hosts = series.labels.get("machine") or [""] * count
    return list(zip(sittings, hosts, strict=True))


def _starts(path: str, measurements: Mapping[str, Sequence[Measurement]]) -> dict[_Trial, datetime]:
    found: dict[_Trial, datetime] = {}
    for test, rows in measurements.items():
        for row in rows:
            trial = test, row.sitting, row.trial
            if row.start and trial not in found:
                try:
                    found[trial] = _time(row.start)
                except ValueError:
                    where = f"{path}: {test}: trial {row.trial}"
                    raise InputError(
                        f"{where}: start is {row.start[:40]!r}: expected a time; was it edited?"
                    ) from None
    return found


def _points(
    series: Sequence[Series],
    machines: Mapping[_Place, Machine],
    starts: Mapping[_Trial, datetime],
    commands: Mapping[str, str],
    written: datetime,
    within: str,
) -> Iterator[Point]:
    """One point for each metric of each test on each machine with values; `within` is the prefix of tests' names."""
    for each in series:
        places = _places(each)
        rows: dict[Machine, list[int]] = {}
        for row, place in enumerate(places):
            if each.kept[row]:
                rows.setdefault(machines[place], []).append(row)
        together = each.stretches if each.stretches is not None else each.sittings
        command = commands.get(each.test)
        for machine, chosen in rows.items():
            begun = [starts.get((each.test, places[row][0], int(each.trials[row]))) for row in chosen]
            measured = min(filter(None, begun), default=written)
            for name, column in each.columns.items():
                finite = [row for row in chosen if np.isfinite(column.values[row])]
                if finite:
                    yield Point(
                        clean(within + each.test),
                        clean(name),
                        clean(column.unit),
                        column.kind,
                        machine,
                        measured,
                        tuple(column.values[finite].tolist()),
                        tuple(together[finite].tolist()) if together is not None else (),
                        clean(command) if command else None,
                    )


def _time(text: str) -> datetime:
    """Time of RFC 3339 with nanoseconds, as in a measurement, to the microsecond."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _written(path: str) -> datetime:
    """Modification time of a file: the only known time of another program's measurements."""
    _, _, rest = path.partition(":")
    for place in (Path(path), Path(rest)):
        if place.exists():
            return datetime.fromtimestamp(place.stat().st_mtime, UTC)
    return datetime.fromtimestamp(0, UTC)


def _origin(experiment: Mapping[str, Any]) -> str:
    """Identity of an experiment: its original plan, and host and time of its first session."""
    first = experiment["sittings"][0] if experiment["sittings"] else {}
    asked = experiment.get("began_as") or experiment
    told = (asked.get(name) for name in ("name", "digest"))
    return key(*map(str, (*told, *(first.get(name) for name in ("host", "boot_id", "start")))))


def _digest(trials: int, points: Sequence[Point]) -> str:
    numbers = hashlib.sha256(str(trials).encode())
    for point in points:
        words = (point.test, point.metric, point.unit, point.kind, point.machine.name, point.machine.digest)
        numbers.update(key(*words, run_length_encode(point.sittings)).encode() + pack(point.values))
    return numbers.hexdigest()
