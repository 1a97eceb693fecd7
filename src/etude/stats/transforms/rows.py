"""Operations on relations: names of columns, selection, computation, joins, warnings about rows, and text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import polars

from etude.stats.columns import DISPLAY, RAW, aligned, display_name, metric_name
from etude.stats.expression import Expression, compile_expression, truth
from etude.stats.operators import text
from etude.stats.operators import text as as_text
from etude.stats.predicate import bindings, figures
from etude.stats.transforms.columnwise import Variable, evaluate, holds, texts

Others = Mapping[str, Variable] | None
"""Variables besides the columns: one value for all rows."""

MOST_WARNINGS = 20
"""Maximum rows that are listed individually."""


def select(frame: polars.DataFrame, expression: str, others: Others = None) -> polars.DataFrame:
    """Rows for which the expression is true; rows that lack a value it needs are dropped.

    Raises ExpressionError if it cannot be parsed, or cannot be evaluated in one of the rows.
    """
    return frame.filter(_holds(frame, expression, others))


def project(frame: polars.DataFrame, names: Sequence[str]) -> polars.DataFrame:
    """These columns, in this order. Raises NoColumnError for a missing one."""
    return frame.select(list(dict.fromkeys(column(frame, name) for name in names)))


def rename(frame: polars.DataFrame, names: Mapping[str, str]) -> polars.DataFrame:
    """The columns with new names, given by the old ones.

    Raises NoColumnError for a missing one, ValueError if a new name is taken.
    """
    found = {column(frame, old): new for old, new in names.items()}
    after = [found.get(name, name) for name in frame.columns]
    taken = [new for old, new in found.items() if after.count(new) > 1]
    if taken:
        raise ValueError(f"there is a column {taken[0]!r} already")
    return frame.rename(found)


def compute(frame: polars.DataFrame, name: str, expression: str, others: Others = None) -> polars.DataFrame:
    """The relation with a column computed from others, which replaces one of the same name: numbers (true is 1, false
    0) or text.

    A non-finite result, or one that needs a missing value, is null. Raises ExpressionError as `select`.
    """
    compiled = compile_expression(expression)
    found = evaluate(compiled, variables(frame, compiled.names, others), frame.height)
    if found.dtype == polars.Boolean:
        found = found.cast(polars.Float64)
    return frame.with_columns(found.alias(name))


def warn_rows(frame: polars.DataFrame, expression: str, text: str, others: Others = None) -> list[str]:
    """The text for each row in which the expression is true, with its variables (`$epoch`) replaced by the row's
    values."""
    found = frame.filter(_holds(frame, expression, others))
    first = found.head(MOST_WARNINGS)
    template = template_of(text)
    lines = texts(template, variables(first, template.names, others), first.height, "-")
    return [*lines, *_rest(found.height)]


def warn_columns(
    frame: polars.DataFrame,
    expression: str,
    text: str,
    others: Others = None,
    *,
    columns: Sequence[str] | None = None,
    confidence: float = 0.95,
) -> list[str]:
    """The text for each numeric column whose figures (those of a predicate: `$mean`, `$delta`) make it true."""
    compiled, template = compile_expression(expression), template_of(text)
    found = []
    for name in metrics(frame) if columns is None else columns:
        known = {**_plain(others), **column_figures(frame, name, confidence)}
        if known.get("count") and truth(compiled.evaluate(known)):
            found.append(as_text(template.evaluate(known)))
    return found


def warn_values(
    frame: polars.DataFrame,
    expression: str,
    text: str,
    others: Others = None,
    *,
    columns: Sequence[str] | None = None,
    confidence: float = 0.95,
) -> list[str]:
    """The text for each value that makes the expression true: `$value`, the row's columns, and its column's figures."""
    found = []
    for name in metrics(frame) if columns is None else columns:
        known = {**(others or {}), **column_figures(frame, name, confidence)}
        if known.get("count"):
            valued = frame.with_columns(frame[column(frame, name)].alias("value"))
            found += warn_rows(valued, expression, text, known)
    return found


def echo(text: str, others: Others = None) -> str:
    """The text with its variables replaced. Raises ExpressionError for an unknown one."""
    return as_text(template_of(text).evaluate(_plain(others)))


def template_of(text: str) -> Expression:
    """A text with `$names` as variables, as between double quotes."""
    return compile_expression('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"')


def column_figures(frame: polars.DataFrame, name: str, confidence: float = 0.95) -> dict[str, Any]:
    """The variables of a predicate for one column; empty without values."""
    own = column(frame, name)
    values = frame[own].cast(polars.Float64).drop_nulls()
    values = values.filter(values.is_finite())
    if values.is_empty():
        return {}
    found = figures(values.to_numpy(), confidence)
    known = dict(bindings(own, found, confidence))
    return known | {"raw": RAW.get(metric_name(own), own), "name": display_name(own)}


def _holds(frame: polars.DataFrame, expression: str, others: Others) -> polars.Series:
    compiled = compile_expression(expression)
    return holds(compiled, variables(frame, compiled.names, others), frame.height)


def _plain(others: Others) -> dict[str, float | str]:
    return {name: value for name, value in (others or {}).items() if not isinstance(value, polars.Series)}


def _rest(count: int) -> list[str]:
    return [f"and {count - MOST_WARNINGS} more of this kind"] if count > MOST_WARNINGS else []


NOTHING = "-"
"""Text of a missing value in aligned columns; in CSV the cell is empty."""


def cells(frame: polars.DataFrame) -> list[tuple[str, ...]]:
    """The names, then the rows: numbers with up to 15 digits, missing values empty."""
    columns = [_texts(frame[name]) for name in frame.columns]
    return [tuple(frame.columns), *zip(*columns, strict=True)]


def csv(frame: polars.DataFrame) -> str:
    """The relation as CSV: a line of names, then a line per row."""
    texts = [polars.Series(name, _texts(frame[name]), dtype=polars.String) for name in frame.columns]
    return polars.DataFrame(texts).with_columns(polars.all().replace("", None)).write_csv().rstrip("\n")


def dump(frame: polars.DataFrame) -> list[str]:
    """The relation in aligned columns: names, then a line per row."""
    return aligned([[cell or NOTHING for cell in row] for row in cells(frame)])


def describe(frame: polars.DataFrame, names: Sequence[str] | None = None) -> polars.DataFrame:
    """A row per column of `names`, or of all: name, type, number of values, of missing and of distinct ones, and
    minimum, mean and maximum of numbers."""
    chosen = frame.columns if names is None else [column(frame, each) for each in names]
    numeric = [frame.schema[name].is_numeric() for name in chosen]
    ends = [
        [
            getattr(frame[name], end)() if number else None
            for name, number in zip(chosen, numeric, strict=True)
        ]
        for end in _ENDS
    ]
    texts = ["flag" if frame.schema[name] == polars.Boolean else "text" for name in chosen]
    kinds = ["number" if number else text for text, number in zip(texts, numeric, strict=True)]
    missing = [frame[name].null_count() for name in chosen]
    return polars.DataFrame(
        [
            polars.Series("column", chosen, dtype=polars.String),
            polars.Series("type", kinds, dtype=polars.String),
            polars.Series("values", [frame.height - count for count in missing], dtype=polars.Int64),
            polars.Series("missing", missing, dtype=polars.Int64),
            polars.Series(
                "different", [frame[n].drop_nulls().n_unique() for n in chosen], dtype=polars.Int64
            ),
            *(polars.Series(end, v, dtype=polars.Float64) for end, v in zip(_ENDS, ends, strict=True)),
        ]
    )


_ENDS = ("min", "mean", "max")


def _texts(values: polars.Series) -> Iterable[str]:
    if values.dtype == polars.Boolean:
        return ["" if value is None else str(value).lower() for value in values.to_list()]
    if values.dtype.is_float():
        return ["" if value is None else text(value) for value in values.to_list()]
    return ["" if value is None else str(value) for value in values.to_list()]


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
        *_other_columns(frame, [*keys, worker], joins), polars.col(worker).min()
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
        made = frame.group_by(inner, maintain_order=True).agg(_other_columns(frame, inner, commands))
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


def _other_columns(
    frame: polars.DataFrame, keys: Sequence[str], joins: Mapping[str, str]
) -> list[polars.Expr]:
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


PLACES = (
    "test",
    "sitting",
    "process",
    "trial",
    "epoch",
    "worker",
    "thread",
    "command",
    "kept",
    "status",
    "block",
    "order",
    "inner",
    "host",
    "boot",
    "boot_id",
    "why",
    "file",
)
"""Columns that identify a measurement and have no statistics."""

_GROUPS: tuple[tuple[str, ...], ...] = (
    ("trial", "epoch"),
    ("worker", "thread"),
    *((metric, RAW[metric], shown) for metric, shown in DISPLAY.items()),
)


class NoColumnError(ValueError):
    """A missing column; the message names the existing ones."""


def find(frame: polars.DataFrame, name: str) -> str | None:
    """The frame's own name of a column given by any of its names (`epoch` for `trial`); or None."""
    if name in frame.columns:
        return name
    group = next((group for group in _GROUPS if name in group), ())
    return next((other for other in group if other in frame.columns), None)


def column(frame: polars.DataFrame, name: str) -> str:
    """`find`, but raises NoColumnError if there is no such column."""
    found = find(frame, name)
    if found is None:
        alike = difflib.get_close_matches(name, frame.columns, 1)
        hint = f", did you mean {alike[0]}" if alike else ""
        raise NoColumnError(f"there is no column {name!r}{hint}; there are {', '.join(frame.columns)}")
    return found


def metrics(frame: polars.DataFrame, but: Collection[str] = ()) -> list[str]:
    """The numeric columns that are not in PLACES, in order."""
    return [
        name
        for name, kind in frame.schema.items()
        if kind.is_numeric() and name not in PLACES and name not in but
    ]


def variables(
    frame: polars.DataFrame, names: Iterable[str], others: Mapping[str, Variable] | None = None
) -> dict[str, Variable]:
    """Variables of an expression with these names: every column by each of its names, and `others`.

    Threads count from 1, our workers from 0. A column whose name is not a valid variable (`time (ms)`) is available
    with `_` for invalid characters (`$time_ms`).
    """
    found: dict[str, Variable] = {_as_variable(name): value for name, value in (others or {}).items()}
    for name in reversed(frame.columns):
        found.setdefault(_as_variable(name), frame[name])
    found |= {name: frame[name] for name in frame.columns}
    for group in _GROUPS[2:] + _GROUPS[:1]:
        own = next((name for name in group if name in frame.columns), None)
        found |= {name: frame[own] for name in group if own is not None and name not in frame.columns}
    for has, lacks, step in (("worker", "thread", 1), ("thread", "worker", -1)):
        if has in frame.columns and lacks not in frame.columns and frame.schema[has].is_numeric():
            found[lacks] = frame[has] + step if lacks in names else frame[has]
    return found


def _as_variable(name: str) -> str:
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
    return f"_{plain}" if plain[:1].isdigit() else plain or name
