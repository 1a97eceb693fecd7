"""One event that perf stat counted, whichever of its outputs says so."""

from __future__ import annotations

from typing import NamedTuple

from etude.units.parsing import MILLISECOND, ONE, Unit, unit_of

NO_VALUE = ("<not counted>", "<not supported>")


class Reading(NamedTuple):
    """One event of one interval, or of the whole run."""

    interval: float | None
    place: str
    """CPU, core, socket, thread or cgroup; empty for all."""
    event: str
    value: float | None
    unit: Unit
    why: str
    """Why there is no value."""
    error: float | None
    """With -r: standard error of the mean, in percent of it."""
    running: float | None
    """Percent of the time in which it was counted."""
    runs: float | None = None
    """With -r: how many, where it is told."""


def unit_of_event(event: str, stated: str) -> Unit:
    """The unit of an event's count, as perf calls it."""
    if stated:
        return unit_of({"msec": "ms", "Bytes": "B"}.get(stated, stated)) or Unit(stated)
    if event.partition(":")[0] in ("task-clock", "cpu-clock"):
        return MILLISECOND  # before Linux 4.16 without saying so
    return ONE
