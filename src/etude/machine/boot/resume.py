"""Resumes an experiment at boot, once the machine has settled: checks the record, and counts the boot. Its status."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from etude.errors import CommandFailed, EtudeError, InputError
from etude.machine import tree
from etude.machine.boot import record as records
from etude.machine.boot import restart, unit
from etude.machine.boot.entries import booted_as, entries
from etude.machine.boot.record import MAX_SEEN, MAX_WAIT_S, Record, most_seconds, read_object
from etude.machine.boot.unit import Status
from etude.machine.snapshot import pressure
from etude.osutil.commands import run_to_end
from etude.osutil.trust import check_trusted, tool_environment
from etude.results.writer import sole_writer

BETWEEN_S = 5.0
"""Interval between two polls, s: each starts systemctl, which itself loads the machine."""
MAX_LOAD_PER_CPU = 0.5
MAX_PRESSURE = 0.05
RESOURCES = ("cpu", "io", "memory")


@dataclass(frozen=True)
class Busy:
    """Activity of a machine: load of the last minute, shares of the last 10 s with PSI stalls by resource, and
    unfinished start-up jobs. Unknown values are None, or left out."""

    load: float | None = None
    pressure: dict[str, float] = field(default_factory=dict)
    jobs: int | None = None
    cpus: int = 1

    def reasons(self) -> list[str]:
        """Reasons why it has not settled, in words."""
        found = []
        if self.jobs:
            found.append(f"{self.jobs} start-up jobs")
        if self.load is not None and self.load > MAX_LOAD_PER_CPU * self.cpus:
            found.append(f"load {self.load:g} on {self.cpus} CPUs")
        high = {name: share for name, share in self.pressure.items() if share > MAX_PRESSURE}
        return [*found, *(f"{name} pressure {share:.0%}" for name, share in high.items())]


@dataclass(frozen=True)
class BootState:
    """Seconds waited, True if the machine settled, and its last activity."""

    waited_s: float
    settled: bool
    load: float | None
    pressure: dict[str, float]
    jobs: int | None
    why: str = ""
    """Remaining activity, if it did not settle."""


def wait(
    most_s: float = MAX_WAIT_S,
    *,
    read: Callable[[], Busy] | None = None,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], object] = time.sleep,
) -> BootState:
    """Wait until load and pressure are low and no start-up job is left, but at most `most_s`."""
    look = read or read_busy
    began = clock()
    while True:
        busy = look()
        reasons, waited = busy.reasons(), clock() - began
        if not reasons or waited >= most_s:
            why = ", ".join(reasons)
            return BootState(round(waited, 1), not reasons, busy.load, busy.pressure, busy.jobs, why)
        pause(min(BETWEEN_S, most_s - waited))


def read_busy(root: Path = Path("/"), jobs: Callable[[], int | None] | None = None) -> Busy:
    """Present activity of the machine below `root`."""
    load = (tree.read_text(root, "proc/loadavg") or "").split()
    percent = {name: (pressure(root, name) or {}).get("avg10") for name in RESOURCES}
    return Busy(
        load=tree.to_float(load[0]) if load else None,
        pressure={name: value / 100 for name, value in percent.items() if value is not None},
        jobs=(jobs or systemd_jobs)(),
        cpus=len(tree.read_cpus(root, "sys/devices/system/cpu/online") or []) or os.cpu_count() or 1,
    )


def systemd_jobs() -> int | None:
    """Jobs in systemd's queue; at least one while systemd reports that the system is starting; None without systemd."""
    if not os.path.isdir("/run/systemd/system"):
        return None
    words = ["systemctl", "show", "--property=NJobs,SystemState"]
    try:
        done = run_to_end(words, patience_s=30.0, environment=tool_environment())
    except (OSError, subprocess.TimeoutExpired):
        return None
    return jobs_of(done.text)


def jobs_of(said: str) -> int | None:
    """The number of jobs in the output of `systemctl show`."""
    members = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
    jobs = tree.to_int(members.get("NJobs"))
    starting = members.get("SystemState") in ("initializing", "starting")
    return max(jobs or 0, 1) if starting else jobs


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


@dataclass(frozen=True)
class Bootable:
    """An entry of the boot loader; `running`: True if it is the running one, None if unknown."""

    title: str
    key: str
    kernel: str | None
    options: str | None
    running: bool | None


@dataclass(frozen=True)
class BootStatus:
    """The complete status. `refused`: the reason why the waiting record would not be resumed."""

    unit: Status
    record: str
    waits: Record | None
    refused: str | None
    given_up: str | None
    restart: str
    entries: list[Bootable] = field(default_factory=list)
    no_entries: str | None = None

    def lines(self) -> list[str]:
        """The status in sentences, without the unit's."""
        found = []
        if self.waits is not None:
            boots = f"{self.waits.boots} of {self.waits.most_boots} boots brought nothing new"
            found.append(f"Waits for the next boot: {self.waits.results} ({boots}).")
        elif self.refused is None:
            found.append("Nothing waits for the next boot.")
        if self.refused is not None:
            found.append(f"Would be refused: {self.refused}")
        if self.given_up is not None:
            found.append(f"Given up: {self.given_up}")
        found.append(f"Restarts by: {self.restart}")
        marks = {True: "  runs", False: "", None: "  may run"}
        found += [f"Can boot: {each.key!r} ({each.title}){marks[each.running]}" for each in self.entries]
        return found + ([f"Can boot: {self.no_entries}"] if self.no_entries else [])


def boot_status(root: Path = Path("/")) -> BootStatus:
    """Read the status; changes nothing."""
    waits = refused = no_entries = None
    offered: list[Bootable] = []
    if records.path().exists():
        try:
            waits = records.load()
            check(waits)
        except EtudeError as error:
            refused = str(error)
    try:
        known = entries(root)
        offered = [
            Bootable(e.title, e.key, e.kernel, e.options, booted_as(e.key, root, known)[0]) for e in known
        ]
        no_entries = None if known else "no boot loader is known here"
    except EtudeError as error:
        no_entries = str(error)
    stopped = records.given_up_path()
    return BootStatus(
        unit=unit.status(root),
        record=str(records.path()),
        waits=waits,
        refused=refused,
        given_up=str(stopped) if stopped.exists() else None,
        restart=restart.restart_method(),
        entries=offered,
        no_entries=no_entries,
    )
