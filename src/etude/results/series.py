"""The trials of one test as columns: the input of statistics, warnings and comparisons, whatever the source.

`results.trials` makes them of our own results, `series_of_table` of another program's or of transformed ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from etude.results.model import MetricKind, metric_kind
from etude.results.trial_join import NONE, overall_join, why_not_joined

if TYPE_CHECKING:
    import polars

    from etude.results.table import Table


Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Column(NamedTuple):
    """One metric over the trials of a test, joined over each trial's commands and workers."""

    unit: str
    kind: str
    """cost, rate, ratio, count or binary."""
    values: Floats
    """Shape (trials,), in the order in which the trials were made; NaN for missing values."""
    reason: str | None = None
    """Reason why no trial has a value, if none has."""
    joined: str = ""
    """Join of each trial's workers or commands (`results.trial_join`); empty for single values."""
    workers: int = 1
    """Maximum number of workers of a trial with a value."""


class Failure(NamedTuple):
    """A measured command that failed."""

    trial: int
    worker: int
    how: str
    """Description, such as `exit status 1` or `killed by signal 9 (SIGKILL)`."""
    of_experiment: bool = False
    """True if it was ended together with the experiment, which is no fault of the command."""


@dataclass(frozen=True, eq=False)
class Series:
    """One test. Arrays have shape (trials,), in the order in which the trials were made."""

    test: str
    trials: Whole
    """Numbers of the trials (epochs)."""
    kept: Flags
    columns: Mapping[str, Column]
    parameters: Mapping[str, str] = field(default_factory=dict)
    blocks: Whole | None = None
    """Block of each trial, shared with trials of other tests; None without blocks."""
    sittings: Whole | None = None
    """Session of each trial; None if unknown: one session."""
    stretches: Whole | None = None
    """Session groups: sessions between which the experiment itself restarted the machine share a number; None without
    such restarts."""
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Values of levels beyond the session (`boot`, `build`, `machine`), for each trial."""
    why: Sequence[str | None] = ()
    """Reason of exclusion of each trial; empty if unknown."""
    failures: Sequence[Failure] = ()
    inner: int = 1
    """Launches in each trial."""
    caches: Sequence[Mapping[str, Any] | None] = ()
    """Cache preparation before each trial (docs/reference/formats.md); empty if none was requested."""
    kernel: Sequence[Mapping[str, Any] | None] = ()
    """Kernel messages and CPU throttling during each trial; empty if there were none."""
    windows: Sequence[Sequence[Mapping[str, Any]] | None] = ()
    """Windows reported by each trial (docs/reference/formats.md); empty if there were none."""
    spans: Whole | None = None
    """Shape (trials, 2): first start and last end, ns of that boot's monotonic clock, on the host of the first
    worker; -1 if unknown. None if unknown for all trials."""

    def column(self, metric: str) -> Column | None:
        """The metric's column, or None."""
        return self.columns.get(metric)

    def sample(self, metric: str) -> Floats:
        """The metric's finite values over the included trials, in order; empty if there are none."""
        column = self.columns.get(metric)
        if column is None:
            return np.empty(0)
        values = column.values[self.kept]
        return values[np.isfinite(values)]

    def places(self, metric: str) -> Whole:
        """The trials' numbers that go with `sample`."""
        column = self.columns.get(metric)
        if column is None:
            return np.empty(0, dtype=np.int64)
        return self.trials[self.kept & np.isfinite(column.values)]


def no_trials(test: str, parameters: Mapping[str, str]) -> Series:
    """A test without trials."""
    none = np.empty(0, dtype=np.int64)
    labels = {"boot": (), "machine": ()}
    return Series(
        test=test,
        trials=none,
        kept=none.astype(np.bool_),
        columns={},
        parameters=parameters,
        blocks=none,
        sittings=none,
        labels=labels,
        spans=none.reshape(0, 2),
    )


def series_of_table(table: Table) -> tuple[Series, ...]:
    """One series per test of a table, or per test and combination of parameters that vary within the test: so a
    test has the same name whatever else is in the file.

    Commands are joined first, then workers (`results.trial_join`): `Table.frame` has one row per measurement.
    Raises ValueError for a table of summaries.
    """
    if table.summary_only:
        raise ValueError("a table of summaries holds no trials")
    return tuple(
        _of_group(table, frame, varying)
        for test in table.frame.partition_by("test", maintain_order=True)
        for varying in [[name for name in table.parameters if test[name].n_unique() > 1]]
        for frame in (test.partition_by(varying, maintain_order=True) if varying else [test])
    )


def _of_group(table: Table, frame: polars.DataFrame, varying: Sequence[str]) -> Series:
    first = frame.row(0, named=True)
    parameters = {name: str(first[name]) for name in table.parameters if first[name] is not None}
    made = _joined(table, frame)
    places = set(made.columns)
    return Series(
        test=_name(str(first["test"]), {name: parameters[name] for name in varying if name in parameters}),
        trials=made["trial"].to_numpy(),
        kept=made["kept"].to_numpy(),
        columns={
            metric: _table_column(table, metric, made, frame)
            for metric in table.metrics
            if frame[metric].null_count() < frame.height
        },
        parameters=parameters,
        blocks=made["block"].to_numpy() if "block" in places else None,
        sittings=made["sitting"].to_numpy() if "sitting" in places else None,
        labels={
            level: made[column].cast(str).fill_null("").to_list()
            for level, column in (("process", "process"), ("boot", "boot"), ("machine", "host"))
            if column in places
        },
        why=made["why"].to_list() if "why" in places else (),
        failures=tuple(_failed_rows(frame)),
        inner=int(made["inner"][-1] or 1) if "inner" in places else 1,
    )


def _table_column(table: Table, metric: str, trials: polars.DataFrame, rows: polars.DataFrame) -> Column:
    values = trials[metric].cast(float).fill_null(np.nan).to_numpy()
    how, workers, reason = "", 1, None
    if trials.height < rows.height:
        there = rows.filter(rows[metric].is_not_null())
        by = ["sitting", "trial"] if "sitting" in rows.columns else ["trial"]
        kind = metric_kind(metric, table.units[metric], table.joins.get(metric))
        several = there.select([*by, "worker"]).is_duplicated().any()
        workers = int(there.unique([*by, "worker"]).group_by(by).len()["len"].to_numpy().max(initial=1))
        hows = (kind.commands if several else "", kind.join if workers > 1 else "")
        how = overall_join(hows, kind.join)
        reason = why_not_joined(asked=False) if how == NONE else None
    return Column(table.units[metric], table.kinds[metric], values, reason, how, workers)


def _joined(table: Table, frame: polars.DataFrame) -> polars.DataFrame:
    """One row per trial; the frame itself if each trial has one row already.

    Rows of one worker in one trial are commands only if they name commands; else the number was reused for another
    trial.
    """
    by = ["sitting", "trial"] if "sitting" in frame.columns else ["trial"]
    if not frame.select(by).is_duplicated().any():
        return frame
    import polars as pl

    commands = "command" in frame.columns and frame["command"].null_count() < frame.height
    if not commands and frame.select([*by, "worker"]).is_duplicated().any():
        number = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("worker").alias("trial")
        return _joined(table, frame.with_columns(number))

    rest = [c for c in frame.columns if c not in (*by, "worker", *table.metrics)]
    kinds = {m: metric_kind(m, table.units[m], table.joins.get(m)) for m in table.metrics}
    worker = frame.group_by([*by, "worker"], maintain_order=True).agg(
        *(pl.col(c).first() for c in rest if c != "kept"),
        pl.col("kept").all(),
        *(_joining(metric, kind.commands) for metric, kind in kinds.items()),
        *(pl.col(metric).count().gt(1).alias(_several(metric)) for metric in kinds),
    )
    return worker.group_by(by, maintain_order=True).agg(
        *(pl.col(c).first() for c in rest if c != "kept"),
        pl.col("kept").all(),
        *(_join_workers(metric, kind) for metric, kind in kinds.items()),
    )


def _joining(metric: str, how: str) -> polars.Expr:
    from etude.stats.transforms.rows import joined  # polars takes long to import

    return joined(metric, how)


def _several(metric: str) -> str:
    return f"several of {metric}"


def _join_workers(metric: str, kind: MetricKind) -> polars.Expr:
    """Join of workers; a worker whose commands are not to be joined leaves its trial without a value."""
    import polars as pl

    value = _joining(metric, kind.join)
    return pl.when(~pl.col(_several(metric)).any()).then(value) if kind.commands == NONE else value


def _name(test: str, parameters: Mapping[str, str]) -> str:
    varying = [f"{name}={value}" for name, value in parameters.items() if value]
    return f"{test} ({', '.join(varying)})" if varying else test


def _failed_rows(frame: polars.DataFrame) -> Iterable[Failure]:
    if "status" not in frame.columns:
        return
    failed = frame.filter(frame["status"].fill_null(0) != 0)
    for trial, worker, status in failed.select("trial", "worker", "status").iter_rows():
        yield Failure(trial, worker, f"exit status {status}")
