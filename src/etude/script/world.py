"""Interface of a script's effects.

The real world runs programs (`bench.py`); that of --check only takes notes (`check.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from etude.script.arguments import CopyCommand
from etude.script.state import RunningTest, Scope, State

CANCELLED = "cancelled"
"""Reason of exclusion of a trial that does not count: it warmed the caches, or a signal ended it."""


@dataclass(frozen=True, slots=True)
class TrialOnDisk:
    """A trial whose rows are on disk; `why`: reason of exclusion, None if included."""

    number: int
    block: int
    why: str | None


class World(Protocol):
    """Effects. Methods that return `str | None` return the failure."""

    @property
    def stopped(self) -> bool:
        """True after a signal: only clean-up follows."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment that Étude was started in."""

    def echo(self, text: str) -> None:
        """Print a text for the user."""

    def warn(self, text: str) -> None:
        """Print a warning for the user."""

    def system(self, line: str, scope: Scope) -> str | None:
        """Run a line outside any test."""

    def quiet(self, words: Sequence[str]) -> str | None:
        """Make the machine quiet until the script ends; without words, restore it."""

    def hosts(self, path: str) -> None:
        """Read the hosts of this file, for the following lines.

        Raises:
            InputError: the file is invalid; MachineRefuses: a host is not available.
        """

    def copy(self, copied: CopyCommand, test: RunningTest | None) -> str | None:
        """Copy files to hosts or back."""

    def begin_test(self, test: RunningTest) -> None:
        """Start a test, or resume it after its state was loaded."""

    def trials(self, test: RunningTest) -> Sequence[TrialOnDisk]:
        """Its trials that are on disk, in the order in which they were made."""

    def end_reason(self, test: RunningTest) -> str:
        """Recorded reason why the test ended; empty if it has not."""

    def hook(self, point: str, line: str, test: RunningTest, scope: Scope) -> str | None:
        """Run a line around the measured part."""

    def execute(self, line: str, test: RunningTest, scope: Scope) -> str | None:
        """Run the measured part; its rows are added to the test's."""

    def end_trial(self, test: RunningTest) -> None:
        """Write the trial's rows to disk."""

    def spent_s(self, test: RunningTest) -> float:
        """Wall-clock seconds of the test: from its first trial to the end of its last."""

    def check_rule(self, test: RunningTest) -> None:
        """Check after the first trial that the metrics of the stop rule exist.

        Raises:
            InputError: it names a metric that the test does not have.
        """

    def stop_decision(self, test: RunningTest, scope: Scope) -> tuple[bool, str]:
        """True if the stop program is satisfied, and its reason."""

    def end_test(self, test: RunningTest) -> None:
        """End the test."""

    def failed(self, reason: str, script: str, test: RunningTest | None, scope: Scope) -> None:
        """Run FASTFAIL's script, if there is one, before everything stops."""

    def checkpoint(self, path: str, state: State) -> None:
        """Write the state atomically."""

    def needs_restart(self, test: RunningTest) -> bool:
        """True if the machine has to be restarted before the trial in flight.

        Raises:
            MachineRefuses: it was restarted, and booted another entry than that of BOOT.
        """

    def restart(self, entry: str, state: State) -> None:
        """Store the state and restart the machine, into an entry of its boot loader if one is named.

        Raises:
            Restarting: always, in the real world.
        """

    def safe_point(self, state: State) -> None:
        """Store the state at a point from which an interrupted script can resume; may be skipped."""

    def save(self, state: State) -> None:
        """Store the state at the end of a test."""


class SelectedTests:
    """A world in which only tests of these names have effects; `state` is the machine's."""

    def __init__(self, world: World, only: Collection[str], state: State) -> None:
        self._world, self._only, self._state = world, only, state

    def _is_selected(self, test: RunningTest | None) -> bool:
        return test is None or test.name in self._only

    @property
    def stopped(self) -> bool:
        return self._world.stopped

    @property
    def environment(self) -> Mapping[str, str]:
        return self._world.environment

    def echo(self, text: str) -> None:
        if self._is_selected(self._state.running):
            self._world.echo(text)

    def warn(self, text: str) -> None:
        self._world.warn(text)

    def system(self, line: str, scope: Scope) -> str | None:
        return self._world.system(line, scope) if self._is_selected(self._state.running) else None

    def quiet(self, words: Sequence[str]) -> str | None:
        return self._world.quiet(words) if self._is_selected(self._state.running) else None

    def hosts(self, path: str) -> None:
        self._world.hosts(path)

    def copy(self, copied: CopyCommand, test: RunningTest | None) -> str | None:
        return self._world.copy(copied, test) if self._is_selected(test) else None

    def begin_test(self, test: RunningTest) -> None:
        if self._is_selected(test):
            self._world.begin_test(test)

    def trials(self, test: RunningTest) -> Sequence[TrialOnDisk]:
        return self._world.trials(test) if self._is_selected(test) else ()

    def end_reason(self, test: RunningTest) -> str:
        return self._world.end_reason(test) if self._is_selected(test) else ""

    def hook(self, point: str, line: str, test: RunningTest, scope: Scope) -> str | None:
        return self._world.hook(point, line, test, scope) if self._is_selected(test) else None

    def execute(self, line: str, test: RunningTest, scope: Scope) -> str | None:
        return self._world.execute(line, test, scope) if self._is_selected(test) else None

    def end_trial(self, test: RunningTest) -> None:
        if self._is_selected(test):
            self._world.end_trial(test)
            return
        test.set_aside = False
        test.kept = test.minimum  # one trial represents all
        test.budget_s, test.program = None, []

    def spent_s(self, test: RunningTest) -> float:
        return self._world.spent_s(test) if self._is_selected(test) else 0.0

    def check_rule(self, test: RunningTest) -> None:
        if self._is_selected(test):
            self._world.check_rule(test)

    def stop_decision(self, test: RunningTest, scope: Scope) -> tuple[bool, str]:
        return self._world.stop_decision(test, scope) if self._is_selected(test) else (True, "not chosen")

    def end_test(self, test: RunningTest) -> None:
        if self._is_selected(test):
            self._world.end_test(test)

    def failed(self, reason: str, script: str, test: RunningTest | None, scope: Scope) -> None:
        self._world.failed(reason, script, test, scope)

    def checkpoint(self, path: str, state: State) -> None:
        if self._is_selected(state.running):
            self._world.checkpoint(path, state)

    def needs_restart(self, test: RunningTest) -> bool:
        return self._is_selected(test) and self._world.needs_restart(test)

    def restart(self, entry: str, state: State) -> None:
        if self._is_selected(state.running):
            self._world.restart(entry, state)

    def safe_point(self, state: State) -> None:
        self._world.safe_point(state)

    def save(self, state: State) -> None:
        self._world.save(state)
