"""Base of all operations: a name, the changes it would make, and how one item is read, set and restored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from etude.errors import MachineRefuses
from etude.machine.quiet.machine import Machine


class Unavailable(Exception):
    """Reason why an operation is not available on this machine."""


@dataclass(frozen=True)
class Change:
    """One item, its value, and the quiet value. An `optional` one may be refused without harm to the rest."""

    item: str
    was: str
    put: str
    optional: bool = False


@dataclass(frozen=True)
class Request:
    """The requested operations, in the table's order.

    `named`: requested by name, in contrast to the default ones; `values`: chosen values; `cpus`: CPUs to keep free.
    """

    names: tuple[str, ...]
    named: frozenset[str] = frozenset()
    values: Mapping[str, str] = field(default_factory=dict)
    cpus: frozenset[int] = frozenset()

    def value(self, operation: Operation) -> str:
        """The chosen value for an operation; empty for its default."""
        return self.values.get(operation.name, "")


class Operation:
    """Subclasses define the changes; items that are files below the root need nothing else."""

    name: ClassVar[str] = ""
    meaning: ClassVar[str] = ""
    """Reason why it makes a machine quieter, in one line."""
    choices: ClassVar[tuple[str, ...]] = ()
    """Values that are valid in NAME=VALUE."""
    usual: ClassVar[bool] = True
    """True if it is done when no operation is named."""
    needs_cpus: ClassVar[bool] = False
    passes: ClassVar[int] = 1
    """Number of scans for changes: new items may appear while others are being changed."""

    def changes(self, machine: Machine, asked: Request) -> list[Change]:
        """Every item with its value and the quiet one, in the order in which they are set.

        Raises:
            Unavailable: there is none here, or it cannot be changed.
        """
        raise NotImplementedError

    def owns(self, item: str) -> bool:
        """True if an item can belong to this operation: a state file is not trusted blindly."""
        raise NotImplementedError

    def read(self, machine: Machine, item: str) -> str | None:
        """An item's value; None if the item no longer exists."""
        return machine.read(item)

    def put(self, machine: Machine, item: str, value: str) -> None:
        """Set an item. Raises: OSError, MachineRefuses."""
        machine.write(item, value)

    def same(self, one: str | None, other: str) -> bool:
        """True if two values of an item are equivalent."""
        return one == other

    def survives_boot(self, item: str) -> bool:
        """True if a change of the item survives a restart of the machine."""
        return False

    def restore(self, machine: Machine, change: Change) -> None:
        """Restore an item. Harmless if it was never changed, or is gone.

        Raises:
            OSError, MachineRefuses: it cannot be restored.
        """
        now = self.read(machine, change.item)
        if now is None or self.same(now, change.was):
            return
        self.put(machine, change.item, change.was)
        now = self.read(machine, change.item)
        if now is not None and not self.same(now, change.was):
            raise MachineRefuses(f"{change.item} stays at {now!r}, and was {change.was!r}")

    def after_restore(self, machine: Machine, changes: Sequence[Change]) -> None:
        """Final step after all items are restored.

        Raises:
            OSError, MachineRefuses: it cannot be done.
        """

    def in_force(self, machine: Machine, changes: Sequence[Change]) -> dict[str, list[str]]:
        """The items that have their quiet values, each with the former and the quiet value: for the results."""
        return {
            each.item: [each.was, each.put]
            for each in changes
            if self.same(self.read(machine, each.item), each.put)
        }


def must_be_writable(machine: Machine, changes: Sequence[Change]) -> list[Change]:
    """The same changes.

    Raises:
        Unavailable: a file would have to be changed, and cannot be.
    """
    for each in changes:
        if each.was != each.put and not each.optional and not machine.writable(each.item):
            raise Unavailable(f"/{each.item} cannot be written here")
    return list(changes)
