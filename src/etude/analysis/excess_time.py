"""How much time a trial lost against the others of its test, what of it a cause can account for, and its own state."""

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
)
from etude.analysis.noisy_processes import exceeds
from etude.results.series import Whole

SUFFICES = 0.5
"""A cause is named as one if it can account for so much of the lost time."""
IDLE_CPUS = 0.5
"""So many CPUs without work, and nobody had to wait for one."""
SWAPPED_IN = "pages swapped in"
PRESSURES = ("CPU pressure", "memory pressure", "I/O pressure")


@dataclass(frozen=True)
class Level:
    """A quantity of the monitor beside a trial, and usually."""

    name: str
    unit: str
    value: float
    usual: float


@dataclass(frozen=True)
class MoreCpuTime:
    """A trial that computed longer."""

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
    """Whether the pages were in swap space; else, where `shown_by` is known, they were reclaimed."""
    shown_by: Level | None = None


OwnState = MoreCpuTime | NotRun | NeitherRanNorWaited | OwnFaults


@dataclass(frozen=True)
class LostTime:
    """Of one trial, in seconds, against the median of the usual ones."""

    lost_s: float
    """Longer than usual; 0 or below: it was not."""
    computed_s: float
    """CPU time beyond the usual; NaN where that is not known."""
    own: OwnState | None
    """What the trial's own numbers say of its state."""
    last: OwnState | None
    """... where nothing else accounts for the time."""


def lost_time(known: Interference, place: int, usual: Whole) -> LostTime:
    """What a trial lost; `usual`: places of the others that were read."""
    lost = _excess(known, "elapsed", place, usual)
    if not np.isfinite(lost):
        lost = known.seconds(place) - float(np.median([known.seconds(each) for each in usual]))
    computed = _excess(known, "user", place, usual) + _excess(known, "system", place, usual)
    return LostTime(lost, computed, *_own_state(known, place, usual, lost, computed))


def can_cost_s(known: Interference, what: Quantity, place: int, usual: Whole, found: LostTime) -> float:
    """The most that the excess of a quantity beside a trial can have cost it, s; infinite where nothing bounds it.

    What others cost, the trial waited for, which is pressure where the kernel tells it, or it is CPU time that it used
    itself, since caches were shared. A wait for a network is no pressure.
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
    """The most of the lost time that can have been these waits, s, or CPU time of the trial; infinite where the kernel
    does not tell pressures."""
    pressures = _pressures(known)
    waits = {name: _waited_s(known, each, place, usual) for name, each in pressures.items()}
    if not waits or not waited:
        return np.inf
    computed = max(0.0, float(np.nan_to_num(computed)))
    waits[NO_PRESSURE] = max(0.0, lost - computed - sum(waits.values()))
    return computed + sum(waits.get(name, 0.0) for name in waited)


def _pressures(known: Interference) -> dict[str, Quantity]:
    """By name, where the kernel tells them: not all are 0 always."""
    found = {what.name: what for what in known.values if what.name in PRESSURES}
    told = any(np.nanmax(known.values[what], initial=0.0) > 0.0 for what in found.values())
    return found if told else {}


def _own_state(
    known: Interference, place: int, usual: Whole, lost: float, computed: float
) -> tuple[OwnState | None, OwnState | None]:
    """Why the trial itself did not get on, by its own numbers; None where they do not say."""
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
        return None, None  # pressure of a whole reading does not tell for how long this trial waited
    # Where others always wait a longer wait shows in no pressure, which has no more than a second a second.
    stalled = sum(float(np.nan_to_num(known.values[named[name]][place])) for name in PRESSURES)
    stalled *= known.seconds(place)
    if stalled < SUFFICES * waited:
        return None, NeitherRanNorWaited(waited)
    return None, None


def _own_faults(known: Interference, place: int, usual: Whole, more: float) -> OwnFaults:
    """How many major faults the trial had, and where the pages had gone, as far as that shows."""
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
    """Seconds of this pressure beyond the usual: by how much it rose, and for how much longer it went on.

    The latter not of a CPU, and only as far as the usual trials wait: what others always wait for cost a trial nothing.
    """
    seconds = known.seconds(place)
    value, normal = (float(np.nan_to_num(each)) for each in _pair(known, pressure, place, usual))
    longer = max(0.0, seconds - float(np.median([known.seconds(each) for each in usual])))
    always = 0.0 if pressure.name == PRESSURES[0] else min(value, normal, _usual_wait(known, usual))
    return max(0.0, value - normal) * seconds + always * longer


def _usual_wait(known: Interference, usual: Whole) -> float:
    """The share of the usual trials' time that is no CPU time of their own; 0 where it is not known."""
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
