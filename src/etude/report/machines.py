"""What differs between the machines, and the programs of Étude, that two experiments were run on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from etude.report.snapshots import lasting, shown


@dataclass(frozen=True)
class Difference:
    """One member of either experiment.json, such as `system.kernel_release`; None: not recorded."""

    what: str
    then: str | None
    now: str | None

    def __str__(self) -> str:
        then, now = (value if value is not None else "not recorded" for value in (self.then, self.now))
        return f"{self.what}: {then} → {now}"


def machine_differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[Difference, ...]:
    """All that is recorded of machine, boot, versions and commands, and is not the same in both experiment.json."""
    old, new = dict(_facts(then)), dict(_facts(now))
    return tuple(
        Difference(what, old.get(what), new.get(what))
        for what in dict.fromkeys((*old, *new))
        if old.get(what) != new.get(what)
    )


def _facts(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    machine = document.get("machine")
    before = machine.get("before") if isinstance(machine, Mapping) else None
    known = before if isinstance(before, Mapping) else {}
    parts = [known, {"version": document.get("versions") or {}}, {"system": {"boot": _boot(known)}}]
    for test in document.get("tests") or ():  # what a command was made of, where that is recorded
        made_of = {member: test.get(member) or {} for member in ("programs", "digests", "executables")}
        parts.append({str(test.get("name")): made_of})
    for part in parts:
        for name, value in lasting(part):
            if value is not None:
                yield name, shown(value)


def _boot(snapshot: Mapping[str, Any]) -> Any:
    system = snapshot.get("system")
    return system.get("boot_id") if isinstance(system, Mapping) else None
