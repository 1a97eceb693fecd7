"""Sittings that belong together: the machine was restarted between them because the experiment asked for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

RESTARTING = "restarting"
"""How a sitting ended that restarted the machine; behind it, into which entry of the boot loader."""


def stretches(sittings: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """The number of the stretch of each sitting of experiment.json: the sitting with which it began.

    A block that a restart of its own parts is whole; one that an interruption tore in two is not.
    """
    found: dict[int, int] = {}
    before: Mapping[str, Any] = {}
    for sitting in sittings:
        number = sitting["sitting"]
        goes_on = str(before.get("how_ended") or "").startswith(RESTARTING)
        found[number] = found[before["sitting"]] if goes_on else number
        before = sitting
    return found
