"""Getstats from summaries: tables of count, mean, sdev, min and max in place of values, as papers print them."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from etude.analysis.getstats.options import Settings
from etude.analysis.getstats.tables import File, raw_name
from etude.errors import InputError, UsageError
from etude.results.regular import read_regular
from etude.stats.columns import display_name, metric_name
from etude.stats.predicate import Figures

if TYPE_CHECKING:
    from etude.analysis.getstats.tables import Raw
    from etude.results.table import Table

_COLUMNS = {
    "name": "name",
    "file": "name",
    "test": "name",
    "quantity": "quantity",
    "column": "quantity",
    "metric": "quantity",
    "count": "count",
    "n": "count",
    "mean": "mean",
    "median": "median",
    "sdev": "sdev",
    "stddev": "sdev",
    "deviation": "sdev",
    "sdev%": "sdev%",
    "min": "min",
    "minimum": "min",
    "max": "max",
    "maximum": "max",
}
"""Accepted names of the columns of such a table; others (LOW, HIGH, HW%, O/H) are computed again."""

_NOTHING = ("", "-", "–", "na", "n/a", "nan")
_UNKNOWN = math.nan
_NOT_TOLD = {
    "Wait": "A summary has only the mean of Wait.",
    "CPU%": "A summary has nothing on CPU%: its mean is that of the shares of single runs.",
}


@dataclass(frozen=True)
class SummarySource:
    """The summaries of one test, as a source of Getstats."""

    label: str
    figures: Mapping[str, Figures]
    """Figures by display name; their delta depends on the confidence and is computed when they are shown."""
    warnings: tuple[str, ...] = ()

    def judged(self, columns: Sequence[str] | None) -> dict[str, list[float]]:
        raise UsageError(f"{self.label}: holds summaries, not values; no predicate can be judged on them")

    def shown(self, columns: Sequence[str] | None) -> File:
        names = {metric_name(name): name for name in self.figures}
        for name in columns or ():
            if name not in names:
                raise UsageError(f"{self.label}: has no column {name!r}; it has {', '.join(names)}")
        chosen = self.figures if columns is None else {names[n]: self.figures[names[n]] for n in columns}
        return File(self.label, {}, {}, self.warnings, chosen)

    def raw(self) -> Raw:
        raise UsageError(f"{self.label}: holds summaries; there are no rows to print")


def read_summaries(path: str, settings: Settings) -> list[SummarySource]:
    """The tables of a file, with commas, tabs or blanks between columns: one for each test that is named in it.

    A line of names, then a row a quantity: name, count, mean, sdev (or sdev% of the mean), min, max; median where it
    is known. With a column `quantity`, `name` is the test; without one `name` is the quantity, and the test is called
    as the line above the names (the layout of Getstats' own tables), else as the file. Lines that begin with # are
    left out.

    Raises:
        InputError: it cannot be read, or a row does not fit; the line is named.
    """
    found: dict[str, dict[str, Figures]] = {}
    for label, quantity, known in _rows(path):
        columns = found.setdefault(label, {})
        name = display_name(quantity)
        if name in columns:
            raise InputError(f"{path}: {label} has two rows for {name}; expected one")
        columns[name] = _figures(path, name, known)
    if not found:
        raise InputError(
            f"{path}: holds no summary; expected a line of names (name count mean sdev min max) and rows"
        )
    return [_source(label, columns, settings) for label, columns in found.items()]


def of_table(path: str, table: Table) -> Iterator[SummarySource]:
    """The tests of another program's file that holds summaries only."""
    settings = Settings()
    parts = table.frame.partition_by(["test", *table.parameters], maintain_order=True, as_dict=True)
    for values, frame in parts.items():
        label = path if len(parts) == 1 else f"{path}/{' '.join(str(v) for v in values if v is not None)}"
        columns = {}
        for row in frame.iter_rows(named=True):
            known = {"count": row.get("count"), "mean": row.get("mean"), "median": row.get("median")}
            known |= {"sdev": row.get("deviation"), "min": row.get("minimum"), "max": row.get("maximum")}
            name = display_name(row["metric"])
            columns[name] = _figures(path, name, known)
        yield _source(label, columns, settings)


def _source(label: str, columns: dict[str, Figures], settings: Settings) -> SummarySource:
    warnings = [line for name, f in columns.items() for line in _high_scores(name, f, settings.high_z)]
    derived = _derived(columns)
    warnings += [_NOT_TOLD[name] for name in derived]
    return SummarySource(label, columns | derived, tuple(warnings))


def _derived(columns: Mapping[str, Figures]) -> dict[str, Figures]:
    """Wait and CPU% where they are not given but times are.

    The mean waiting time is the difference of means. Its deviation is unknown, and so is the mean of the runs' own
    shares of the CPU: a ratio of means is another number (7.831 for 7.885 in figure 2 of the Auto-pilot paper).
    """
    times = [columns.get(name) for name in ("Elapsed", "System", "User")]
    known = [f for f in times if f is not None and not math.isnan(f.mean)]
    if len(known) < 3 or len({f.count for f in known}) > 1:
        return {}
    elapsed, system, user = known
    made = {"Wait": elapsed.mean - system.mean - user.mean, "CPU%": _UNKNOWN}
    return {
        name: Figures(elapsed.count, mean, *[_UNKNOWN] * 6)
        for name, mean in made.items()
        if name not in columns
    }


def _high_scores(name: str, f: Figures, threshold: float) -> Iterator[str]:
    """Warnings about the minimum and the maximum, whose epochs are unknown."""
    for where, value in (("minimum", f.minimum), ("maximum", f.maximum)):
        if f.stddev > 0.0 and math.isfinite(f.stddev) and abs(value - f.mean) / f.stddev > threshold:
            score = abs(value - f.mean) / f.stddev
            yield f"High z-score of {score:.15g} for {raw_name(name)} at its {where}, {value:g}."


def _figures(path: str, name: str, known: Mapping[str, float | None]) -> Figures:
    def value(column: str) -> float:
        found = known.get(column)
        return _UNKNOWN if found is None else found

    count, mean, sdev = value("count"), value("mean"), value("sdev")
    if math.isnan(sdev):
        sdev = value("sdev%") / 100.0 * abs(mean)
    if not math.isnan(count) and (count < 1 or count != int(count)):
        raise InputError(f"{path}: {name}: count {count:g} is no number of runs")
    if sdev < 0.0:
        raise InputError(f"{path}: {name}: a deviation cannot be below zero, as {sdev:g}")
    low, high = value("min"), value("max")
    if low > mean or high < mean:
        raise InputError(
            f"{path}: {name}: the mean {mean:g} does not lie between min {low:g} and max {high:g}"
        )
    runs = 0 if math.isnan(count) else int(count)
    spread = sdev if runs > 1 else _UNKNOWN
    return Figures(runs, mean, value("median"), _UNKNOWN, spread, low, high, slope=_UNKNOWN)


def _rows(path: str) -> Iterator[tuple[str, str, dict[str, float | None]]]:
    before, names = "", list[str]()
    for number, line in enumerate(_lines(path), 1):
        if line.lstrip().startswith("#"):
            continue
        cells = _cells(line)
        heading = _heading(cells)
        if heading is not None:
            names = heading
            continue
        if not line.strip():
            names, before = [], ""
        elif names:
            if len(cells) != len(names):
                raise InputError(
                    f"{path}: line {number} has {len(cells)} cells, its line of names {len(names)}"
                )
            yield _row(path, number, before or path, dict(zip(names, cells, strict=True)))
        else:
            before = line.strip()


def _row(
    path: str, number: int, label: str, cells: Mapping[str, str]
) -> tuple[str, str, dict[str, float | None]]:
    texts = {name: cells[name] for name in ("name", "quantity") if name in cells}
    quantity = texts.get("quantity", texts.get("name", ""))
    test = texts["name"] if "quantity" in texts and "name" in texts else label
    numbers = {
        name: _number(path, number, name, cell)
        for name, cell in cells.items()
        if name and name not in ("name", "quantity")
    }
    if not quantity or not test:
        raise InputError(f"{path}: line {number} does not name its quantity")
    return test, quantity, numbers


def _number(path: str, line: int, name: str, cell: str) -> float | None:
    if cell.lower() in _NOTHING:
        return None
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or "_" in cell:
        raise InputError(f"{path}: line {line}: {name} {cell[:40]!r} is no finite number")
    return value


def _heading(cells: Sequence[str]) -> list[str] | None:
    """Our names of the columns of a line that names them ("" for one that is not used); None for any other line."""
    names = [_COLUMNS.get(cell.lower().replace("\\", ""), "") for cell in cells]
    needed = {"count", "mean"} <= set(names) and ("name" in names or "quantity" in names)
    used = [name for name in names if name]
    return names if needed and len(set(used)) == len(used) else None


def _cells(line: str) -> list[str]:
    if "," in line or "\t" in line:
        try:
            rows = list(csv.reader([line], delimiter="\t" if "\t" in line else ","))
        except csv.Error:
            return line.split()  # it matches no line of names
        return [cell.strip() for cell in rows[0]] if rows else []
    return line.split()


def _lines(path: str) -> list[str]:
    try:
        data = read_regular(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if b"\0" in data:
        raise InputError(f"{path}: is no text: it holds a zero byte")
    return data.decode("utf-8-sig", "replace").splitlines()
