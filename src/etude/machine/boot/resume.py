"""What happens at boot: what is to be gone on with is looked at, counted, and then run in place of this process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from etude.errors import CommandFailed, InputError
from etude.machine.boot import record as records
from etude.machine.boot.record import MOST_SEEN, Record, read_object
from etude.machine.boot.wait_for_boot import BootState, most_seconds, wait
from etude.osutil.trust import is_trusted
from etude.results.writer import sole_writer


def progress(state: Path, results: Path) -> str:
    """How far an experiment has come, as a text: the position that its state tells, and the bytes of whole lines in
    all its results.jsonl.

    Raises:
        InputError: the state file is none.
    """
    document = read_object(state)
    if "format" not in document:
        raise InputError(f'{state}: is no state of an experiment: lacks "format"')
    position = document.get("position", "")
    size = sum(_whole_lines(file) for file in sorted(results.rglob("results.jsonl")))
    return f"{position}+{size}"


def count_boot(record: Record, found: str) -> Record:
    """The record with this boot counted: as the first, where it finds what no boot has found before."""
    # A script that goes to and fro between two states, neither of which was new, makes no progress either.
    fresh = found not in record.seen
    seen = [*record.seen, found][-MOST_SEEN:] if fresh else record.seen
    return replace(record, boots=1 if fresh else record.boots + 1, progress=found, seen=seen)


def too_many(record: Record) -> bool:
    """Whether this boot is one more than may find nothing new."""
    return record.boots > record.most_boots


def _whole_lines(file: Path) -> int:
    try:
        return file.read_bytes().rfind(b"\n") + 1
    except OSError:
        return 0


SETTLED_VARIABLE = "ETUDE_SETTLED"


@dataclass(frozen=True)
class GoOn:
    """A program to become: its words, its environment, and where it is run."""

    words: Sequence[str]
    environment: Mapping[str, str]
    directory: str


def resume(say: Callable[[str], object], settle: Callable[[float], BootState] = wait) -> GoOn:
    """Look at what is to be gone on with, count the boot, and wait for the machine to settle.

    Raises:
        InputError: record or state cannot be believed; the record stays.
        CommandFailed: too many boots have brought nothing new; the record is put aside.
        MachineRefuses: it is being gone on with already, or the boot cannot be counted.
    """
    record = check(records.load())
    with _alone(record):
        record = count_boot(record, progress(Path(record.state), Path(record.results)))
    if too_many(record):
        raise CommandFailed(
            f"{record.results}: {record.most_boots} boots in a row brought nothing new: given up, "
            f"the record is now {records.give_up()}; go on by hand with: etude run {record.state}"
        )
    records.write(record)
    say(
        f"going on with {record.results} (boot {record.boots} of {record.most_boots} that may bring nothing new)"
    )
    settled = settle(most_seconds(record.environment))
    still = "" if settled.settled else f" and still has {settled.why}: going on all the same"
    say(f"the machine took {settled.waited_s:g} s to settle{still}")
    return GoOn(
        words=[*record.program, *record.words],
        environment=record.environment | {SETTLED_VARIABLE: json.dumps(asdict(settled))},
        directory=record.directory,
    )


def check(record: Record) -> Record:
    """The record itself, if what it leads to may be believed.

    Raises:
        InputError: the state file cannot be trusted, or the results are not there.
    """
    is_trusted(record.state)
    if not os.path.isdir(record.results):
        raise InputError(f"{record.results}: no such results directory; is its file system mounted?")
    return record


def become(what: GoOn) -> None:
    """Run it in place of this process.

    Raises:
        InputError: it cannot be run.
    """
    try:
        os.chdir(what.directory)
        os.execve(what.words[0], list(what.words), dict(what.environment))
    except OSError as error:
        raise InputError(f"{what.words[0]}, in {what.directory}: cannot be run: {error.strerror}") from None


def _alone(record: Record):  # type: ignore[no-untyped-def]  # a context manager
    """A boot is not counted while somebody works on these results."""
    return sole_writer(Path(record.results))
