"""Inputs of `getstats` as columns: tests of a results file or directory, a table, or another program's output."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from etude.analysis.getstats.options import JUDGED
from etude.analysis.getstats.tables import File, Raw, file_of, judged, without_values
from etude.errors import InputError, UsageError
from etude.results.columns import SIGNALLED, Columns
from etude.results.delimited import Table
from etude.results.model import FIRST_RUN, METRICS, signal_name
from etude.results.reader import repeated_note
from etude.results.regular import open_regular
from etude.results.res import parse_blocks
from etude.results.results import names_of
from etude.results.series import Series, no_trials
from etude.results.trials import Trials, series_of_columns
from etude.stats.columns import DISPLAY, display_name, metric_name


class Source(Protocol):
    """One input. Columns have Étude's names; None stands for the default ones."""

    @property
    def label(self) -> str:
        """Name in tables and warnings."""

    def judged(self, columns: Sequence[str] | None) -> dict[str, list[float]]:
        """Values that a predicate is judged on. Raises UsageError for a missing column."""

    def shown(self, columns: Sequence[str] | None) -> File:
        """Columns that the table shows. Raises UsageError for a missing column."""

    def raw(self) -> Raw:
        """The rows as they were read."""


def is_ours(file: Path) -> bool:
    """True for a results directory, or a file in Auto-pilot's format."""
    return os.path.isdir(file) or file.suffix == ".res" or _has_blocks(file)


def is_plain_table(path: str) -> bool:
    """True for a file to read as a table of names and values, since no other format claims it."""
    from etude.results.readers import formats_of

    try:
        return formats_of(path) in ([], ["csv"]) and not path.startswith("csv:")
    except InputError:
        return True  # the reader reports the reason


def _has_blocks(file: Path) -> bool:
    try:
        with open_regular(file) as opened:
            head = opened.read(4096).decode("utf-8", "replace")
    except (OSError, ValueError):
        return False  # the reader reports it
    return any(block.name for block in parse_blocks(head))


def tests_of(path: str, trials: Trials) -> list[Source]:
    experiment = trials.experiment
    left_out = [
        f"Line {entry['line']}: the measurement block there is left out: {entry['reason']}."
        for entry in experiment.get("left_out", ())
    ]
    if trials.torn and not left_out:
        left_out = ["The last trial was cut short and is left out."]
    left_out += [repeated_note(file, count) for file, count in trials.repeated.items()]
    made = {series.test: series for series in series_of_columns(trials.columns)}
    found: list[Source] = []
    for name in names_of(experiment):
        label = path if experiment.get("verb") == "res" else f"{path.rstrip('/')}/{name}"
        series = made.get(name) or no_trials(name, {})
        found.append(_TrialSource(label, series, trials.columns, tuple(left_out)))
        left_out = []
    if not found:
        raise InputError(f"{path}: holds no test")
    return found


@dataclass(frozen=True)
class _TrialSource:
    """A test of Étude's or of Auto-pilot's results."""

    label: str
    series: Series
    columns: Columns
    warnings: tuple[str, ...] = ()

    def judged(self, columns: Sequence[str] | None) -> dict[str, list[float]]:
        self._check(columns)
        return judged(self.series, JUDGED if columns is None else columns)

    def shown(self, columns: Sequence[str] | None) -> File:
        self._check(columns)
        file = file_of(self.label, self.series, tuple(DISPLAY) if columns is None else columns)
        lines = [*self.warnings, *_failures(self.series, self.columns, self._rows())]
        return file._replace(warnings=[*lines, *without_values(columns, file.samples)])

    def raw(self) -> Raw:
        names = [name for name in self._metrics() if name not in ("user", "system", "elapsed")]
        shown = [_texts(self.columns, name) for name in ("user", "system", "elapsed", *names)]
        rows = [_raw_row(self.columns, row, shown) for row in self._rows()]
        return [("epoch", "thread", "command", "user", "sys", "elapsed", "status", *names), *rows]

    def _rows(self) -> list[int]:
        order = {trial: place for place, trial in enumerate(self.series.trials.tolist())}
        texts = self.columns.test.texts
        codes = self.columns.test.codes == (texts.index(self.series.test) if order else 0)
        return sorted(np.flatnonzero(codes).tolist(), key=lambda row: order[int(self.columns.trial[row])])

    def _metrics(self) -> list[str]:
        found = list(self.series.columns)
        return sorted(found, key=lambda name: (name not in METRICS, found.index(name)))

    def _check(self, columns: Sequence[str] | None) -> None:
        known = [*DISPLAY, *(name for name in self._metrics() if name not in DISPLAY)]
        _require(self.label, columns, known)


def _failures(series: Series, columns: Columns, rows: Sequence[int]) -> Iterator[str]:
    """Warnings about failed commands of included trials, and about trials excluded though not the first run."""
    found: dict[int, list[str]] = {}
    for row in rows:
        status, worker, trial = (int(each[row]) for each in (columns.status, columns.worker, columns.trial))
        if columns.kept[row] and (status != 0 or columns.unfinished[row]):
            signalled = columns.flags[row] & SIGNALLED
            ended = f"status {status if status >= 0 else None}"
            how = f"signal {signal_name(status - 128)}" if signalled and status != 128 else ended
            found.setdefault(trial, []).append(f"Thread {worker + 1} ended with {how} in epoch {trial}.")
    for trial, kept, why in zip(series.trials.tolist(), series.kept.tolist(), series.why, strict=True):
        yield from found.get(trial, ())
        if not kept and why != FIRST_RUN:
            yield f"Epoch {trial} was excluded: {why or 'no reason given'}."


def _texts(columns: Columns, metric: str) -> list[str]:
    """The metric of each row as text, whatever its unit; empty if there is none."""
    values = np.full(columns.rows, np.nan)
    for each in columns.metrics.values():
        if each.name == metric:
            values = np.where(np.isnan(values), each.values, values)
    return ["" if math.isnan(value) else f"{value:.15g}" for value in values.tolist()]


def _raw_row(columns: Columns, row: int, shown: Sequence[Sequence[str]]) -> tuple[str, ...]:
    status = int(columns.status[row])
    return (
        str(columns.trial[row]),
        str(columns.worker[row] + 1),
        columns.rare.get(row, {}).get("command_text") or columns.command.text(row) or "",
        *(texts[row] for texts in shown[:3]),
        "" if status < 0 else str(status),
        *(texts[row] for texts in shown[3:]),
    )


@dataclass(frozen=True)
class TableSource:
    """A table of another program: each column of numbers is a sample; one called epoch numbers the rows."""

    label: str
    table: Table

    def judged(self, columns: Sequence[str] | None) -> dict[str, list[float]]:
        if columns is None:
            columns = [column for column in JUDGED if column in map(metric_name, self.table.header)]
            if not columns:
                raise UsageError(
                    f"{self.label}: has no column {', '.join(JUDGED)}; name others with --columns"
                )
        return {metric_name(column): values for column, values in self._numbers(columns).items()}

    def shown(self, columns: Sequence[str] | None) -> File:
        found = self._numbers(columns)
        warnings = list(self._left_out()) if columns is None else []
        epochs = self.table.numbers("epoch") if "epoch" in self.table.header else "there is none"
        if isinstance(epochs, str):
            return File(self.label, found, {}, warnings)
        numbers = tuple(int(epoch) for epoch in epochs)
        return File(self.label, found, dict.fromkeys(found, numbers), warnings)

    def raw(self) -> Raw:
        return [self.table.header, *self.table.rows]

    def _numbers(self, columns: Sequence[str] | None) -> dict[str, list[float]]:
        _require(self.label, columns, [metric_name(name) for name in self.table.header])
        found = {}
        for name in self.table.header:
            values = self.table.numbers(name)
            if columns is not None and metric_name(name) in columns and isinstance(values, str):
                raise InputError(f"{self.label}: column {name}: {values}")
            wanted = name != "epoch" if columns is None else metric_name(name) in columns
            if wanted and not isinstance(values, str):
                found[display_name(name)] = values
        if not found:
            raise InputError(f"{self.label}: has no column of numbers")
        return found

    def _left_out(self) -> Iterator[str]:
        """Columns that begin with a number and go on with something else."""
        for name in self.table.header:
            values = self.table.numbers(name)
            if isinstance(values, str) and "in row 2 " not in values:
                yield f"Column {name} is left out: {values}."


def _require(label: str, columns: Sequence[str] | None, known: Sequence[str]) -> None:
    for column in columns or ():
        if column not in known:
            raise UsageError(f"{label}: has no column {column!r}; it has {', '.join(known)}")
