"""Selection, projection, renaming and computation on relations; and warnings about rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars

from etude.stats.columns import RAW, display_name, metric_name
from etude.stats.expression import Expression, compile_expression, truth
from etude.stats.operators import text as as_text
from etude.stats.predicate import bindings, figures
from etude.stats.transforms.columnwise import Variable, evaluate, holds, texts
from etude.stats.transforms.names import column, metrics, variables

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
