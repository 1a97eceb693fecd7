"""What a script does to the world: the effects of its instructions, behind one face.

The real one runs programs (`bench.py`); that of --check only takes notes (`check.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from etude.script.arguments import Copied
from etude.script.state import Running, Scope, State

CANCELLED = "cancelled"
"""Why a trial is excluded that does not count as one: it warmed the caches, or a signal ended it."""


@dataclass(frozen=True, slots=True)
class TrialOnDisk:
    """A trial whose rows are on disk; `why` it is excluded, None if it is not."""

    number: int
    block: int
    why: str | None


class World(Protocol):
    """Effects. Where one returns `str | None`, that is why it failed."""

    @property
    def stopped(self) -> bool:
        """Whether a signal has come: what follows only cleans up."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment that Étude was started in."""

    def echo(self, text: str) -> None:
        """Tell the user."""

    def warn(self, text: str) -> None:
        """Tell the user that something is amiss."""

    def system(self, line: str, scope: Scope) -> str | None:
        """Run a line outside any test."""

    def quiet(self, words: Sequence[str]) -> str | None:
        """Make the machine quiet until the script ends; without words, put it back as it was."""

    def hosts(self, path: str) -> None:
        """From here on there are the hosts of this file.

        Raises:
            InputError: something in it is wrong; MachineRefuses: one of them cannot be had.
        """

    def copy(self, copied: Copied, test: Running | None) -> str | None:
        """Copy files to hosts or back."""

    def begin_test(self, test: Running) -> None:
        """A test is about to begin, or to go on after its state was loaded."""

    def trials(self, test: Running) -> Sequence[TrialOnDisk]:
        """Its trials that are on disk, in the order in which they were made."""

    def ended(self, test: Running) -> str:
        """Why the test ended, as it is on disk; empty where it has not."""

    def hook(self, point: str, line: str, test: Running, scope: Scope) -> str | None:
        """Run a line around the measured part."""

    def execute(self, line: str, test: Running, scope: Scope) -> str | None:
        """Run the measured part; its rows are added to the test's."""

    def end_trial(self, test: Running) -> None:
        """Put the trial's rows on disk."""

    def spent_s(self, test: Running) -> float:
        """Seconds by the clock that the test has taken: from its first trial to the end of its last."""

    def check_rule(self, test: Running) -> None:
        """After the first trial: whether there is what the stop rule names.

        Raises:
            InputError: it names a metric that the test does not have.
        """

    def ask(self, test: Running, scope: Scope) -> tuple[bool, str]:
        """Whether the stop program has seen enough, and its reason."""

    def end_test(self, test: Running) -> None:
        """The test is over."""

    def failed(self, reason: str, script: str, test: Running | None, scope: Scope) -> None:
        """FASTFAIL: run its script, if there is one, before everything stops."""

    def checkpoint(self, path: str, state: State) -> None:
        """Write the state, whole."""

    def needs_restart(self, test: Running) -> bool:
        """Whether the machine has to be restarted before the trial in flight.

        Raises:
            MachineRefuses: it was, and came up with something else than the entry of BOOT.
        """

    def restart(self, entry: str, state: State) -> None:
        """Keep the state and have the machine restarted, into an entry of its boot loader if one is named.

        Raises:
            Restarting: always, where something happens.
        """

    def safe_point(self, state: State) -> None:
        """The state may be kept for going on after an interruption."""

    def save(self, state: State) -> None:
        """Keep the state: a test has ended."""
