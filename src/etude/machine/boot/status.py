"""Status of resuming at boot: the unit, the waiting record, and the boot entries."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from etude.errors import EtudeError
from etude.machine.boot import record as records
from etude.machine.boot import restart, unit
from etude.machine.boot.entries import booted_as, entries
from etude.machine.boot.record import Record
from etude.machine.boot.resume import check
from etude.machine.boot.unit import Status


@dataclass(frozen=True)
class Bootable:
    """An entry of the boot loader; `running`: True if it is the running one, None if unknown."""

    title: str
    key: str
    kernel: str | None
    options: str | None
    running: bool | None


@dataclass(frozen=True)
class BootStatus:
    """The complete status. `refused`: the reason why the waiting record would not be resumed."""

    unit: Status
    record: str
    waits: Record | None
    refused: str | None
    given_up: str | None
    restart: str
    entries: list[Bootable] = field(default_factory=list)
    no_entries: str | None = None

    def lines(self) -> list[str]:
        """The status in sentences, without the unit's."""
        found = []
        if self.waits is not None:
            boots = f"{self.waits.boots} of {self.waits.most_boots} boots brought nothing new"
            found.append(f"Waits for the next boot: {self.waits.results} ({boots}).")
        elif self.refused is None:
            found.append("Nothing waits for the next boot.")
        if self.refused is not None:
            found.append(f"Would be refused: {self.refused}")
        if self.given_up is not None:
            found.append(f"Given up: {self.given_up}")
        found.append(f"Restarts by: {self.restart}")
        marks = {True: "  runs", False: "", None: "  may run"}
        found += [f"Can boot: {each.key!r} ({each.title}){marks[each.running]}" for each in self.entries]
        return found + ([f"Can boot: {self.no_entries}"] if self.no_entries else [])


def boot_status(root: Path = Path("/")) -> BootStatus:
    """Read the status; changes nothing."""
    waits = refused = no_entries = None
    offered: list[Bootable] = []
    if records.path().exists():
        try:
            waits = records.load()
            check(waits)
        except EtudeError as error:
            refused = str(error)
    try:
        known = entries(root)
        offered = [
            Bootable(e.title, e.key, e.kernel, e.options, booted_as(e.key, root, known)[0]) for e in known
        ]
        no_entries = None if known else "no boot loader is known here"
    except EtudeError as error:
        no_entries = str(error)
    stopped = records.given_up_path()
    return BootStatus(
        unit=unit.status(root),
        record=str(records.path()),
        waits=waits,
        refused=refused,
        given_up=str(stopped) if stopped.exists() else None,
        restart=restart.restart_method(),
        entries=offered,
        no_entries=no_entries,
    )
