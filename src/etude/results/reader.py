"""Reads Étude's own results; a torn last line is dropped, lost and mixed-up ones are refused."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Protocol

import orjson

from etude.codec import short
from etude.errors import EDITED, InputError
from etude.osutil.trust import check_for_root
from etude.results.model import MOST, Measurement, check_measurement, from_line
from etude.results.regular import open_regular, read_regular
from etude.results.res import read_res
from etude.results.results import FORMAT, VERSION, Results


def load_results(directory: str | os.PathLike[str]) -> Results:
    """Read a results directory, or a file in Auto-pilot's format (its name ends in `.res`).

    Raises:
        InputError: it is none, is of a newer version, a line in the middle of a file cannot be read, or lines were lost
            or changed.
    """
    path = Path(directory)
    if path.suffix == ".res" and not os.path.isdir(path):
        return read_res(path)
    experiment = read_experiment(path)
    measurements, torn, repeated = {}, [], {}
    sessions = {session["sitting"] for session in experiment["sittings"]}
    for test in experiment["tests"]:
        file = path / test["directory"] / "results.jsonl"
        rows, whole = read_measurements(file)
        expected = (rows[-1].rows if rows else None) or test.get("workers", 1)
        partial = len(_last_trial([m.trial for m in rows[-expected:]])) % expected
        written = rows[: len(rows) - partial]
        again = set(repeated_rows(file, written, test, sessions))
        once = tuple(row for place, row in enumerate(written) if place not in again) if again else written
        if has_ended(experiment):
            check_lines(file, len(written), test, cut=0 if whole and not partial else expected)
        measurements[test["name"]] = once
        if not whole or partial:
            torn.append(str(file))
        if len(once) < len(written):
            repeated[str(file)] = len(written) - len(once)
    return Results(path, experiment, measurements, tuple(torn), repeated)


def read_experiment(directory: Path) -> dict[str, Any]:
    """The checked `experiment.json` of a results directory.

    Raises:
        InputError: same as `load_results`.
    """
    path = directory / "experiment.json"
    try:
        document = orjson.loads(read_regular(path))
    except FileNotFoundError:
        raise InputError(
            f"{directory}: no results here: expected a directory with an experiment.json, as -o names one"
        ) from None
    except NotADirectoryError:
        raise InputError(f"{directory}: is a file; name the results directory that holds it") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: cannot be read as JSON: {error}; was it edited or copied in part?"
        ) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f'{path}: is not ours: expected "format": "{FORMAT}"')
    version = document.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        advice = "use a newer Étude" if type(version) is int and version > VERSION else "was it edited?"
        raise InputError(
            f"{path}: version {version!r} of the results format; this Étude reads up to {VERSION}: {advice}"
        )
    try:
        check_experiment(document)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    return document


def read_trusted_experiment(directory: Path) -> dict[str, Any]:
    """The same, if commands of it are about to be run.

    Raises:
        InputError: this is root, and others could have written it; or same as `read_experiment`.
    """
    path = directory / "experiment.json"
    if not os.path.lexists(path):
        read_experiment(directory)  # reports missing files
    check_for_root(path)
    return read_experiment(directory)


def read_measurements(
    path: Path, offset: int = 0, *, check: bool = True
) -> tuple[tuple[Measurement, ...], bool]:
    """The measurements of one file from a byte offset on, and True if its last line was complete.

    `check`: validate every member; not needed for lines that the engine has just written.

    Raises:
        InputError: a line before the last cannot be read.
    """
    try:
        with open_regular(path) as file:
            file.seek(offset)
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        return (), True
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    last = lines.pop()
    if check:
        rows = [_row(path, number, line) for number, line in enumerate(lines, 1)]
    else:
        rows = [from_line(orjson.loads(line)) for line in lines]
    return tuple(rows), last == b""


def first_measurement(path: Path) -> Measurement | None:
    """Measurement of a file's first line; None without a complete one. Raises InputError:
    same as `read_measurements`."""
    try:
        with open_regular(path) as file:
            line = file.readline()
    except OSError:
        return None
    return _row(path, 1, line[:-1]) if line.endswith(b"\n") else None


def _row(path: Path, number: int, line: bytes) -> Measurement:
    try:
        members = orjson.loads(line)
        check_measurement(members)
        return from_line(members)
    except EDITED as error:
        raise not_a_measurement(path, number, error) from None


def not_a_measurement(path: Path, number: int, error: Exception | str) -> InputError:
    """The error for a line, counted from 1, that is no measurement."""
    reason = f"lacks {error}" if isinstance(error, KeyError) else error
    return InputError(f"{path}:{number}: not a measurement: {reason}; expected one JSON object a line")


def drop_torn_trial(path: Path, workers: int = 1) -> bool:
    """Remove an incomplete last trial, torn in the middle of a line or between its lines.

    `workers`: lines per trial, unless the lines say so (`rows`).

    Returns:
        True if there was one.
    """
    try:
        text = read_regular(path)
    except FileNotFoundError:
        return False
    lines = text[: text.rfind(b"\n") + 1].splitlines(keepends=True)
    kept = sum(map(len, lines[: len(lines) - _partial(lines, workers)]))
    if kept == len(text):
        return False
    os.truncate(path, kept)
    return True


def _partial(lines: Sequence[bytes], workers: int) -> int:
    try:
        rows = orjson.loads(lines[-1]).get("rows") if lines else None
        expected = rows if type(rows) is int and rows > 0 else workers
        return len(_last_trial([orjson.loads(line).get("trial") for line in lines[-expected:]])) % expected
    except (ValueError, AttributeError):
        return 0


def _last_trial(trials: Sequence[Any]) -> Sequence[Any]:
    first = next((i for i in range(len(trials) - 1, -1, -1) if trials[i] != trials[-1]), -1) + 1
    return trials[first:]


def check_experiment(document: Mapping[str, Any]) -> None:
    """Raise for an experiment.json with invalid members.

    Raises:
        ValueError: the reason.
    """
    missing = [name for name in ("tests", "plan", "sittings") if name not in document]
    if missing:
        raise ValueError(f"lacks {', '.join(missing)}; was it edited?")
    if type(document["plan"]) is not dict:
        raise ValueError("plan must be an object")
    for name in ("tests", "sittings", "earlier_rules"):
        entries = document.get(name, [])
        if type(entries) is not list or not all(type(entry) is dict for entry in entries):
            raise ValueError(f"{name} must be a list of objects")
        if name != "tests" and any(type(entry.get("sitting")) is not int for entry in entries):
            raise ValueError(f"each of {name} must hold `sitting`, its number")
    words = document.get("command_line", [])
    if type(words) is not list or not all(type(word) is str for word in words):
        raise ValueError("command_line must be a list of texts")
    for name in ("began_as", "versions", "metrics"):
        if type(document.get(name, {})) is not dict:
            raise ValueError(f"{name} must be an object, not {short(document[name])}")
    machine = document.get("machine") or {}
    if type(machine) is not dict:
        raise ValueError("machine must be an object")
    if not all(type(machine.get(when)) in (dict, type(None)) for when in ("before", "after")):
        raise ValueError("before and after of machine must be objects")
    _check_machine(machine.get("before") or {})
    for sitting in document["sittings"]:
        torn = sitting.get("torn") or []
        if type(torn) is not list or not all(type(name) is str for name in torn):
            raise ValueError("torn of `sittings` must be a list of names")
        if type(sitting.get("machine")) not in (dict, type(None)):
            raise ValueError("machine of `sittings` must be an object")
    _check_tests(document["tests"])
    planned = document["plan"].get("tests") or []
    if type(planned) is not list or any(
        type(t) is not dict or type(t.get("name")) is not str for t in planned
    ):
        raise ValueError("the tests of plan must be a list of objects with a name")


def _check_machine(snapshot: Mapping[str, Any]) -> None:
    for name in ("system", "cpu", "memory", "virtualisation", "directory", "disks"):
        if type(snapshot.get(name)) not in (dict, NoneType):
            raise ValueError(f"{name} of machine must be an object, not {short(snapshot[name])}")
    for name, disk in (snapshot.get("disks") or {}).items():
        if type(disk) is not dict:
            raise ValueError(f"the disk {short(name)} of machine must be an object, not {short(disk)}")
    for name, size in (snapshot.get("memory") or {}).items():
        if name.endswith("_bytes") and (type(size) not in (int, NoneType) or not 0 <= (size or 0) <= MOST):
            raise ValueError(f"{name} of machine must be a number of bytes, not {short(size)}")
    _check_place(snapshot.get("directory") or {}, "directory of machine")


def _check_place(place: Mapping[str, Any], what: str) -> None:
    if type(place) is not dict:
        raise ValueError(f"{what} must be an object, not {short(place)}")
    for name in ("path", "type", "mount_point", "device"):
        if type(place.get(name)) not in (str, NoneType):
            raise ValueError(f"{name} of {what} must be a text, not {short(place[name])}")


def _check_tests(tests: Sequence[Mapping[str, Any]]) -> None:
    for test in tests:
        _check_place(test.get("file_system") or {}, "file_system of `tests`")
        if [type(test.get(m)) for m in ("name", "directory", "role", "parameters")] != [str, str, str, dict]:
            raise ValueError("each of tests must hold name, directory, role and parameters")
        if not _within(test["directory"]):
            raise ValueError(f"the directory of test {test['name']!r} cannot be {short(test['directory'])}")
        for name, least in (("workers", 1), ("lines", 0)):
            if name in test and (type(test[name]) is not int or not least <= test[name] <= MOST):
                raise ValueError(f"{name} of test {test['name']!r} cannot be {short(test[name])}")
    for name in ("name", "directory"):
        most = Counter(test[name] for test in tests).most_common(1)
        if most and most[0][1] > 1:
            raise ValueError(f"two tests have one {name}: {short(most[0][0])}")


def _within(name: str) -> bool:
    """True if it names a direct entry of the results directory."""
    return name not in ("", ".", "..") and not any(c in "/\0" or "\ud800" <= c <= "\udfff" for c in name)


class Row(Protocol):
    """A line of a test's file; two are equal if all members are equal."""

    @property
    def test(self) -> str: ...
    @property
    def sitting(self) -> int: ...
    @property
    def trial(self) -> int: ...
    @property
    def rows(self) -> int | None: ...


def repeated_rows(
    file: Path, rows: Sequence[Row], test: Mapping[str, Any], sessions: Collection[int]
) -> list[int]:
    """Indices of repeated rows of a test's file, in order.

    test: its entry in experiment.json; sessions: the recorded session numbers.

    Raises:
        InputError: a row is of another test or of no recorded session, or a trial has too many or too few of them.
    """
    trials: dict[int, list[int]] = {}
    for number, row in enumerate(rows, 1):
        if row.test != test["name"]:
            raise InputError(
                f"{file}:{number}: is of test {row.test!r}, expected {test['name']!r}; was it copied or edited?"
            )
        if row.sitting not in sessions:
            raise InputError(
                f"{file}:{number}: is of session {row.sitting}, which is not in experiment.json; restore both "
                f"from one copy"
            )
        trials.setdefault(row.trial, []).append(number - 1)
    again: list[int] = []
    for trial, places in trials.items():
        found = [rows[place] for place in places]
        expected = found[0].rows or test.get("workers", 1)
        if len(found) == expected:
            continue
        repeated = [place for n, place in enumerate(places) if found[n] in found[:n]]
        if len(found) - len(repeated) != expected:
            raise InputError(
                f"{file}: lines of trial {trial}: {len(found)}, expected {expected}; restore it from a copy"
            )
        again += repeated
    return sorted(again)


def check_blocks(file: Path, rows: Sequence[Measurement], test: Mapping[str, Any]) -> None:
    """Refuse to resume from rows with impossible block numbers.

    A test has one included trial per block, so its block numbers cannot exceed its trial numbers. A/A pairs (role
    `again`) are not in each block.

    Raises:
        InputError: a block's number is larger than that of its trial, or two trials have it.
    """
    trials: dict[int, int] = {}
    for row in rows:
        if not row.kept or test.get("role") == "again":
            continue
        other = trials.setdefault(row.block, row.trial)
        if row.block > row.trial + 1 or other != row.trial:
            wrong = f", as of trial {other}" if other != row.trial else ", more than can have been made"
            raise InputError(
                f"{file}: the block of trial {row.trial} is {row.block}{wrong}; was it edited? Restore it from a copy"
            )


def has_ended(experiment: Mapping[str, Any]) -> bool:
    """True if its last session has recorded its end: it was not killed, and does not run."""
    return bool(experiment["sittings"]) and experiment["sittings"][-1].get("how_ended") is not None


def check_lines(file: Path, lines: int, test: Mapping[str, Any], *, cut: int = 0) -> None:
    """Refuse a file that has lost lines since the last session of its experiment ended.

    lines: number of its lines; cut: lines per trial, if the last trial was torn and is not included in `lines`.

    Raises:
        InputError: it has fewer than experiment.json records.
    """
    recorded = test.get("lines", 0)
    if lines + cut < recorded:
        raise InputError(
            f"{file}: holds {lines} of the {recorded} lines that experiment.json records; restore it from a copy "
            f"(or, if they were taken out on purpose, take `lines` of test {test['name']!r} out there, too)"
        )


def repeated_note(place: object, count: int) -> str:
    """The note on repeated lines."""
    return f"{place}: repeated lines, counted once: {count}"
