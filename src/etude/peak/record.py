"""Results directory of a search or a map: sessions, tests in order of their first trial, and crash-safe lines.

All files of a search or a map are written here, so `etude stats`, `plot` and `bundle` read them like any results.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from etude.errors import InputError
from etude.experiment.session import utc_now
from etude.machine import snapshot
from etude.machine.boot.record import boot_id
from etude.osutil.trust import check_results_for_root
from etude.results.model import Measurement
from etude.results.reader import drop_torn_trial, has_ended, read_experiment
from etude.results.regular import read_regular
from etude.results.writer import (
    check_writable_name,
    directory_name,
    sole_writer,
    write_error,
    write_experiment,
)

Document = dict[str, Any]
FILE = "results.jsonl"
RESUME_HINT = "resume by the same command with the same -o"


class Record:
    """The directory and its experiment.json."""

    def __init__(self, directory: Path) -> None:
        """Read the directory. Raises InputError if it cannot be read."""
        self.directory = directory
        self.document: Document = read_experiment(directory)
        self._earlier = len(self.document["sittings"])
        self.lost = _lost_lines(directory, self.document)
        """Lines lost since the end of the last session, by test name."""
        self._lost_at_least = False
        self._lines_before: dict[str, int] = {}

    def lost_text(self, what: str) -> str:
        """Message on lost `what` ("trials") by test; empty if none is lost."""
        more = " or more" if self._lost_at_least else ""
        of_tests = ", ".join(f"{count}{more} of {name}" for name, count in self.lost.items())
        return f"{what} that were made are gone or were cut short: {of_tests}" if of_tests else ""

    def check_whole(self, what: str) -> None:
        """Raises InputError if lines that the stored result depends on are lost."""
        if text := self.lost_text(what):
            raise InputError(
                f"{self.directory}: {text}; the result that is stored rests on them: restore them from a copy, or "
                f"resume with -o {self.directory}"
            )

    def _find_gaps(self, numbers: Collection[int]) -> None:
        """Find lost lines in a directory written before lines were counted: they are numbered from 1."""
        tests, sittings = self.document["tests"], self.document["sittings"]
        complete = bool(sittings) and sittings[-1]["how_ended"] == "complete"
        if not complete or any("lines" in test for test in tests):
            return
        short = [test["name"] for test in tests if not _whole(self.directory / test["directory"] / FILE)]
        count = max(max(numbers, default=0) - len(set(numbers)), len(short))
        if count:
            first, *others = short or ["some test"]
            self._lost_at_least = True
            self.lost = {first: count - len(others), **dict.fromkeys(others, 1)}

    def place(self, name: str, parameters: Mapping[str, str]) -> Path:
        """The directory of a test, recorded in experiment.json before any file is in it."""
        tests = self.document["tests"]
        known = next((test["directory"] for test in tests if test["name"] == name), None)
        if known is None:
            known = directory_name(name, [test["directory"] for test in tests])
            entry = {"name": name, "directory": known, "role": "test", "workers": 1}
            tests.append(entry | {"parameters": dict(parameters)})
            self.save()
        return self.directory / known

    def begin_session(self) -> None:
        """Begin a new session on this machine."""
        self.begin_session_elsewhere()
        self._session(os.uname().nodename, boot_id(), snapshot.take() if self._earlier else None)

    def begin_session_elsewhere(self) -> None:
        """Begin a new session on other machines only; each gets its own with its first result."""
        self._earlier = len(self.document["sittings"])
        self._lines_before = self._counted_lines()

    def session_on(self, host: str, boot: str, machine: Mapping[str, Any] | None) -> Document:
        """The session of another machine, begun now unless there is one since `begin_session_elsewhere`.

        machine: its snapshot; None if unknown.
        """
        for sitting in self.document["sittings"][self._earlier :]:
            if (sitting["host"], sitting["boot_id"]) == (host, boot):
                return dict(sitting)
        known = None if machine is None else dict(machine)
        if not self.document["sittings"]:
            self.document["machine"]["before"] = known or {}
            known = None
        return self._session(host, boot, known)

    def _session(self, host: str, boot: str, machine: Document | None) -> Document:
        sittings = self.document["sittings"]
        sitting = {
            "sitting": len(sittings) + 1,
            "boot_id": boot,
            "host": host,
            "start": utc_now(),
            "end": None,
            "how_ended": None,
            "torn": [],
            "machine": machine,
        }
        sittings.append(sitting)
        self.save()
        return sitting

    def end(self, how: str, decisions: list[str]) -> None:
        """Record the end of this session on all of its machines, and the number of lines of each test.

        A session that only showed a complete result again leaves no trace: nothing was measured in it.
        """
        lines, sittings = self._counted_lines(), self.document["sittings"]
        for test in self.document["tests"]:
            test["lines"] = lines[test["name"]]
        ends = [sitting["how_ended"] for sitting in sittings[: self._earlier]]
        if lines == self._lines_before and [how, *ends[-1:]] == ["complete", "complete"]:
            del sittings[self._earlier :]
            self.save()
            return
        for sitting in sittings[self._earlier :]:
            sitting |= {"end": utc_now(), "how_ended": how, "decisions": decisions}
        here = bool(sittings) and sittings[-1]["host"] == os.uname().nodename
        self.document["machine"]["after"] = snapshot.take() if here else None
        self.save()

    def _counted_lines(self) -> dict[str, int]:
        """The number of lines of each test."""
        tests = self.document["tests"]
        return {test["name"]: _lines(self.directory / test["directory"] / FILE) for test in tests}

    def _measurement(
        self,
        test: str,
        trial: int,
        block: int,
        sitting: Document,
        start: tuple[str | None, int | None],
        *,
        command: list[str],
        failed: bool,
        why: str | None,
        metrics: dict[str, Any],
        note: str,
    ) -> Measurement:
        """A measurement of one worker; `start`: as `instant`; `why`: why it is excluded, None if it is not."""
        return Measurement(
            test=test,
            trial=trial,
            block=block,
            order=0,
            worker=0,
            host=sitting["host"],
            sitting=sitting["sitting"],
            boot_id=sitting["boot_id"],
            command=command,
            start=start[0],
            start_ns=start[1],
            inner=1,
            exit_status=int(failed),
            signal=None,
            timed_out=False,
            cancelled=False,
            error=None,
            kept=why is None,
            why=why,
            metrics=metrics,
            notes=[note] if note else None,
        )

    def save(self) -> None:
        """Write experiment.json. Raises MachineRefuses."""
        write_experiment(self.directory, self.document, RESUME_HINT)


def _lost_lines(directory: Path, document: Document) -> dict[str, int]:
    if not has_ended(document):
        return {}
    lost = {
        test["name"]: test.get("lines", 0) - _lines(directory / test["directory"] / FILE)
        for test in document["tests"]
        if test.get("lines", 0)
    }
    return {name: count for name, count in lost.items() if count > 0}


def _lines(path: Path) -> int:
    try:
        return len(set(read_regular(path).split(b"\n")[:-1]))
    except OSError:
        return 0


def whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Distinct lines of a file with their numbers, without a torn last line. Raises InputError if it cannot be read."""
    try:
        lines = read_regular(path).split(b"\n")[:-1]
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    known: set[bytes] = set()
    for number, text in enumerate(lines, 1):
        if text not in known:
            known.add(text)
            yield number, text


def check_numbers(found: Iterable[tuple[Path, int]], what: str) -> None:
    """Raises InputError if two different lines have the same number. `what`: their kind, such as "trial"."""
    first: dict[int, Path] = {}
    for path, number in found:
        if number in first:
            raise InputError(
                f"{path}: {what} {number} is another one in {first[number]}; restore both from one copy"
            )
        first[number] = path


def _whole(path: Path) -> bool:
    """True if the file has lines and the last one is complete."""
    try:
        return read_regular(path).endswith(b"\n")
    except OSError:
        return False


R = TypeVar("R", bound=Record)


@contextmanager
def open_record(
    directory: str | os.PathLike[str], opened: Callable[[Path], R], begin: Callable[[R], None]
) -> Iterator[R]:
    """The record of a directory, which is created if missing and locked against other writers. `begin` begins a
    session; an exception is recorded as its end. Raises MachineRefuses, InputError, UsageError."""
    path = Path(directory)
    check_writable_name(path)
    check_results_for_root(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(path, error, RESUME_HINT) from error
    with sole_writer(path):
        kept = opened(path)
        begin(kept)
        try:
            yield kept
        except BaseException as error:
            kept.end(str(error) or type(error).__name__, [])
            raise


def cut_torn_line(directory: Path) -> None:
    """Drop lines that were torn when the last session was killed."""
    for entry in read_experiment(directory)["tests"]:
        drop_torn_trial(directory / entry["directory"] / "results.jsonl")


def append(path: Path, line: Mapping[str, Any]) -> None:
    """Append a line with one write that is on disk at return: completely, or not at all. Raises MachineRefuses: it
    cannot be written; the file ends with its last whole line."""
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            data, end = text.encode("utf-8", "replace"), os.fstat(file).st_size
            if os.write(file, data) != len(data):
                os.ftruncate(file, end)
                raise OSError(28, os.strerror(28))
            os.fdatasync(file)
        finally:
            os.close(file)
    except OSError as error:
        raise write_error(path, error, RESUME_HINT) from error


def digest(plan: Mapping[str, Any]) -> str:
    """Digest of a plan."""
    text = json.dumps(plan, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def instant() -> tuple[str, int]:
    """Time of day, and the monotonic clock, ns."""
    return utc_now(), time.monotonic_ns()
