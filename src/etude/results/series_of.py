"""Series of measurements, and of a table of another program's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from etude.results.joining import NONE, asked_in, overall, why_not_joined
from etude.results.model import Joined, MetricKind, is_printed, metric_kind
from etude.results.samples import Trial, trials_of
from etude.results.series import Column, Failure, Series

if TYPE_CHECKING:
    import polars

    from etude.results.results import Results
    from etude.results.table import Table


def series_of_results(
    results: Results, role: str = "test", metrics: Sequence[str] | None = None
) -> tuple[Series, ...]:
    """The tests of one role of an experiment, in the order in which they were named; of these metrics, or of all."""
    entries = {entry["name"]: entry for entry in results.experiment["tests"]}
    return tuple(
        series_of_trials(
            name, trials_of(results.measurements[name]), entries[name].get("parameters") or {}, metrics
        )
        for name in results.names(role)
    )


def series_of_trials(
    name: str, trials: Sequence[Trial], parameters: Mapping[str, str], metrics: Sequence[str] | None = None
) -> Series:
    """One test from its trials; with these metrics and what the program printed, as far as its first or last trial has
    them, or all."""
    firsts = [trial.first for trial in trials]
    looked_at = trials if metrics is None else [*trials[:1], *trials[-1:]]
    there: dict[str, Any] = {}
    for trial in looked_at:
        for m in trial.measurements:
            there.update(m.metrics)
    asked = there if metrics is None else dict.fromkeys((*metrics, *filter(is_printed, there)))
    wanted = [metric for metric in asked if metric in there]
    single = all(len(trial.measurements) == 1 for trial in trials)
    windows = [_windows(trial) for trial in trials]
    caches = [m.cache for m in firsts]
    kernel = [_kernel(trial) for trial in trials]
    return Series(
        test=name,
        trials=np.array([m.trial for m in firsts], dtype=np.int64),
        kept=np.array([m.kept for m in firsts], dtype=np.bool_),
        columns={metric: _column(trials, metric, single=single) for metric in wanted},
        parameters=parameters,
        blocks=np.array([m.block for m in firsts], dtype=np.int64),
        sittings=np.array([m.sitting for m in firsts], dtype=np.int64),
        labels={"boot": [m.boot_id for m in firsts], "machine": [m.host for m in firsts]},
        why=[m.why for m in firsts],
        failures=tuple(_failures(trials)),
        inner=firsts[-1].inner if firsts else 1,
        caches=caches if any(caches) else (),
        kernel=kernel if any(kernel) else (),
        windows=windows if any(windows) else (),
        spans=np.array([trial.span_ns() for trial in trials], dtype=np.int64).reshape(len(trials), 2),
    )


def _column(trials: Sequence[Trial], metric: str, *, single: bool) -> Column:
    """single: each trial has one measurement, so that there is nothing to join."""
    first = next(m.metrics[metric] for trial in trials for m in trial.measurements if metric in m.metrics)
    unit = first[1]
    kind = metric_kind(metric, unit, asked_in(first))
    missing = first[2] if first[0] is None else None
    if single:
        each_first = [trial.measurements[0].metrics.get(metric) for trial in trials]
        values = np.array(
            [found[0] if found and found[1] == unit else None for found in each_first], dtype=np.float64
        )
        return Column(unit, kind.kind, values, missing)
    joined = [trial.joined(metric) if _is_in(trial, metric, unit) else Joined(None) for trial in trials]
    values = np.array([each.value for each in joined], dtype=np.float64)
    how = overall((each.how for each in joined), kind.join)
    workers = max((each.workers for each in joined), default=1)
    reason = why_not_joined(asked=is_printed(metric)) if how == NONE else missing
    return Column(unit, kind.kind, values, reason, how, workers)


def _is_in(trial: Trial, metric: str, unit: str) -> bool:
    """Whether all its values of the metric are in that unit; others cannot be compared, and count as missing."""
    return all(m.metrics[metric][1] == unit for m in trial.measurements if metric in m.metrics)


def _windows(trial: Trial) -> Sequence[Mapping[str, Any]] | None:
    found = [window for m in trial.measurements for window in m.windows or ()]
    return found or None


def _kernel(trial: Trial) -> Mapping[str, Any] | None:
    messages = [message for m in trial.measurements for message in m.kernel or ()]
    throttled = sum(m.throttled or 0 for m in trial.measurements)
    return {"messages": messages, "throttled": throttled} if messages or throttled else None


def _failures(trials: Iterable[Trial]) -> Iterable[Failure]:
    for trial in trials:
        for m in trial.measurements:
            if m.failed:
                yield Failure(m.trial, m.worker, m.ending(), m.cancelled_only)


def series_of_table(table: Table) -> tuple[Series, ...]:
    """A series a test of a table, or one a test and combination of parameters where those vary within the test: so a
    test has the same name whatever else is in the file.

    Commands are joined first, then workers (`results.joining`): `Table.frame` has a row a measurement.
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
        how = overall(hows, kind.join)
        reason = why_not_joined(asked=False) if how == NONE else None
    return Column(table.units[metric], table.kinds[metric], values, reason, how, workers)


def _joined(table: Table, frame: polars.DataFrame) -> polars.DataFrame:
    """A row a trial. Where each trial has one row already, the frame itself.

    Rows of one worker in one trial are commands only where it says which; else the number was used again, for another
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
    from etude.stats.transforms.joins import joined  # polars takes long to import

    return joined(metric, how)


def _several(metric: str) -> str:
    """The column that says whether a worker's commands have several values."""
    return f"several of {metric}"


def _join_workers(metric: str, kind: MetricKind) -> polars.Expr:
    """A worker whose commands are not to be joined leaves its trial without a value."""
    import polars as pl

    value = _joining(metric, kind.join)
    return pl.when(~pl.col(_several(metric)).any()).then(value) if kind.commands == NONE else value


def _name(test: str, parameters: Mapping[str, str]) -> str:
    """The test's name, with parameters that vary within it."""
    varying = [f"{name}={value}" for name, value in parameters.items() if value]
    return f"{test} ({', '.join(varying)})" if varying else test


def _failed_rows(frame: polars.DataFrame) -> Iterable[Failure]:
    if "status" not in frame.columns:
        return
    failed = frame.filter(frame["status"].fill_null(0) != 0)
    for trial, worker, status in failed.select("trial", "worker", "status").iter_rows():
        yield Failure(trial, worker, f"exit status {status}")


__all__ = ["series_of_results", "series_of_table", "series_of_trials"]
