"""Quiet and back: what undoes each operation is on disk before it begins, and stays there until it is undone.

Nothing here lives while the machine is quiet, so a killed process loses nothing: the next `restore` or `apply`
finds in the ledger what was. After a restart of the machine its settings are what the boot has made them; only what
outlives one is undone then.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from etude.errors import EtudeError, InputError, MachineRefuses
from etude.machine.boot.record import boot_id
from etude.machine.quiet.machine import Machine
from etude.machine.quiet.operation import Change, Operation, Request, Unavailable
from etude.machine.quiet.table import BY_NAME
from etude.machine.resources.ledger import Ledger, Step, held_entries, read
from etude.osutil.files import try_lock
from etude.osutil.trust import is_trusted

DIRECTORY_VARIABLE = "ETUDE_QUIET_DIRECTORY"
DEFAULT_DIRECTORY = "/var/lib/etude"
NAME, ALIVE = "quiet", "quiet.experiment"
UNDO = "put_back"
HAND, EXPERIMENT = "hand", "experiment"
PATIENCE_S = 20.0
"""For another `apply` or `restore` under way."""
MEMBERS = {"undo", "operation", "items", "boot_id", "by"}


@dataclass
class Outcome:
    """What came of one `apply`: changes by operation; operations that were quiet already; those that could not be done,
    with the reason; and the items that the kernel refused to change, without harm."""

    done: dict[str, list[Change]] = field(default_factory=dict)
    already: list[str] = field(default_factory=list)
    unavailable: dict[str, str] = field(default_factory=dict)
    refused: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class ActiveOperation:
    """An operation in force, or what is left of one. `stale`: of a former boot."""

    operation: Operation
    changes: tuple[Change, ...]
    by: str
    stale: bool


def directory() -> Path:
    """Where the ledger is: `ETUDE_QUIET_DIRECTORY`, else /var/lib/etude."""
    return Path(os.path.abspath(os.environ.get(DIRECTORY_VARIABLE) or DEFAULT_DIRECTORY))


def file() -> Path:
    """The ledger's file; it is there while something is to be put back."""
    return directory() / f"{NAME}.json"


def apply(asked: Request, machine: Machine | None = None) -> Outcome:
    """Make the machine quiet until `restore`. All that is asked for is done, or nothing.

    Raises:
        MachineRefuses: no permission, an operation that failed (all was put back), or an experiment that does it.
        InputError: the ledger cannot be believed.
    """
    machine = machine or Machine()
    with _ledger(machine) as (ledger, machine):
        if _alive():
            raise MachineRefuses("an experiment keeps this machine quiet by its QUIET; wait for its end")
        return _on(asked, machine, ledger, HAND)


def restore(machine: Machine | None = None) -> list[str]:
    """Put everything back, newest first; returns the operations that were in force. Harmless where none was.

    Raises:
        MachineRefuses: no permission, something that does not go back (the rest did; it is kept in the ledger), or an
            experiment that keeps the machine quiet.
        InputError: the ledger cannot be believed.
    """
    machine = machine or Machine()
    _must_be_root(machine)
    if not file().exists():
        return []
    with _ledger(machine) as (ledger, _):
        if _alive():
            raise MachineRefuses("an experiment keeps this machine quiet by its QUIET; end that first")
        return _off(ledger, ledger.steps)


def in_force(machine: Machine | None = None) -> list[ActiveOperation]:
    """What is in the ledger, oldest first.

    Raises:
        InputError: it cannot be believed.
    """
    machine = machine or Machine()
    return [
        ActiveOperation(
            BY_NAME[step["operation"]],
            tuple(_changes(step["items"])),
            step["by"],
            step["boot_id"] != boot_id(machine.root),
        )
        for step in _believed(read(_trusted(), {UNDO: _no_undoing}))
    ]


def recorded_changes(machine: Machine | None = None) -> dict[str, dict[str, list[str]]] | None:
    """For the results: by operation the items that have their quiet values, each with the former and the quiet one.
    None where the machine is not quiet."""
    machine = machine or Machine()
    found: dict[str, dict[str, list[str]]] = {}
    try:
        for each in in_force(machine):
            if not each.stale and (items := each.operation.in_force(machine, each.changes)):
                found.setdefault(each.operation.name, {}).update(items)
    except (EtudeError, OSError):
        return None
    return found or None


class Experiment:
    """What a script has asked for: put back when it ends, also by the next one if it was killed."""

    def __init__(self, machine: Machine | None = None) -> None:
        self._machine = machine or Machine()
        self._lock: int | None = None

    def on(self, asked: Request) -> Outcome:
        """Add to what is quiet until `restore`.

        Raises:
            MachineRefuses: as `apply`; another experiment keeps the machine quiet. InputError: as `apply`.
        """
        with _ledger(self._machine, mine=self._lock is not None) as (ledger, machine):
            if self._lock is None:
                self._lock = _locked()
                if self._lock is None:
                    raise MachineRefuses(
                        "another experiment keeps this machine quiet; one at a time: wait for its end"
                    )
            return _on(asked, machine, ledger, EXPERIMENT)

    def off(self) -> list[str]:
        """Put back what this experiment has changed; what was quiet before it stays. Returns the operations.

        Raises:
            MachineRefuses: something does not go back; it is kept in the ledger. InputError: as `restore`.
        """
        if self._lock is None:
            return []
        try:
            with _ledger(self._machine, mine=True) as (ledger, _):
                return _off(ledger, [step for step in ledger.steps if step["by"] == EXPERIMENT])
        finally:
            os.close(self._lock)
            self._lock = None


def _must_be_root(machine: Machine) -> None:
    if machine.root == Path("/") and os.geteuid() != 0:
        raise MachineRefuses("only root can make a machine quiet, and put it back: sudo etude quiet …")


# --- one ledger -----------------------------------------------------------------------------------


@contextmanager
def _ledger(machine: Machine, *, mine: bool = False) -> Iterator[tuple[Ledger, Machine]]:
    """The ledger, once it is in order: without what a restart has undone, and what a killed experiment has left."""
    _must_be_root(machine)
    _trusted()
    undoing = {UNDO: lambda **members: _put_back(machine, **members)}
    with held_entries(directory(), PATIENCE_S, name=NAME, undoing=undoing) as ledger:
        machine = replace(machine, holding=(ledger.lock,))
        for step in _believed(ledger.steps):
            if step["boot_id"] != boot_id(machine.root):
                ledger.undo([step])
        if not mine and not _alive():
            ledger.undo([step for step in ledger.steps if step["by"] == EXPERIMENT])
        yield ledger, machine


def _on(asked: Request, machine: Machine, ledger: Ledger, by: str) -> Outcome:
    outcome, before = Outcome(), list(ledger.steps)
    try:
        for name in asked.names:
            try:
                _one(BY_NAME[name], asked, machine, ledger, by, outcome)
            except Unavailable as why:
                outcome.unavailable[name] = str(why)
            except OSError as error:
                raise MachineRefuses(f"quiet {name}: {error.filename or ''}: {error.strerror}") from None
            except MachineRefuses as error:
                raise MachineRefuses(f"quiet {name}: {error}") from None
    except BaseException as error:
        new = [step for step in ledger.steps if not any(step is old for old in before)]
        try:
            ledger.undo(new)
        except MachineRefuses as left:
            raise MachineRefuses(f"{error}; and not all could be put back: {left}") from None
        if isinstance(error, MachineRefuses):
            raise MachineRefuses(f"{error}; nothing was changed") from None
        raise
    return outcome


def _one(
    operation: Operation, asked: Request, machine: Machine, ledger: Ledger, by: str, outcome: Outcome
) -> None:
    name = operation.name
    for number in range(operation.passes):
        found = operation.changes(machine, asked)
        changes = [each for each in found if each.was != each.put]
        if not changes:
            if number == 0:
                outcome.already.append(name)
            return
        # Those that are quiet already as well: setting one may change another, as of cpufreq's switches for boost.
        items = [[each.item, each.was, each.put] for each in found]
        step = ledger.before(UNDO, operation=name, items=items, boot_id=boot_id(machine.root), by=by)
        left = [each for each in changes if not _set(operation, machine, each)]
        # once more: what one item started again, such as the socket of a service, is down only now
        refused = [each for each in left if not _set(operation, machine, each)]
        for each in refused:
            if not each.optional:
                now = operation.read(machine, each.item)
                raise MachineRefuses(f"{each.item} stays at {now!r}; expected {each.put!r}")
        if refused:
            outcome.refused.setdefault(name, []).extend(each.item for each in refused)
        if len(refused) == len(changes):
            ledger.forget(step)
            return
        outcome.done.setdefault(name, []).extend(each for each in changes if each not in refused)


def _set(operation: Operation, machine: Machine, change: Change) -> bool:
    """Whether it has the value now.

    Raises:
        OSError, MachineRefuses: it cannot be set, and is not optional.
    """
    try:
        operation.put(machine, change.item, change.put)
        now = operation.read(machine, change.item)
    except (OSError, MachineRefuses):
        if not change.optional:
            raise
        return False
    return now is None or operation.same(now, change.put) or not change.put


def _off(ledger: Ledger, steps: Sequence[Step]) -> list[str]:
    names = list(dict.fromkeys(step["operation"] for step in steps))
    ledger.undo(steps)
    return names


def _put_back(machine: Machine, operation: str, items: list[list[str]], boot_id: str, by: str) -> None:
    """Undo one operation, its newest item first; all items are tried.

    Raises:
        MachineRefuses: with the first that failed.
    """
    found, changes = BY_NAME[operation], _changes(items)
    booted = boot_id != _boot(machine)
    failed = []
    for change in reversed(changes):
        if booted and not found.lasting(change.item):
            continue
        try:
            found.restore(machine, change)
        except (OSError, EtudeError) as error:
            failed.append(f"{change.item}: {getattr(error, 'strerror', None) or error}")
    if not booted:
        found.last(machine, changes)
    if failed:
        raise MachineRefuses(f"{operation}: {failed[0]}")


def _changes(items: Sequence[Sequence[str]]) -> list[Change]:
    return [Change(item, was, put) for item, was, put in items]


def _boot(machine: Machine) -> str:
    return boot_id(machine.root)


def _no_undoing(**_: Any) -> None:
    raise AssertionError("a ledger that is only looked at")


# --- what is believed -----------------------------------------------------------------------------


def _trusted() -> Path:
    """The ledger's file.

    Raises:
        InputError: others could have written it.
    """
    if os.path.lexists(file()):
        is_trusted(file())
    return file()


def _believed(steps: Sequence[Step]) -> list[Step]:
    """The steps, once each is known to be an operation's on items of its own.

    Raises:
        InputError: one is not.
    """
    for number, step in enumerate(steps, 1):
        operation = BY_NAME.get(step["operation"]) if isinstance(step.get("operation"), str) else None
        items = step.get("items")
        if (
            operation is None
            or step.keys() != MEMBERS
            or step["by"] not in (HAND, EXPERIMENT)
            or not isinstance(step["boot_id"], str)
            or not isinstance(items, list)
            or not all(_is_item(operation, item) for item in items)
        ):
            raise InputError(
                f"{file()}: step {number} is none that Étude writes; was it edited? Restart the machine, which resets "
                "its settings, and remove the file"
            )
    return list(steps)


def _is_item(operation: Operation, item: object) -> bool:
    if not isinstance(item, list) or len(item) != 3 or not all(isinstance(text, str) for text in item):
        return False
    return operation.owns(item[0]) and ".." not in item[0] and not any("\0" in text for text in item)


# --- who is alive ---------------------------------------------------------------------------------


def _locked() -> int | None:
    """Be the experiment that keeps the machine quiet; None while another is. The kernel lets go when it ends."""
    number = os.open(directory() / ALIVE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    if try_lock(number):
        return number
    os.close(number)
    return None


def _alive() -> bool:
    """Whether an experiment keeps the machine quiet."""
    number = _locked()
    if number is None:
        return True
    os.close(number)
    return False
