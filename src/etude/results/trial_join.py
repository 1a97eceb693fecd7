"""Kinds of metrics by their unit; and the joins of the values of a trial's workers, and of the commands that a worker
ran in turn, into one value of the trial.

All decisions on joins are made here. Our metrics have theirs in `etude.results.model.METRICS`; others by unit and name,
or by their METRIC, which is then stored after the value in each row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from etude.units.parsing import (
    PER_SECOND,
    Unit,
    unit_of,
)

JOINS = ("sum", "max", "mean", "min")
"""Joins that a METRIC can specify."""
NONE, FIRST = "none", "first"
"""Further joins: no value if there are several; the lowest worker's value, for metrics of the whole trial."""


class JoinPair(NamedTuple):
    """Joins of values: each one of `JOINS`, or `NONE`, or `FIRST`."""

    workers: str
    """Join of concurrent workers."""
    commands: str
    """Join of the commands that one worker ran one after the other."""


_BY_UNIT: Mapping[str, JoinPair] = {
    "s": JoinPair("max", NONE),
    "B": JoinPair("sum", "max"),
    "1": JoinPair("sum", "sum"),
    "J": JoinPair("sum", "sum"),
}
_RATE = JoinPair("sum", NONE)
OF_PROBES = (
    "disk_",
    "memory_",
    "network_",
    "pressure_",
    "interrupts_",
    "energy_",
    "others_",
    "loopback_",
    "machine_",
)
"""Prefixes of the names of our probes' metrics."""
_WHOLE = re.compile(rf"(?:{'|'.join(OF_PROBES)})|.+\.cpu\Z")
"""Names of metrics of probes, and of other hosts' processes: of the whole trial, unless they are levels."""
_LEVEL = re.compile(r"(?:memory_.*|free|free_memory.*)\Z")
"""Readings of the machine's memory: each worker and command has one of the same memory."""
_PART = re.compile(
    r"(?i)(?:^|[^a-z0-9])"
    r"(?:p\d+(?:[._]\d+)?|\d+(?:st|nd|rd|th)|median|percentile|quantile|percent|pct|ratio|share|fraction"
    r"|deviation|std_?dev|stdev|variance)"
    r"(?:$|[^a-z0-9])"
)
"""Names of percentiles, shares and deviations: no function of several values gives the one of all."""
_FIGURE = re.compile(
    r"(?i)(?:^|[^a-z0-9])(?<!per.)"
    r"(?:(?P<min>min|minimum)|(?P<max>max|maximum)|(?P<mean>mean|avg|average))"
    r"(?:$|[^a-z0-9])"
)
"""Names of a program's own summaries, such as `latency_min`; `per_min` is none."""


def joins_of(name: str, unit: str, asked: str | None = None) -> JoinPair:
    """Joins of a metric that is not ours; `asked`: one of `JOINS` that its METRIC specifies."""
    if asked:
        return JoinPair(asked, asked)
    if _LEVEL.match(name):
        return JoinPair("max", "max")
    if _WHOLE.match(name):
        return JoinPair(FIRST, NONE if unit in ("ratio", "%") or is_rate(unit) else "sum")
    if _PART.search(name):
        return JoinPair(NONE, NONE)
    known = unit_of(unit)
    by_unit = _RATE if is_rate(unit) else _BY_UNIT.get(known.base if known else unit, JoinPair(NONE, NONE))
    found = _FIGURE.search(name)
    return _of_figure(found.lastgroup, by_unit) if found else by_unit


def _of_figure(figure: str | None, by_unit: JoinPair) -> JoinPair:
    """Join of extremes: the extreme of all workers or commands is one of theirs, except for rates, whose extremes occur
    at different times."""
    if figure == "mean":
        return JoinPair(NONE, NONE) if by_unit == _BY_UNIT["1"] else by_unit
    if by_unit == _RATE or by_unit.workers == NONE:
        return JoinPair(NONE, NONE)
    if by_unit == _BY_UNIT["B"] and figure == "max":  # memory adds up
        return by_unit
    return JoinPair(str(figure), str(figure))


def is_join(unit: str) -> bool:
    """True if a join is given in place of a unit, or in it: `sum`, `s:max`, `s sum`. `min` is minutes."""
    return unit_of(unit) is None and (":" in unit or unit.split()[-1:] in [[how] for how in JOINS])


def join_in_row(value: Sequence[Any]) -> str | None:
    """Join of a row's metric, if the row specifies it: the last member."""
    place = 3 if value[0] is None else 2
    found = value[place] if len(value) > place else None
    return found if found in JOINS else None


def join(values: Sequence[float], how: str) -> float | None:
    """One value of several; None if they are not to be joined, or there is none."""
    if len(values) <= 1 or how == FIRST:
        return values[0] if values else None
    return None if how == NONE else _FUNCTIONS[how](values)


def overall_join(hows: Iterable[str], workers: str) -> str:
    """Overall join of a metric over many trials: `NONE` if one could not be joined, else that of workers,
    if any were."""
    found = set(hows) - {""}
    return next((how for how in (NONE, workers) if how in found), min(found, default=""))


_FUNCTIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "max": max,
    "min": min,
    "mean": lambda values: sum(values) / len(values),
}


def why_not_joined(*, asked: bool) -> str:
    """Reason why a trial has no value of a metric that several of its workers or commands have, with advice.

    asked: the program printed it to a METRIC or --metric, which could have specified a join.
    """
    ways = "|".join(JOINS)
    shown = f"METRIC NAME:UNIT {ways} REGEX joins them, in bench --metric NAME:UNIT:{ways}=REGEX"
    each = "etude stats --shift --group worker (or command) shows each"
    return f"not joined: several workers or commands have one; {shown if asked else each}"


def stored_unit(text: str) -> Unit:
    """The unit in which a value in the named unit is stored: the base unit; the unit itself if it is unknown,
    or names what is counted, such as `req/s`."""
    known = unit_of(text)
    return Unit(text) if known is None or known == PER_SECOND else known


def is_rate(unit: str) -> bool:
    """True if the unit is something over a time: `ops/sec` and `Hz`, and unknown ones such as `Mbit/s`."""
    known = unit_of(unit)
    return (known.base if known else unit).endswith("/s")


def kind_of(unit: str) -> str:
    """The kind of a metric by its unit alone."""
    if unit == "ratio":
        return "ratio"
    if is_rate(unit):
        return "rate"
    known = unit_of(unit)
    unit = known.base if known else unit
    return "count" if unit in ("1", "%") else "cost"  # shares of a whole: neither high nor low is better
