"""Sessions that belong together: the machine was restarted between them because the experiment asked for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_RESTARTING = "restarting"
"""How a session of older results ended that restarted the machine; behind it, ` into ENTRY`."""


def restarted_into(sitting: Mapping[str, Any]) -> str | None:
    """The boot loader's entry that a session restarted the machine into at its end, empty for the default one; None
    where it ended otherwise."""
    if "restarts_into" in sitting:
        entry = sitting["restarts_into"]
        return entry if isinstance(entry, str) else None
    how = sitting.get("how_ended")
    if not isinstance(how, str) or not how.startswith(_RESTARTING):
        return None
    return how.removeprefix(_RESTARTING).removeprefix(" into ")


def stretches(sittings: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """The number of the stretch of each session of experiment.json: the session with which it began.

    A block that a restart of its own parts is whole; one that an interruption tore in two is not.
    """
    found: dict[int, int] = {}
    before: Mapping[str, Any] = {}
    for sitting in sittings:
        number = sitting["sitting"]
        goes_on = restarted_into(before) is not None
        found[number] = found[before["sitting"]] if goes_on else number
        before = sitting
    return found
