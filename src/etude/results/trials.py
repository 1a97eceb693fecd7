"""The trials of an experiment as columns: read from its directory and checked against its document, or from
measurements in memory. Input of statistics, comparisons and warnings.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from etude.errors import EDITED
from etude.results.columns import (
    CANCELLED,
    KEPT,
    SIGNALLED,
    TIMED_OUT,
    UNCOMMON,
    Coded,
    Columns,
    Metric,
    Source,
    Whole,
    all_values,
    read_files,
    sources_of,
)
from etude.results.integrity import check_lines, has_ended, repeated_rows
from etude.results.model import METRICS, Measurement, check_measurement, is_printed, metric_kind
from etude.results.reader import not_a_measurement, read_experiment, read_measurements
from etude.results.regular import open_regular
from etude.results.results import Results
from etude.results.trial_join import join_in_row

ROLES = ("test", "again", "shell")
RARE = ("cache", "stdout", "windows", "rows", "kernel", "throttled", "command_text", "accepted")
"""Members of a measurement that are not in the engine's columns, since few lines have them."""
_NOT_THE_ENGINES = frozenset(
    ("kernel", "throttled", "offset_ns", "offset_error_ns", "command_text", "accepted")
)
"""Members that the engine does not check."""


@dataclass(frozen=True, eq=False)
class Trials:
    """The measurements of all tests of an experiment, with its document."""

    directory: Path
    experiment: Mapping[str, Any]
    columns: Columns
    torn: Sequence[str] = ()
    """Files with a torn last line; that line was dropped."""
    repeated: Mapping[str, int] = field(default_factory=dict)
    """Files with repeated lines, and their number; they were dropped."""


def read_trials(directory: Path) -> Trials:
    """The trials of a results directory.

    Raises:
        InputError: it is none, is of a newer version, a line in the middle of a file cannot be read, or lines were lost
            or changed.
        MachineRefuses: the engine cannot be run.
    """
    experiment = read_experiment(directory)
    sources = sources_of(directory, experiment, ROLES)
    columns, ends = read_files(directory, sources, None)
    if any(map(_is_doubtful, columns.metrics.values())):
        for source in sources:
            read_measurements(source.file)  # raises with the number of the line
    sessions = frozenset(session["sitting"] for session in experiment["sittings"])
    rare: dict[int, dict[str, Any]] = {}
    torn, repeated, again = list[str](), dict[str, int](), list[int]()
    low = 0
    for source, end in zip(sources, ends, strict=True):
        high = low + end["rows"]
        uncommon = np.flatnonzero(columns.flags[low:high] & UNCOMMON).tolist()
        rare.update((low + line, members) for line, members in _rare(source.file, uncommon))
        lines = _Lines(source, range(low, high), columns, rare)
        gone = _repeated(lines, sessions)
        cut = bool(end["torn"] or end["left_out"])
        if has_ended(experiment):
            last = rare.get(high - 1, {}).get("rows") or source.test.get("workers", 1)
            check_lines(source.file, end["rows"], source.test, cut=max(last, end["left_out"]) if cut else 0)
        torn += [str(source.file)] if cut else []
        repeated |= {str(source.file): len(gone)} if gone else {}
        again += gone
        low = high
    columns = replace(columns, rare=rare)
    if again:
        rows = np.setdiff1d(np.arange(columns.rows), again)
        places = {row: place for place, row in enumerate(rows.tolist())}
        columns = replace(columns.at(rows), rare={places[row]: rare[row] for row in rare if row in places})
    return Trials(directory, experiment, columns, tuple(torn), repeated)


def _is_doubtful(metric: Metric) -> bool:
    """True if a metric of the engine, which does not check this, is negative or in another unit."""
    ours = METRICS.get(metric.name)
    return ours is not None and (ours.unit != metric.unit or bool((metric.values < 0).any()))


def _rare(file: Path, numbers: Sequence[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbers and `RARE` members of these lines, which are counted from 0 and in order."""
    if not numbers:
        return
    with open_regular(file) as opened:
        at = 0
        for number in numbers:
            line = next(islice(opened, number - at, None))
            at = number + 1
            members = orjson.loads(line)
            if not _NOT_THE_ENGINES.isdisjoint(members):
                try:
                    check_measurement(members)
                except EDITED as error:
                    raise not_a_measurement(file, number + 1, error) from None
            found = {name: members[name] for name in RARE if members.get(name) is not None}
            if found:
                yield number, found


class _Lines(NamedTuple):
    """The rows of one file."""

    source: Source
    places: range
    columns: Columns
    rare: Mapping[int, Mapping[str, Any]]


class _Row(NamedTuple):
    """A row by itself, for irregular files."""

    test: str
    sitting: int
    trial: int
    rows: int | None
    rest: tuple[Hashable, ...]


def _repeated(lines: _Lines, sessions: frozenset[int]) -> list[int]:
    """The repeated rows of a file. Raises InputError: same as `repeated_rows`."""
    source, places, columns, rare = lines
    if not places:
        return []
    part = slice(places.start, places.stop)
    expected = np.full(len(places), source.workers or 1)
    for row in places if rare else ():
        expected[row - places.start] = rare.get(row, {}).get("rows") or expected[row - places.start]
    _, first, made = np.unique(columns.trial[part], return_index=True, return_counts=True)
    tests = {columns.test.texts[code] for code in np.unique(columns.test.codes[part]).tolist()}
    sittings = set(np.unique(columns.sitting[part]).tolist())
    if (made == expected[first]).all() and tests == {source.test["name"]} and sittings <= sessions:
        return []
    values = [
        [None if value != value else value for value in found[part].tolist()] for found in all_values(columns)
    ]
    rows = [
        _Row(
            columns.test.text(row) or "",
            int(columns.sitting[row]),
            int(columns.trial[row]),
            rare.get(row, {}).get("rows"),
            (*own, orjson.dumps(rare.get(row))),
        )
        for row, *own in zip(places, *values, strict=True)
    ]
    return [places[place] for place in repeated_rows(source.file, rows, source.test, sessions)]


def trials_of_results(results: Results, metrics: Collection[str] | None = None) -> Trials:
    """The trials of measurements in memory; with these metrics, elapsed and those that the program printed, or all."""
    found = [(name, m) for name, measured in results.measurements.items() for m in measured]
    rows = [m for _, m in found]
    entries = results.experiment["tests"]
    columns = Columns(
        path=results.directory,
        test=_coded([name for name, _ in found]),
        trial=_whole([m.trial for m in rows]),
        block=_whole([m.block for m in rows]),
        order=_whole([m.order for m in rows]),
        worker=_whole([m.worker for m in rows]),
        sitting=_whole([m.sitting for m in rows]),
        host=_coded([m.host for m in rows]),
        boot=_coded([m.boot_id for m in rows]),
        command=_coded([m.command_line for m in rows]),
        why=_coded([m.why for m in rows]),
        error=_coded([m.error for m in rows]),
        start_ns=_whole([-1 if m.start_ns is None else m.start_ns for m in rows]),
        inner=_whole([m.inner for m in rows]),
        status=_whole([_status(m) for m in rows]),
        flags=np.array([_flags(m) for m in rows], dtype=np.uint8),
        metrics=_metrics(found, metrics),
        parameters={entry["name"]: entry.get("parameters") or {} for entry in entries},
        rare={
            row: members
            for row, m in enumerate(rows)
            if (members := {name: value for name in RARE if (value := getattr(m, name)) is not None})
        },
    )
    return Trials(results.directory, results.experiment, columns, results.torn, results.repeated)


def _whole(values: Sequence[int]) -> Whole:
    return np.array(values, dtype=np.int64)


def _coded(texts: Sequence[str | None]) -> Coded:
    known: dict[str | None, int] = {None: 0}
    codes = [known.setdefault(text, len(known)) for text in texts]
    return Coded(np.array(codes, dtype=np.uint32), list(known))


def _status(m: Measurement) -> int:
    if m.signal is not None:
        return 128 + m.signal
    return -1 if m.exit_status is None else m.exit_status


def _flags(m: Measurement) -> int:
    return (
        KEPT * m.kept | TIMED_OUT * m.timed_out | CANCELLED * m.cancelled | SIGNALLED * (m.signal is not None)
    )


def _metrics(found: Sequence[tuple[str, Measurement]], wanted: Collection[str] | None) -> dict[str, Metric]:
    """Each metric, in each of its units and joins."""
    made: dict[tuple[str, str, str], Metric] = {}
    reasons: dict[tuple[str, str, str], dict[int, str]] = {}
    codes: dict[str, int] = {}
    for row, (test, m) in enumerate(found):
        code = codes.setdefault(test, len(codes) + 1)
        for name, value in m.metrics.items():
            if wanted is not None and name not in wanted and name != "elapsed" and not is_printed(name):
                continue
            how = value[1], join_in_row(value) or ""
            metric = made.get((name, *how))
            if metric is None:
                kind = metric_kind(name, value[1]).kind
                known = reasons[name, *how] = {}
                metric = Metric(name, value[1], kind, np.full(len(found), np.nan), known, how[1])
                made[name, *how] = metric
            if value[0] is None:
                reasons[name, *how].setdefault(code, value[2])
            else:
                metric.values[row] = value[0]
    firsts = {metric.name: metric for metric in reversed(made.values())}
    return {
        name if metric is firsts[name] else f"{name} ({unit}, {join})": metric
        for (name, unit, join), metric in made.items()
    }
