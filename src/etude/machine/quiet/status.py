"""Status of each operation: its value, the quiet value, and its availability. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from etude.errors import EtudeError
from etude.machine.quiet.apply_restore import in_force
from etude.machine.quiet.machine import Machine
from etude.machine.quiet.operation import Change, Operation, Request, Unavailable
from etude.machine.quiet.table import BY_NAME

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
