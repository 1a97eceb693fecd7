"""Dry run of a script: the same machine, in a world without effects where one trial is always enough."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from etude.errors import CommandFailed, EtudeError
from etude.machine.cool.methods import REBOOTS
from etude.script import stop
from etude.script.arguments import CopyCommand, metric_text, parse_exec, parse_on_hosts
from etude.script.directive_words import words_of
from etude.script.machine import Machine
from etude.script.program import Op, Program
from etude.script.source import error_at
from etude.script.state import RunningTest, Scope, State
from etude.script.world import TrialOnDisk

MAX_STEPS = 5_000_000
"""Maximum steps of a dry run."""


@dataclass(slots=True)
class PlannedTest:
    """One test as it would run: its lines in their order, each with its directive."""

    name: str
    threads: int
    minimum: int
    maximum: int | None
    budget_s: float | None
    step: int | None
    program: list[str]
    group: int | None
    cache: str = "none"
    boot: str = ""
    timeout_s: float | None = None
    metrics: tuple[str, ...] = ()
    """The METRICs, as written."""
    lines: list[tuple[str, str]] = field(default_factory=list)
    data: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    """Changes to the environment by ENV, at its last EXEC."""


@dataclass
class Outline:
    """A script as it would run. `whole`: True if the dry run reached its end."""

    tests: list[PlannedTest] = field(default_factory=list)
    lines: list[tuple[str, str]] = field(default_factory=list)
    """Lines outside any test: SYSTEM, QUIET, CHECKPOINT, REBOOT."""
    entries: list[str] = field(default_factory=list)
    """Boot loader entries that the machine is restarted into; empty for the default one."""
    whole: bool = True


def dry_run(program: Program, state: State, environment: Mapping[str, str] = os.environ) -> Outline:
    """Dry run of a script, with one trial per test.

    Raises:
        ScriptError: an invalid instruction, a repeated test name, or an invalid predicate.
    """
    _check_execs(program)
    world = _DryRun(environment)
    machine = Machine(program, state, world)
    step = machine.step
    for _ in range(MAX_STEPS):
        if machine.done:
            return world.outline
        world.at = state.counter
        try:
            step()
        except _WrongTest as error:
            at = program.instructions[world.at]
            raise error_at(program.lines, at.file, at.line, str(error), at.text) from None
        except CommandFailed:  # nothing fails in a dry run
            break
    world.outline.whole = False
    return world.outline


def _check_execs(program: Program) -> None:
    for place, at in enumerate(program.instructions):
        if at.op is Op.TEST and not any(i.op is Op.EXEC for i in program.instructions[place : at.target]):
            raise error_at(program.lines, at.file, at.line, "a TEST without EXEC measures nothing", at.text)


@cache
def _check_probes(probes: str) -> None:
    from etude.probes.run_probes import known_probes

    known = known_probes()
    for name in words_of(probes):
        if name not in known:
            raise _WrongTest(f"no probe {name!r}; there are: {', '.join(known)}")


class _WrongTest(Exception):
    """An invalid test."""


class _DryRun:
    """A world without effects."""

    stopped = False

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.outline = Outline()
        self.at = 0
        self._hosts: set[str] = set()
        self._planned: dict[str, PlannedTest] = {}

    def echo(self, text: str) -> None:
        pass

    warn = echo

    def hosts(self, path: str) -> None:
        from etude.machine.remote.hosts import LOCAL, read_hosts

        self._hosts = {LOCAL, *read_hosts(Path(path))}

    def _known(self, hosts: Collection[str]) -> None:
        for name in hosts:
            if not self._hosts:
                raise _WrongTest(f"@{name}: no hosts are known here; name their file by HOSTS first")
            if name not in self._hosts:
                raise _WrongTest(f"no host {name!r}; there are: {', '.join(sorted(self._hosts))}")

    def copy(self, copied: CopyCommand, test: RunningTest | None) -> str | None:
        from etude.machine.remote.hosts import LOCAL

        self._known(copied.hosts)
        if LOCAL in copied.hosts:
            raise _WrongTest(f"COPY copies between this machine and others; {LOCAL} is this machine")
        return None

    def system(self, line: str, scope: Scope) -> str | None:
        self._known(parse_on_hosts(line).hosts)
        self.outline.lines.append(("SYSTEM", line))
        return None

    def quiet(self, words: Sequence[str]) -> str | None:
        self.outline.lines.append(("QUIET", " ".join(words) or "off"))
        return None

    def begin_test(self, test: RunningTest) -> None:
        if test.name in self._planned:
            raise _WrongTest(
                f"a second test of the name {test.name!r}: put what differs into it, such as %THREADS%"
            )
        try:
            if test.program:
                stop.check(test.program)
        except EtudeError as error:
            raise _WrongTest(str(error)) from None
        planned = PlannedTest(
            test.name,
            test.threads,
            test.minimum,
            test.maximum,
            test.budget_s,
            test.step,
            test.program,
            test.group,
        )
        self._planned[test.name] = planned
        self.outline.tests.append(planned)

    def trials(self, test: RunningTest) -> Sequence[TrialOnDisk]:
        return ()

    def end_reason(self, test: RunningTest) -> str:
        return ""

    def hook(self, point: str, line: str, test: RunningTest, scope: Scope) -> str | None:
        self._known(parse_on_hosts(line).hosts)
        self._planned[test.name].lines.append((point, line))
        return None

    def execute(self, line: str, test: RunningTest, scope: Scope) -> str | None:
        probes = scope.variables.get("PROBES", "")
        if probes:
            _check_probes(probes)
        self._known(parse_exec(line).hosts)
        self._planned[test.name].lines.append(("EXEC", line))
        self._planned[test.name].environment = dict(scope.environment)
        return None

    def end_trial(self, test: RunningTest) -> None:
        planned = self._planned[test.name]
        planned.cache = " of ".join(filter(None, (test.cache, " ".join(test.data))))
        planned.boot, planned.data = test.boot, tuple(test.data)
        planned.timeout_s = test.timeout_s
        planned.metrics = tuple(metric_text(*metric) for metric in test.metrics)
        test.set_aside = False
        test.kept = test.minimum  # one trial represents all
        test.budget_s, test.program = None, []

    def spent_s(self, test: RunningTest) -> float:
        return 0.0

    def check_rule(self, test: RunningTest) -> None:
        pass

    def stop_decision(self, test: RunningTest, scope: Scope) -> tuple[bool, str]:
        return True, "in thought"

    def end_test(self, test: RunningTest) -> None:
        pass

    def failed(self, reason: str, script: str, test: RunningTest | None, scope: Scope) -> None:
        pass

    def checkpoint(self, path: str, state: State) -> None:
        self.outline.lines.append(("CHECKPOINT", path))

    def needs_restart(self, test: RunningTest) -> bool:
        return not test.booted and (test.cache in REBOOTS or bool(test.boot))

    def restart(self, entry: str, state: State) -> None:
        self.outline.entries.append(entry)
        if state.running is None:
            self.outline.lines.append(("REBOOT", entry))

    def safe_point(self, state: State) -> None:
        pass

    save = safe_point
