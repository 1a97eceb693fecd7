"""A world for the step machine in which everything is noted and nothing happens."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from etude.codec import decoded
from etude.errors import CommandFailed, InputError, Restarting
from etude.results.model import FIRST_RUN
from etude.script.arguments import CopyCommand
from etude.script.machine import Machine
from etude.script.parse import parse_text
from etude.script.program import Program
from etude.script.state import RunningTest, Scope, State, to_data
from etude.script.world import TrialOnDisk

Fails = Callable[[str, str, RunningTest | None], str | None]


def never(point: str, line: str, test: RunningTest | None) -> str | None:
    """Nothing fails."""
    return None


@dataclass
class NotedWorld:
    """`story` tells what was done, in words; what fails, and when a stop program has enough, are functions."""

    fails: Fails = never
    enough: Callable[[RunningTest], bool] = lambda test: test.kept >= 3
    environment: Mapping[str, str] = field(default_factory=lambda: {"HOME": "/home/me"})
    story: list[str] = field(default_factory=list)
    stopped: bool = False
    restarts: bool = False
    """A restart ends the machine, instead of only being noted."""
    stop_at: str = ""
    """A signal comes during the line that begins so."""
    saved: list[tuple[str, str]] = field(default_factory=list)
    safe: list[str] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    on_disk: dict[str, list[TrialOnDisk]] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)
    oldest: int = 0
    """The index in `safe` of the oldest state that a kill can leave on disk."""

    def _note(self, text: str) -> None:
        self.story.append(text)
        if self.stop_at and text.startswith(self.stop_at):
            self.stopped = True

    def echo(self, text: str) -> None:
        self._note(f"ECHO {text}")

    def warn(self, text: str) -> None:
        self._note(f"warning: {text}")

    def system(self, line: str, scope: Scope) -> str | None:
        self._note(f"SYSTEM {line}")
        return self.fails("SYSTEM", line, None)

    def quiet(self, words: Sequence[str]) -> str | None:
        self._note(f"QUIET {' '.join(words) or 'off'}")
        return self.fails("QUIET", " ".join(words), None)

    def hosts(self, path: str) -> None:
        self._note(f"HOSTS {path}")

    def copy(self, copied: CopyCommand, test: RunningTest | None) -> str | None:
        self._note(f"COPY {copied.source} {'from' if copied.back else 'to'} {','.join(copied.hosts)}")
        return self.fails("COPY", copied.source, test)

    def begin_test(self, test: RunningTest) -> None:
        self.begun.append(test.name)

    def trials(self, test: RunningTest) -> Sequence[TrialOnDisk]:
        return self.on_disk.get(test.name, [])

    def end_reason(self, test: RunningTest) -> str:
        return self.ends.get(test.name, "")

    def hook(self, point: str, line: str, test: RunningTest, scope: Scope) -> str | None:
        self._note(f"{point} {line} [{test.name} {test.trial}]")
        return self.fails(point, line, test)

    def execute(self, line: str, test: RunningTest, scope: Scope) -> str | None:
        aside = " aside" if test.set_aside else ""
        self._note(f"EXEC {line} [{test.name} {test.trial} x{test.threads}{aside}]")
        test.rows.append({"line": line, "trial": test.trial})
        return self.fails("EXEC", line, test)

    def end_trial(self, test: RunningTest) -> None:
        if test.rows:
            why = "failed" if test.failed else FIRST_RUN if test.set_aside else None
            found = TrialOnDisk(test.trial, test.block if test.group is not None else test.trial, why)
            self.on_disk.setdefault(test.name, []).append(found)
        self._note(f"trial {test.trial} of {test.name}: {json.dumps(test.rows)} {test.failed or 'ok'}")

    def spent_s(self, test: RunningTest) -> float:
        return 1.0 * test.kept

    def check_rule(self, test: RunningTest) -> None:
        self._note(f"checked {' '.join(test.program)} [{test.name} {test.kept}]")
        if "misspelt" in test.program:
            raise InputError("no such metric")

    def stop_decision(self, test: RunningTest, scope: Scope) -> tuple[bool, str]:
        self._note(f"asked {' '.join(test.program)} [{test.name} {test.kept}]")
        return self.enough(test), "seen enough"

    def end_test(self, test: RunningTest) -> None:
        self.ends[test.name] = test.why
        self._note(f"end of {test.name}: {test.why}")

    def failed(self, reason: str, script: str, test: RunningTest | None, scope: Scope) -> None:
        self._note(f"failed: {reason}; {script}")

    def checkpoint(self, path: str, state: State) -> None:
        self.saved.append((path, json.dumps(to_data(state))))

    def needs_restart(self, test: RunningTest) -> bool:
        return not test.booted and ("reboot" in test.cache or bool(test.boot))

    def restart(self, entry: str, state: State) -> None:
        self._note(f"restart {entry}")
        if self.restarts:
            self.saved.append(("restart", json.dumps(to_data(state))))
            raise Restarting(entry)

    def safe_point(self, state: State) -> None:
        self.safe.append(json.dumps(to_data(state)))

    def save(self, state: State) -> None:
        self.oldest = len(self.safe)
        self.safe.append(json.dumps(to_data(state)))


def play(text: str | Program, world: NotedWorld | None = None, state: State | None = None) -> list[str]:
    """The story of a script, from its beginning or from a state."""
    program = parse_text(text) if isinstance(text, str) else text
    world = world or NotedWorld()
    try:
        Machine(program, state or State(), world).run()
    except CommandFailed as error:
        world.story.append(f"stopped: {error}")
    return world.story


def from_data(data: Any) -> State:
    """A state from its data. Raises InputError: it is none."""
    return decoded(State, data, "state.json", every=True, only=True)


def reloaded(state: State) -> State:
    """A state after it was written and read."""
    return from_data(json.loads(json.dumps(to_data(state))))


def reload(data: str) -> State:
    """A state from the JSON that a world has kept."""
    return from_data(json.loads(data))


__all__ = ["Any", "NotedWorld", "from_data", "never", "play", "reload", "reloaded"]
