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
from numpy.typing import NDArray

from etude.errors import EDITED
from etude.results.columns import (
    RARE,
    UNCOMMON,
    Columns,
    Metric,
    Source,
    all_values,
    columns_of_results,
    read_files,
    sources_of,
)
from etude.results.model import (
    LATEST_NS,
    MAX_DURATION_S,
    METRICS,
    MetricKind,
    check_measurement,
    is_printed,
    metric_kind,
)
from etude.results.reader import (
    check_lines,
    has_ended,
    not_a_measurement,
    read_experiment,
    read_measurements,
    repeated_rows,
)
from etude.results.regular import open_regular
from etude.results.results import Results
from etude.results.series import Column, Failure, Floats, Series, Whole
from etude.results.trial_join import FIRST, NONE, overall_join, why_not_joined

ROLES = ("test", "again", "shell")
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
    columns = columns_of_results(results, metrics)
    return Trials(results.directory, results.experiment, columns, results.torn, results.repeated)


_Rows = slice | Whole


@dataclass(frozen=True, eq=False)
class _TrialRows:
    """The trials of all tests: those of a test are consecutive, in the order in which they were made."""

    first: _Rows
    """Index of the first row of each."""
    test: NDArray[np.uint32]
    """Shape (trials,): codes."""
    bounds: Whole
    """Shape (tests + 1,): index of the first trial of each test."""
    groups: _Groups | None
    """None if each trial has one row."""


@dataclass(frozen=True, eq=False)
class _Groups:
    """Rows in the order of trials, then workers, then commands."""

    rows: Whole
    trials: Whole
    """Index of each trial's first row, in `rows`."""
    workers: Whole
    """Index of the first row of each worker of a trial, in `rows`."""
    trials_in_workers: Whole
    """Index of each trial's first worker, in `workers`."""


def series_of_columns(columns: Columns) -> tuple[Series, ...]:
    """A series for each test with lines, in the order of first lines."""
    if not columns.rows:
        return ()
    trials = _trials(columns)
    values = {
        name: _joined(metric, metric_kind(name, metric.unit, metric.join), trials)
        for name, metric in columns.metrics.items()
    }
    first = trials.first
    number, kept = columns.trial[first], columns.kept[first]
    blocks, sittings, inner = columns.block[first], columns.sitting[first], columns.inner[first]
    failures = _failures(columns, trials)
    spans = _spans(columns, trials)
    rare = _rare_members(columns, trials)
    by_name: dict[str, list[str]] = {}
    for key, metric in columns.metrics.items():
        by_name.setdefault(metric.name, []).append(key)
    series = []
    for low, high in zip(trials.bounds[:-1].tolist(), trials.bounds[1:].tolist(), strict=True):
        part, code = slice(low, high), int(trials.test[low])
        test = columns.test.texts[code] or ""
        rows = slice(*part.indices(columns.rows)) if isinstance(first, slice) else first[part]
        series.append(
            Series(
                test=test,
                trials=number[part],
                kept=kept[part],
                columns={
                    name: column
                    for name, keys in by_name.items()
                    if (column := _column(name, [(columns.metrics[k], values[k]) for k in keys], code, part))
                },
                parameters=columns.parameters.get(test, {}),
                blocks=blocks[part],
                sittings=sittings[part],
                labels={
                    "boot": columns.boot.list(rows),
                    "machine": columns.host.list(rows),
                },
                why=columns.why.list(rows),
                failures=failures.get(code, ()),
                inner=int(inner[high - 1]),
                caches=_filled(rare.caches, part),
                kernel=_filled(rare.kernel, part),
                windows=_filled(rare.windows, part),
                spans=spans[part],
            )
        )
    return tuple(series)


def _spans(columns: Columns, trials: _TrialRows) -> Whole:
    elapsed = columns.metrics.get("elapsed")
    values = np.full(columns.rows, np.nan) if elapsed is None else elapsed.values
    starts = columns.start_ns
    lasted = np.where(np.isfinite(values), values, -1.0) * columns.inner
    known = (starts >= 0) & (starts < LATEST_NS) & (lasted >= 0) & (lasted < MAX_DURATION_S)
    ends = np.where(known, starts, 0) + np.rint(np.where(known, lasted, 0.0) * 1e9).astype(np.int64)
    low, high = np.where(known, starts, LATEST_NS), np.where(known, ends, -1)
    groups = trials.groups
    if groups is not None:
        size = np.diff(np.append(groups.trials, len(groups.rows)))
        elsewhere = columns.host.codes[groups.rows] != np.repeat(columns.host.codes[trials.first], size)
        low = np.minimum.reduceat(np.where(elsewhere, LATEST_NS, low[groups.rows]), groups.trials)
        high = np.maximum.reduceat(np.where(elsewhere, -1, high[groups.rows]), groups.trials)
    found: Whole = np.stack((np.where(high < 0, -1, low), high), axis=1)
    return found


def _column(name: str, variants: Sequence[tuple[Metric, _Values]], test: int, part: slice) -> Column | None:
    """A metric of a test, in its first unit there; values in another are missing. None if no line of it has one."""
    here = [
        (metric, all_trials, all_trials.values[part])
        for metric, all_trials in variants
        if test in metric.reasons
        or not np.isnan(all_trials.values[part]).all()
        or (all_trials.how is not None and NONE in all_trials.how[part].tolist())
    ]
    if not here:
        return None
    metric, all_trials, found = min(here, key=lambda each: _first_value(each[2]))
    for other, _, further in here if len(here) > 1 else ():
        if other is not metric:
            there = ~np.isnan(further)
            found = np.where(there, further if other.unit == metric.unit else np.nan, found)
    how = "" if all_trials.how is None else overall_join(all_trials.how[part].tolist(), all_trials.way)
    workers = 1 if all_trials.workers is None else max(1, int(all_trials.workers[part].max(initial=1)))
    reason = metric.reasons.get(test) if np.isnan(found[:1]).all() else None
    reason = why_not_joined(asked=is_printed(name)) if how == NONE else reason
    return Column(metric.unit, metric.kind, found, reason, how, workers)


def _first_value(values: Floats) -> int:
    there = np.flatnonzero(~np.isnan(values))
    return int(there[0]) if there.size else len(values)


class _Rare(NamedTuple):
    """Members that few trials have, by index of the trial."""

    caches: dict[int, Any]
    kernel: dict[int, Any]
    windows: dict[int, list[Any]]


def _rare_members(columns: Columns, trials: _TrialRows) -> _Rare:
    found = caches, kernel, windows = _Rare({}, {}, {})
    if columns.rare:
        place, first = _places(columns.rows, trials)
    for row, members in columns.rare.items():
        trial = int(place[row])
        if "cache" in members and first[trial] == row:
            caches[trial] = members["cache"]
        if members.get("windows"):
            windows.setdefault(trial, []).extend(members["windows"])
        if members.get("kernel") or members.get("throttled"):
            said = kernel.setdefault(trial, {"messages": [], "throttled": 0})
            said["messages"] += members.get("kernel") or ()
            said["throttled"] += members.get("throttled") or 0
    return found


def _places(rows: int, trials: _TrialRows) -> tuple[Whole, Whole]:
    """The trial's index of each row, and the first row of each trial."""
    groups, place = trials.groups, np.arange(rows)
    if groups is None:
        return place, place[trials.first]
    size = np.diff(np.append(groups.trials, rows))
    place[groups.rows] = np.repeat(np.arange(len(size)), size)
    return place, np.arange(rows)[trials.first]


def _filled(found: Mapping[int, Any], part: slice) -> Sequence[Any]:
    """One value for each trial of a test, None if a trial has none; empty if no trial has one."""
    made = [found.get(place) for place in range(part.start, part.stop)] if found else []
    return made if any(made) else ()


def _trials(columns: Columns) -> _TrialRows:
    test, trial = columns.test.codes, columns.trial
    same = test[1:] == test[:-1]
    # Nearly always lines of a test are consecutive, and each is a trial of its own.
    if _in_one_piece(test, same) and not (same & (trial[1:] <= trial[:-1])).any():
        return _TrialRows(slice(None), test, _bounds(test), None)
    begun = _begun(test, trial)
    # Stable: commands keep their order. Codes are in the order of first appearance of the tests.
    rows = np.lexsort((columns.worker, begun, test))
    trials = _changes(begun[rows])
    workers = np.union1d(trials, _changes(columns.worker[rows]))
    groups = _Groups(rows, trials, workers, np.searchsorted(workers, trials))
    first = begun[rows[trials]]
    return _TrialRows(first, test[first], _bounds(test[first]), groups)


def _begun(test: NDArray[np.uint32], trial: Whole) -> Whole:
    """The first row of the trial of each row."""
    rows = np.lexsort((trial, test))
    begin = np.union1d(_changes(test[rows]), _changes(trial[rows]))
    begun = np.empty(len(rows), dtype=np.int64)
    begun[rows] = np.repeat(np.minimum.reduceat(rows, begin), np.diff(np.append(begin, len(rows))))
    return begun


def _changes(values: NDArray[Any]) -> Whole:
    return np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))


def _in_one_piece(test: NDArray[np.uint32], same: NDArray[np.bool_]) -> bool:
    return int(np.count_nonzero(~same)) + 1 == int(np.count_nonzero(np.bincount(test)))


def _bounds(test: NDArray[np.uint32]) -> Whole:
    return np.append(_changes(test), len(test))


class _Values(NamedTuple):
    values: Floats
    """Shape (trials,); NaN for missing values."""
    how: NDArray[np.object_] | None = None
    """Join of each trial's values, empty for one value; None if all trials have one row."""
    workers: Whole | None = None
    way: str = ""


def _joined(metric: Metric, kind: MetricKind, trials: _TrialRows) -> _Values:
    """A metric joined over each worker's commands, then over the workers, same as `etude.results.model.join_trial`."""
    groups = trials.groups
    if groups is None:
        return _Values(metric.values)
    values = metric.values[groups.rows]
    there = ~np.isnan(values)
    commands = np.add.reduceat(there.astype(np.int64), groups.workers)
    by_worker = _reduced(values, groups.workers, kind.commands)
    workers = np.add.reduceat((commands > 0).astype(np.int64), groups.trials_in_workers)
    several = np.logical_or.reduceat(commands > 1, groups.trials_in_workers)
    made = _reduced(by_worker, groups.trials_in_workers, kind.join)
    how = np.where(workers > 1, kind.join, np.where(several, kind.commands, "")).astype(object)
    if kind.commands == NONE:
        made, how = np.where(several, np.nan, made), np.where(several, NONE, how)
    return _Values(made, how, workers, kind.join)


def _reduced(values: Floats, begin: Whole, how: str) -> Floats:
    if how == "max":
        return np.asarray(np.fmax.reduceat(values, begin))
    if how == "min":
        return np.asarray(np.fmin.reduceat(values, begin))
    there = ~np.isnan(values)
    count = np.add.reduceat(there.astype(np.int64), begin)
    if how == FIRST:
        place = np.minimum.reduceat(np.where(there, np.arange(len(values)), len(values)), begin)
        return np.append(values, np.nan)[place]
    sums = np.add.reduceat(np.where(there, values, 0.0), begin)
    if how == NONE:
        return np.where(count == 1, sums, np.nan)
    if how == "mean":
        sums = sums / np.maximum(count, 1)
    return np.where(count > 0, sums, np.nan)


def _failures(columns: Columns, trials: _TrialRows) -> dict[int, tuple[Failure, ...]]:
    """The commands that failed, in the order of trials, by the test's code."""
    failed = (columns.status != 0) | columns.unfinished
    if not failed.any():
        return {}
    rows = np.flatnonzero(failed)
    if trials.groups is not None:
        place, _ = _places(columns.rows, trials)
        rows = rows[np.argsort(place[rows], kind="stable")]
    found: dict[int, list[Failure]] = {}
    for row in rows.tolist():
        place_of = int(columns.trial[row]), int(columns.worker[row])
        failure = Failure(*place_of, columns.ending(row), columns.cancelled_only(row))
        found.setdefault(int(columns.test.codes[row]), []).append(failure)
    return {code: tuple(failures) for code, failures in found.items()}
