"""A resource that has levels, and holding several at a level each while something is measured."""

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
from etude.machine.resources.ledger import Ledger, held_entries

WATCHED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Setting:
    """What the resources at their levels are for commands."""

    groups: tuple[str, ...] = ()
    """Directories of the cgroups that commands belong into."""
    words: tuple[str, ...] = ()
    """What else stands before a command, as `ssh guest`."""
    values: Mapping[str, str] = field(default_factory=dict)
    """What commands may name in braces: `{volume}`."""
    notes: tuple[str, ...] = ()
    """What a reader of the numbers has to know."""

    @property
    def prefix(self) -> tuple[str, ...]:
        """Words before a command: it, and what it starts, is in the cgroups from its first instruction on."""
        if not self.groups:
            return self.words
        entries = (f"echo $$ > {shlex.quote(group + '/cgroup.procs')}" for group in self.groups)
        return ("sh", "-c", f'{" && ".join(entries)} && exec "$@"', "sh", *self.words)

    def joined(self, other: Setting) -> Setting:
        """With what another resource adds.

        Raises:
            InputError: where both give one value.
        """
        if twice := sorted(set(self.values) & set(other.values)):
            raise InputError(f"two resources give {{{twice[0]}}}: expected one at most")
        groups = (*self.groups, *(group for group in other.groups if group not in self.groups))
        values = {**self.values, **other.values}
        return Setting(groups, (*other.words, *self.words), values, (*self.notes, *other.notes))


class Resource(Protocol):
    """One resource; `limited` holds it. Undoing is in the ledger, so that another process can do it too."""

    @property
    def name(self) -> str:
        """The kind, as `quota`."""
        ...

    @property
    def confines(self) -> bool:
        """Whether it is a cgroup: applied last, and so undone first, which ends all processes in it."""
        ...

    def accept(self, level: str) -> None:
        """Raises InputError, with what was expected, for a level that can never be; touches nothing."""
        ...

    def check(self) -> str | None:
        """Why it cannot work here. What is tried for that is undone."""
        ...

    def apply(self, level: str, so_far: Setting, ledger: Ledger) -> Setting:
        """Bring it to a level. Each change is written into the ledger first; `so_far` is what others gave.

        Raises:
            MachineRefuses: what was done until then is in the ledger.
        """
        ...


@contextmanager
def limited(
    resources: Mapping[str, Resource], levels: Mapping[str, str], directory: Path
) -> Iterator[Setting]:
    """Each resource at the level of its name, in this order but for cgroups, which come last; in the end all is as it
    was, also after an exception, SIGINT, SIGTERM or SIGHUP. What a killed process left by this directory is undone
    first.

    Raises:
        InputError: a level that cannot be.
        MachineRefuses: it cannot be applied, or not be undone; what is left to undo is in the directory.
        Interrupted: ended by SIGTERM or SIGHUP, where the process has no handler of its own.
    """
    chosen = [(name, resource, levels[name]) for name, resource in resources.items() if name in levels]
    chosen.sort(key=lambda each: each[1].confines)
    for name, resource, level in chosen:
        with _named(name, level):
            resource.accept(level)
    with _ending_by_signals(), held_entries(directory) as ledger:
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
    """Errors say of what they are."""
    try:
        yield
    except (InputError, MachineRefuses) as error:
        raise type(error)(f"{name}={level}: {error}") from None
    except OSError as error:
        raise MachineRefuses(f"{name}={level}: {error.filename}: {error.strerror}") from None


def undo_left(directory: Path) -> list[str]:
    """Undo what a killed process left by this directory; the kinds of steps that were left, newest first.

    Raises:
        MachineRefuses: a step fails, or the process that holds it is alive.
    """
    if not directory.is_dir():
        return []
    with held_entries(directory) as ledger:
        left = [str(step["undo"]) for step in reversed(ledger.steps)]
        with _deferred():
            ledger.undo()
        return left


@contextmanager
def _ending_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP, where they would end the process at once, are exceptions in here."""

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
    """Signals that come in here act at its end."""
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
