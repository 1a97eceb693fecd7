"""Étude's own results as arrays: the engine parses the lines on all cores, and its output is mapped in place.

docs/reference/formats.md, "Columns", describes the container, engine/core/columns/src/file.rs its index.
"""

from __future__ import annotations

import mmap
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from etude.engine_columns import engine_columns
from etude.errors import EDITED, InputError
from etude.results.model import Measurement, check_measurement, ending_of, is_printed, metric_kind
from etude.results.reader import check_lines, has_ended, not_a_measurement, read_experiment, repeated_note
from etude.results.readers.source import plain, text_of, unreadable
from etude.results.regular import open_regular
from etude.results.results import Results
from etude.results.shell_words import join_words
from etude.results.table import MORE_PLACES, PLACES, warning_lines
from etude.results.trial_join import join_in_row

VERSION = 1
_MAGIC = b"etudecol"
_MOST = 2**62
RARE = ("cache", "stdout", "windows", "rows", "kernel", "throttled", "command_text", "accepted")
"""Members of a measurement that are not in the engine's columns, since few lines have them."""
_CHUNK: int | None = None
"""Bytes of a chunk that the engine parses at a time; None for its default."""

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]

KEPT, TIMED_OUT, CANCELLED, SIGNALLED, WINDOWS, UNCOMMON = 1, 2, 4, 8, 16, 32
"""Bits of `Columns.flags`. SIGNALLED: `status` is 128 + a signal; WINDOWS: the line has some; UNCOMMON: it has
members that no column holds."""


class Coded(NamedTuple):
    """A column of texts, each stored once."""

    codes: NDArray[np.uint32]
    """Shape (rows,)."""
    texts: Sequence[str | None]
    """Texts by code; that of 0 is None."""

    def text(self, row: int) -> str | None:
        """Text of one row."""
        found: str | None = self.texts[self.codes[row]]
        return found

    def list(self, rows: Any = slice(None)) -> list[Any]:
        """Texts of some rows, or of all; None where a row has none."""
        found: list[Any] = np.array(self.texts, dtype=object)[self.codes[rows]].tolist()
        return found


class Metric(NamedTuple):
    """One metric in one unit, with one kind of join."""

    name: str
    """Name in the lines."""
    unit: str
    kind: str
    """cost, rate, ratio, count or binary."""
    values: Floats
    """Shape (rows,); NaN for missing values."""
    reasons: Mapping[int, str]
    """Reason of the first missing value of a test, by the test's code."""
    join: str = ""
    """Join of workers and commands, if the rows specify it."""


@dataclass(frozen=True, eq=False)
class Columns:
    """The measurements of one or many tests. Arrays have shape (rows,), in the order of the lines, and are read-only.

    Whole numbers that are null (`start_ns`, `status`) are -1.
    """

    path: Path
    test: Coded
    trial: Whole
    block: Whole
    order: Whole
    worker: Whole
    sitting: Whole
    host: Coded
    boot: Coded
    command: Coded
    """Each command in shell quoting."""
    why: Coded
    error: Coded
    start_ns: Whole
    inner: Whole
    status: Whole
    """Exit status; 128 + signal for one that a signal ended."""
    flags: NDArray[np.uint8]
    metrics: Mapping[str, Metric]
    """Metrics by name; for a second unit of the same name: `name (unit)`; for a second kind of join: `name (mean)`."""
    parameters: Mapping[str, Mapping[str, str]]
    """Parameters by test; empty for a file alone."""
    warnings: tuple[str, ...] = ()
    rare: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """Members that few lines have (`RARE`), by row in order; filled only on request."""

    @property
    def rows(self) -> int:
        """Number of measurements."""
        return len(self.trial)

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Boolean mask of the included measurements."""
        kept: NDArray[np.bool_] = (self.flags & KEPT) != 0
        return kept

    @property
    def unfinished(self) -> NDArray[np.bool_]:
        """Boolean mask of measurements that were not started, or ended by us (same as `Measurement.unfinished`)."""
        unfinished: NDArray[np.bool_] = ((self.flags & (TIMED_OUT | CANCELLED)) != 0) | (
            self.error.codes != 0
        )
        return unfinished

    def cancelled_only(self, row: int) -> bool:
        """True if it was ended together with the experiment, and for no other reason."""
        return int(self.flags[row]) & (CANCELLED | TIMED_OUT) == CANCELLED and self.error.text(row) is None

    def ending(self, row: int) -> str:
        """Description of the command's end."""
        flags, status = int(self.flags[row]), int(self.status[row])
        return ending_of(
            error=self.error.text(row),
            timed_out=bool(flags & TIMED_OUT),
            cancelled=bool(flags & CANCELLED),
            signal=status - 128 if flags & SIGNALLED else None,
            accepted=self.rare.get(row, {}).get("accepted"),
            exit_status=None if status < 0 else status,
        )

    def at(self, rows: NDArray[np.intp]) -> Columns:
        """These rows alone, without rare members."""
        picked = {name: getattr(self, name)[rows] for name in NUMBERS}
        texts = {name: getattr(self, name) for name in TEXTS}
        picked |= {name: text._replace(codes=text.codes[rows]) for name, text in texts.items()}
        metrics = {name: metric._replace(values=metric.values[rows]) for name, metric in self.metrics.items()}
        return replace(self, metrics=metrics, rare={}, **picked)


NUMBERS = ("trial", "block", "order", "worker", "sitting", "start_ns", "inner", "status", "flags")
TEXTS = ("test", "host", "boot", "command", "why", "error")
"""The columns of `Columns`, by type."""


def read_columns(
    path: Path, metrics: Collection[str] | None = None, *, roles: Collection[str] = ("test",)
) -> Columns:
    """The measurements of a results directory, or of one results.jsonl; of these metrics, or of all.

    For a directory those of its tests; `roles` may add `again` for the A/A runs of the baseline, and `shell`.

    Raises:
        InputError: it cannot be read, is of a newer version, or a line in the middle is no measurement.
        MachineRefuses: the engine cannot be run, or there is no memory for its output.
    """
    experiment = read_experiment(path) if os.path.isdir(path) else None
    sources = [Source(path, None, {})] if experiment is None else sources_of(path, experiment, roles)
    columns, ends = read_files(path, sources, metrics)
    if not columns.rows:
        raise InputError(f"{path}: holds no measurement")
    warnings: Counter[str] = Counter()
    for source, end in zip(sources, ends, strict=True):
        if end["torn"]:
            warnings[f"{source.file}: a last line that was cut short is left out"] += 1
        if end["left_out"]:
            warnings[f"{source.file}: the last trial lacks lines and is left out"] += 1
        if experiment is not None and has_ended(experiment) and not (end["torn"] or end["left_out"]):
            check_lines(source.file, end["rows"], source.test)
    warnings.update(columns.warnings)
    aside = columns.rows - int(np.count_nonzero(columns.kept))
    if aside:
        warnings[f"{aside} of {columns.rows} measurements are not kept"] = 1
    once = _once(columns)
    if once is not None:
        warnings[repeated_note(path, columns.rows - once.size)] = 1
        columns = columns.at(once)
    return replace(columns, warnings=warning_lines(warnings))


class Source(NamedTuple):
    """A file of measurements."""

    file: Path
    workers: int | None
    """Lines per trial, unless the lines say so; None if unknown."""
    test: Mapping[str, Any]
    """Its entry in experiment.json; empty for a file alone."""


def sources_of(path: Path, experiment: Mapping[str, Any], roles: Collection[str]) -> list[Source]:
    """The files of an experiment's tests, if they exist. Raises InputError if one is missing that existed."""
    sources = []
    for test in experiment["tests"]:
        file = path / test["directory"] / "results.jsonl"
        if test["role"] not in roles:
            continue
        if os.path.lexists(file):  # a link that leads nowhere is an error, not a test that never began
            sources.append(Source(file, min(test.get("workers", 1), _MOST - 1), test))
        elif has_ended(experiment):
            check_lines(file, 0, test)  # a test that never began has none
    return sources


def read_files(
    path: Path, sources: Sequence[Source], metrics: Collection[str] | None
) -> tuple[Columns, list[dict[str, Any]]]:
    """All measurements of some files below `path`, and the end of each file (docs/reference/formats.md, `files`).

    Raises:
        InputError, MachineRefuses: same as `read_columns`.
    """
    for source in sources:
        _check_regular(source.file)
    listed = b"".join(
        b"%s %s\0" % (b"-" if workers is None else b"%d" % workers, os.fsencode(file))
        for file, workers, _ in sources
    )
    words = ["columns", *_options(metrics)]
    index, buffer = engine_columns(words, _MAGIC, VERSION, "results", listed)
    if index["wrong"] is not None:
        raise _wrong(path, sources, index["wrong"])
    columns = _columns(path, sources, index, buffer)
    return columns, index["files"]


def _check_regular(file: Path) -> None:
    try:
        open_regular(file).close()
    except OSError as error:
        raise unreadable(file, error) from None
    except ValueError:
        raise InputError(f"{file!s:.200}: cannot be read: a zero byte in its name") from None


def _options(metrics: Collection[str] | None) -> Iterator[str]:
    if _CHUNK is not None:
        yield f"--chunk={_CHUNK}"
    if metrics is None:
        return
    yield "--metric="  # so that no metrics differ from all metrics
    for name in metrics:
        if "\0" not in name and plain(name) == name:
            yield f"--metric={name}"


def _columns(path: Path, sources: Sequence[Source], index: Mapping[str, Any], buffer: mmap.mmap) -> Columns:
    rows = index["rows"]
    found: dict[str, NDArray[Any]] = {
        place["name"]: np.frombuffer(buffer, place["kind"], rows, place["at"]) for place in index["columns"]
    }
    texts = {each["name"]: [None, *each["texts"]] for each in index["texts"]}
    texts["command"][1:] = [join_words(orjson.loads(words)) for words in texts["command"][1:]]
    warnings: dict[str, int] = {}
    metrics = dict(_metrics(path, index["metrics"], texts["reason"], rows, buffer, warnings))
    parameters = {
        source.test["name"]: {name: text_of(value) for name, value in source.test["parameters"].items()}
        for source in sources
        if source.test
    }
    columns: dict[str, Any] = {
        name: Coded(column, texts[name]) if name in texts else column for name, column in found.items()
    }
    return Columns(path=path, metrics=metrics, parameters=parameters, warnings=tuple(warnings), **columns)


def _once(columns: Columns) -> NDArray[np.intp] | None:
    """The rows without exact repetitions of earlier ones; None if there are none.

    No two commands of one worker start at one instant.
    """
    start = columns.start_ns
    same_start = np.sort(start[start >= 0])
    if not (same_start[1:] == same_start[:-1]).any():
        return None
    own = (start, columns.worker, columns.trial, columns.sitting, columns.test.codes)
    order = np.lexsort(own)
    new = np.ones(start.size, dtype=bool)
    new[1:] = np.any([column[order[1:]] != column[order[:-1]] for column in own], axis=0)
    first = np.empty_like(order)
    first[order] = order[np.flatnonzero(new)[np.cumsum(new) - 1]]
    again = (first < np.arange(start.size)) & (start >= 0)
    for column in all_values(columns) if again.any() else ():
        again &= (column == column[first]) | ((column != column) & (column[first] != column[first]))
    return np.flatnonzero(~again) if again.any() else None


def all_values(columns: Columns) -> Iterator[NDArray[Any]]:
    """Every array of numbers or codes."""
    yield from (getattr(columns, name) for name in NUMBERS)
    yield from (getattr(columns, name).codes for name in TEXTS)
    yield from (metric.values for metric in columns.metrics.values())


def _metrics(
    path: Path,
    found: Sequence[Mapping[str, Any]],
    reasons: Sequence[str],
    rows: int,
    buffer: mmap.mmap,
    warnings: dict[str, int],
) -> Iterator[tuple[str, Metric]]:
    """Each metric under a unique name; renaming adds to `warnings`."""
    units: dict[str, tuple[str, str]] = {}
    taken: set[str] = set()
    for metric in found:
        own, unit, join = metric["name"], metric["unit"], metric.get("join", "")
        name = f"{own} (metric)" if own in PLACES or own in MORE_PLACES else own
        first, how = units.setdefault(name, (unit, join))
        if first != unit:
            warnings[f"{name} is in {first} here and in {unit} there: two columns"] = 1
            name = f"{name} ({unit})"
        elif how != join:
            warnings[
                f"{name} is joined by {how or 'default'} here and by {join or 'default'} there: two columns"
            ] = 1
            name = f"{name} ({join or 'default'})"
        if name in taken:
            raise InputError(f"{path}: two of its metrics have one name")
        taken.add(name)
        why = {test: reasons[code] for test, code in metric["reasons"]}
        values = np.frombuffer(buffer, np.float64, rows, metric["at"])
        yield name, Metric(own, unit, metric_kind(name, unit).kind, values, why, join)


def _wrong(path: Path, sources: Sequence[Source], wrong: Mapping[str, Any]) -> InputError:
    file, line = sources[wrong["file"]].file, wrong["line"]
    if line:
        reason = _reason(file, wrong["at"]) or wrong["reason"]
        return not_a_measurement(file, line, reason)
    if wrong["errno"] is not None:
        return unreadable(file, OSError(wrong["errno"], os.strerror(wrong["errno"])))
    if wrong["reason"] == "too much":
        return InputError(f"{path}: has more rows and metrics than a table can hold")
    return unreadable(file, ValueError(wrong["reason"]))


def _reason(file: Path, at: int) -> str:
    """Error in the line at this offset of a file, with the text of `check_measurement`."""
    with open(file, "rb") as opened:
        opened.seek(at)
        line = opened.readline()
    try:
        document = orjson.loads(line.removesuffix(b"\n"))
        if type(document) is not dict:
            return "no JSON object"
        check_measurement(document)
        if any(type(document.get(n)) is int and document[n] >= _MOST for n in ("trial", "worker", "signal")):
            return "a number in it is too large"
    except KeyError as error:
        return f"lacks {error}"
    except EDITED as error:
        return str(error)
    return ""


def columns_of_results(results: Results, metrics: Collection[str] | None = None) -> Columns:
    """Measurements in memory, with these metrics, elapsed and those that the program printed, or with all."""
    found = [(name, m) for name, measured in results.measurements.items() for m in measured]
    rows = [m for _, m in found]
    entries = results.experiment["tests"]
    return Columns(
        path=results.directory,
        test=_coded([name for name, _ in found]),
        trial=_whole([m.trial for m in rows]),
        block=_whole([m.block for m in rows]),
        order=_whole([m.order for m in rows]),
        worker=_whole([m.worker for m in rows]),
        sitting=_whole([m.sitting for m in rows]),
        host=_coded([m.host for m in rows]),
        boot=_coded([m.boot_id for m in rows]),
        command=_coded([m.command_line for m in rows]),
        why=_coded([m.why for m in rows]),
        error=_coded([m.error for m in rows]),
        start_ns=_whole([-1 if m.start_ns is None else m.start_ns for m in rows]),
        inner=_whole([m.inner for m in rows]),
        status=_whole([_status(m) for m in rows]),
        flags=np.array([_flags(m) for m in rows], dtype=np.uint8),
        metrics=_measured_metrics(found, metrics),
        parameters={entry["name"]: entry.get("parameters") or {} for entry in entries},
        rare={
            row: members
            for row, m in enumerate(rows)
            if (members := {name: value for name in RARE if (value := getattr(m, name)) is not None})
        },
    )


def _whole(values: Sequence[int]) -> Whole:
    return np.array(values, dtype=np.int64)


def _coded(texts: Sequence[str | None]) -> Coded:
    known: dict[str | None, int] = {None: 0}
    codes = [known.setdefault(text, len(known)) for text in texts]
    return Coded(np.array(codes, dtype=np.uint32), list(known))


def _status(m: Measurement) -> int:
    if m.signal is not None:
        return 128 + m.signal
    return -1 if m.exit_status is None else m.exit_status


def _flags(m: Measurement) -> int:
    return (
        KEPT * m.kept | TIMED_OUT * m.timed_out | CANCELLED * m.cancelled | SIGNALLED * (m.signal is not None)
    )


def _measured_metrics(
    found: Sequence[tuple[str, Measurement]], wanted: Collection[str] | None
) -> dict[str, Metric]:
    made: dict[tuple[str, str, str], Metric] = {}
    reasons: dict[tuple[str, str, str], dict[int, str]] = {}
    codes: dict[str, int] = {}
    for row, (test, m) in enumerate(found):
        code = codes.setdefault(test, len(codes) + 1)
        for name, value in m.metrics.items():
            if wanted is not None and name not in wanted and name != "elapsed" and not is_printed(name):
                continue
            how = value[1], join_in_row(value) or ""
            metric = made.get((name, *how))
            if metric is None:
                kind = metric_kind(name, value[1]).kind
                known = reasons[name, *how] = {}
                metric = Metric(name, value[1], kind, np.full(len(found), np.nan), known, how[1])
                made[name, *how] = metric
            if value[0] is None:
                reasons[name, *how].setdefault(code, value[2])
            else:
                metric.values[row] = value[0]
    firsts = {metric.name: metric for metric in reversed(made.values())}
    return {
        name if metric is firsts[name] else f"{name} ({unit}, {join})": metric
        for (name, unit, join), metric in made.items()
    }
