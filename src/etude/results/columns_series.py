"""Series from columns: commands joined within workers and workers within trials, for all tests at once.

As `etude.results.samples.Trial` does it for one trial; here trials are groups of rows, and each step is one pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etude.results.columns import CANCELLED, SIGNALLED, TIMED_OUT, Columns, Metric
from etude.results.model import metric_kind, signal_name
from etude.results.samples import LATEST_NS, LONGEST_S
from etude.results.series import Column, Failure, Floats, Series, Whole

_Rows = slice | Whole


@dataclass(frozen=True, eq=False)
class _Trials:
    """The trials of all tests: those of a test stand together, in the order in which they were made."""

    first: _Rows
    """The first row of each."""
    test: NDArray[np.uint32]
    """Shape (trials,): codes."""
    bounds: Whole
    """Shape (tests + 1,): where each test begins."""
    groups: _Groups | None
    """None where each trial has one row."""


@dataclass(frozen=True, eq=False)
class _Groups:
    """Rows in the order of trials, then workers, then commands."""

    rows: Whole
    trials: Whole
    """Where each trial begins, in `rows`."""
    workers: Whole
    """Where each worker of a trial begins, in `rows`."""
    trials_in_workers: Whole
    """Where each trial begins, in `workers`."""


def series_of_columns(columns: Columns) -> tuple[Series, ...]:
    """A series a test, in the order of their first lines. Windows are not in columns, and not in these."""
    trials = _trials(columns)
    values = {
        name: _joined(metric, metric_kind(name, metric.unit).join, _commands(name, metric), trials)
        for name, metric in columns.metrics.items()
    }
    first = trials.first
    number, kept = columns.trial[first], columns.kept[first]
    blocks, sittings, inner = columns.block[first], columns.sitting[first], columns.inner[first]
    failures = _failures(columns, trials)
    spans = _spans(columns, trials)
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
                columns=dict(_columns_of(columns.metrics, values, code, part)),
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
                spans=None if spans is None else spans[part],
            )
        )
    return tuple(series)


def _spans(columns: Columns, trials: _Trials) -> Whole | None:
    """As `etude.results.samples.Trial.span_ns`; None where elapsed was not read."""
    elapsed = columns.metrics.get("elapsed")
    if elapsed is None:
        return None
    starts = columns.start_ns
    lasted = np.where(np.isfinite(elapsed.values), elapsed.values, -1.0) * columns.inner
    known = (starts >= 0) & (starts < LATEST_NS) & (lasted >= 0) & (lasted < LONGEST_S)
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


def _columns_of(
    metrics: Mapping[str, Metric], values: Mapping[str, Floats], test: int, part: slice
) -> Iterator[tuple[str, Column]]:
    """The metrics that a line of the test has: with a value, or with the reason why there is none."""
    for name, metric in metrics.items():
        found = values[name][part]
        reason = metric.reasons.get(test)
        if reason is None and np.isnan(found).all():
            continue
        yield name, Column(metric.unit, metric.kind, found, reason)


def _trials(columns: Columns) -> _Trials:
    """Which rows are of which trial."""
    test, trial = columns.test.codes, columns.trial
    same = test[1:] == test[:-1]
    # Nearly always lines of a test stand together, and each is a trial of its own.
    if _in_one_piece(test, same) and not (same & (trial[1:] <= trial[:-1])).any():
        return _Trials(slice(None), test, _bounds(test), None)
    begun = _begun(test, trial)
    # Stable: commands keep their order. Codes have the order in which the tests came.
    rows = np.lexsort((columns.worker, begun, test))
    trials = _changes(begun[rows])
    workers = np.union1d(trials, _changes(columns.worker[rows]))
    groups = _Groups(rows, trials, workers, np.searchsorted(workers, trials))
    first = begun[rows[trials]]
    return _Trials(first, test[first], _bounds(test[first]), groups)


def _begun(test: NDArray[np.uint32], trial: Whole) -> Whole:
    """Of each row, the first row of its trial."""
    rows = np.lexsort((trial, test))
    begin = np.union1d(_changes(test[rows]), _changes(trial[rows]))
    begun = np.empty(len(rows), dtype=np.int64)
    begun[rows] = np.repeat(np.minimum.reduceat(rows, begin), np.diff(np.append(begin, len(rows))))
    return begun


def _changes(values: NDArray[Any]) -> Whole:
    """Where a value begins that is another than that before."""
    return np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))


def _in_one_piece(test: NDArray[np.uint32], same: NDArray[np.bool_]) -> bool:
    """Whether the lines of each test stand together."""
    return int(np.count_nonzero(~same)) + 1 == int(np.count_nonzero(np.bincount(test)))


def _bounds(test: NDArray[np.uint32]) -> Whole:
    return np.append(_changes(test), len(test))


def _commands(name: str, metric: Metric) -> str:
    kind = metric_kind(name, metric.unit)
    return kind.commands or kind.join


def _joined(metric: Metric, workers: str, commands: str, trials: _Trials) -> Floats:
    """Shape (trials,): a metric joined over each worker's commands, then over the workers; NaN where none has one."""
    groups = trials.groups
    if groups is None:
        return metric.values
    values = metric.values[groups.rows]
    if workers == "first":
        return _first(values, groups)
    by_worker = _reduced(values, groups.workers, commands)
    return _reduced(by_worker, groups.trials_in_workers, workers)


def _reduced(values: Floats, begin: Whole, how: str) -> Floats:
    if how == "max":
        return np.asarray(np.fmax.reduceat(values, begin))
    there = ~np.isnan(values)
    sums = np.add.reduceat(np.where(there, values, 0.0), begin)
    return np.where(np.logical_or.reduceat(there, begin), sums, np.nan)


def _first(values: Floats, groups: _Groups) -> Floats:
    """That of the first line which has one: lines are numbered as they were written."""
    none = len(values)
    line = np.where(np.isnan(values), none, groups.rows)
    by_line = np.full(none + 1, np.nan)
    by_line[groups.rows] = values
    return by_line[np.minimum.reduceat(line, groups.trials)]


def _failures(columns: Columns, trials: _Trials) -> dict[int, tuple[Failure, ...]]:
    """The commands that failed, in the order of trials, by the test's code."""
    unfinished = (columns.flags & (TIMED_OUT | CANCELLED)) != 0
    failed = (columns.status != 0) | unfinished | (columns.error.codes != 0)
    if not failed.any():
        return {}
    if trials.groups is None:
        rows = np.flatnonzero(failed)
    else:
        lines = trials.groups
        size = np.diff(np.append(lines.trials, len(lines.rows)))
        by_line = lines.rows[np.lexsort((lines.rows, np.repeat(np.arange(len(size)), size)))]
        rows = by_line[failed[by_line]]
    found: dict[int, list[Failure]] = {}
    for row in rows.tolist():
        failure = Failure(int(columns.trial[row]), int(columns.worker[row]), _ending(columns, row))
        found.setdefault(int(columns.test.codes[row]), []).append(failure)
    return {test: tuple(failures) for test, failures in found.items()}


def _ending(columns: Columns, row: int) -> str:
    """As `etude.results.model.Measurement.ending`."""
    flags, status, error = int(columns.flags[row]), int(columns.status[row]), columns.error.text(row)
    if error is not None:
        return f"not started: {error}"
    if flags & TIMED_OUT:
        return "ended after its timeout"
    if flags & CANCELLED:
        return "ended with the experiment"
    if flags & SIGNALLED:
        return f"killed by signal {status - 128} ({signal_name(status - 128)})"
    return f"exit status {None if status < 0 else status}"
