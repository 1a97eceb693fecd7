"""Tables of other programs: a line of names, then one line per row, separated by commas or tabs."""

from __future__ import annotations

import csv
import io
import math
import os
from dataclasses import dataclass
from pathlib import Path

from etude.errors import InputError
from etude.results.regular import read_regular

MAX_COLUMNS = 10_000
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of cells that spreadsheets take for formulas, which can run programs."""


@dataclass(frozen=True)
class Table:
    """Contents of such a file, as text."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def numbers(self, column: str) -> list[float] | str:
        """A column's values; or the reason why not: the first cell that is no finite number, with its row."""
        place = self.header.index(column)
        found = []
        for number, row in enumerate(self.rows, 2):
            value = _number(row[place])
            if value is None:
                return f"{row[place]!r} in row {number} is no number"
            found.append(value)
        return found


def text_cell(text: str) -> str:
    """A cell for a spreadsheet: text that would be evaluated as a formula gets a leading '."""
    return f"'{text}" if text.startswith(FORMULA) and _number(text) is None else text


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a table: tabs are separators if the first line has one, else commas. Empty lines are skipped.

    Raises:
        InputError: it cannot be read, has no row, or a row that does not fit its names.
    """
    file = Path(path)
    try:
        text = read_regular(file).decode("utf-8-sig", "backslashreplace")
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    try:
        cells = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        rows = [tuple(map(str.strip, row)) for row in cells if row]
    except csv.Error as error:
        raise InputError(f"{file}: cannot be read as a table: {error}") from None
    if rows and len(rows[0]) > MAX_COLUMNS:
        raise InputError(f"{file}: has more than {MAX_COLUMNS} columns")
    if len(rows) < 2:
        raise InputError(f"{file}: holds no table: expected a line of names, then at least one row")
    header, *rest = rows
    if len(set(header)) < len(header):
        raise InputError(f"{file}: two columns have one name; give each its own")
    for number, row in enumerate(rest, 2):
        if len(row) != len(header):
            raise InputError(f"{file}: row {number} has {len(row)} cells, the line of names {len(header)}")
    return Table(header, tuple(rest))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None
