"""A relation as text: CSV, aligned columns, and a description of the columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars

from etude.stats.operators import text
from etude.stats.transforms.names import column

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
    return lined_up([[cell or NOTHING for cell in row] for row in cells(frame)])


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
    kinds = ["number" if number else _kind(frame[n]) for n, number in zip(chosen, numeric, strict=True)]
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


def lined_up(rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned cells: the first of a row to the left with two blanks after it, the others to the right with one
    between."""
    widths = [max(map(len, cell)) for cell in zip(*rows, strict=True)]
    return [
        f"{first.ljust(widths[0])}  {' '.join(map(str.rjust, rest, widths[1:]))}" for first, *rest in rows
    ]


def _kind(values: polars.Series) -> str:
    return "flag" if values.dtype == polars.Boolean else "text"


def _texts(values: polars.Series) -> Iterable[str]:
    if values.dtype == polars.Boolean:
        return ["" if value is None else str(value).lower() for value in values.to_list()]
    if values.dtype.is_float():
        return ["" if value is None else text(value) for value in values.to_list()]
    return ["" if value is None else str(value) for value in values.to_list()]
