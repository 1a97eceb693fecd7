"""Time that a trial lost against the others of its test, the part a cause can explain, and the trial's state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from etude.analysis.interference import (
    CLOCK,
    FAULTS_WAIT,
    LONGEST_FAULT_S,
    NO_PRESSURE,
    Interference,
    Quantity,
    exceeds,
)
from etude.results.series import Whole

SUFFICES = 0.5
"""Share of the lost time that a cause must be able to explain to be named."""
IDLE_CPUS = 0.5
"""Number of idle CPUs at which a trial need not wait for one."""
SWAPPED_IN = "pages swapped in"
PRESSURES = ("CPU pressure", "memory pressure", "I/O pressure")


@dataclass(frozen=True)
class Level:
    """A quantity of the monitor during a trial, and its usual value."""

    name: str
    unit: str
    value: float
    usual: float


@dataclass(frozen=True)
class MoreCpuTime:
    """A trial that used more CPU time than usual."""

    more_s: float
    used_s: float


@dataclass(frozen=True)
class NotRun:
    """A trial that was ready to run and was not run, though CPUs were idle."""

    at_most_s: float
    idle_cpus: float


@dataclass(frozen=True)
class NeitherRanNorWaited:
    """A trial that neither ran nor waited for anything that the kernel counts."""

    for_s: float


@dataclass(frozen=True)
class OwnFaults:
    """A trial that had more major faults."""

    count: float
    usual: float
    swapped: bool = False
    """True if the pages were in swap space; else, where `shown_by` is known, they were reclaimed."""
    shown_by: Level | None = None


OwnState = MoreCpuTime | NotRun | NeitherRanNorWaited | OwnFaults


@dataclass(frozen=True)
class LostTime:
    """Lost time of one trial against the median of the usual trials (s)."""

    lost_s: float
    """Elapsed time beyond the usual; 0 or below if nothing was lost."""
    computed_s: float
    """CPU time beyond the usual; NaN if unknown."""
    own: OwnState | None
    """State of the trial by its own numbers; None if they show none."""
    last: OwnState | None
    """State of the trial that counts only if nothing else explains the time."""


def lost_time(known: Interference, place: int, usual: Whole) -> LostTime:
    """Lost time of the trial at `place`; `usual`: places of the other trials with readings."""
    lost = _excess(known, "elapsed", place, usual)
    if not np.isfinite(lost):
        lost = known.seconds(place) - float(np.median([known.seconds(each) for each in usual]))
    computed = _excess(known, "user", place, usual) + _excess(known, "system", place, usual)
    return LostTime(lost, computed, *_own_state(known, place, usual, lost, computed))


def can_cost_s(known: Interference, what: Quantity, place: int, usual: Whole, found: LostTime) -> float:
    """Upper bound of the time that the excess of a quantity cost a trial (s); infinite if nothing bounds it.

    A cost caused by others is a wait of the trial, which the kernel may report as pressure, or CPU time of its own,
    since caches are shared. A wait for a network is no pressure.
    """
    seconds = known.seconds(place)
    if not seconds:
        return np.inf
    value, normal = _pair(known, what, place, usual)
    if what is CLOCK:
        return seconds * (1.0 - value / normal) if normal > 0.0 else np.inf
    most = np.inf if what.loses_s is None else abs(value - normal) * what.loses_s * seconds
    return float(min(most, _shown_s(known, what.waited, place, usual, found.lost_s, found.computed_s)))


def _shown_s(
    known: Interference, waited: Sequence[str], place: int, usual: Whole, lost: float, computed: float
) -> float:
    """Upper bound of the lost time that can have been these waits, or CPU time of the trial (s); infinite if the kernel
    reports no pressure."""
    pressures = _pressures(known)
    waits = {name: _waited_s(known, each, place, usual) for name, each in pressures.items()}
    if not waits or not waited:
        return np.inf
    computed = max(0.0, float(np.nan_to_num(computed)))
    waits[NO_PRESSURE] = max(0.0, lost - computed - sum(waits.values()))
    return computed + sum(waits.get(name, 0.0) for name in waited)


def _pressures(known: Interference) -> dict[str, Quantity]:
    """Pressures of the monitor by name; empty if the kernel reports none (all are always 0)."""
    found = {what.name: what for what in known.values if what.name in PRESSURES}
    told = any(np.nanmax(known.values[what], initial=0.0) > 0.0 for what in found.values())
    return found if told else {}


def _own_state(
    known: Interference, place: int, usual: Whole, lost: float, computed: float
) -> tuple[OwnState | None, OwnState | None]:
    """State of the trial by its own numbers, and the state that counts if nothing else does; None if unknown."""
    if lost <= 0.0:
        return None, None
    faults = _excess(known, "major_faults", place, usual)
    shown = _shown_s(known, FAULTS_WAIT, place, usual, lost, computed)
    if min(faults * LONGEST_FAULT_S, shown) >= SUFFICES * lost:
        return _own_faults(known, place, usual, faults), None
    if computed >= SUFFICES * lost:
        used = sum(float(known.series.columns[name].values[place]) for name in ("user", "system"))
        return None, MoreCpuTime(computed, used)
    waited = lost - computed
    if not waited >= SUFFICES * lost:
        return None, None
    named = _pressures(known)
    if len(named) < len(PRESSURES):
        return None, None
    idle = known.level(place, "cpu.idle")
    cpu = _waited_s(known, named[PRESSURES[0]], place, usual)
    if cpu >= SUFFICES * waited and idle is not None and idle >= IDLE_CPUS:
        return NotRun(min(cpu, waited), idle), None
    if known.is_coarse(place):
        return None, None  # the pressure of a longer reading is not this trial's own wait
    # Pressure is at most 1 s per s: if others always wait, a longer wait does not show in it.
    stalled = sum(float(np.nan_to_num(known.values[named[name]][place])) for name in PRESSURES)
    stalled *= known.seconds(place)
    if stalled < SUFFICES * waited:
        return None, NeitherRanNorWaited(waited)
    return None, None


def _own_faults(known: Interference, place: int, usual: Whole, more: float) -> OwnFaults:
    """Major faults of the trial, and where its pages had gone, if that is known."""
    column = known.series.columns["major_faults"].values
    faults = OwnFaults(float(column[place]), float(np.median(column[usual])))
    for name in (SWAPPED_IN, PRESSURES[1]):
        what = next((each for each in known.values if each.name == name), None)
        if what is None:
            continue
        value, normal = _pair(known, what, place, usual)
        pages = (value - normal) * known.seconds(place)
        if exceeds(value, known.values[what][usual], what.matters) and (
            name != SWAPPED_IN or pages >= SUFFICES * more
        ):
            return replace(faults, swapped=name == SWAPPED_IN, shown_by=Level(name, what.unit, value, normal))
    return faults


def _waited_s(known: Interference, pressure: Quantity, place: int, usual: Whole) -> float:
    """Pressure beyond the usual (s): its increase over the trial, and its usual level over the extra duration.

    The second part is 0 for CPU pressure, and counts only as far as the usual trials themselves wait.
    """
    seconds = known.seconds(place)
    value, normal = (float(np.nan_to_num(each)) for each in _pair(known, pressure, place, usual))
    longer = max(0.0, seconds - float(np.median([known.seconds(each) for each in usual])))
    always = 0.0 if pressure.name == PRESSURES[0] else min(value, normal, _usual_wait(known, usual))
    return max(0.0, value - normal) * seconds + always * longer


def _usual_wait(known: Interference, usual: Whole) -> float:
    """Share of the usual trials' time that is not their own CPU time; 0 if unknown."""
    columns = [known.series.columns.get(name) for name in ("elapsed", "user", "system")]
    if any(column is None for column in columns):
        return 0.0
    elapsed, user, system = (float(np.median(column.values[usual])) for column in columns if column)
    share = 1.0 - (user + system) / elapsed if elapsed > 0.0 else 0.0
    return max(0.0, share) if np.isfinite(share) else 0.0


def _excess(known: Interference, name: str, place: int, usual: Whole) -> float:
    column = known.series.columns.get(name)
    if column is None:
        return float("nan")
    values = column.values
    return float(values[place] - np.median(values[usual]))


def _pair(known: Interference, what: Quantity, place: int, usual: Whole) -> tuple[float, float]:
    values = known.values[what]
    return float(values[place]), float(np.nanmedian(values[usual]))
