"""Étude's own results: a directory with its experiment.json, or a results.jsonl alone.

Lines are parsed in bulk, and of each some thousand only columns of values are kept: millions are read at a time.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from etude.errors import InputError
from etude.results.check import check_measurement
from etude.results.model import metric_kind
from etude.results.reader import read_experiment
from etude.results.readers.rows import MOST_CELLS, MOST_COLUMNS, apart, told
from etude.results.readers.source import plain, text_of, unreadable
from etude.results.table import PLACES, Table
from etude.results.words import join_words

if TYPE_CHECKING:
    import polars

NAME = "etude"

_CHUNK = 2**19
"""Bytes: so few that what was parsed of them is still in the processor's caches, and is gone before the next."""
_MOST_CELLS = 20 * MOST_CELLS
_NUMBERS = {float, int, type(None)}


def detect(path: Path, head: bytes) -> bool:
    if not head:
        return (path / "experiment.json").is_file()
    first = head.lstrip().split(b"\n", 1)[0]
    return first.startswith(b"{") and b'"trial":' in first and b'"metrics":' in first


def read(path: Path) -> Table:
    return read_own(path)


def read_own(path: Path, metrics: Collection[str] | None = None) -> Table:
    """The measurements of a results directory, or of one results.jsonl; of these metrics, or of all.

    Of a directory those of its tests: the reference run against itself and the empty shell are left out.

    Raises:
        InputError: it cannot be read, is of a newer version, or a line in the middle is no measurement.
    """
    reading = _Reading(path, None if metrics is None else frozenset(metrics))
    with _no_collection():
        return reading.table(_take_in(reading, path))


def _take_in(reading: _Reading, path: Path) -> dict[str, dict[str, str]]:
    """All its files; returns the parameters of each test."""
    if not path.is_dir():
        reading.file(path, None)
        return {}
    experiment = read_experiment(path)
    parameters: dict[str, dict[str, str]] = {}
    for test in experiment["tests"]:
        if test["role"] == "test":
            parameters[test["name"]] = {name: text_of(value) for name, value in test["parameters"].items()}
            workers = test.get("workers")
            file = path / test["directory"] / "results.jsonl"
            if file.exists():  # a test that never began has none
                reading.file(file, workers if type(workers) is int and workers > 0 else 1)
    return parameters


@contextmanager
def _no_collection() -> Iterator[None]:
    """What is parsed has no cycles, and looking for some again and again takes a third of the time."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


@dataclass
class _Reading:
    """What was read so far: a frame for some thousand lines each."""

    path: Path
    wanted: Collection[str] | None
    frames: list[polars.DataFrame] = field(default_factory=list)
    units: dict[str, str] = field(default_factory=dict)
    commands: dict[tuple[str, ...], str] = field(default_factory=dict)
    warnings: Counter[str] = field(default_factory=Counter)
    rows: int = 0

    def file(self, file: Path, workers: int | None) -> None:
        """Take in the lines of a file; a last trial that lacks some of its lines, or part of one, is left out.

        `workers`: how many lines a trial has, unless they say so; None where that is not known.
        """
        number, end = 0, _End()
        for lines in self._chunks(file):
            documents = _documents(file, lines, number)
            try:
                self.frames.append(self._frame(documents))
            except (TypeError, ValueError, LookupError, AttributeError, OverflowError):
                raise _wrong(file, documents, number) from None
            number += len(lines)
            end.take(documents)
        self.rows += number
        partial = end.partial(workers)
        if partial:
            self.warnings[f"{file}: the last trial lacks lines and is left out"] += 1
            self._drop(partial)

    def _drop(self, rows: int) -> None:
        while rows:
            last = self.frames.pop()
            if last.height > rows:
                self.frames.append(last.head(last.height - rows))
            rows -= min(rows, last.height)

    def _chunks(self, file: Path) -> Iterator[list[bytes]]:
        """Lines that were ended, many at a time."""
        rest = b""
        try:
            with open(file, "rb") as opened:
                while block := opened.read(_CHUNK):
                    *lines, rest = (rest + block).split(b"\n")
                    if lines:
                        yield lines
        except (OSError, ValueError) as error:
            raise unreadable(file, error) from None
        if rest.strip():
            self.warnings[f"{file}: a last line that was cut short is left out"] += 1

    def _frame(self, documents: Sequence[Mapping[str, Any]]) -> polars.DataFrame:
        """The lines' columns. Raises one of the errors that `file` expects where a line is not what it should be."""
        import polars

        codes = [d["exit_status"] if d["signal"] is None else 128 + d["signal"] for d in documents]
        columns = [
            polars.Series("test", list(map(plain, [d["test"] for d in documents])), dtype=polars.String),
            polars.Series("trial", _of_type(int, [d["trial"] for d in documents]), dtype=polars.Int64),
            polars.Series("worker", _of_type(int, [d["worker"] for d in documents]), dtype=polars.Int64),
            polars.Series("command", [self._command(d["command"]) for d in documents], dtype=polars.String),
            polars.Series("kept", _of_type(bool, [d["kept"] for d in documents]), dtype=polars.Boolean),
            polars.Series("status", codes, dtype=polars.Int64),
        ]
        columns += self._metrics([d["metrics"] for d in documents])
        if len({column.name for column in columns}) < len(columns):
            raise InputError(f"{self.path}: two of its metrics have one name")
        frame = polars.DataFrame(columns)
        if min(min(d["trial"], d["worker"]) for d in documents) < 0:
            raise ValueError("a trial or worker below 0")
        return frame

    def _command(self, words: list[str]) -> str:
        key = tuple(words)
        found = self.commands.get(key)
        if found is None:
            found = self.commands[key] = plain(join_words(key))
        return found

    def _metrics(self, metrics: Sequence[Any]) -> Iterator[polars.Series]:
        first = metrics[0]
        same = all(each.keys() == first.keys() for each in metrics)
        names = list(first) if same else list(dict.fromkeys(name for each in metrics for name in each))
        for name in names:
            if self.wanted is not None and name not in self.wanted:
                continue
            found: list[Any] = [each[name] if same else each.get(name) for each in metrics]
            there = found if None not in found else [each for each in found if each is not None]
            for unit in dict.fromkeys([each[1] for each in there]):
                values = [None if each is None or each[1] != unit else each[0] for each in found]
                yield self._metric(name, unit, values)

    def _metric(self, name: str, unit: str, values: list[Any]) -> polars.Series:
        import numpy
        import polars

        if type(unit) is not str or not set(map(type, values)) <= _NUMBERS:
            raise TypeError("a metric is a number and its unit")
        name, unit = plain(name), plain(unit)
        name = f"{name} (metric)" if name in PLACES else name
        if self.units.setdefault(name, unit) != unit:
            self.warnings[f"{name} is in {self.units[name]} here and in {unit} there: two columns"] = 1
            name = f"{name} ({unit})"
            self.units[name] = unit
        if len(self.units) > MOST_COLUMNS or len(self.units) * self.rows > _MOST_CELLS:
            raise InputError(f"{self.path}: has more rows and metrics than a table can hold")
        return polars.Series(name, numpy.array(values, dtype=numpy.float64), nan_to_null=True)

    def table(self, parameters: Mapping[str, Mapping[str, str]]) -> Table:
        """All of it. `parameters`: of each test, by its name."""
        import polars

        if not any(frame.height for frame in self.frames):
            raise InputError(f"{self.path}: holds no measurement")
        frame = polars.concat(self.frames, how="diagonal")
        aside = frame.height - int(frame["kept"].sum())
        if aside:
            self.warnings[f"{aside} of {frame.height} measurements are not kept"] = 1
        texts: list[polars.Series] = []
        for name in dict.fromkeys(plain(name) for found in parameters.values() for name in found):
            by_test = {test: found[name] for test, found in parameters.items() if name in found}
            column = apart(name, "parameter", [*frame.columns, *(text.name for text in texts)])
            texts.append(
                frame["test"].replace_strict(by_test, default=None, return_dtype=polars.String).alias(column)
            )
        units = {name: self.units[name] for name in frame.columns if name in self.units}
        names = [text.name for text in texts]
        return Table(
            frame.with_columns(texts).select(*PLACES, *names, *units),
            units,
            {name: metric_kind(name, unit).kind for name, unit in units.items()},
            tuple(names),
            str(self.path),
            told(self.warnings),
        )


def _of_type(kind: type, values: list[Any]) -> list[Any]:
    if set(map(type, values)) <= {kind}:
        return values
    raise TypeError(f"not all of type {kind.__name__}")


def _documents(file: Path, lines: Sequence[bytes], before: int) -> list[Any]:
    """Each line's JSON object."""
    try:
        documents = list(map(orjson.loads, lines))
        if all(type(document) is dict for document in documents):
            return documents
    except ValueError:
        pass
    for number, line in enumerate(lines, before + 1):
        try:
            reason = "" if type(orjson.loads(line)) is dict else "no JSON object"
        except ValueError as error:
            reason = str(error)
        if reason:
            raise InputError(f"{file}:{number}: not a measurement: {reason}; expected one JSON object a line")
    raise AssertionError("a line that could not be read can be read now")


def _wrong(file: Path, documents: Sequence[Any], before: int) -> InputError:
    """Which line is wrong, and how; it is known that one is."""
    for number, document in enumerate(documents, before + 1):
        try:
            check_measurement(document)
            if any(
                type(document.get(n)) is int and document[n] >= 2**62 for n in ("trial", "worker", "signal")
            ):
                raise ValueError("a number in it is too large")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            return InputError(
                f"{file}:{number}: not a measurement: {reason}; expected one JSON object a line"
            )
    return InputError(f"{file}: lines {before + 1} to {before + len(documents)}: one is not a measurement")


@dataclass
class _End:
    """The trial that the last lines are of: its number, how many lines it has, and how many it says it has."""

    trial: int | None = None
    lines: int = 0
    rows: int | None = None

    def take(self, documents: Sequence[Any]) -> None:
        last = documents[-1]
        equal = next((n for n, d in enumerate(reversed(documents)) if d["trial"] != last["trial"]), None)
        if equal is not None or self.trial != last["trial"]:
            self.lines = 0
        self.lines += len(documents) if equal is None else equal
        rows = last.get("rows")
        self.trial, self.rows = last["trial"], rows if type(rows) is int and rows > 0 else None

    def partial(self, workers: int | None) -> int:
        """How many lines at the end are of a trial that lacks some."""
        expected = self.rows or workers
        return self.lines % expected if expected else 0
