"""What happens at boot: what is to be gone on with is looked at, counted, and then run in place of this process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from etude.errors import CommandFailed, InputError
from etude.results.writer import sole_writer
from etude.testbed.boot import record as records
from etude.testbed.boot.progress import counted, progress, too_many
from etude.testbed.boot.record import Record
from etude.testbed.boot.settled import Settled, most_seconds, wait
from etude.trust import trusted

SETTLED_VARIABLE = "ETUDE_SETTLED"


@dataclass(frozen=True)
class GoOn:
    """A program to become: its words, its environment, and where it is run."""

    words: Sequence[str]
    environment: Mapping[str, str]
    directory: str


def resume(say: Callable[[str], object], settle: Callable[[float], Settled] = wait) -> GoOn:
    """Look at what is to be gone on with, count the boot, and wait for the machine to settle.

    Raises:
        InputError: record or state cannot be believed; the record stays.
        CommandFailed: too many boots have brought nothing new; the record is put aside.
        MachineRefuses: it is being gone on with already, or the boot cannot be counted.
    """
    record = check(records.load())
    with _alone(record):
        record = counted(record, progress(Path(record.state), Path(record.results)))
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
    trusted(record.state)
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
