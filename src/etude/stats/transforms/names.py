"""Names of columns: their own, and the aliases of Auto-pilot and of our results."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping

import polars

from etude.stats.columns import DISPLAY, RAW
from etude.stats.transforms.columnwise import Variable

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
