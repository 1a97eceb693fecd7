"""The state that a disk was brought into, as the blocks of `etude-engine age`, `fill` and `precondition` tell it."""

from __future__ import annotations

import json
from typing import Any

from etude.results.blocks import Block

DISK_BLOCKS = ("aging", "filling", "preconditioning")
"""Names of the blocks (docs/formats.md)."""


def members_of(block: Block) -> dict[str, Any]:
    """`NAME = VALUE` of each line, the value as JSON where it is some, else as text. Other lines are passed over."""
    found: dict[str, Any] = {}
    for line in block.lines:
        name, equals, value = line.partition(" = ")
        if equals and name.strip():
            found[name.strip()] = _value(value.strip())
    return found


def _value(text: str) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, bool | int | float | str) or found is None else text
