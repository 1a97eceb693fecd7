"""A bench of commands: the system is started once, loaded by a generator, and ended with all processes that it
started."""

from __future__ import annotations

import math
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal, NoReturn

from etude.cluster.pool.allocation import Node
from etude.errors import CommandFailed, MachineRefuses
from etude.machine.leftovers import Orphans, stop
from etude.machine.resources.cgroups import oom_kills
from etude.peak.bottleneck import Effort, Generator, busy_share, effort_line, find_bottleneck
from etude.peak.harnesses import processes
from etude.peak.harnesses.load_hosts import LoadHosts
from etude.peak.harnesses.load_report import ReaderOf, Run, Unreadable
from etude.peak.harnesses.processes import (
    Command,
    LoadOutcome,
    LoadRun,
    LocalRun,
    Share,
    after_first_s,
    generator_reports,
)
from etude.peak.machine_state import counters, state_between
from etude.peak.search import EarlyStop
from etude.peak.task import Ended, GeneratorPart, Task, Trial, TrialRequest
from etude.toml_config import line_of

_LOOK_S = 0.05
"""Interval between polls of the load command: a wake-up costs 0.1 ms, a window is ten times as long."""
_POLL_S = 0.1
"""Interval between readiness checks."""
_SWEEP_S = 30.0
"""Timeout of the clean-up on the system's node, beyond the grace period."""
PIECES_APART, HOSTS_APART = 1_000_000, 100_000_000
"""Seed offsets between runs of one trial, and between hosts."""
BRACES = re.compile(r"(?<!\$)\{([A-Za-z_][A-Za-z0-9_-]*)\}")
"""Names in braces in commands."""


@dataclass(frozen=True, slots=True)
class Commands:
    """Command lines, empty if absent, and their timeouts, s."""

    start: str
    ready: str
    load: str
    drain: str
    stop: str
    ready_timeout_s: float = 30.0
    load_timeout_s: float = 30.0
    """Time beyond the run length."""
    drain_timeout_s: float = 30.0
    stop_timeout_s: float = 30.0
    grace_s: float = 2.0
    """Time between SIGTERM and SIGKILL."""
    warmup_s: float = 0.0
    """Duration of load that is offered before the measured part."""
    warmup_load: float = 0.5
    """Warm-up load as a share of the trial's load. Below 1 the warm-up is a separate run whose backlog drains before
    the trial; otherwise an overload is measured with the queue built up by its warm-up."""
    pieces: int = 1
    """Runs of the load command in one trial."""
    fresh: bool = False
    """Restart the system for each trial."""
    apart: bool = False
    """The system gets its own node if there is a second one."""
    text: str = ""
    """Text of the harness file, for line numbers in errors."""

    @property
    def warms_up_apart(self) -> bool:
        """True if the warm-up is a separate run at partial load, which needs a command with a settable length."""
        return self.warmup_s > 0 and self.warmup_load < 1 and has_run_length(self.load)


def has_run_length(load: str) -> bool:
    """True if the load command takes a run length or a number of requests."""
    return "{runlength}" in load or "{requests}" in load


def fill(text: str, values: Mapping[str, str]) -> str:
    """A command with the known names in braces replaced; other braces are the shell's."""
    return BRACES.sub(lambda match: values.get(match[1], match[0]), text)


@dataclass(frozen=True, slots=True)
class _Run:
    load: float
    length_s: float
    left_out_s: float = 0.0
    """Duration at its start that is excluded."""
    number: int = 0
    """Offset of its seed from the trial's."""


def _runs(commands: Commands, request: TrialRequest) -> list[_Run]:
    within_s = 0.0 if commands.warms_up_apart else commands.warmup_s
    if commands.pieces == 1:
        return [_Run(request.load, request.runlength_s + within_s, within_s)]
    warm_up = [_Run(request.load, within_s, math.inf)] if within_s else []
    pieces = [_Run(request.load, request.runlength_s / commands.pieces)] * commands.pieces
    return [replace(run, number=number) for number, run in enumerate([*warm_up, *pieces])]


@dataclass(eq=False)
class CommandBench:
    """Makes trials inside a `with` block (peak/search.py)."""

    path: Path
    commands: Commands
    values: Mapping[str, str]
    """Shell words of the names in braces, besides those of a load."""
    reader: ReaderOf
    generator: Generator
    task: Task
    place: Path
    closed: bool = False
    window_s: float = 1.0
    within: Sequence[str] = ()
    """Command prefix that confines the system."""
    groups: Sequence[str] = ()
    """Cgroups of the system under it."""
    node: Node | None = None
    """Node of the system; None: this machine."""
    hosts: LoadHosts | None = None
    """Hosts of the load command; None: this machine."""
    made: int = 0
    worked: bool = False
    """True once a load command has reported something: later failures are the system's."""
    _system: Command | None = None
    _up: bool = False
    _orphans: Orphans | None = None
    _heard: str = "it printed nothing"
    """Last output line of the last command other than start and load."""

    def __enter__(self) -> CommandBench:
        # A killed search may have left processes running in this directory.
        self._sweep()
        if self.hosts is not None:
            try:
                self.hosts.open()
            except BaseException:
                self.hosts.close()
                raise
        self._orphans = Orphans()  # those of the connections to hosts are not among them
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self.hosts is not None:
                self.hosts.close()
        finally:
            try:
                self._end_system()
            finally:
                if self._orphans is not None:
                    self._orphans.close()

    def run(self, request: TrialRequest, enough: EarlyStop) -> Trial:
        """One trial. Raises CommandFailed if the system never gets ready or the load command cannot work."""
        began = time.monotonic()
        if not self._up:
            self._start()
        self.made += 1
        killed_before = oom_kills(self.groups)
        watched = self._offer_load(request, enough)
        watched.oom_killed = oom_kills(self.groups) - killed_before
        # A system that does not recover is started anew for the next trial.
        state = "busy" if watched.lost else self._state()
        alive, watched.gone = state == "ready", state == "gone"
        hopeless = request.load <= self.task.lowest or not watched.failed
        if watched.wrong and not watched.told and alive and not self.worked and hopeless:
            self._fail("load", f"{watched.wrong}; the system was ready all the time")
        self.worked = self.worked or bool(watched.told)
        if not alive or self.commands.fresh:
            self._end_system()
        return self._trial(request, watched, alive, time.monotonic() - began)

    def _trial(self, request: TrialRequest, watched: LoadOutcome, alive: bool, cost_s: float) -> Trial:
        windows = tuple(each.window for each in watched.told)
        shares = self._shares(request.load)
        efforts = [self._effort(share, watched, index) for index, share in enumerate(shares)]
        parts = [
            self._part(share.host, effort, watched, index)
            for index, (share, effort) in enumerate(zip(shares, efforts, strict=True))
        ]
        limits = {part.limited for part in parts} if windows else set()
        whose = next((limit for limit in ("generator", "server") if limit in limits), None)
        note = "; ".join(_noted(self.generator, *each) for each in zip(shares, efforts, strict=True))
        ended: Ended = "early" if watched.early else "whole"
        if watched.wrong:
            note = f"{watched.wrong}; {note}"
            ended, whose = "not-made" if alive else "died", None  # by itself, or with the system
        if watched.oom_killed:
            note = f"the OOM killer ended processes of the system ({watched.oom_killed}); {note}"
            ended, whose = "died", None
        if not alive:
            note = f"the system did not recover and is started anew; {note}"
            if watched.wrong or watched.gone:
                ended, whose = "died", None
        return Trial(
            request.load,
            request.runlength_s,
            windows,
            cost_s,
            ended,
            whose,
            note,
            max((part.busy for part in parts if part.busy is not None), default=None),
            max((part.lateness_p99_s for part in parts if part.lateness_p99_s is not None), default=None),
            watched.machine,
            tuple(parts) if self.hosts is not None else (),
        )

    def _part(self, host: str, effort: Effort, watched: LoadOutcome, index: int) -> GeneratorPart:
        late = [
            each.lateness_p99_s
            for each in generator_reports(watched, index)
            if each.lateness_p99_s is not None
        ]
        return GeneratorPart(
            host,
            find_bottleneck(self.generator, effort) if watched.told else None,
            busy_share(self.generator, effort),
            max(late, default=None),
            after_first_s(watched.used, index),
        )

    def _shares(self, load: float) -> list[Share]:
        if self.hosts is None:
            return [Share("", load)]
        return self.hosts.shares(load, whole=self.task.whole)

    def _effort(self, share: Share, watched: LoadOutcome, index: int) -> Effort:
        all_told = generator_reports(watched, index)
        ran_s = sum(each.window.duration_s for each in all_told)
        known = [each.sent for each in all_told if each.sent is not None]
        used = [run[index] for run in watched.used if index < len(run)]
        lasted_s = sum(each.lasted_s for each in used)
        return Effort(
            None if self.closed else share.load,
            ran_s,
            sum(known) if len(known) == len(all_told) and known else None,
            sum(each.window.completed for each in all_told),
            sum(each.window.failed for each in all_told),
            sum(each.cpu_s for each in used) / lasted_s if lasted_s > 0 else None,
            sum(each.waited_s for each in all_told) / ran_s if ran_s else None,
            sum(each.refused for each in all_told),
            share.load if self.closed else None,
            max((each.waited_s / each.window.duration_s for each in all_told), default=None),
        )

    def _offer_load(self, request: TrialRequest, enough: EarlyStop) -> LoadOutcome:
        """Run the load command once, or in pieces, until the policy has seen enough."""
        if self.commands.warms_up_apart and (warm_up := self._warm_up(request)).wrong:
            return warm_up
        watched, machine_before = LoadOutcome([]), counters()
        for run in _runs(self.commands, request):
            if watched.enough(enough):
                break
            self._run_load(run, enough, watched)
            if watched.wrong or watched.early:
                break
        watched.machine = state_between(machine_before, counters())
        return watched

    def _warm_up(self, request: TrialRequest) -> LoadOutcome:
        """Offer a part of the load, excluded from the results, and wait until the system has recovered."""
        commands, watched = self.commands, LoadOutcome([])
        load = commands.warmup_load * request.load
        load = max(round(load), 1) if self.task.whole else load
        number = commands.pieces  # the trial's own runs have the seeds that they have without a warm-up
        self._run_load(_Run(load, commands.warmup_s, math.inf, number), lambda _: False, watched)
        if watched.wrong:
            watched.wrong = f"warm-up: {watched.wrong}"
        elif self._state() != "ready":
            watched.lost, watched.wrong = True, f"the system did not recover from the warm-up at {load:g}"
        return watched

    def _run_load(self, part: _Run, enough: EarlyStop, watched: LoadOutcome) -> None:
        """Run the load command and read its reports until it ends, is stopped, or hangs."""
        load = self._begin_load(part)
        until = load.began_s + math.ceil(part.length_s) + self.commands.load_timeout_s
        skipped_s = 0.0
        try:
            while True:
                found = load.hear(_LOOK_S)
                self._listen()
                for each in found:
                    # A window mostly inside the warm-up is part of it: windows are not aligned to the millisecond.
                    if skipped_s + each.window.duration_s / 2 < part.left_out_s:
                        skipped_s += each.window.duration_s
                    else:
                        watched.told.append(each)
                if load.ended:
                    break
                if time.monotonic() > until:
                    watched.wrong = (
                        f"the load command did not end within {self.commands.load_timeout_s:g} s more"
                    )
                    break
                if found and watched.enough(enough):
                    break
        except Unreadable as error:
            watched.wrong = str(error)
        finally:
            load.end(self.commands.grace_s)
        watched.used.append(load.used())
        watched.failed = load.failed
        watched.wrong = watched.wrong or load.wrong

    def _begin_load(self, part: _Run) -> LoadRun:
        runlength_s = math.ceil(part.length_s)
        log = self.place / f"load-{self.made}"
        for old in self.place.glob("load-*"):  # logs of trials whose windows are kept
            with suppress(OSError):
                old.unlink()
        shares = self._shares(part.load)
        runs = [Run(each.load, self.closed, float(runlength_s), self.window_s, str(log)) for each in shares]
        lines = [
            self._load_line(share, run, part.number, index)
            for index, (share, run) in enumerate(zip(shares, runs, strict=True))
        ]
        readers = [self.reader(run) for run in runs]
        if self.hosts is None:
            return LocalRun(lines[0], self.place, readers[0])
        most_s = runlength_s + self.commands.load_timeout_s
        return self.hosts.begin(lines, readers, runlength_s, most_s, self.commands.grace_s)

    def _load_line(self, share: Share, run: Run, number: int, index: int) -> str:
        whole = self.task.whole or float(share.load).is_integer()
        seed = self.task.seed * 1000 + self.made + number * PIECES_APART + index * HOSTS_APART
        values = {
            "load": str(round(share.load)) if whole else f"{share.load:.6g}",
            "runlength": str(math.ceil(run.runlength_s)),
            "seed": str(seed),
            "requests": str(max(math.ceil(share.load * run.runlength_s), 1)),
            "log": shlex.quote(run.log),
            "checkpoints": run.checkpoints(),
        }
        if self.hosts is not None and self.node is None:
            values["server"] = shlex.quote(self.hosts.address(share.host))
        line = self.commands.load
        for name, value in values.items():
            line = line.replace(f"{{{name}}}", value)
        return fill(line, self.values)

    def _start(self) -> None:
        if self.commands.start:
            start = fill(self.commands.start, self.values)
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
        said = processes.last_line(system) if system else self._heard
        self._end_system()
        if status:
            self._fail("start", f"the system {processes.how_ended(status)} before it was ready: {said}")
        within = f"within {self.commands.ready_timeout_s:g} s"
        self._fail("ready" if self.commands.ready else "start", f"the system was not ready {within}: {said}")

    def _ready(self, within_s: float) -> bool:
        """True once the ready command succeeds, retried until the timeout; without one, True unless the system has
        failed."""
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

    def _state(self) -> Literal["ready", "busy", "gone"]:
        """ "ready": the system accepts load again; "busy": its queues have not drained; "gone": it has ended."""
        if not self._alive():
            return "gone"
        drain = self.commands.drain
        if drain and self._command(drain, self.commands.drain_timeout_s) != 0:
            return "busy"
        return "ready" if self._ready(self.commands.ready_timeout_s) else "gone"

    def _alive(self) -> bool:
        """True unless the start command failed: one that ended with status 0 has left a daemon running."""
        if self._system is None:
            return True
        self._listen()
        return not self._system.process.poll()

    def _listen(self) -> None:
        """Drain the system's output: a full pipe would block it."""
        for _ in processes.error_text(self._system, 0.0) if self._system else ():
            pass

    def _command(self, line: str, within_s: float) -> int | None:
        """Exit status of a command of the system; None if it timed out and was ended."""
        filled = fill(line, self.values)
        return self._done(self.node.line(filled, self.place) if self.node else filled, within_s)

    def _done(self, line: str, within_s: float) -> int | None:
        command = processes.begin(line, self.place)
        until = time.monotonic() + within_s
        try:
            while command.process.poll() is None and time.monotonic() < until:
                for _ in processes.error_text(command, 0.02):
                    pass
            self._heard = processes.last_line(command)
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
        """End processes started for this directory that still run, here and on the system's node."""
        reap = self._orphans.reap if self._orphans is not None else lambda: None
        stop(self._left_over, self.commands.grace_s, reap)
        if self.node is None:
            return
        within_s = self.commands.grace_s + _SWEEP_S
        if self._done(self.node.sweep(self.place, self.commands.grace_s), within_s) != 0:
            raise MachineRefuses(
                f"{self.path}: node {self.node.name}, which the system runs on, takes no commands within "
                f"{within_s:g} s: what was started there may still run; see `scontrol show node {self.node.name}`"
            )

    def _left_over(self) -> list[int]:
        orphans = self._orphans.members() if self._orphans is not None else ()
        return sorted({*processes.left_over(self.place), *orphans})

    def _fail(self, word: str, what: str) -> NoReturn:
        line = line_of(self.commands.text, "commands", word)
        raise CommandFailed(f"{self.path}:{line}: [commands] {word}: {what}")


def _noted(generator: Generator, share: Share, effort: Effort) -> str:
    return f"{share.host}: {effort_line(generator, effort)}" if share.host else effort_line(generator, effort)
