"""Resumes an experiment at boot: checks the record, counts the boot, and replaces this process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from etude.errors import CommandFailed, InputError
from etude.machine.boot import record as records
from etude.machine.boot.record import MAX_SEEN, Record, read_object
from etude.machine.boot.wait_for_boot import BootState, most_seconds, wait
from etude.osutil.trust import check_trusted
from etude.results.writer import sole_writer


def progress(state: Path, results: Path) -> str:
    """Progress of an experiment as text: the position in its state file, and the total bytes of complete lines in all
    its results.jsonl.

    Raises:
        InputError: the state file is invalid.
    """
    document = read_object(state)
    if "format" not in document:
        raise InputError(f'{state}: is no state of an experiment: lacks "format"')
    position = document.get("position", "")
    size = sum(_whole_lines(file) for file in sorted(results.rglob("results.jsonl")))
    return f"{position}+{size}"


def count_boot(record: Record, found: str) -> Record:
    """The record with this boot counted, from 1 again if it shows progress that no earlier boot had."""
    # A script that alternates between two old states makes no progress either.
    fresh = found not in record.seen
    seen = [*record.seen, found][-MAX_SEEN:] if fresh else record.seen
    return replace(record, boots=1 if fresh else record.boots + 1, progress=found, seen=seen)


def has_too_many_boots(record: Record) -> bool:
    """True if there were more boots without progress than allowed."""
    return record.boots > record.most_boots


def _whole_lines(file: Path) -> int:
    try:
        return file.read_bytes().rfind(b"\n") + 1
    except OSError:
        return 0


SETTLED_VARIABLE = "ETUDE_SETTLED"


@dataclass(frozen=True)
class ResumeCommand:
    """A program to execute: its words, environment and working directory."""

    words: Sequence[str]
    environment: Mapping[str, str]
    directory: str


def resume(say: Callable[[str], object], settle: Callable[[float], BootState] = wait) -> ResumeCommand:
    """Check the record, count the boot, and wait for the machine to settle.

    Raises:
        InputError: record or state is not trusted; the record stays.
        CommandFailed: too many boots without progress; the record is moved aside.
        MachineRefuses: the experiment is already being resumed, or the boot cannot be counted.
    """
    record = check(records.load())
    with _alone(record):
        record = count_boot(record, progress(Path(record.state), Path(record.results)))
    if has_too_many_boots(record):
        raise CommandFailed(
            f"{record.results}: {record.most_boots} boots in a row brought nothing new: given up, "
            f"the record is now {records.give_up()}; resume by hand with: etude run {record.state}"
        )
    records.write(record)
    say(
        f"going on with {record.results} (boot {record.boots} of {record.most_boots} that may bring nothing new)"
    )
    settled = settle(most_seconds(record.environment))
    still = "" if settled.settled else f" and still has {settled.why}: going on all the same"
    say(f"the machine took {settled.waited_s:g} s to settle{still}")
    return ResumeCommand(
        words=[*record.program, *record.words],
        environment=record.environment | {SETTLED_VARIABLE: json.dumps(asdict(settled))},
        directory=record.directory,
    )


def check(record: Record) -> Record:
    """The record itself, if its state file is trusted.

    Raises:
        InputError: the state file cannot be trusted, or the results are missing.
    """
    check_trusted(record.state)
    if not os.path.isdir(record.results):
        raise InputError(f"{record.results}: no such results directory; is its file system mounted?")
    return record


def replace_process(what: ResumeCommand) -> None:
    """Replace this process by the program.

    Raises:
        InputError: it cannot be run.
    """
    try:
        os.chdir(what.directory)
        os.execve(what.words[0], list(what.words), dict(what.environment))
    except OSError as error:
        raise InputError(f"{what.words[0]}, in {what.directory}: cannot be run: {error.strerror}") from None


def _alone(record: Record):  # type: ignore[no-untyped-def]  # a context manager
    """Locks the results, so that a boot is not counted while another process works on them."""
    return sole_writer(Path(record.results))
