"""Reports of `etude replay --json` and `etude load --json`: in a file, or in the outputs that trials have left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from etude import codec
from etude.errors import InputError
from etude.results.printed_json import OBJECT, json_objects
from etude.results.reader import read_experiment
from etude.results.regular import open_regular
from etude.results.windows import checked_window

HEAD_BYTES = 64 << 10
"""Bytes of an output by which a report is recognised."""
MOST_BYTES = 64 << 20
"""Bytes of the outputs of one test, or of a file, that are read."""
ENDINGS = ("log", "stdout")
"""Endings of the logs of outputs, of a script and of `etude bench`."""
REPLAY_MEMBERS = ('"timing"', '"calls"', '"skipped"', '"mismatches"', '"run_s"')


@dataclass(frozen=True)
class Original:
    """Times of the recorded program, s, as far as they are known; lower bounds where it was not `timed`."""

    timed: bool
    run_s: codec.Amount | None = None
    read_s: codec.Amount | None = None
    write_s: codec.Amount | None = None
    requests_s: codec.Amount | None = None
    calls_s: codec.Amount | None = None


@dataclass(frozen=True)
class Lateness:
    """Delay of the calls' starts after their scheduled times, s."""

    median: codec.Amount
    p99: codec.Amount
    max: codec.Amount


@dataclass(frozen=True)
class DroppedCalls:
    """Calls of one name that the script lacks, for one reason."""

    call: str
    why: str
    calls: codec.Count
    bytes: codec.Count
    time_s: codec.Amount
    requests: codec.Count = 0
    """Transfers of unknown size."""
    moves: bool = False
    """True if they moved data, or may have."""


@dataclass(frozen=True)
class Unplayed:
    """I/O of the program that the replay left out."""

    bytes_share: codec.Amount
    time_share: codec.Amount | None = None
    """Share of its time in reads and writes; None if unknown."""
    requests: codec.Count = 0
    requests_share: codec.Amount = 0.0
    dropped: tuple[DroppedCalls, ...] = ()


@dataclass(frozen=True)
class OtherResult:
    """A call whose result differs from the recorded one."""

    thread: codec.Count
    step: codec.Count
    line: str
    call: str
    expected: codec.Integer
    got: codec.Integer


@dataclass(frozen=True)
class CallTimes:
    """All calls of one name."""

    count: codec.Count
    errors: codec.Count
    mismatches: codec.Count
    bytes: codec.Count
    time_s: codec.Amount
    median_s: codec.Amount
    p99_s: codec.Amount


@dataclass(frozen=True)
class ReplayReport:
    """One replay (docs/howto/replay.md)."""

    timing: str
    speed: codec.Positive
    threads: codec.Count
    calls: codec.Count
    skipped: codec.Count
    mismatches: codec.Count
    run_s: codec.Amount
    read_s: codec.Amount
    write_s: codec.Amount
    calls_s: codec.Amount
    original: Original
    unplayed: Unplayed
    requests_s: codec.Amount = 0.0
    other_results: tuple[OtherResult, ...] = ()
    changed_before: bool = False
    waits: codec.Count = 0
    waited_s: codec.Amount = 0.0
    lateness_s: Lateness | None = None
    """None: there was no schedule."""
    realtime: bool = False
    scheduling_refused: bool = False
    undirect: codec.Count = 0
    by_threads: bool = False
    cached: str | None = None
    """The one of `replay` and `original` that probably read from memory while the other did not."""
    by_call: dict[str, CallTimes] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadedRoll:
    """Roll that is the workload."""

    multiple: codec.Amount | None = None
    """Offered rate in recorded rates."""
    not_played: codec.Count = 0
    """Calls that could not be made."""


@dataclass(frozen=True)
class LoadSummary:
    """Last line of a load's output (docs/howto/load.md)."""

    ended: str
    target: str
    arrivals: str
    duration_s: codec.Amount
    offered: codec.Count
    started: codec.Count
    completed: codec.Count
    failed: codec.Count
    abandoned: codec.Count
    busy: codec.Amount
    generator_limited: bool
    workload: str | None = None
    file_set: str | None = None
    asked_rate: codec.Amount | None = None
    """Requests per second; None in a closed loop."""
    asked_clients: codec.Count | None = None
    think_s: codec.Amount | None = None
    failures: dict[str, codec.Count | dict[str, codec.Count] | None] = field(default_factory=dict)
    """Failed requests by reason; `errors`: by error code."""
    roll: LoadedRoll | None = None


@dataclass(frozen=True)
class ResponseTimes:
    """Response times of all answers of a load, s; None where there are too few."""

    mean_s: codec.Amount | None = None
    p50_s: codec.Amount | None = None
    p90_s: codec.Amount | None = None
    p99_s: codec.Amount | None = None
    p99_9_s: codec.Amount | None = None
    max_s: codec.Amount | None = None


@dataclass(frozen=True)
class LoadReport:
    """One run of `etude load`."""

    windows: tuple[Mapping[str, Any], ...]
    """Windows as objects (docs/reference/formats.md, "Windows")."""
    summary: LoadSummary | None
    """None: the output ends before it."""
    response: ResponseTimes = field(default_factory=ResponseTimes)
    lateness_p99_s: codec.Amount | None = None
    drained: Mapping[str, Any] | None = None
    """Window of the answers after the last window."""


Report = ReplayReport | LoadReport


@dataclass(frozen=True)
class TestReports:
    """Reports in the outputs of one test, by the numbers of its trials."""

    test: str
    reports: Mapping[int, Report]
    missing: int = 0
    """Trials without a whole report within the first `MOST_BYTES` of their outputs."""


def is_report(path: Path) -> bool:
    """True for a file that begins as a report does."""
    try:
        return path.is_file() and _kind(_head(path)) is not None
    except OSError:
        return False


def holds_report(text: str) -> bool:
    """True for an output that begins as a report does."""
    return _kind(text[:HEAD_BYTES]) is not None


def read_report(path: Path) -> Report:
    """The report in a file. Raises InputError: there is none, several, or one that is invalid."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path}: is larger than {MOST_BYTES >> 20} MiB: report on a shorter run")
        text = _text(path, MOST_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    found = reports_in(text, str(path))
    if len(found) != 1:
        many = f"{len(found)} reports are" if found else "no whole report is"
        raise InputError(f"{path}: {many} in it; expected the output of one etude load or replay --json")
    return found[0]


def reports_of_tests(directory: Path, trials: Mapping[str, Sequence[int]]) -> list[TestReports]:
    """The tests of a results directory whose outputs hold reports. `trials`: the included ones, by test.

    Raises InputError: a report is invalid.
    """
    directories = {entry.get("name"): entry.get("directory") for entry in read_experiment(directory)["tests"]}
    found = []
    for test, numbers in trials.items():
        logs = directory / str(directories.get(test)) / "logs"
        if logs.is_dir() and (reports := _of_logs(logs, test, numbers)).reports:
            found.append(reports)
    return found


def _of_logs(logs: Path, test: str, trials: Sequence[int]) -> TestReports:
    """The reports of the first workers of these trials; all of the kind of the first report."""
    found: dict[int, Report] = {}
    kind: type[Report] | None = None
    left = MOST_BYTES
    for trial in trials:
        path = next((p for end in ENDINGS if (p := logs / f"{trial:04d}-0.{end}").is_file()), None)
        if path is None:
            continue
        try:
            of_this = kind or _kind(_head(path))
            left -= path.stat().st_size if of_this else HEAD_BYTES
            text = _text(path, MOST_BYTES) if of_this and left >= 0 else ""
        except OSError:
            continue
        if left < 0:
            break
        of_kind = [each for each in reports_in(text, str(path)) if type(each) is of_this]
        if of_kind:
            found[trial], kind = of_kind[-1], of_this
    return TestReports(test, found, len(trials) - len(found))


def _head(path: Path) -> str:
    return _text(path, HEAD_BYTES)


def _text(path: Path, most: int) -> str:
    with open_regular(path) as file:
        return file.read(most).decode("utf-8", "replace")


def _kind(head: str) -> type[Report] | None:
    """The kind of the report that a text begins, other lines before it aside."""
    match = OBJECT.search(head)
    text = head[match.end() :] if match else ""
    if all(name in text for name in REPLAY_MEMBERS):
        return ReplayReport
    first = text[: text.find("\n")] if "\n" in text else text
    windows = '"duration_s"' in first and '"completed"' in first and '"lateness_p99_s"' in first
    return LoadReport if windows or first.startswith('{"summary"') else None


def reports_in(text: str, where: str) -> list[Report]:
    """The reports in an output, in their order; a load without its last line has no summary.

    Raises InputError: one of them is invalid.
    """
    found: list[Report] = []
    windows: list[Mapping[str, Any]] = []
    for told in json_objects(text):
        if "timing" in told and "by_call" in told:
            found.append(codec.decoded(ReplayReport, told, where))
        elif "summary" in told:
            found.append(_load(windows, told, where))
            windows = []
        elif "duration_s" in told and "completed" in told:
            windows.append(_window(told, len(windows) + 1, where))
    if windows:
        found.append(LoadReport(tuple(windows), None))
    return found


def _window(told: Any, number: int, where: str) -> Mapping[str, Any]:
    try:
        window = checked_window(told)
        if "completed" not in window:
            raise ValueError("completed: is missing")
    except ValueError as error:
        raise InputError(f"{where}: window {number}: {error}") from None
    return window


@dataclass(frozen=True)
class _LastLine:
    summary: LoadSummary
    response: ResponseTimes | None = None
    lateness_p99_s: codec.Amount | None = None


def _load(windows: Sequence[Mapping[str, Any]], told: Mapping[str, Any], where: str) -> LoadReport:
    last = codec.decoded(_LastLine, told, where)
    drained = _window(told["drained"], len(windows) + 1, where) if told.get("drained") else None
    return LoadReport(
        tuple(windows), last.summary, last.response or ResponseTimes(), last.lateness_p99_s, drained
    )
