"""How the values of a trial's workers, and of the commands that a worker ran in turn, become one value of the trial.

This is the only place that decides it. A metric of ours has its ways in `etude.results.model.METRICS`; any other has
them by its unit and name, or as its METRIC says, which then stands behind the value in each row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from etude.results.units import is_rate
from etude.units.parsing import unit_of

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
_RATE = Ways("sum", NONE)
_WHOLE = re.compile(r"(?:disk|network|pressure|interrupts|energy|others|loopback|machine)_|.+\.cpu\Z")
"""What a probe, or a process of another host, is called: of the trial as a whole."""
_LEVEL = re.compile(r"(?:memory_.*|free|free_memory.*)\Z")
"""Readings of the machine's memory: each worker and command has one of the same memory."""
_PART = re.compile(
    r"(?i)(?:^|[^a-z0-9])"
    r"(?:p\d+(?:[._]\d+)?|\d+(?:st|nd|rd|th)|median|percentile|quantile|percent|pct|ratio|share|fraction"
    r"|deviation|std_?dev|stdev|variance)"
    r"(?:$|[^a-z0-9])"
)
"""Names of percentiles, shares and deviations: no function of several of them is one of all."""
_FIGURE = re.compile(
    r"(?i)(?:^|[^a-z0-9])(?<!per.)"
    r"(?:(?P<min>min|minimum)|(?P<max>max|maximum)|(?P<mean>mean|avg|average))"
    r"(?:$|[^a-z0-9])"
)
"""Names of what a program has made of several values of its own, such as `latency_min`; `per_min` is none."""


def ways_of(name: str, unit: str, asked: str | None = None) -> Ways:
    """How a metric that is none of ours is joined; `asked`: one of `JOINS` that its METRIC names."""
    if asked:
        return Ways(asked, asked)
    if _LEVEL.match(name):
        return Ways("max", "max")
    if _WHOLE.match(name):
        return Ways(FIRST, NONE if unit in ("ratio", "%") or is_rate(unit) else "sum")
    if _PART.search(name):
        return Ways(NONE, NONE)
    known = unit_of(unit)
    by_unit = _RATE if is_rate(unit) else _BY_UNIT.get(known.base if known else unit, Ways(NONE, NONE))
    found = _FIGURE.search(name)
    return _of_figure(found.lastgroup, by_unit) if found else by_unit


def _of_figure(figure: str | None, by_unit: Ways) -> Ways:
    """An extreme of all workers or commands is one of theirs, but a rate's: it is reached by each at another time."""
    if figure == "mean":
        return Ways(NONE, NONE) if by_unit == _BY_UNIT["1"] else by_unit
    if by_unit == _RATE or by_unit.workers == NONE:
        return Ways(NONE, NONE)
    if by_unit == _BY_UNIT["B"] and figure == "max":  # memory adds up
        return by_unit
    return Ways(str(figure), str(figure))


def is_join(unit: str) -> bool:
    """Whether a way of joining stands in the place of a unit, or in it: `sum`, `s:max`, `s sum`. `min` are minutes."""
    return unit_of(unit) is None and (":" in unit or unit.split()[-1:] in [[how] for how in JOINS])


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


def why_not_joined(*, asked: bool) -> str:
    """Why a trial has no value of a metric that several of its workers or commands have, and what shows one.

    asked: the program printed it to a METRIC or --metric, which could have said how it is joined.
    """
    ways = "|".join(JOINS)
    shown = f"METRIC NAME:UNIT {ways} REGEX joins them, in bench --metric NAME:UNIT:{ways}=REGEX"
    each = "etude stats --shift --group worker (or command) shows each"
    return f"not joined: several workers or commands have one; {shown if asked else each}"
