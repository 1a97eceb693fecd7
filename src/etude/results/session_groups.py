"""Groups of sessions between which the experiment itself restarted the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_RESTARTING = "restarting"
"""End of a session of older results that restarted the machine; followed by ` into ENTRY`."""


def restarted_into(sitting: Mapping[str, Any]) -> str | None:
    """Boot loader entry that a session restarted the machine into at its end, empty for the default one; None if it
    ended otherwise."""
    if "restarts_into" in sitting:
        entry = sitting["restarts_into"]
        return entry if isinstance(entry, str) else None
    how = sitting.get("how_ended")
    if not isinstance(how, str) or not how.startswith(_RESTARTING):
        return None
    return how.removeprefix(_RESTARTING).removeprefix(" into ")


def session_groups(sittings: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Session group of each session of experiment.json: the number of its first session.

    A block across a restart by the experiment is complete; one across an interruption is not.
    """
    found: dict[int, int] = {}
    before: Mapping[str, Any] = {}
    for sitting in sittings:
        number = sitting["sitting"]
        goes_on = restarted_into(before) is not None
        found[number] = found[before["sitting"]] if goes_on else number
        before = sitting
    return found
