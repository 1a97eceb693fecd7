"""Series from columns: commands joined within workers and workers within trials, for all tests at once.

`results.model.join_trial` does the same for one trial; here trials are groups of rows, and each step is one pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from etude.results.columns import Columns, Metric
from etude.results.model import LATEST_NS, MAX_DURATION_S, MetricKind, is_printed, metric_kind
from etude.results.series import Column, Failure, Floats, Series, Whole
from etude.results.trial_join import FIRST, NONE, overall_join, why_not_joined

_Rows = slice | Whole


@dataclass(frozen=True, eq=False)
class _Trials:
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
    rare = _rare(columns, trials)
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


def _spans(columns: Columns, trials: _Trials) -> Whole:
    """First start and last end of each trial, same as `Series.spans`."""
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
        or _is_refused(all_trials, part)
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


def _is_refused(all_trials: _Values, part: slice) -> bool:
    """True if values of a test must not be joined."""
    return all_trials.how is not None and NONE in all_trials.how[part].tolist()


class _Rare(NamedTuple):
    """Members that few trials have, by index of the trial."""

    caches: dict[int, Any]
    kernel: dict[int, Any]
    windows: dict[int, list[Any]]


def _rare(columns: Columns, trials: _Trials) -> _Rare:
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


def _places(rows: int, trials: _Trials) -> tuple[Whole, Whole]:
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


def _trials(columns: Columns) -> _Trials:
    """Groups the rows by trial."""
    test, trial = columns.test.codes, columns.trial
    same = test[1:] == test[:-1]
    # Nearly always lines of a test are consecutive, and each is a trial of its own.
    if _in_one_piece(test, same) and not (same & (trial[1:] <= trial[:-1])).any():
        return _Trials(slice(None), test, _bounds(test), None)
    begun = _begun(test, trial)
    # Stable: commands keep their order. Codes are in the order of first appearance of the tests.
    rows = np.lexsort((columns.worker, begun, test))
    trials = _changes(begun[rows])
    workers = np.union1d(trials, _changes(columns.worker[rows]))
    groups = _Groups(rows, trials, workers, np.searchsorted(workers, trials))
    first = begun[rows[trials]]
    return _Trials(first, test[first], _bounds(test[first]), groups)


def _begun(test: NDArray[np.uint32], trial: Whole) -> Whole:
    """The first row of the trial of each row."""
    rows = np.lexsort((trial, test))
    begin = np.union1d(_changes(test[rows]), _changes(trial[rows]))
    begun = np.empty(len(rows), dtype=np.int64)
    begun[rows] = np.repeat(np.minimum.reduceat(rows, begin), np.diff(np.append(begin, len(rows))))
    return begun


def _changes(values: NDArray[Any]) -> Whole:
    """Indices of values that differ from their predecessors."""
    return np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))


def _in_one_piece(test: NDArray[np.uint32], same: NDArray[np.bool_]) -> bool:
    """True if the lines of each test are consecutive."""
    return int(np.count_nonzero(~same)) + 1 == int(np.count_nonzero(np.bincount(test)))


def _bounds(test: NDArray[np.uint32]) -> Whole:
    return np.append(_changes(test), len(test))


class _Values(NamedTuple):
    """A metric over all trials."""

    values: Floats
    """Shape (trials,); NaN for missing values."""
    how: NDArray[np.object_] | None = None
    """Join of each trial's values, empty for one value; None if all trials have one row."""
    workers: Whole | None = None
    way: str = ""
    """Join of its workers."""


def _joined(metric: Metric, kind: MetricKind, trials: _Trials) -> _Values:
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


def _failures(columns: Columns, trials: _Trials) -> dict[int, tuple[Failure, ...]]:
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
