"""CSV and TSV: a line of names, then one line per row. Text columns are parameters, others metrics."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from etude.errors import InputError
from etude.results.delimited import Table as Cells
from etude.results.delimited import read_table
from etude.results.model import METRICS
from etude.results.readers.source import head_of, read_bytes
from etude.results.table import MAX_COLUMNS, Quantity, Rows, Table
from etude.units.parsing import ONE, PERCENT, SECOND, SIZE, TIME, Unit, number_in, unit_of

NAME = "csv"
GENERAL = True
"""Tried only if no other format claims the file: many programs' output has commas or tabs."""

_OURS: Mapping[str, tuple[str, Unit]] = {
    "sys": ("system", SECOND),
    "real": ("elapsed", SECOND),
    "io": ("wait", SECOND),
    "wait": ("wait", SECOND),
    "cpu": ("cpu", PERCENT),
    "cpu%": ("cpu", PERCENT),
}
_NOTHING = frozenset(
    ["", "-", "–", "na", "n/a", "nan", "null", "none", "inf", "-inf", "+inf", "infinity", "-infinity"]
)
_TESTS = ("test", "benchmark", "name")
_MOMENT = re.compile(r"[12][0-9]{3}-[01][0-9]-[0-3][0-9]|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? ")
"""Start of a date or a time of day: the time of a measurement is no parameter of it."""
_WHOLE = re.compile(r"[0-9]{1,15}")


def detect(path: Path, head: bytes) -> bool:
    if b"\0" in head or head.lstrip()[:1] in (b"{", b"["):
        return False
    lines = [line for line in head.decode("utf-8-sig", "replace").split("\n") if line.strip()]
    if len(lines) < 2 or any(ord(c) < 32 and c not in "\t\r" for c in lines[0]):
        return False
    names = lines[0].split("\t" if "\t" in lines[0] else ",")
    if len(names) == 1:
        return not _is_number(names[0]) and all(map(_is_number, lines[1:-1] or lines[1:]))
    return all(name.strip() for name in names)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read(path: Path) -> Table:
    head = head_of(path)
    if max(head.count(b","), head.count(b"\t")) > MAX_COLUMNS and b"\n" not in head:
        raise InputError(f"{path}: has more than {MAX_COLUMNS} columns")
    data = read_bytes(path)
    if b"\0" in data:
        raise InputError(f"{path}: is no text: it holds a zero byte")
    cells = read_table(path)
    if len(cells.header) > MAX_COLUMNS:
        raise InputError(f"{path}: has more than {MAX_COLUMNS} columns")
    rows = Rows(path)
    if not data.endswith((b"\n", b"\r")):
        rows.warn("its last line is not ended: it may have been cut short")
    places = {name: column for name in ("sitting", "block") if (column := _whole(cells, name)) is not None}
    add_cells(rows, _without(cells, places))
    table = rows.table()
    if not places:
        return table
    import polars

    further = [polars.Series(name, column, dtype=polars.Int64) for name, column in places.items()]
    return replace(table, frame=table.frame.with_columns(further))


def _whole(cells: Cells, name: str) -> list[int] | None:
    if cells.header.count(name) != 1:
        return None
    place = cells.header.index(name)
    column = [row[place] for row in cells.rows]
    return list(map(int, column)) if column and all(map(_WHOLE.fullmatch, column)) else None


def _without(cells: Cells, names: Collection[str]) -> Cells:
    places = [i for i, name in enumerate(cells.header) if name not in names]

    def rest(row: Sequence[str]) -> tuple[str, ...]:
        return tuple(row[i] for i in places)

    return Cells(rest(cells.header), tuple(map(rest, cells.rows)))


def add_cells(rows: Rows, cells: Cells) -> None:
    """Each row of a table as a measurement: places by their names, metrics with the unit of their heading.

    Raises InputError: its only columns of numbers have cells that are none.
    """
    columns = dict(zip(cells.header, zip(*cells.rows, strict=True), strict=True))
    places = _Places(rows, columns)
    metrics, parameters, attributes = {}, {}, {}
    for name, column in columns.items():
        if name in places.taken:
            continue
        if all(map(_MOMENT.match, column)):
            attributes[name] = column
        elif _is_text(rows, name, column):
            parameters[name] = column
        else:
            ours, unit = _metric(name)
            ours = name if ours in metrics else ours
            metrics[ours] = (unit, [number_in(cell) for cell in column])
            lacking = sum(value is None for value in metrics[ours][1])
            if lacking:
                which = next((f", such as {cell[:40]!r} in row {row}" for row, cell in _strange(column)), "")
                rows.warn(f"{name}: {lacking} of {len(column)} cells have no value{which}")
    spoilt = [(name, strange[0]) for name in parameters if (strange := _spoilt(columns[name]))]
    if spoilt and not metrics:
        name, (row, cell) = spoilt[0]
        raise InputError(
            f"{rows.path}: it holds no metric: {cell[:40]!r} in row {row}, column {name}, is no number; correct it"
        )
    for index in range(len(cells.rows)):
        test = places.tests[index] if places.tests else rows.test
        rows.add(
            test,
            {
                n: Quantity(values[index], u)
                for n, (u, values) in metrics.items()
                if values[index] is not None
            },
            trial=places.trials[index] if places.trials else rows.next_trial(test),
            worker=places.workers[index] if places.workers else 0,
            command=places.commands[index] if places.commands else None,
            kept=places.kept[index] if places.kept else True,
            status=places.statuses[index] if places.statuses else None,
            parameters={name: column[index] for name, column in parameters.items()},
            attributes={name: column[index] for name, column in attributes.items()},
        )


class _Places:
    """Contents of the columns that identify a measurement; empty for missing columns."""

    def __init__(self, rows: Rows, columns: Mapping[str, Sequence[str]]) -> None:
        self.taken: set[str] = set()
        self._columns, self._rows = columns, rows
        self.tests = self._texts(*_TESTS)
        self.commands = self._texts("command")
        self.trials = self._numbers("trial", "epoch")
        if not self.tests and not self.trials:
            self.tests = self.commands  # nothing shows that they belong together
        threads = self._numbers("thread")  # counted from 1, as Auto-pilot does, or from 0
        self.workers = [n - min(1, min(threads)) for n in threads] or self._numbers("worker")
        self.statuses = [n if n < 2**31 else None for n in self._numbers("status")]
        self.kept = self._flags("kept")

    def _texts(self, *names: str) -> Sequence[str]:
        name = next((n for n in names if n in self._columns), None)
        if name is None or all(number_in(cell) is not None for cell in self._columns[name]):
            return ()
        self.taken.add(name)
        return self._columns[name]

    def _numbers(self, *names: str) -> list[int]:
        name = next((n for n in names if n in self._columns and n not in self.taken), None)
        if name is None:
            return []
        column = self._columns[name]
        if not all(map(_WHOLE.fullmatch, column)):
            self._rows.warn(f"{name}: does not hold whole numbers only, and is taken as any other column")
            return []
        self.taken.add(name)
        return list(map(int, column))

    def _flags(self, name: str) -> list[bool]:
        column = self._columns.get(name, ())
        if not column or not {cell.lower() for cell in column} <= {"true", "false"}:
            return []
        self.taken.add(name)
        return [cell.lower() == "true" for cell in column]


_NOT_A_NUMBER = re.compile(r"\s*[+-]?(nan|inf|infinity)\s*", re.IGNORECASE)


def _strange(column: Sequence[str]) -> list[tuple[int, str]]:
    """The cells that are neither numbers nor marks for a missing one, with the numbers of their rows."""
    return [
        (row, cell)
        for row, cell in enumerate(column, 2)
        if number_in(cell) is None and cell.lower() not in _NOTHING
    ]


def _spoilt(column: Sequence[str]) -> list[tuple[int, str]]:
    """The strange cells of a column that also has numbers; empty for a column of text."""
    numbers = any(number_in(cell) is not None for cell in column)
    return _strange(column) if numbers else []


def _is_text(rows: Rows, name: str, column: Sequence[str]) -> bool:
    """True for a column of text: never one whose heading names a unit or a metric of Étude."""
    bare, unit = _heading(name)
    if unit is not None or bare.lower() in METRICS:
        return False
    strange = _strange(column)
    if not strange:
        return not any(number_in(cell) is not None or _NOT_A_NUMBER.fullmatch(cell) for cell in column)
    if spoilt := _spoilt(column):
        row, cell = spoilt[0]
        rows.warn(f"{name}: is taken as text, for {cell[:40]!r} in row {row} is no number")
    return True


def _metric(name: str) -> tuple[str, Unit]:
    bare, unit = _heading(name)
    ours, usual = _OURS.get(bare.lower(), (bare, None))
    if unit is not None:
        return ours, unit
    if usual is not None:
        return ours, usual
    kind = METRICS.get(bare.lower())
    return (bare.lower(), Unit(kind.unit)) if kind else (bare, ONE)


_BRACKETS = re.compile(r"(?P<name>.*\S)\s*[(\[]\s*(?P<unit>[^()\[\]]+?)\s*[)\]]\s*", re.DOTALL)
_SUFFIX = re.compile(r"(?P<name>.*[^_])_(?P<unit>[A-Za-z]+)", re.DOTALL)
_AFTER_UNDERSCORE = frozenset(name for name in (*TIME, *SIZE, "pct", "percent") if name not in ("B", "h"))


def _heading(text: str) -> tuple[str, Unit | None]:
    """Name and unit of a column: `time (ms)`, `time [ms]` or `time_ms`; the text itself if it names no unit."""
    text = text.strip()
    match = _BRACKETS.fullmatch(text) if len(text) < 200 else None
    if match is not None and unit_of(match["unit"]) is not None:
        return match["name"].strip(), unit_of(match["unit"])
    match = _SUFFIX.fullmatch(text) if len(text) < 200 else None
    if match is not None and match["unit"] in _AFTER_UNDERSCORE:
        return match["name"], unit_of(match["unit"])
    return text, None
