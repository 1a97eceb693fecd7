"""What all operations are: a name, what it would change, and how one item of it is read, set and put back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from etude.errors import MachineRefuses
from etude.machine.quiet.machine import Machine


class Unavailable(Exception):
    """Why an operation cannot be done on this machine."""


@dataclass(frozen=True)
class Change:
    """One item, its value, and the quiet one. An `optional` one may be refused without harm to the rest."""

    item: str
    was: str
    put: str
    optional: bool = False


@dataclass(frozen=True)
class Request:
    """The operations that are asked for, in the table's order.

    `named`: those by name, rather than as of the usual ones; `values`: the choice for some; `cpus`: to be kept free.
    """

    names: tuple[str, ...]
    named: frozenset[str] = frozenset()
    values: Mapping[str, str] = field(default_factory=dict)
    cpus: frozenset[int] = frozenset()

    def value(self, operation: Operation) -> str:
        """The choice for an operation; empty for its own."""
        return self.values.get(operation.name, "")


class Operation:
    """Subclasses say what to change; items that are files below the root need nothing else."""

    name: ClassVar[str] = ""
    meaning: ClassVar[str] = ""
    """Why it makes a machine quieter, in one line."""
    choices: ClassVar[tuple[str, ...]] = ()
    """Values that may be asked for by NAME=VALUE."""
    usual: ClassVar[bool] = True
    """Whether it is done where no operation is named."""
    needs_cpus: ClassVar[bool] = False
    passes: ClassVar[int] = 1
    """How often to look for what is to be changed: things may come while others are being changed."""

    def changes(self, machine: Machine, asked: Request) -> list[Change]:
        """Every item with its value and the quiet one, in the order in which they are set.

        Raises:
            Unavailable: there is nothing like it here, or it cannot be changed.
        """
        raise NotImplementedError

    def owns(self, item: str) -> bool:
        """Whether an item can be of this operation: what a state file says is not believed blindly."""
        raise NotImplementedError

    def read(self, machine: Machine, item: str) -> str | None:
        """An item's value; None if there is no such item any more."""
        return machine.read(item)

    def put(self, machine: Machine, item: str, value: str) -> None:
        """Raises: OSError, MachineRefuses."""
        machine.write(item, value)

    def same(self, one: str | None, other: str) -> bool:
        """Whether two values of an item mean the same."""
        return one == other

    def lasting(self, item: str) -> bool:
        """Whether an item outlives a restart of the machine."""
        return False

    def restore(self, machine: Machine, change: Change) -> None:
        """Put an item back. Harmless where it was never changed, and where it is gone.

        Raises:
            OSError, MachineRefuses: it does not go back.
        """
        now = self.read(machine, change.item)
        if now is None or self.same(now, change.was):
            return
        self.put(machine, change.item, change.was)
        now = self.read(machine, change.item)
        if now is not None and not self.same(now, change.was):
            raise MachineRefuses(f"{change.item} stays at {now!r}, and was {change.was!r}")

    def last(self, machine: Machine, changes: Sequence[Change]) -> None:
        """What is left to do when all items are back.

        Raises:
            OSError, MachineRefuses: it cannot be done.
        """

    def in_force(self, machine: Machine, changes: Sequence[Change]) -> dict[str, list[str]]:
        """The items that have their quiet values, each with the former and the quiet one: for the results."""
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
