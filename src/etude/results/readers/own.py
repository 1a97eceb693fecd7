"""Étude's own results: a directory with its experiment.json, or a results.jsonl alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from etude.results.readers.source import plain
from etude.results.table import MORE_PLACES, PLACES, Table, split_by

if TYPE_CHECKING:
    import polars

    from etude.results.columns import Coded, Columns

NAME = "etude"


def detect(path: Path, head: bytes) -> bool:
    if not head:
        return (path / "experiment.json").is_file()
    first = head.lstrip().split(b"\n", 1)[0]
    return first.startswith(b"{") and b'"trial":' in first and b'"metrics":' in first


def read(path: Path) -> Table:
    return read_own(path)


def read_own(path: Path, metrics: Collection[str] | None = None) -> Table:
    """The measurements of a results directory, or of one results.jsonl; of these metrics, or of all.

    For a directory those of its tests: A/A runs of the baseline and the empty shell are left out.

    Raises:
        InputError: it cannot be read, is of a newer version, or a line in the middle is no measurement.
    """
    from etude.results.columns import read_columns

    return table_of(read_columns(path, metrics))


def table_of(columns: Columns) -> Table:
    """Columns as a table."""
    import polars

    frame = polars.DataFrame([*_places(columns)])
    metrics = [
        polars.Series(name, metric.values, nan_to_null=True) for name, metric in columns.metrics.items()
    ]
    texts: list[polars.Series] = []
    for name in dict.fromkeys(plain(name) for found in columns.parameters.values() for name in found):
        column = split_by(
            name, "parameter", [*PLACES, *MORE_PLACES, *columns.metrics, *(text.name for text in texts)]
        )
        texts.append(_parameter(column, name, columns.test, columns.parameters))
    return Table(
        frame.with_columns([*texts, *metrics]),
        {name: metric.unit for name, metric in columns.metrics.items()},
        {name: metric.kind for name, metric in columns.metrics.items()},
        tuple(text.name for text in texts),
        str(columns.path),
        columns.warnings,
        joins={name: metric.join for name, metric in columns.metrics.items() if metric.join},
    )


def _places(columns: Columns) -> Iterator[polars.Series]:
    import polars

    for name in (*PLACES, *MORE_PLACES):
        if name == "process":
            continue  # only in other programs' files
        if name in ("test", "command", "host", "boot", "why"):
            coded: Coded = getattr(columns, name)
            yield polars.Series(name, coded.texts, dtype=polars.String).gather(coded.codes)
        elif name == "status":
            status = polars.Series(name, columns.status)
            yield status.to_frame().select(polars.when(status >= 0).then(status).alias(name)).to_series()
        else:
            yield polars.Series(name, getattr(columns, name))


def _parameter(
    column: str, name: str, test: Coded, parameters: Mapping[str, Mapping[str, str]]
) -> polars.Series:
    import polars

    by_code = [None if text is None else parameters.get(text, {}).get(name) for text in test.texts]
    return polars.Series(column, by_code, dtype=polars.String).gather(test.codes)
