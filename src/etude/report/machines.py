"""What differs between the machines, and the programs of Étude, that two experiments were run on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

VOLATILE = (
    "load",
    "system.uptime_s",
    "memory.available_bytes",
    "memory.swap_used_bytes",
)
"""Members of a snapshot that are never the same twice, and all below them."""

MOST_CHARACTERS = 60


@dataclass(frozen=True)
class Difference:
    """One member of either experiment.json, such as `system.kernel_release`; None: not recorded."""

    what: str
    then: str | None
    now: str | None

    def __str__(self) -> str:
        return f"{self.what}: {_short(self.then)} → {_short(self.now)}"


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
    yield from _flat("", before or {})
    yield from _flat("version", document.get("versions") or {})
    for test in document.get("tests") or ():
        for member in (
            "programs",
            "digests",
            "executables",
        ):  # what a command was made of, where it is recorded
            yield from _flat(f"{test.get('name')}.{member}", test.get(member) or {})


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if any(name == volatile or name.startswith(f"{volatile}.") for volatile in VOLATILE):
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), inner)
    elif isinstance(value, Sequence) and any(isinstance(inner, Mapping) for inner in value):
        for number, inner in enumerate(value):
            yield from _flat(f"{name}.{number}", inner)
    elif value is not None:
        yield name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _short(text: str | None) -> str:
    if text is None:
        return "not recorded"
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
