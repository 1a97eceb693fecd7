"""Resources with levels, and setting several of them during a measurement."""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Protocol

from etude.errors import InputError, Interrupted, MachineRefuses
from etude.machine.resources.ledger import Ledger, held_ledger

WATCHED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Setting:
    """Effect of resources at their levels on commands."""

    groups: tuple[str, ...] = ()
    """Directories of the cgroups that commands run in."""
    words: tuple[str, ...] = ()
    """Other words before a command, such as `ssh guest`."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Values for names in braces in commands: `{volume}`."""
    notes: tuple[str, ...] = ()
    """Notes for readers of the results."""

    @property
    def prefix(self) -> tuple[str, ...]:
        """Words before a command: it, and its children, are in the cgroups from the first instruction on."""
        if not self.groups:
            return self.words
        entries = (f"echo $$ > {shlex.quote(group + '/cgroup.procs')}" for group in self.groups)
        return ("sh", "-c", f'{" && ".join(entries)} && exec "$@"', "sh", *self.words)

    def joined(self, other: Setting) -> Setting:
        """This setting combined with another resource's.

        Raises:
            InputError: both define one value.
        """
        if twice := sorted(set(self.values) & set(other.values)):
            raise InputError(f"two resources give {{{twice[0]}}}: expected one at most")
        groups = (*self.groups, *(group for group in other.groups if group not in self.groups))
        values = {**self.values, **other.values}
        return Setting(groups, (*other.words, *self.words), values, (*self.notes, *other.notes))


class Resource(Protocol):
    """One resource; `applied_levels` applies it. Undo steps are in the ledger, for other processes too."""

    @property
    def name(self) -> str:
        """The kind, such as `quota`."""
        ...

    @property
    def is_cgroup(self) -> bool:
        """True if it is a cgroup: applied last, and so undone first, which ends all processes in it."""
        ...

    def accept(self, level: str) -> None:
        """Raises InputError, with what was expected, for an invalid level; changes nothing."""
        ...

    def check(self) -> str | None:
        """Reason why it is unavailable here, or None. Trial changes are undone."""
        ...

    def apply(self, level: str, so_far: Setting, ledger: Ledger) -> Setting:
        """Set it to a level. Each change is written into the ledger first; `so_far` is the setting of other resources.

        Raises:
            MachineRefuses: earlier changes are in the ledger.
        """
        ...


@contextmanager
def applied_levels(
    resources: Mapping[str, Resource], levels: Mapping[str, str], directory: Path
) -> Iterator[Setting]:
    """Each resource at the level of its name, in this order except for cgroups, which come last. All is restored at the
    end, also after an exception, SIGINT, SIGTERM or SIGHUP. Changes that a killed process left by this directory are
    undone first.

    Raises:
        InputError: an invalid level.
        MachineRefuses: it cannot be applied or undone; remaining undo steps are in the directory.
        Interrupted: ended by SIGTERM or SIGHUP, where the process has no handler of its own.
    """
    chosen = [(name, resource, levels[name]) for name, resource in resources.items() if name in levels]
    chosen.sort(key=lambda each: each[1].is_cgroup)
    for name, resource, level in chosen:
        with _named(name, level):
            resource.accept(level)
    with _ending_by_signals(), held_ledger(directory) as ledger:
        with _deferred():
            ledger.undo()
        try:
            setting = Setting()
            for name, resource, level in chosen:
                with _named(name, level):
                    setting = setting.joined(resource.apply(level, setting, ledger))
            yield setting
        finally:
            with _deferred():
                ledger.undo()


@contextmanager
def _named(name: str, level: str) -> Iterator[None]:
    """Adds name and level to errors."""
    try:
        yield
    except (InputError, MachineRefuses) as error:
        raise type(error)(f"{name}={level}: {error}") from None
    except OSError as error:
        raise MachineRefuses(f"{name}={level}: {error.filename}: {error.strerror}") from None


def undo_left(directory: Path) -> list[str]:
    """Undo what a killed process left by this directory; returns the kinds of its steps, newest first.

    Raises:
        MachineRefuses: a step fails, or the process that holds it is alive.
    """
    if not directory.is_dir():
        return []
    with held_ledger(directory) as ledger:
        left = [str(step["undo"]) for step in reversed(ledger.steps)]
        with _deferred():
            ledger.undo()
        return left


@contextmanager
def _ending_by_signals() -> Iterator[None]:
    """Turns SIGTERM and SIGHUP into exceptions within the block, if they would end the process at once."""

    def end(number: int, _: FrameType | None) -> None:
        raise Interrupted(number, f"ended by {signal.Signals(number).name}; resources are as they were")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    plain = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) == signal.SIG_DFL]
    for number in plain:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in plain:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def _deferred() -> Iterator[None]:
    """Defers signals to the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    former = {each: signal.signal(each, lambda number, _: came.append(number)) for each in WATCHED}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
