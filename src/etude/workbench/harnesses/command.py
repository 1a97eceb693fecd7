"""A bench of commands: a system is started once, offered loads by a generator, and ended with all that it started."""

from __future__ import annotations

import math
import resource
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from etude.errors import CommandFailed, MachineRefuses
from etude.located import line_of
from etude.testbed.leftovers import stop
from etude.testbed.resources.oom import oom_kills
from etude.workbench.bench import Enough
from etude.workbench.generator import Effort, Generator, busy_share, limited, told
from etude.workbench.harnesses import processes
from etude.workbench.harnesses.processes import Command
from etude.workbench.harnesses.readers import ReaderOf
from etude.workbench.harnesses.reading import Run, Told, Unreadable
from etude.workbench.harnesses.tools.sysbench import checkpoints
from etude.workbench.machine_state import MachineState, between, counters
from etude.workbench.pool.allocation import Node
from etude.workbench.task import Ended, Offer, Task, Trial

_LOOK_S = 0.05
"""Between looks at the load command: a wake-up costs 0.1 ms, and a window is ten times as long."""
_CPU_S = 0.25
"""Between looks at the processes of the load command."""
_POLL_S = 0.1
"""Between asking whether the system is ready."""
_SWEEP_S = 30.0
"""What another node may take to be asked."""
PIECES_APART = 1_000_000
"""Between the seeds of pieces of one trial."""


@dataclass(frozen=True, slots=True)
class Commands:
    """Command lines, empty where there is none, and how long each may take, s."""

    start: str
    ready: str
    load: str
    drain: str
    stop: str
    ready_timeout_s: float = 30.0
    load_timeout_s: float = 30.0
    """Beyond its runlength."""
    drain_timeout_s: float = 30.0
    stop_timeout_s: float = 30.0
    grace_s: float = 2.0
    """Between SIGTERM and SIGKILL."""
    warmup_s: float = 0.0
    """Load that is offered before what counts."""
    warmup_load: float = 0.5
    """Share of a trial's load that its warm-up offers. Below 1 the warm-up is a run of its own, whose backlog is gone
    before the trial: else an overload is measured with the queue that its warm-up has built up."""
    pieces: int = 1
    """So many runs of the load command are one trial."""
    fresh: bool = False
    """Start the system anew for each trial."""
    apart: bool = False
    """The system has a node of its own, where there is a second one."""
    text: str = ""
    """Of the file, for the lines of errors."""

    @property
    def warms_up_apart(self) -> bool:
        """Whether the warm-up is a run of its own at a part of the load: only a command that is told its length can."""
        return self.warmup_s > 0 and self.warmup_load < 1 and tells_length(self.load)


def tells_length(load: str) -> bool:
    """Whether a load command is told how long it runs, or how many requests it makes."""
    return "{runlength}" in load or "{requests}" in load


@dataclass
class Watched:
    """What came of one run of the load command."""

    told: list[Told]
    early: bool = False
    wrong: str = ""
    """Why it is no whole run; empty if it is one."""
    failed: bool = False
    """It ended with a status other than 0."""
    lost: bool = False
    """The system did not recover from the warm-up."""
    oom_killed: int = 0
    """Processes of the system that the OOM killer ended."""
    lasted_s: float = 0.0
    cpu_s: float = 0.0
    machine: MachineState | None = None


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of the load command within a trial."""

    load: float
    length_s: float
    left_out_s: float = 0.0
    """So much of its start counts nowhere."""
    number: int = 0
    """Its seed is that of the trial and so many."""


def _runs(commands: Commands, offer: Offer) -> list[_Run]:
    """The runs of a trial, after a warm-up that is apart."""
    within_s = 0.0 if commands.warms_up_apart else commands.warmup_s
    if commands.pieces == 1:
        return [_Run(offer.load, offer.runlength_s + within_s, within_s)]
    warm_up = [_Run(offer.load, within_s, math.inf)] if within_s else []
    pieces = [_Run(offer.load, offer.runlength_s / commands.pieces)] * commands.pieces
    return [replace(run, number=number) for number, run in enumerate([*warm_up, *pieces])]


class CommandBench:
    """Within `with`, makes trials (bench.py)."""

    def __init__(
        self,
        path: Path,
        commands: Commands,
        filled: Callable[[str], str],
        reader: ReaderOf,
        generator: Generator,
        task: Task,
        place: Path,
        *,
        closed: bool = False,
        window_s: float = 1.0,
        within: Sequence[str] = (),
        groups: Sequence[str] = (),
        node: Node | None = None,
    ) -> None:
        """`within`: words before the command that starts the system, which confine it, `groups`: the
        cgroups that it is in then. `node`: where the system is;
        None: here."""
        self.path, self.commands, self.filled, self.reader = path, commands, filled, reader
        self.generator, self.task, self.place = generator, task, place
        self.closed, self.window_s, self.within = closed, window_s, tuple(within)
        self.groups = tuple(groups)
        self.node = node
        self.made = 0
        self.worked = False
        """Whether a load command has told something: then what fails later is the system's doing."""
        self._system: Command | None = None
        self._up = False
        self._heard = _said(None)
        """The last line of the last command but start and load."""

    def __enter__(self) -> CommandBench:
        # What a search that was killed left running in this directory.
        self._sweep()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_system()

    def run(self, offer: Offer, enough: Enough) -> Trial:
        """One trial. Raises CommandFailed where the system never gets ready, or the load command cannot work."""
        began = time.monotonic()
        if not self._up:
            self._start()
        self.made += 1
        killed_before = oom_kills(self.groups)
        watched = self._offer(offer, enough)
        watched.oom_killed = oom_kills(self.groups) - killed_before
        # A system that does not recover is started anew for the next trial.
        alive = not watched.lost and self._recovered()
        hopeless = offer.load <= self.task.lowest or not watched.failed
        if watched.wrong and not watched.told and alive and not self.worked and hopeless:
            self._fail("load", f"{watched.wrong}; the system was ready all the time")
        self.worked = self.worked or bool(watched.told)
        if not alive or self.commands.fresh:
            self._end_system()
        return self._trial(offer, watched, alive, time.monotonic() - began)

    def _trial(self, offer: Offer, watched: Watched, alive: bool, cost_s: float) -> Trial:
        windows = tuple(each.window for each in watched.told)
        effort = self._effort(offer, watched)
        whose = limited(self.generator, effort) if windows else None
        note = told(self.generator, effort)
        ended: Ended = "early" if watched.early else "whole"
        if watched.wrong:
            note = f"{watched.wrong}; {note}"
            ended, whose = "not-made" if alive else "died", None  # by itself, or with the system
        if watched.oom_killed:
            note = f"the OOM killer ended processes of the system ({watched.oom_killed}); {note}"
            ended, whose = "died", None
        if not alive:
            note = f"the system did not recover and is started anew; {note}"
            ended = "died" if watched.wrong else ended
        return Trial(
            offer.load,
            offer.runlength_s,
            windows,
            cost_s,
            ended,
            whose,
            note,
            busy_share(self.generator, effort),
            max(
                (each.lateness_p99_s for each in watched.told if each.lateness_p99_s is not None),
                default=None,
            ),
            watched.machine,
        )

    def _effort(self, offer: Offer, watched: Watched) -> Effort:
        all_told = watched.told
        ran_s = sum(each.window.duration_s for each in all_told)
        known = [each.sent for each in all_told if each.sent is not None]
        waited_s = sum(
            each.busy_s if each.busy_s is not None else (each.window.mean_s or 0.0) * each.window.completed
            for each in all_told
        )
        return Effort(
            None if self.closed else offer.load,
            ran_s,
            sum(known) if len(known) == len(all_told) and known else None,
            sum(each.window.completed for each in all_told),
            sum(each.window.failed for each in all_told),
            watched.cpu_s / watched.lasted_s if watched.lasted_s else None,
            waited_s / ran_s if ran_s else None,
            sum(each.refused for each in all_told),
            offer.load if self.closed else None,
        )

    def _offer(self, offer: Offer, enough: Enough) -> Watched:
        """Run the load command once, or in pieces, until the policy has seen enough."""
        if self.commands.warms_up_apart and (warm_up := self._warm_up(offer)).wrong:
            return warm_up
        watched, machine_before = Watched([]), counters()
        for run in _runs(self.commands, offer):
            if watched.told and enough([each.window for each in watched.told]):
                watched.early = True
                break
            self._run_load(run, enough, watched)
            if watched.wrong or watched.early:
                break
        watched.machine = between(machine_before, counters())
        return watched

    def _warm_up(self, offer: Offer) -> Watched:
        """Offer a part of the load, of which nothing counts, and wait until the system has recovered from that."""
        commands, watched = self.commands, Watched([])
        load = commands.warmup_load * offer.load
        load = max(round(load), 1) if self.task.whole else load
        number = commands.pieces  # the trial's own runs have the seeds that they have without a warm-up
        self._run_load(_Run(load, commands.warmup_s, math.inf, number), lambda _: False, watched)
        if watched.wrong:
            watched.wrong = f"warm-up: {watched.wrong}"
        elif not self._recovered():
            watched.lost, watched.wrong = True, f"the system did not recover from the warm-up at {load:g}"
        return watched

    def _run_load(self, part: _Run, enough: Enough, watched: Watched) -> None:
        """Run the load command, reading what it tells, until it ends, is told to, or hangs."""
        runlength_s = math.ceil(part.length_s)
        log = self.place / f"load-{self.made}"
        for old in self.place.glob("load-*"):  # logs of trials whose windows are kept
            with suppress(OSError):
                old.unlink()
        run = Run(part.load, self.closed, float(runlength_s), self.window_s, str(log))
        reader, before = self.reader(run), _used_by_children_s()
        errors = self.place / "load.err"
        command = processes.begin(self._load_line(run, part.number), self.place, errors)
        until = command.began_s + runlength_s + self.commands.load_timeout_s
        skipped_s = 0.0
        try:
            while True:
                chunk = b"".join(processes.said(command, _LOOK_S))
                command.look(_CPU_S)
                self._listen()
                status = command.process.poll()
                found = reader.feed(chunk.decode("utf-8", "replace"))
                if status is not None:
                    found += reader.feed(b"".join(processes.said(command, 0.0)).decode("utf-8", "replace"))
                    found += [] if status else reader.end()
                for each in found:
                    # A window that is within it for the most part: they are not cut to the millisecond.
                    if skipped_s + each.window.duration_s / 2 < part.left_out_s:
                        skipped_s += each.window.duration_s
                    else:
                        watched.told.append(each)
                if status is not None:
                    watched.failed = bool(status)
                    if status:
                        watched.wrong = f"the load command ended with {status}: {_message(command, errors)}"
                    break
                if time.monotonic() > until:
                    watched.wrong = (
                        f"the load command did not end within {self.commands.load_timeout_s:g} s more"
                    )
                    break
                if found and watched.told and enough([each.window for each in watched.told]):
                    watched.early = True
                    break
        except Unreadable as error:
            watched.wrong = str(error)
        finally:
            watched.lasted_s += time.monotonic() - command.began_s
            processes.end(command, self.commands.grace_s)
        command.used_s = max(command.used_s, _used_by_children_s() - before)
        watched.cpu_s += command.cpu_s

    def _load_line(self, run: Run, number: int) -> str:
        whole = self.task.whole or float(run.load).is_integer()
        values = {
            "load": str(round(run.load)) if whole else f"{run.load:.6g}",
            "runlength": str(math.ceil(run.runlength_s)),
            "seed": str(self.task.seed * 1000 + self.made + number * PIECES_APART),
            "requests": str(max(math.ceil(run.load * run.runlength_s), 1)),
            "log": shlex.quote(run.log),
            "checkpoints": checkpoints(run),
        }
        line = self.commands.load
        for name, value in values.items():
            line = line.replace(f"{{{name}}}", value)
        return self.filled(line)

    def _start(self) -> None:
        """Start the system and wait until it is ready."""
        if self.commands.start:
            start = self.filled(self.commands.start)
            if self.node is not None:
                start = self.node.line(start, self.place, hold=True)
            elif self.within:
                start = shlex.join((*self.within, "sh", "-c", start))
            self._system = processes.begin(start, self.place)
        if self._ready(self.commands.ready_timeout_s):
            self._up = True
            return
        system = self._system
        status = system.process.poll() if system else None
        said = _said(system) if system else self._heard
        self._end_system()
        if status:
            self._fail("start", f"the system ended with {status} before it was ready: {said}")
        within = f"within {self.commands.ready_timeout_s:g} s"
        self._fail("ready" if self.commands.ready else "start", f"the system was not ready {within}: {said}")

    def _ready(self, within_s: float) -> bool:
        """Whether it answers, asked again and again; without a ready command, whether it was not seen to fail."""
        until = time.monotonic() + within_s
        while self._alive():
            if not self.commands.ready:
                return True
            if self._command(self.commands.ready, max(until - time.monotonic(), 0.1)) == 0:
                return True
            if time.monotonic() >= until:
                return False
            time.sleep(_POLL_S)
        return False

    def _recovered(self) -> bool:
        """Whether it lives, has emptied its queues and is ready again."""
        return self._alive() and self._drained() and self._ready(self.commands.ready_timeout_s)

    def _alive(self) -> bool:
        """A start command that has ended well has left its system running by itself."""
        if self._system is None:
            return True
        self._listen()
        return not self._system.process.poll()

    def _listen(self) -> None:
        """To the system: one whose output nobody takes would stop."""
        for _ in processes.said(self._system, 0.0) if self._system else ():
            pass

    def _drained(self) -> bool:
        if not self.commands.drain:
            return True
        return self._command(self.commands.drain, self.commands.drain_timeout_s) == 0

    def _command(self, line: str, within_s: float) -> int | None:
        """The exit status of a command of the system; None where it took too long and was ended."""
        filled = self.filled(line)
        return self._done(self.node.line(filled, self.place) if self.node else filled, within_s)

    def _done(self, line: str, within_s: float) -> int | None:
        command = processes.begin(line, self.place)
        until = time.monotonic() + within_s
        try:
            while command.process.poll() is None and time.monotonic() < until:
                for _ in processes.said(command, 0.02):
                    pass
            self._heard = _said(command)
            return command.process.poll()
        finally:
            processes.end(command, self.commands.grace_s)

    def _end_system(self) -> None:
        if self.commands.stop and (self._system is not None or self._up):
            self._command(self.commands.stop, self.commands.stop_timeout_s)
        if self._system is not None:
            processes.end(self._system, self.commands.grace_s)
        self._system, self._up = None, False
        self._sweep()

    def _sweep(self) -> None:
        """End what was started for this directory and still runs, here and on the system's node."""
        stop(lambda: processes.left_over(self.place), self.commands.grace_s)
        if self.node is None:
            return
        within_s = self.commands.grace_s + _SWEEP_S
        if self._done(self.node.sweep(self.place, self.commands.grace_s), within_s) != 0:
            raise MachineRefuses(
                f"{self.path}: node {self.node.name}, which the system runs on, takes no commands within "
                f"{within_s:g} s: what was started there may still run; see `scontrol show node {self.node.name}`"
            )

    def _fail(self, word: str, what: str) -> NoReturn:
        line = line_of(self.commands.text, "commands", word)
        raise CommandFailed(f"{self.path}:{line}: [commands] {word}: {what}")


def _message(command: Command, errors: Path) -> str:
    """All that a command that failed wrote to the file of its errors, in one line; else the last that it printed."""
    with suppress(OSError):
        lines = errors.read_bytes()[-processes.TAIL :].decode("utf-8", "replace").splitlines()
        if message := "; ".join(line.strip() for line in lines if line.strip()):
            return message
    return _said(command)


def _said(command: Command | None) -> str:
    """The last line that a command printed."""
    if command is None:
        return "it said nothing"
    for _ in processes.said(command, 0.05) if not command.process.stdout.closed else ():  # type: ignore[union-attr]
        pass
    return processes.tail(command.output)


def _used_by_children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
