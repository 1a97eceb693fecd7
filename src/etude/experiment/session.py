"""One session of an experiment: its directory, its engine, its entry in experiment.json, however it ends."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from etude.engine import Engine
from etude.errors import EtudeError, InputError, Interrupted, MachineRefuses, Restarting
from etude.experiment import monitoring
from etude.experiment.bench import Bench, EngineLike, Event, Session, SignalWatch
from etude.experiment.kernel_log import KernelLog, NoKernelLog
from etude.experiment.monitoring import Monitoring
from etude.experiment.origin import check_programs, check_same
from etude.experiment.plan import Plan, resume_command
from etude.experiment.progress import Progress
from etude.experiment.remote_engine import NodeSession, node_session_of
from etude.machine import leftovers, snapshot
from etude.machine.boot.record import boot_id
from etude.machine.boot.resume import SETTLED_VARIABLE
from etude.machine.cool import steps
from etude.machine.quiet.apply_restore import recorded_changes
from etude.machine.snapshot import Command
from etude.masking import Mask
from etude.osutil.trust import check_results_for_root
from etude.results.model import METRICS, Measurement, signal_name
from etude.results.reader import check_blocks, drop_torn_trial, load_results
from etude.results.results import FORMAT, VERSION, restarted_into, session_groups
from etude.results.writer import (
    ResultsWriter,
    check_writable_name,
    directory_name,
    write_error,
    write_experiment,
)
from etude.version import __version__

VARIABLE = "ETUDE_RUN"
"""Environment variable of all processes of a session: identifies its results directory. Its value has a fixed length,
since the size of the environment moves the stack of a program."""
GRACE_S = 2.0


@contextmanager
def mark_children(path: Path) -> Iterator[None]:
    """Marks processes that are started within the block, so that `end_leftovers` finds them even after a crash."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = _value(path)
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def end_leftovers(path: Path, sessions: Sequence[Mapping[str, Any]]) -> list[str]:
    """End processes that earlier sessions of this directory left here, and remove their cgroups; call it while holding
    the directory's lock.

    Returns:
        A name for each process.

    Raises:
        MachineRefuses: one does not end, or belongs to another user.
    """
    dead = {pid for session in sessions if (pid := _ended_etude(session)) is not None}

    def members() -> list[int]:
        found = {*leftovers.marked_processes(VARIABLE, _value(path)), *leftovers.in_groups_of(dead)}
        return [pid for pid in sorted(found) if not leftovers.is_gone(pid)]

    found = {pid: leftovers.name(pid) for pid in members()}
    if found:
        leftovers.stop(members, GRACE_S)
    if left := members():
        names = ", ".join(map(leftovers.name, left))
        raise MachineRefuses(
            f"{path}: {names}: started by an earlier run of this directory, still running, and cannot be ended; "
            "end it, then resume"
        )
    leftovers.remove_groups(dead)
    return list(found.values())


def _ended_etude(session: Mapping[str, Any]) -> int | None:
    """Process id of a session's Étude, if it ran in this boot and its cgroups cannot belong to anybody else by now."""
    pid = session.get("pid")
    if not isinstance(pid, int) or session.get("boot_id") != boot_id():
        return None
    return None if leftovers.PROC.joinpath(str(pid)).exists() and pid != os.getpid() else pid


def _value(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]


def planned_commands(plan: Mapping[str, Any]) -> list[Command]:
    """Commands that a plan of `etude bench` will run. Those of a script are known when they are run."""
    found = []
    for test in plan.get("tests") or ():
        search = (test.get("environment") or {}).get("PATH")
        found.append(Command(tuple(test["command"]), search, test.get("directory")))
    return found


class MachineRecord:
    """The snapshots of one session in experiment.json, and the commands whose programs they describe."""

    def __init__(
        self, path: Path, document: dict[str, Any], take: Callable[[], dict[str, Any] | None] | None = None
    ) -> None:
        """`take`: makes a snapshot of the machine, if it is not this one."""
        self._path, self._document, self._take = path, document, take
        self._commands: dict[Command, None] = dict.fromkeys(planned_commands(document["plan"]))

    def note(self, words: Sequence[str], environment: Mapping[str, str], *, again: bool = False) -> bool:
        """Describe the programs of a command that is about to run in this session's snapshot, if they are new.

        again: its test has trials of earlier sessions.

        Returns:
            True if there were new ones.

        Raises:
            InputError: the earlier trials ran another program.
        """
        command = Command(tuple(words), environment.get("PATH"))
        programs = (self._current() or {}).get("programs")
        if command in self._commands or not isinstance(programs, dict):
            return False
        self._commands[command] = None
        around = {**os.environ, **environment}
        described = snapshot.programs(Path("/"), [command], around)
        if again:
            check_same(self._path, self._document, described, len(self._document["sittings"]) - 1)
        before = len(programs)
        for name, found in described.items():
            known = programs.setdefault(name, found)
            if found and known and found["file"] != known["file"]:  # another of that name
                programs.setdefault(found["file"], found)
            self._commands[Command((name,), command.search)] = None
        return len(programs) > before

    def end(self) -> None:
        """Take the snapshots at the end of the session."""
        take = self._take or (lambda: snapshot.take(commands=tuple(self._commands)))
        self._document["machine"]["after"] = take()

    def _current(self) -> dict[str, Any] | None:
        sittings = self._document["sittings"]
        found = sittings[-1]["machine"] if len(sittings) > 1 else self._document["machine"]["before"]
        return found if isinstance(found, dict) else None


_NODE_KERNEL_LOG = "the kernel's messages of a node with a copied engine are not read"
EngineMaker = Callable[[SignalWatch], EngineLike]


@dataclass(frozen=True)
class SessionContext:
    """State of one session. The function that uses it returns the stop rules' final decisions."""

    path: Path
    document: dict[str, Any]
    writer: ResultsWriter
    progress: Progress
    session: Session
    watch: SignalWatch
    engine: EngineLike
    make_engine: Callable[[], EngineLike]
    kernel: KernelLog
    machine: MachineRecord
    ended: Sequence[str] = ()
    """Processes of a killed run that were ended first."""

    @property
    def resumed(self) -> bool:
        """True if there were earlier sessions."""
        return self.session.number > 1

    def resumed_with(self) -> str:
        """First line of output of a resumed session."""
        measured = sum(len(rows) for rows in self.progress.measurements().values())
        ended = f"; ended what a killed run had left: {', '.join(self.ended)}" if self.ended else ""
        return f"{measured} measurements on disk{ended}"

    def bench(self, plan: Plan, observe: Callable[[Event, Progress], None]) -> Bench:
        """The state that trials of a plan need in this session."""
        return Bench(
            plan,
            self.writer,
            self.progress,
            self.session,
            self.watch,
            self.engine,
            self.make_engine,
            observe,
            self.kernel,
            entries={test["name"]: test for test in self.document["tests"]},
        )

    def save(self) -> None:
        """Write experiment.json to disk in its present state. Raises MachineRefuses: it cannot be written."""
        write_experiment(self.path, self.document)


def run_session(
    path: Path,
    document: dict[str, Any],
    make_engine: EngineMaker,
    work: Callable[[SessionContext], Sequence[str]],
) -> Progress:
    """Run one session: `work` measures and returns the stop rules' final decisions.

    The outcome is recorded in experiment.json in any case. Raises EtudeError: same as `work`, with the path of the
    results.
    """
    directories = {test["name"]: test["directory"] for test in document["tests"]}
    resumed = bool(document["sittings"])  # the document is first written together with a session
    if resumed and _restarted_into(document["sittings"]) is None:  # after a restart no program is opened
        check_programs(path, document, planned_commands(document["plan"]))
    measured = _measured(path, document)  # lost lines are refused before any is dropped
    torn = [
        test["directory"]
        for test in document["tests"]
        if drop_torn_trial(path / test["directory"] / "results.jsonl", test.get("workers", 1))
    ]
    steps.restore_mounts()
    ended = end_leftovers(path, document["sittings"])
    writer = ResultsWriter(path, directories)
    with (
        mark_children(path),
        SignalWatch() as watch,
        _engine(make_engine, watch) as engine,
        closing(KernelLog() if isinstance(engine, Engine) else NoKernelLog()) as kernel,
    ):
        there = node_session_of(engine)
        session = _session(document, engine, torn, kernel, there)
        progress = Progress(measured, session_groups(document["sittings"]))
        context = SessionContext(
            path,
            document,
            writer,
            progress,
            session,
            watch,
            engine,
            lambda: make_engine(watch),
            kernel,
            MachineRecord(path, document, there.snapshot_after if there is not None else None),
            ended,
        )
        document["sittings"][-1]["ended"] = ended
        if there is None:
            _note_quiet(document, session.number)
        context.save()
        asked = monitoring.from_document(document) if isinstance(engine, Engine) else None
        try:
            with monitoring.monitor_running(path, document["sittings"][-1], asked):
                decisions = work(context)
            _finish(context, "complete", decisions)
        except EtudeError as raised:
            error = _as_interrupt(raised, watch)
            if isinstance(error, Restarting):
                context.document["sittings"][-1]["restarts_into"] = error.entry
                _finish(context, str(error), [])
                raise
            _finish(context, str(error), [])
            names = [test["name"] for test in document["tests"]]
            raise _with_location(
                error, path, any(map(progress.kept, names)), resume_command(document, path)
            ) from raised.__cause__
        except BaseException as error:
            _finish(context, type(error).__name__, [])
            raise
    return progress


def progress_of(path: Path, document: Mapping[str, Any]) -> Progress:
    """The measurements of all sessions of an experiment. Raises InputError: it cannot be read, or has lost lines."""
    return Progress(_measured(path, document), session_groups(document["sittings"]))


def _measured(path: Path, document: Mapping[str, Any]) -> dict[str, tuple[Measurement, ...]]:
    found: dict[str, tuple[Measurement, ...]] = dict.fromkeys(
        (test["name"] for test in document["tests"]), ()
    )
    if document["sittings"]:  # the document is first written together with a session
        found |= load_results(path).measurements
    for test in document["tests"]:
        if document["plan"].get("kind") != "bisect":  # a block has several trials of a commit, or none
            check_blocks(path / test["directory"] / "results.jsonl", found[test["name"]], test)
    return found


def is_complete(path: Path, document: Mapping[str, Any]) -> bool:
    """True if an experiment is complete. Processes that its sessions left are ended then: it is not resumed."""
    sessions = document["sittings"]
    complete = bool(sessions) and sessions[-1].get("how_ended") == "complete"
    if complete:
        end_leftovers(path, sessions)
    return complete


def new_directory(directory: str | os.PathLike[str] | None, name: str) -> Path:
    """Create the directory that results go to. Raises MachineRefuses: it cannot be made; InputError: it holds results
    already, or another user has put it there; UsageError: its path is not UTF-8."""
    stem = directory_name(name, ())
    path = Path(directory or f"etude-results/{stem}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    check_writable_name(path)
    try:
        if holds_results(path):
            if directory is not None:
                raise existing_results(path)
            again = itertools.chain(("",), (f"-{number}" for number in itertools.count(2)))
            names = (f"{path.name}-{os.getpid()}{number}" for number in again)
            path = next(other for name in names if not (other := path.with_name(name)).exists())
        check_results_for_root(path)
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(path, error) from error
    check_results_for_root(path)
    return path


def holds_results(path: Path) -> bool:
    """True if a directory holds an experiment."""
    return os.path.exists(path / "experiment.json")  # False, too, of a name that is too long


def existing_results(path: Path) -> InputError:
    """The error for a directory that holds results already."""
    number = next(n for n in itertools.count(2) if not os.path.lexists(f"{path}-{n}"))
    return InputError(
        f"{path}: holds results already; name another, such as -o {shlex.quote(f'{path}-{number}')}, or, if it was "
        f"interrupted or shall be extended, give --resume {shlex.quote(str(path))} in place of what to run"
    )


def new_document(
    name: str,
    verb: str,
    command_line: Sequence[str],
    plan: Mapping[str, Any],
    digest: str,
    tests: Sequence[Mapping[str, Any]],
    metrics: Mapping[str, Any],
    monitor: Monitoring | None = None,
) -> dict[str, Any]:
    """experiment.json before the first session; members as in docs/reference/formats.md."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "verb": verb,
        "command_line": Mask(plan.get("masks", ())).words(command_line),
        "digest": digest,
        "plan": dict(plan),
        "tests": [dict(test) for test in tests],
        "metrics": {name: {"unit": m.unit, "kind": m.kind} for name, m in METRICS.items()} | dict(metrics),
        "versions": {"etude": __version__, "python": sys.version.split()[0]},
        "machine": {"before": snapshot.take(commands=planned_commands(plan)), "after": None},
        "monitor": monitoring.to_document(monitor),
        "sittings": [],
    }


def replace_plan(
    document: dict[str, Any], plan: Mapping[str, Any], digest: str, name: str | None = None
) -> None:
    """Replace the plan of an experiment; `began_as` identifies it as the same experiment."""
    if digest != document["digest"] or name not in (None, document["name"]):
        document.setdefault("began_as", {"name": document["name"], "digest": document["digest"]})
    document |= {"name": name or document["name"], "plan": dict(plan), "digest": digest}


def _as_interrupt(error: EtudeError, watch: SignalWatch) -> EtudeError:
    """The error as an interrupt if a signal came before it: a failure of clean-up, say, is then secondary."""
    if watch.signal is None or isinstance(error, Interrupted | Restarting):
        return error
    return Interrupted(watch.signal, f"ended by {signal_name(watch.signal)}; then: {error}")


def _with_location(error: EtudeError, path: Path, measured: bool, go_on: str) -> EtudeError:
    """The error with the path of the results, and for an interrupt the command that resumes."""
    if isinstance(error, Interrupted):
        error.args = (f"{error}; what was measured is in {path}; resume with: {go_on}",)
    elif measured and path.exists():
        error.results = path
        error.args = (f"{error}; what was measured is in {path}",)
    return error


@contextmanager
def _engine(make_engine: EngineMaker, watch: SignalWatch) -> Iterator[EngineLike]:
    engine = make_engine(watch)
    try:
        yield engine
    finally:
        engine.close(wait=False)


def _session(
    document: dict[str, Any],
    engine: EngineLike,
    torn: Sequence[str],
    kernel: KernelLog,
    there: NodeSession | None,
) -> Session:
    into = _restarted_into(document["sittings"])
    host, boot = (os.uname().nodename, boot_id()) if there is None else (there.node, there.boot_id)
    session = Session(len(document["sittings"]) + 1, host, boot, into)
    if there is not None and session.number == 1:
        document["machine"]["before"] = there.snapshot()
    document["versions"]["engine"] = engine.hello["engine"]
    document["machine"].setdefault("tlb", list(engine.hello.get("tlb", ())))
    document["sittings"].append(
        {
            "sitting": session.number,
            "boot_id": session.boot_id,
            "host": session.host,
            "start": utc_now(),
            "end": None,
            "how_ended": None,
            "torn": list(torn),
            "pid": os.getpid(),
            "machine": None if session.number == 1 else _snapshot_again(document, into, there),
            "kernel_log": kernel.reason if there is None else _NODE_KERNEL_LOG,
            "settled": _settle_record() if there is None else None,
        }
    )
    if there is not None:
        document["sittings"][-1]["copied"] = {"job": there.job, "node": there.node}
    return session


def _settle_record() -> Mapping[str, Any] | None:
    """Record of the wait before this session, from `etude boot-resume`; None if it did not start the session."""
    with suppress(ValueError):
        found = json.loads(os.environ.get(SETTLED_VARIABLE, "null"))
        return found if isinstance(found, dict) else None
    return None


def _note_quiet(document: dict[str, Any], sitting: int) -> None:
    """Record what `etude quiet` had changed before the session began: snapshots do not show who made a setting."""
    if operations := recorded_changes():
        document.setdefault("quiet", []).append({"sitting": sitting, "by": "hand", "operations": operations})


def _snapshot_again(
    document: Mapping[str, Any], into: str | None, there: NodeSession | None
) -> dict[str, Any]:
    """Snapshot of a later session. After a restart that must leave the caches empty, no program is opened."""
    if there is not None:
        return there.snapshot()
    return snapshot.take(commands=planned_commands(document["plan"]), files=into is None)


def _restarted_into(sittings: Sequence[Mapping[str, Any]]) -> str | None:
    """Boot loader entry that the previous session restarted the machine into, if it did; empty for the default."""
    before = sittings[-1] if sittings else {}
    return None if before.get("boot_id") == boot_id() else restarted_into(before)


def _finish(context: SessionContext, how: str, decisions: Sequence[str]) -> None:
    context.document["sittings"][-1] |= {"end": utc_now(), "how_ended": how, "decisions": list(decisions)}
    context.machine.end()
    try:
        context.writer.close()
    finally:
        for test in context.document["tests"]:
            test["lines"] = context.writer.lines(test["name"])
        context.save()


def utc_now() -> str:
    """UTC, RFC 3339."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
