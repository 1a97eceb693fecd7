"""Étude's own results as arrays: the engine parses the lines on all cores, and what it leaves is used in place.

docs/formats.md, "Columns", says what it leaves.
"""

from __future__ import annotations

import mmap
import os
import subprocess
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from etude.errors import EDITED, InputError, MachineRefuses
from etude.limits import limit_reached
from etude.program import engine_path
from etude.results.check import check_measurement
from etude.results.integrity import check_lines, has_ended, repeated_note
from etude.results.model import metric_kind
from etude.results.reader import read_experiment
from etude.results.readers.rows import told
from etude.results.readers.source import plain, text_of, unreadable
from etude.results.regular import open_regular
from etude.results.table import MORE_PLACES, PLACES
from etude.results.words import join_words

VERSION = 1
_MAGIC = b"etudecol"
_MOST = 2**62
_CHUNK: int | None = None
"""Bytes of a piece that the engine parses at a time; None for as many as are best."""

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]

KEPT, TIMED_OUT, CANCELLED, SIGNALLED, WINDOWS = 1, 2, 4, 8, 16
"""Bits of `Columns.flags`. SIGNALLED: `status` is 128 + a signal; WINDOWS: the line has some."""


class Coded(NamedTuple):
    """A column of texts, each kept once."""

    codes: NDArray[np.uint32]
    """Shape (rows,)."""
    texts: Sequence[str | None]
    """By code; that of 0 is None."""

    def text(self, row: int) -> str | None:
        """That of one row."""
        found: str | None = self.texts[self.codes[row]]
        return found

    def list(self, rows: Any = slice(None)) -> list[Any]:
        """Those of some rows, or of all: texts, and None where that may be."""
        found: list[Any] = np.array(self.texts, dtype=object)[self.codes[rows]].tolist()
        return found


class Metric(NamedTuple):
    """One metric in one unit, joined in one way."""

    unit: str
    kind: str
    """cost, rate, ratio, count or binary."""
    values: Floats
    """Shape (rows,); NaN where there is none."""
    reasons: Mapping[int, str]
    """Why the first row of a test that has no value has none, by the test's code."""
    join: str = ""
    """How workers and commands are to be joined, where the rows say so."""


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
    """Each as a shell would take it."""
    why: Coded
    error: Coded
    start_ns: Whole
    inner: Whole
    status: Whole
    """Exit status; 128 + signal for one that a signal ended."""
    flags: NDArray[np.uint8]
    metrics: Mapping[str, Metric]
    """By name; of a second unit of the same name: `name (unit)`; of a second way to join it: `name (mean)`."""
    parameters: Mapping[str, Mapping[str, str]]
    """By test; none for a file alone."""
    warnings: tuple[str, ...]

    @property
    def rows(self) -> int:
        """How many measurements there are."""
        return len(self.trial)

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Whether each enters the statistics."""
        kept: NDArray[np.bool_] = (self.flags & KEPT) != 0
        return kept


def read_columns(
    path: Path, metrics: Collection[str] | None = None, *, roles: Collection[str] = ("test",)
) -> Columns:
    """The measurements of a results directory, or of one results.jsonl; of these metrics, or of all.

    Of a directory those of its tests; `roles` also names `again` for the reference run against itself, and `shell`.

    Raises:
        InputError: it cannot be read, is of a newer version, or a line in the middle is no measurement.
        MachineRefuses: the engine cannot be run, or there is no memory for what it leaves.
    """
    parameters, sources = _sources(path, roles)
    for source in sources:
        _check_regular(source.file)
    index, buffer = _run_engine(sources, metrics)
    if index["wrong"] is not None:
        raise _wrong(path, sources, index["wrong"])
    if not index["rows"]:
        raise InputError(f"{path}: holds no measurement")
    return _columns(path, sources, parameters, index, buffer)


class _Source(NamedTuple):
    file: Path
    workers: int | None
    """How many lines a trial has, unless they say so; None where that is not known."""
    test: Mapping[str, Any] | None = None
    """Its entry in experiment.json, where it is of an experiment that has ended."""


def _sources(path: Path, roles: Collection[str]) -> tuple[dict[str, dict[str, str]], list[_Source]]:
    """The parameters of each test, and the files to read."""
    if not os.path.isdir(path):
        return {}, [_Source(path, None)]
    parameters: dict[str, dict[str, str]] = {}
    sources = []
    experiment = read_experiment(path)
    for test in experiment["tests"]:
        if test["role"] in roles:
            parameters[test["name"]] = {name: text_of(value) for name, value in test["parameters"].items()}
            file = path / test["directory"] / "results.jsonl"
            if file.exists():
                entry = test if has_ended(experiment) else None
                sources.append(_Source(file, min(test.get("workers", 1), _MOST - 1), entry))
            elif has_ended(experiment):
                check_lines(file, 0, test)  # a test that never began has none
    return parameters, sources


def _check_regular(file: Path) -> None:
    try:
        open_regular(file).close()
    except OSError as error:
        raise unreadable(file, error) from None
    except ValueError:
        raise InputError(f"{file!s:.200}: cannot be read: a zero byte in its name") from None


def _run_engine(
    sources: Sequence[_Source], metrics: Collection[str] | None
) -> tuple[dict[str, Any], mmap.mmap]:
    """The index and the bytes of the file that the engine writes, which is in memory only."""
    command = [engine_path(), "columns", *_options(metrics)]
    listed = b"".join(
        b"%s %s\0" % (b"-" if workers is None else b"%d" % workers, os.fsencode(file))
        for file, workers, _ in sources
    )
    out = os.memfd_create("etude-columns")
    try:
        done = subprocess.run(command, input=listed, stdout=out, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [
                f"ended with {done.returncode}"
            ]
            raise MachineRefuses(f"{command[0]}: cannot read results: {said[0]}")
        buffer = mmap.mmap(out, 0, prot=mmap.PROT_READ)
    except OSError as error:
        advice = limit_reached(error.errno) or "reinstall Étude"
        raise MachineRefuses(f"{command[0]}: cannot be run: {error.strerror}; {advice}") from None
    finally:
        os.close(out)
    return _index(buffer, command[0]), buffer


def _options(metrics: Collection[str] | None) -> Iterator[str]:
    if _CHUNK is not None:
        yield f"--chunk={_CHUNK}"
    if metrics is None:
        return
    yield "--metric="  # so that none at all is not all of them
    for name in metrics:
        if "\0" not in name and plain(name) == name:
            yield f"--metric={name}"


def _index(buffer: mmap.mmap, program: str) -> dict[str, Any]:
    version = int(np.frombuffer(buffer, np.uint32, 1, 8)[0])
    if buffer[:8] != _MAGIC or version != VERSION:
        raise MachineRefuses(f"{program}: writes other columns than are read here; reinstall Étude")
    at, length = (int(value) for value in np.frombuffer(buffer, np.uint64, 2, 16))
    index: dict[str, Any] = orjson.loads(buffer[at : at + length])
    return index


def _columns(
    path: Path,
    sources: Sequence[_Source],
    parameters: Mapping[str, Mapping[str, str]],
    index: Mapping[str, Any],
    buffer: mmap.mmap,
) -> Columns:
    warnings: Counter[str] = Counter()
    for source, end in zip(sources, index["files"], strict=True):
        if end["torn"]:
            warnings[f"{source.file}: a last line that was cut short is left out"] += 1
        if end["left_out"]:
            warnings[f"{source.file}: the last trial lacks lines and is left out"] += 1
        if source.test is not None and not (end["torn"] or end["left_out"]):
            check_lines(source.file, end["rows"], source.test)
    rows = index["rows"]
    found: dict[str, NDArray[Any]] = {
        place["name"]: np.frombuffer(buffer, place["kind"], rows, place["at"]) for place in index["columns"]
    }
    texts = {each["name"]: [None, *each["texts"]] for each in index["texts"]}
    texts["command"][1:] = [join_words(orjson.loads(words)) for words in texts["command"][1:]]
    metrics = dict(_metrics(path, index["metrics"], texts["reason"], rows, buffer, warnings))
    aside = rows - int(np.count_nonzero(found["flags"] & KEPT))
    if aside:
        warnings[f"{aside} of {rows} measurements are not kept"] = 1
    once = _once(found, (metric.values for metric in metrics.values()))
    if once is not None:
        warnings[repeated_note(path, rows - once.size)] = 1
        found = {name: column[once] for name, column in found.items()}
        metrics = {name: metric._replace(values=metric.values[once]) for name, metric in metrics.items()}
    columns: dict[str, Any] = {
        name: Coded(column, texts[name]) if name in texts else column for name, column in found.items()
    }
    return Columns(path=path, metrics=metrics, parameters=parameters, warnings=told(warnings), **columns)


def _once(found: Mapping[str, NDArray[Any]], values: Iterable[Floats]) -> NDArray[np.intp] | None:
    """The rows without those that stand there again, all their columns and values being the same; None where none does.

    No two commands of one worker begin at one instant.
    """
    start = found["start_ns"]
    if np.unique(start[start >= 0]).size == np.count_nonzero(start >= 0):
        return None
    places = np.stack([found[name] for name in ("test", "sitting", "trial", "worker", "start_ns")], axis=1)
    _, first, group = np.unique(places, axis=0, return_index=True, return_inverse=True)
    first = first[group.ravel()]
    again = (first < np.arange(start.size)) & (start >= 0)
    for column in (*found.values(), *values):
        again &= (column == column[first]) | ((column != column) & (column[first] != column[first]))
    return np.flatnonzero(~again) if again.any() else None


def _metrics(
    path: Path,
    found: Sequence[Mapping[str, Any]],
    reasons: Sequence[str],
    rows: int,
    buffer: mmap.mmap,
    warnings: Counter[str],
) -> Iterator[tuple[str, Metric]]:
    """Each metric under a name of its own."""
    units: dict[str, tuple[str, str]] = {}
    taken: set[str] = set()
    for metric in found:
        name, unit, join = metric["name"], metric["unit"], metric.get("join", "")
        name = f"{name} (metric)" if name in PLACES or name in MORE_PLACES else name
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
        yield name, Metric(unit, metric_kind(name, unit).kind, values, why, join)


def _wrong(path: Path, sources: Sequence[_Source], wrong: Mapping[str, Any]) -> InputError:
    """Why nothing could be read."""
    file, line = sources[wrong["file"]].file, wrong["line"]
    if line:
        reason = _reason(file, wrong["at"]) or wrong["reason"]
        return InputError(f"{file}:{line}: not a measurement: {reason}; expected one JSON object a line")
    if wrong["errno"] is not None:
        return unreadable(file, OSError(wrong["errno"], os.strerror(wrong["errno"])))
    if wrong["reason"] == "too much":
        return InputError(f"{path}: has more rows and metrics than a table can hold")
    return unreadable(file, ValueError(wrong["reason"]))


def _reason(file: Path, at: int) -> str:
    """What is wrong with the line at this place of a file, in the words of `check_measurement`."""
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
