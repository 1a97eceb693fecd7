"""How the values of a trial's workers, and of the commands that a worker ran in turn, become one value of the trial.

This is the only place that decides it. A metric of ours has its ways in `etude.results.model.METRICS`; any other has
them by its unit and name, or as its METRIC says, which then stands behind the value in each row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from etude.results.units import unit_of

JOINS = ("sum", "max", "mean", "min")
"""Ways that a METRIC can ask for."""
NONE, FIRST = "none", "first"
"""Further ways: no value where there are several; the lowest worker's value, where one is of the whole trial."""


class Ways(NamedTuple):
    """How values are joined: each one of `JOINS`, or `NONE`, or `FIRST`."""

    workers: str
    """Those of workers that ran at once."""
    commands: str
    """Those of the commands that one worker ran one after the other."""


_BY_UNIT: Mapping[str, Ways] = {
    "s": Ways("max", NONE),
    "B": Ways("sum", "max"),
    "1": Ways("sum", "sum"),
    "J": Ways("sum", "sum"),
}
_WHOLE = re.compile(r"(?:disk|network|pressure|interrupts|energy|others|loopback|machine)_|.+\.cpu\Z")
"""What a probe, or a process of another host, is called: of the trial as a whole."""
_LEVEL = re.compile(r"(?:memory_.*|free|free_memory.*)\Z")
"""Readings of the machine's memory: each worker and command has one of the same memory."""
_PART = re.compile(
    r"(?i)(?:^|[^a-z0-9])"
    r"(?:p\d+(?:[._]\d+)?|\d+(?:st|nd|rd|th)|median|percentile|quantile|percent|pct|ratio|share|fraction)"
    r"(?:$|[^a-z0-9])"
)
"""Names of percentiles and shares: no function of several of them is one of all."""


def ways_of(name: str, unit: str, asked: str | None = None) -> Ways:
    """How a metric that is none of ours is joined; `asked`: one of `JOINS` that its METRIC names."""
    if asked:
        return Ways(asked, asked)
    if _LEVEL.match(name):
        return Ways("max", "max")
    if _WHOLE.match(name):
        return Ways(FIRST, NONE if unit in ("ratio", "%") or unit.endswith("/s") else "sum")
    if _PART.search(name):
        return Ways(NONE, NONE)
    if unit.endswith("/s"):
        return Ways("sum", NONE)
    known = unit_of(unit)
    return _BY_UNIT.get(known.base if known else unit, Ways(NONE, NONE))


def asked_in(value: Sequence[Any]) -> str | None:
    """How the metric of a row is to be joined, where the row says so: it is the last member."""
    place = 3 if value[0] is None else 2
    found = value[place] if len(value) > place else None
    return found if found in JOINS else None


def join(values: Sequence[float], how: str) -> float | None:
    """One value of several; None where they are not to be joined, or there is none."""
    if len(values) <= 1 or how == FIRST:
        return values[0] if values else None
    return None if how == NONE else _FUNCTIONS[how](values)


def overall(hows: Iterable[str], workers: str) -> str:
    """How a metric was joined over many trials: `NONE` if one could not be, else as workers are, where any were."""
    found = set(hows) - {""}
    return next((how for how in (NONE, workers) if how in found), min(found, default=""))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


_FUNCTIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "max": max,
    "min": min,
    "mean": _mean,
}


def why_not_joined(name: str) -> str:
    """Why a trial has no value of a metric that several of its workers or commands have."""
    return f"not joined: several workers or commands have one; METRIC {name}:UNIT {'|'.join(JOINS)} REGEX joins them"
