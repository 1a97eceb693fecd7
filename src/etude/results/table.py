"""One tidy table of measurements, whatever format they were read from, and how a reader builds it row by row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from etude.errors import InputError
from etude.results.model import METRICS
from etude.results.readers.source import plain, read_lines
from etude.results.trial_join import kind_of
from etude.units.parsing import Unit

if TYPE_CHECKING:
    import polars


PLACES: Mapping[str, str] = {
    "test": "text",
    "trial": "whole number from 1; ours may have an excluded trial 0",
    "worker": "whole number from 0",
    "command": "text",
    "kept": "boolean",
    "status": "whole number or null: exit status; 128 + signal for one that a signal ended",
}
"""Columns that identify a measurement. `test`, `trial`, `worker` and `kept` are always present."""

MORE_PLACES: Mapping[str, str] = {
    "block": "whole number: with which trials of other tests it formed a block",
    "order": "whole number: its place in the block",
    "sitting": "whole number from 1",
    "process": "whole number from 1, or null: which of the processes that measured the test in turn",
    "host": "text: the machine",
    "boot": "text: which of its boots",
    "why": "text or null: why it is not kept",
    "inner": "whole number from 1: launches in it",
}
"""Further columns, after those of `PLACES`, in our own format."""

SUMMARY = ("count", "mean", "deviation", "median", "minimum", "q1", "q3", "maximum", "error")
"""Columns of a table of summaries, as far as the format has them. `error` is the mean's standard error, in percent."""


@dataclass(frozen=True, eq=False)
class Table:
    """One row per measurement: places first, then parameters, then a Float64 column per metric, null for missing
    values.

    In a table of summaries a row is one metric of one test: its name is in the column `metric`, and its summaries in
    columns of `SUMMARY`.
    """

    frame: polars.DataFrame
    units: Mapping[str, str]
    """Unit of each metric, by name: s, B, 1, 1/s, B/s, %, … or the format's own if its base is unknown."""
    kinds: Mapping[str, str]
    """Kind of each metric: cost, rate, ratio, count or binary."""
    parameters: tuple[str, ...] = ()
    """Columns of a row's configuration, text: each value of a varying one is a test of its own."""
    label: str = ""
    warnings: tuple[str, ...] = field(default=())
    """Notes on what was left out, and why."""
    summary_only: bool = False
    joins: Mapping[str, str] = field(default_factory=dict)
    """Join of workers and commands, for each metric whose rows specify it (`results.trial_join`)."""
    attributes: tuple[str, ...] = ()
    """Columns that describe a row, text, and do not distinguish tests."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of its metrics, in order."""
        return tuple(self.units)


MAX_COLUMNS = 10_000
MAX_CELLS = 50_000_000
MAX_WARNINGS = 20
_MAX_WHOLE = 2**62
_TAKEN = (*PLACES, *MORE_PLACES)


class Quantity(NamedTuple):
    """A value and its unit in the format. `kind` if the unit does not imply it."""

    value: float | None
    unit: Unit
    kind: str | None = None


class _Builder:
    """The units, kinds and warnings of a table so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._units: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._warnings: Counter[str] = Counter()
        self._cut = False

    def lines(self) -> list[str]:
        """The complete lines of the file; the table will warn of another one that is torn.

        Raises InputError: same as `read_text`.
        """
        lines, self._cut = read_lines(self.path)
        return lines

    def warn(self, text: str) -> None:
        """Note something that was left out, or another remark. Repetitions of a text are counted."""
        if text in self._warnings or len(self._warnings) < 10 * MAX_WARNINGS:
            self._warnings[plain(" ".join(text.split()))] += 1
        else:
            self._warnings[""] += 1

    def _check_rows(self, count: int) -> None:
        if self._cut:
            self.warn("a last line that was cut short is left out")
        if not count:
            first = next(iter(self._warnings), "")
            raise InputError(f"{self.path}: holds no measurement{f': {first}' if first else ''}")


class Rows(_Builder):
    """The rows of a table so far."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.test = plain(path.stem or path.name)
        """Name of a test if the format has none."""
        self._places: list[tuple[str, int, int, str | None, bool, int | None]] = []
        self._processes: list[int | None] = []
        self._attributes: set[str] = set()
        self._texts: dict[str, dict[int, str]] = {}
        self._values: dict[str, dict[int, float]] = {}
        self._trials: Counter[tuple[Any, ...]] = Counter()

    def __len__(self) -> int:
        return len(self._places)

    def add(
        self,
        test: str,
        metrics: Mapping[str, Quantity],
        *,
        trial: int | None = None,
        worker: int = 0,
        command: str | None = None,
        kept: bool = True,
        status: int | None = None,
        process: int | None = None,
        parameters: Mapping[str, str] | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> None:
        """Add one measurement. Without a trial number it is the next one of its test, parameters and worker.

        process: number of the process of the test that measured it. attributes: descriptions of the measurement that do
        not distinguish tests.
        """
        index = len(self._places)
        parameters = {} if parameters is None else parameters
        if trial is None:
            trial = self.next_trial(test, worker, *parameters.items())
        if not (0 <= trial < _MAX_WHOLE and 0 <= worker < _MAX_WHOLE):
            raise InputError(f"{self.path}: trial {trial} of worker {worker} is invalid")
        self._places.append((plain(test), trial, worker, command and plain(command), kept, status))
        self._processes.append(process)
        attributes = {} if attributes is None else attributes
        self._attributes |= {_beside(plain(name), _TAKEN) for name in attributes}
        for name, text in (*parameters.items(), *attributes.items()):
            self._texts.setdefault(_beside(plain(name), _TAKEN), {})[index] = plain(text)
            if len(self._texts) > MAX_COLUMNS:
                raise InputError(
                    f"{self.path}: has more than {MAX_COLUMNS} parameters; no table can hold them"
                )
        for name, quantity in metrics.items():
            self._value(index, plain(name), quantity)

    def next_trial(self, *key: Any) -> int:
        """The next number, from 1, for each key."""
        self._trials[key] += 1
        return self._trials[key]

    def _value(self, index: int, name: str, quantity: Quantity) -> None:
        value = None if quantity.value is None else quantity.unit.of(quantity.value)
        if value is not None and not math.isfinite(value):
            value = None
        name = _beside(name, _TAKEN)
        base = self._units.setdefault(name, quantity.unit.base)
        if len(self._units) > MAX_COLUMNS:
            raise InputError(f"{self.path}: has more than {MAX_COLUMNS} metrics; no table can hold them")
        if base != quantity.unit.base:
            self.warn(f"{name} is in {base} here and in {quantity.unit.base} there: two columns")
            name = f"{name} ({quantity.unit.base})"
            self._units.setdefault(name, quantity.unit.base)
        ours = METRICS.get(name)
        self._kinds.setdefault(name, quantity.kind or (ours.kind if ours else kind_of(quantity.unit.base)))
        values = self._values.setdefault(name, {})
        if value is None:
            self.warn(f"{name}: a value that is no finite number is left out")
        else:
            values[index] = value

    def table(self) -> Table:
        """The table. Raises InputError without rows, or beyond the limits of a table."""
        import polars

        count = len(self._places)
        self._check_rows(count)
        names = [*self._texts, *self._values]
        if len(names) > MAX_COLUMNS or len(names) * count > MAX_CELLS:
            raise InputError(
                f"{self.path}: {count} rows of {len(names)} columns are more than a table can hold "
                f"({MAX_COLUMNS} columns, {MAX_CELLS} cells)"
            )
        columns = dict(zip(PLACES, map(list, zip(*self._places, strict=True)), strict=True))
        types = (polars.String, polars.Int64, polars.Int64, polars.String, polars.Boolean, polars.Int64)
        series = [
            polars.Series(name, values, dtype=kind)
            for (name, values), kind in zip(columns.items(), types, strict=True)
            if name not in ("command", "status") or any(value is not None for value in values)
        ]
        if any(process is not None for process in self._processes):
            series.append(polars.Series("process", self._processes, dtype=polars.Int64))
        texts: dict[str, str] = {}
        for name in self._texts:
            texts[name] = split_by(name, "text", {*self._values, *texts.values()})
        series += [
            polars.Series(texts[name], list(map(cells.get, range(count))), dtype=polars.String)
            for name, cells in self._texts.items()
        ]
        series += [
            polars.Series(name, list(map(cells.get, range(count))), dtype=polars.Float64)
            for name, cells in self._values.items()
        ]
        return Table(
            polars.DataFrame(series),
            {name: self._units[name] for name in self._values},
            {name: self._kinds[name] for name in self._values},
            tuple(column for name, column in texts.items() if name not in self._attributes),
            str(self.path),
            warning_lines(self._warnings),
            attributes=tuple(column for name, column in texts.items() if name in self._attributes),
        )


class Summaries(_Builder):
    """The rows of a table of summaries only: one row per metric and test."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._rows: list[dict[str, Any]] = []
        self._parameters: dict[str, None] = {}

    def add(
        self,
        test: str,
        metric: str,
        unit: Unit,
        figures: Mapping[str, float | None],
        *,
        count: float | None = None,
        error: float | None = None,
        kind: str | None = None,
        parameters: Mapping[str, str] | None = None,
    ) -> None:
        """Add one metric: `figures` in the given unit by names of `SUMMARY`, error in percent."""
        metric = plain(metric)
        if self._units.setdefault(metric, unit.base) != unit.base:
            metric = f"{metric} ({unit.base})"
            self._units.setdefault(metric, unit.base)
        ours = METRICS.get(metric)
        self._kinds.setdefault(metric, kind or (ours.kind if ours else kind_of(unit.base)))
        found = {name: None if value is None else unit.of(value) for name, value in figures.items()}
        found |= {"count": count, "error": error}
        row: dict[str, Any] = {"test": plain(test), "metric": metric}
        for name, text in (parameters or {}).items():
            name = _beside(plain(name), (*PLACES, *SUMMARY, "metric"))
            self._parameters[name] = None
            row[name] = plain(text)
        self._rows.append(row | {k: v for k, v in found.items() if v is not None and math.isfinite(v)})

    def __len__(self) -> int:
        return len(self._rows)

    def table(self) -> Table:
        """The table. Raises InputError without rows, or beyond the limits of a table."""
        import polars

        self._check_rows(len(self._rows))
        if len(self._parameters) > MAX_COLUMNS or len(self._parameters) * len(self._rows) > MAX_CELLS:
            raise InputError(f"{self.path}: has more than {MAX_COLUMNS} columns, or {MAX_CELLS} cells")
        texts = ["test", "metric", *self._parameters]
        numbers = [name for name in SUMMARY if any(name in row for row in self._rows)]
        schema = [(name, polars.String) for name in texts] + [(name, polars.Float64) for name in numbers]
        series = [
            polars.Series(name, [row.get(name) for row in self._rows], dtype=kind) for name, kind in schema
        ]
        return Table(
            polars.DataFrame(series),
            self._units,
            self._kinds,
            tuple(self._parameters),
            str(self.path),
            warning_lines(self._warnings),
            summary_only=True,
        )


def warning_lines(warnings: Mapping[str, int]) -> tuple[str, ...]:
    """The warnings as lines, with counts of repeated ones, and at most a screenful."""
    lines = [f"{text} ({n} times)" if n > 1 else text for text, n in warnings.items() if text]
    more = len(lines) - MAX_WARNINGS + warnings.get("", 0)
    return (*lines[:MAX_WARNINGS], f"and {more} more") if more > 0 else tuple(lines)


def split_by(name: str, what: str, taken: Collection[str]) -> str:
    """The name, or a derived one that is not taken."""
    while name in taken:
        name = f"{name} ({what})"
    return name


def _beside(name: str, taken: Iterable[str]) -> str:
    """A unique name for a column that has the name of one of ours."""
    return f"{name} (theirs)" if name in taken else name or "?"
