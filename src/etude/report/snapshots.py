"""What lasts of a machine's snapshot, by dotted names; what changes by itself is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

VOLATILE = (
    "load",
    "system.uptime_s",
    "system.boot_id",
    "memory.available_bytes",
    "memory.swap_used_bytes",
    "python.executable",
)
"""Members that change by themselves (or are told of otherwise), with all below them."""

CURRENT = "current"
"""Members with this word in their name are of the moment, too: the clock rate right now."""

LONGEST = 60
"""Characters of a value that are shown."""


def lasting(part: Mapping[Any, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """The members that last, with the names of those they stand in: `memory.total_bytes`."""
    for key, value in part.items():
        name = f"{above}.{key}" if above else str(key)
        if name in VOLATILE or CURRENT in str(key):
            continue
        if isinstance(value, Mapping):
            yield from lasting(value, name)
        elif isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
            yield from lasting(dict(enumerate(value)), name)
        else:
            yield name, value


def shown(value: object) -> str:
    """A value on one line, shortened; `none` for an empty one."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    text = " ".join(text.split())
    return (text if len(text) <= LONGEST else text[: LONGEST - 1] + "…") or "none"
