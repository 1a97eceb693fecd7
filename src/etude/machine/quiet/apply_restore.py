"""Applies and restores quiet settings: the undo of each operation is on disk before it begins, until it is undone.

No process runs while the machine is quiet, so a killed process loses nothing: the next `restore` or `apply` finds
the former values in the ledger. A restart of the machine resets its settings; then only lasting changes are undone.
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
from etude.machine.quiet.operation import Change, Machine, Operation, Request, Unavailable
from etude.machine.quiet.table import BY_NAME
from etude.machine.resources.ledger import Ledger, Step, held_ledger, read
from etude.osutil.files import try_lock
from etude.osutil.trust import check_trusted

DIRECTORY_VARIABLE = "ETUDE_QUIET_DIRECTORY"
DEFAULT_DIRECTORY = "/var/lib/etude"
NAME, ALIVE = "quiet", "quiet.experiment"
UNDO = "put_back"
HAND, EXPERIMENT = "hand", "experiment"
PATIENCE_S = 20.0
"""Maximum wait for another `apply` or `restore`, s."""
MEMBERS = {"undo", "operation", "items", "boot_id", "by"}


@dataclass
class Outcome:
    """Outcome of one `apply`: changes by operation; operations that were already quiet; unavailable operations with the
    reason; and items that the kernel refused to change, without harm."""

    done: dict[str, list[Change]] = field(default_factory=dict)
    already: list[str] = field(default_factory=list)
    unavailable: dict[str, str] = field(default_factory=dict)
    refused: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class ActiveOperation:
    """An operation in force, or its remainder. `stale`: made in an earlier boot."""

    operation: Operation
    changes: tuple[Change, ...]
    by: str
    stale: bool


def directory() -> Path:
    """Directory of the ledger: `ETUDE_QUIET_DIRECTORY`, else /var/lib/etude."""
    return Path(os.path.abspath(os.environ.get(DIRECTORY_VARIABLE) or DEFAULT_DIRECTORY))


def file() -> Path:
    """The ledger's file; it exists while changes are in force."""
    return directory() / f"{NAME}.json"


def apply(asked: Request, machine: Machine | None = None) -> Outcome:
    """Make the machine quiet until `restore`. All requested operations are done, or none.

    Raises:
        MachineRefuses: no permission, an operation that failed (all was restored), or an experiment that does it.
        InputError: the ledger cannot be trusted.
    """
    machine = machine or Machine()
    with _ledger(machine) as (ledger, machine):
        if _alive():
            raise MachineRefuses("an experiment keeps this machine quiet by its QUIET; wait for its end")
        return _on(asked, machine, ledger, HAND)


def restore(machine: Machine | None = None) -> list[str]:
    """Restore everything, newest first; returns the operations that were in force. Harmless if there are none.

    Raises:
        MachineRefuses: no permission, an item that cannot be restored (the others were; it stays in the ledger), or an
            experiment that keeps the machine quiet.
        InputError: the ledger cannot be trusted.
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
    """Operations in the ledger, oldest first.

    Raises:
        InputError: it cannot be trusted.
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
    """Items that have their quiet values, by operation, each with the former and the quiet value: for the results.
    None if the machine is not quiet."""
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
    """Changes requested by a script: restored when it ends, or by the next one if it was killed."""

    def __init__(self, machine: Machine | None = None) -> None:
        self._machine = machine or Machine()
        self._lock: int | None = None

    def on(self, asked: Request) -> Outcome:
        """Add operations until `restore`.

        Raises:
            MachineRefuses: same as `apply`; another experiment keeps the machine quiet. InputError: same as `apply`.
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
        """Restore the changes of this experiment only; returns the operations.

        Raises:
            MachineRefuses: an item cannot be restored; it stays in the ledger. InputError: same as `restore`.
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
    """The ledger in a consistent state: without changes that a restart has undone or a killed experiment has left."""
    _must_be_root(machine)
    _trusted()
    undoing = {UNDO: lambda **members: _put_back(machine, **members)}
    with held_ledger(directory(), PATIENCE_S, name=NAME, undoing=undoing) as ledger:
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
        # Also those that are already quiet: setting one may change another, such as cpufreq's switches for boost.
        items = [[each.item, each.was, each.put] for each in found]
        step = ledger.record_undo(UNDO, operation=name, items=items, boot_id=boot_id(machine.root), by=by)
        left = [each for each in changes if not _set(operation, machine, each)]
        # once more: some items, such as the socket of a service, stop only now
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
    """True if the item has the value now.

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
        MachineRefuses: the first failure.
    """
    found, changes = BY_NAME[operation], _changes(items)
    booted = boot_id != _boot(machine)
    failed = []
    for change in reversed(changes):
        if booted and not found.survives_boot(change.item):
            continue
        try:
            found.restore(machine, change)
        except (OSError, EtudeError) as error:
            failed.append(f"{change.item}: {getattr(error, 'strerror', None) or error}")
    if not booted:
        found.after_restore(machine, changes)
    if failed:
        raise MachineRefuses(f"{operation}: {failed[0]}")


def _changes(items: Sequence[Sequence[str]]) -> list[Change]:
    return [Change(item, was, put) for item, was, put in items]


def _boot(machine: Machine) -> str:
    return boot_id(machine.root)


def _no_undoing(**_: Any) -> None:
    raise AssertionError("a ledger that is only looked at")


# --- trust in the ledger --------------------------------------------------------------------------


def _trusted() -> Path:
    """The ledger's file.

    Raises:
        InputError: others could have written it.
    """
    if os.path.lexists(file()):
        check_trusted(file())
    return file()


def _believed(steps: Sequence[Step]) -> list[Step]:
    """The steps, if each is an operation's on items of its own.

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


# --- the lock of an experiment --------------------------------------------------------------------


def _locked() -> int | None:
    """Take the lock of the experiment that keeps the machine quiet; None while another has it. The kernel releases
    it."""
    number = os.open(directory() / ALIVE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    if try_lock(number):
        return number
    os.close(number)
    return None


def _alive() -> bool:
    number = _locked()
    if number is None:
        return True
    os.close(number)
    return False


MAX_SHOWN = 26


@dataclass(frozen=True)
class Row:
    """An operation: its items, those in force, and the reason if it is unavailable."""

    name: str
    meaning: str
    usual: bool
    changes: tuple[Change, ...] = ()
    held: tuple[Change, ...] = ()
    why_not: str = ""

    @property
    def state(self) -> str:
        """`held`, `unavailable`, `quiet` (already), or `available`."""
        if self.held:
            return "held"
        if self.why_not:
            return "unavailable"
        return "available" if any(each.was != each.put for each in self.changes) else "quiet"

    @property
    def state_text(self) -> str:
        """The state in words."""
        words = {"held": f"held ({len(self.held)} changed)", "unavailable": f"not here: {self.why_not}"}
        words |= {"quiet": "quiet already", "available": "can be made quiet"}
        return words[self.state] + ("" if self.usual else ", when named")

    @property
    def now(self) -> str:
        return _distinct([each.was for each in self.changes])

    @property
    def quiet(self) -> str:
        return _distinct([each.put for each in self.changes])


def quiet_status(asked: Request, machine: Machine | None = None) -> list[Row]:
    """One row for each requested operation.

    Raises:
        InputError: the ledger cannot be trusted.
    """
    machine = machine or Machine()
    held: dict[str, list[Change]] = {}
    for each in in_force(machine):
        if not each.stale:
            held.setdefault(each.operation.name, []).extend(each.changes)
    return [_row(BY_NAME[name], asked, machine, held.get(name, [])) for name in asked.names]


def left_over(machine: Machine | None = None) -> list[str]:
    """Operations that a restart of the machine has undone, and that are still in the ledger."""
    return list(dict.fromkeys(each.operation.name for each in in_force(machine) if each.stale))


def _row(operation: Operation, asked: Request, machine: Machine, held: Sequence[Change]) -> Row:
    row = Row(operation.name, operation.meaning, operation.usual, held=tuple(held))
    try:
        changes = tuple(operation.changes(machine, asked))
    except (Unavailable, EtudeError, OSError) as why:
        return Row(row.name, row.meaning, row.usual, held=row.held, why_not=str(why))
    return Row(row.name, row.meaning, row.usual, changes, row.held)


def _distinct(values: Sequence[str]) -> str:
    """Values with counts, such as `2 inactive, 1 active`; a single value alone."""
    counts = {value: values.count(value) for value in dict.fromkeys(values)}
    if len(values) == 1:
        return values[0][:MAX_SHOWN]
    shown = ", ".join(f"{count} {value or '-'}" for value, count in counts.items())
    return shown if len(shown) <= MAX_SHOWN else f"{len(values)} values"
