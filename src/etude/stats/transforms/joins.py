"""Joins of rows: groups, aggregates, the commands and workers of a trial; and columns derived from their times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars

from etude.stats.transforms.names import column, find, metrics

NONE = "none"
"""Function of `joined` that gives no value for several ones."""
FUNCTIONS = ("sum", "mean", "median", "min", "max", "first", "last", "count", "deviation")
"""Functions of `aggregate`; `deviation` with n-1."""

WORKERS: Mapping[str, str] = {"elapsed": "max", "user": "sum", "system": "sum", "sys": "sum"}
"""Functions that join the workers of a trial: the longest elapsed, summed CPU time (Auto-pilot paper, section 3.3)."""

COMMANDS: Mapping[str, str] = {**WORKERS, "elapsed": "sum"}
"""Functions that join the commands that one worker ran one after the other."""

DEFAULT_FUNCTION = "max"
"""Function for any other column: the largest."""

_TRIAL = ("file", "test", "sitting", "trial", "epoch")


def group(frame: polars.DataFrame, name: str) -> list[tuple[object, polars.DataFrame]]:
    """The rows of each value of a column, in order of first appearance. Raises NoColumnError."""
    parts = frame.partition_by(column(frame, name), maintain_order=True, as_dict=True)
    return [(value, part) for (value,), part in parts.items()]


def aggregate(
    frame: polars.DataFrame, functions: Mapping[str, str], by: Sequence[str] = ()
) -> polars.DataFrame:
    """One row for all, or one per combination of `by`: these columns, each by its function of `FUNCTIONS`.

    Missing values are ignored; without values the result is null, except for a count.
    Raises NoColumnError, and ValueError for an unknown function or a column that is not numeric.
    """
    made = [_aggregated(frame, column(frame, name), function) for name, function in functions.items()]
    keys = [column(frame, name) for name in by]
    return frame.group_by(keys, maintain_order=True).agg(made) if keys else frame.select(made)


def _aggregated(frame: polars.DataFrame, name: str, function: str) -> polars.Expr:
    if function not in FUNCTIONS:
        raise ValueError(f"there is no function {function!r}; there are {', '.join(FUNCTIONS)}")
    if function not in ("first", "last", "count") and not frame.schema[name].is_numeric():
        raise ValueError(f"{function} needs numbers, and {name} holds none")
    return joined(name, function)


def joined(name: str, function: str) -> polars.Expr:
    """Aggregate of a column's values; null if there are none."""
    values = polars.col(name).drop_nulls()
    if function == "sum":  # of nothing it would be 0
        return polars.when(polars.col(name).count() > 0).then(values.sum()).alias(name)
    if function == "deviation":
        return values.std(ddof=1)
    if function == NONE:
        return polars.when(polars.col(name).count() == 1).then(values.first()).alias(name)
    made: polars.Expr = getattr(values, function)()
    return made


def join_threads(
    frame: polars.DataFrame, by: Sequence[str] | None = None, joins: Mapping[str, str] = WORKERS
) -> polars.DataFrame:
    """Join the workers of each trial: the longest elapsed, summed user and system, by default the largest.

    The n-th command of each worker is joined with the n-th of the others.
    by: columns that identify a trial; by default its number, and test and session if there are such columns.
    Raises NoColumnError if there is no trial or epoch.
    """
    keys, worker = _keys(frame, by), find(frame, "worker")
    if worker is None:
        return frame
    turn = "turn of the worker"
    numbered = frame.with_columns(polars.int_range(polars.len()).over([*keys, worker]).alias(turn))
    made = numbered.group_by([*keys, turn], maintain_order=True).agg(
        *_rest(frame, [*keys, worker], joins), polars.col(worker).min()
    )
    return made.select(frame.columns)


def unite_commands(
    frame: polars.DataFrame,
    by: Sequence[str] | None = None,
    joins: Mapping[str, str] = WORKERS,
    commands: Mapping[str, str] = COMMANDS,
) -> polars.DataFrame:
    """One row per trial: the commands of each worker are summed up, then its workers are joined.

    The elapsed time is therefore that of the worker whose commands took longest in total. Errors as for `join_threads`.
    """
    keys, worker = _keys(frame, by), find(frame, "worker")
    inner = keys if worker is None else [*keys, worker]
    made = frame
    if frame.select(inner).is_duplicated().any():
        made = frame.group_by(inner, maintain_order=True).agg(_rest(frame, inner, commands))
        made = made.select(frame.columns)
    if worker is None or not made.select(keys).is_duplicated().any():
        return made
    return join_threads(made, by, joins)


def wait_and_cpu(frame: polars.DataFrame) -> polars.DataFrame:
    """The relation with `wait` = elapsed - user - system, and `cpu` = 100·(user + system)/elapsed in percent, of each
    row.

    The mean of `cpu` is therefore the mean of the trials' shares, not the share of the means. Existing columns are
    unchanged; nothing is added without elapsed, user or system. A trial with an elapsed time of 0 has no share.
    """
    names = [find(frame, name) for name in ("elapsed", "user", "system")]
    if None in names or not all(frame.schema[name].is_numeric() for name in names if name):
        return frame
    elapsed, user, system = (polars.col(name) for name in names if name)
    derived = {
        "wait": elapsed - user - system,
        "cpu": polars.when(elapsed != 0).then(100.0 * (user + system) / elapsed),
    }
    return frame.with_columns(
        value.alias(name) for name, value in derived.items() if find(frame, name) is None
    )


def _keys(frame: polars.DataFrame, by: Sequence[str] | None) -> list[str]:
    if by is not None:
        return [column(frame, name) for name in by]
    column(frame, "trial")
    return [name for name in _TRIAL if name in frame.columns]


def _rest(frame: polars.DataFrame, keys: Sequence[str], joins: Mapping[str, str]) -> list[polars.Expr]:
    """Expressions of the other columns: numbers joined, commands concatenated, the first failure, and the first of all
    else."""
    numbers = metrics(frame)
    made = []
    for name in frame.columns:
        if name in keys:
            continue
        if name in numbers:
            made.append(joined(name, joins.get(name, DEFAULT_FUNCTION)))
        elif name == "command":
            made.append(polars.col(name).drop_nulls().unique(maintain_order=True).str.join("; "))
        elif name == "kept":
            made.append(polars.col(name).all())
        elif name == "status":
            failed = polars.col(name).filter(polars.col(name) != 0).first()
            made.append(polars.coalesce(failed, polars.col(name).max()))
        else:
            made.append(polars.col(name).first())
    return made
