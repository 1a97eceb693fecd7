"""Explanation of outliers by the monitor: readings during a trial against those of its test's other trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from etude.analysis.excess_time import SUFFICES, Level, OwnState, can_cost_s, lost_time
from etude.analysis.interference import (
    MESSAGES,
    OTHERS,
    WORST,
    Interference,
    NoisyProcess,
    Quantity,
    exceeds,
    interference_of,
    load_monitors,
    noisy_processes,
)
from etude.analysis.subject import Subject
from etude.analysis.warnings import DataWarning
from etude.analysis.warnings.facts import Facts, TwoGroups
from etude.analysis.warnings.warning import warning
from etude.errors import InputError
from etude.results.monitor import Monitor
from etude.results.series import Floats, Whole
from etude.units.formatting import digits, scale_of

GROUPED = ("bimodal", "warm-up", "late-level", "never-steady", "drift")
"""Kinds of warnings whose slower trials are explained together."""
COMPARED = 50
"""Maximum number of slower trials that are examined."""
MOST = 10
"""Maximum number of outliers of a test that are explained: those farthest from the median."""
FEWEST = 3
"""Minimum number of other trials to know the usual level."""
QUICKER = 0.1
"""Share of its own time by which a trial must be faster than the others to count as having lost none."""
NAMED = 3
"""Maximum number of processes that are named as causes of one trial."""

OWN_STATE = "own state"


@dataclass(frozen=True)
class AtMost:
    """An unusual quantity that accounts for only a part of the lost time."""

    level: Level
    most_s: float
    lost_s: float


@dataclass(frozen=True)
class OtherProcessesBeside:
    """CPUs that other processes used during a trial, and these processes."""

    cpus: float
    usual: float
    as_usual: bool
    """True if they used no more than during other trials, but were other processes."""
    coarse: bool
    """True if the interval between readings is longer than the trial."""
    processes: tuple[NoisyProcess, ...]
    """The processes, the largest user first."""
    ended_cpus: float | None
    """CPUs used by processes that ended before they were seen; None if as usual."""


@dataclass(frozen=True)
class KernelMessage:
    """The first kernel message during a trial, and the number of messages."""

    text: str
    count: int


@dataclass(frozen=True)
class NothingEnough:
    """Nothing that the monitor reports accounts for the time that a trial lost."""


Finding = OwnState | Level | AtMost | OtherProcessesBeside | KernelMessage | NothingEnough


@dataclass(frozen=True)
class Why:
    """An explanation of one trial."""

    findings: tuple[Finding, ...]
    """Unusual observations, those that account for the lost time first."""
    coarse_s: float | None
    """Interval between readings (s) if the trial is shorter; else None."""
    suspects: tuple[str, ...]
    """Processes that may have caused the outlier."""
    cause: str | None
    """Name of the first cause; None if nothing accounts for the lost time."""


@dataclass(frozen=True)
class TrialValue:
    """A trial's value and the median of the others, in `unit`."""

    trial: int
    value: float
    median: float
    unit: str


@dataclass(frozen=True)
class OutlierExplanation(Facts):
    """Unusual observations during one trial."""

    of: TrialValue
    why: Why


@dataclass(frozen=True)
class CauseInCommon(Facts):
    """A cause shared by several of the slower trials, with one of these explained in full."""

    count: int
    slower: int
    example: OutlierExplanation


@dataclass(frozen=True)
class NoExplanation(Facts):
    """Reason why one trial has no explanation."""

    of: TrialValue
    reason: Literal["no reading", "few others", "quicker", "nothing", "too coarse"]
    every_s: float
    """Interval between readings (s)."""


@dataclass(frozen=True)
class NotLookedAt(Facts):
    """Number of less distant outliers that were not examined."""

    count: int


@dataclass(frozen=True)
class MonitorUnreadable(Facts):
    """Reason why the monitor's series cannot be read."""

    error: str


def explain_outliers(
    subject: Subject, warnings: Sequence[DataWarning], *, every_one: bool = False
) -> list[DataWarning]:
    """Explanations of each outlier, and of the slower trials of two groups, of a level shift at an end and of a drift,
    as warnings; empty without a monitor.

    every_one: include trials without anything unusual, or too short for the monitor; else they are left out.
    """
    asked = [each for each in warnings if each.kind == "outliers" or each.kind in GROUPED]
    if not asked:
        return []
    try:
        monitors = load_monitors(subject.directory, subject.experiment)
    except InputError as error:
        return [warning("note", "", "", MonitorUnreadable(str(error)))]
    if not monitors:
        return []
    everything = [*subject.tests, *subject.twins, *([subject.shell] if subject.shell else [])]
    found: list[DataWarning] = []
    for each in asked:
        series = subject.test(each.test)
        known = interference_of(series, everything, monitors)
        found += _of_group(known, each) if each.kind in GROUPED else _of_test(known, each, every_one)
    return found


def _of_group(known: Interference, apart: DataWarning) -> Iterator[DataWarning]:
    """The cause that at least half of the slower trials share, as a warning; nothing if there is none."""
    series = known.series
    column = series.columns[apart.metric]
    there = np.flatnonzero(series.kept & np.isfinite(column.values))
    slower = _slower(apart, series.trials[there], column.values[there] * (-1 if column.kind == "rate" else 1))
    odd, usual = there[slower].tolist(), there[~slower]
    read = usual[known.monitored[usual]]
    causes: dict[str, list[int]] = {}
    whys: dict[int, Why] = {}
    for place in odd[:COMPARED]:
        why = None if known.monitor(place) is None or known.is_coarse(place) else _why(known, place, read)
        if why is not None and why.cause is not None:
            whys[place] = why
            causes.setdefault(why.cause, []).append(place)
    most = max(causes.values(), key=len, default=[])
    if not most or 2 * len(most) < len(odd[:COMPARED]):
        return
    median = float(np.median(column.values[usual]))
    farthest = max(most, key=lambda place: abs(column.values[place] - median))
    trials = [int(series.trials[place]) for place in most]
    value = TrialValue(int(series.trials[farthest]), float(column.values[farthest]), median, column.unit)
    common = CauseInCommon(len(most), len(odd), OutlierExplanation(value, whys[farthest]))
    yield warning("outlier-explained", series.test, "", common, trials)


def _slower(apart: DataWarning, trials: Whole, costs: Floats) -> NDArray[np.bool_]:
    """Mask over `trials` of the slower ones: of two groups, of a level shift at the ends, or of a drift."""
    if isinstance(apart.facts, TwoGroups):
        centres = (apart.facts.low + apart.facts.high) / 2
        return costs > (centres if costs.max() > 0 else -centres)
    if apart.kind == "drift":
        third = max(1, costs.size // 3)
        first, last = np.arange(costs.size) < third, np.arange(costs.size) >= costs.size - third
        return last if costs[last].mean() > costs[first].mean() else first
    ends = np.isin(trials, apart.trials)
    if not ends.any() or ends.all():
        return ends
    return ends if costs[ends].mean() > costs[~ends].mean() else ~ends


def _of_test(known: Interference, outliers: DataWarning, every_one: bool) -> Iterator[DataWarning]:
    series = known.series
    values = series.columns[outliers.metric].values
    odd = np.isin(series.trials, outliers.trials) & series.kept & np.isfinite(values)
    usual = series.kept & np.isfinite(values) & ~odd
    median = float(np.median(values[usual])) if usual.any() else 0.0
    others = np.flatnonzero(usual & known.monitored)
    farthest = sorted(np.flatnonzero(odd).tolist(), key=lambda place: -abs(values[place] - median))
    for place in sorted(farthest[:MOST]):
        if known.monitor(place) is None or (known.is_coarse(place) and not every_one):
            continue
        why = _why(known, place, others)
        if why is None and not every_one:
            continue
        number, unit = int(series.trials[place]), series.columns[outliers.metric].unit
        value = TrialValue(number, float(values[place]), median, unit)
        facts = OutlierExplanation(value, why) if why else _why_not(known, place, others, value)
        yield warning("outlier-explained", series.test, "", facts, [number])
    if every_one and len(farthest) > MOST:
        rest = [int(series.trials[place]) for place in sorted(farthest[MOST:])]
        yield warning("outlier-explained", series.test, "", NotLookedAt(len(rest)), rest)


def _was_read(known: Interference, place: int) -> bool:
    monitor, span = known.monitor(place), known.span(place)
    if monitor is None or span is None:
        return False
    within = span[1] > monitor.edges_ns[0] and span[0] < monitor.edges_ns[-1]
    return within and any(np.isfinite(values[place]) for values in known.values.values())


def _why_not(known: Interference, place: int, usual: Whole, value: TrialValue) -> NoExplanation:
    monitor = known.monitor(place)
    assert monitor is not None
    if not _was_read(known, place):
        return NoExplanation(value, "no reading", monitor.every_s)
    if usual.size < FEWEST:
        return NoExplanation(value, "few others", monitor.every_s)
    if lost_time(known, place, usual).lost_s < -known.seconds(place) * QUICKER:
        return NoExplanation(value, "quicker", monitor.every_s)
    return NoExplanation(value, "too coarse" if known.is_coarse(place) else "nothing", monitor.every_s)


def _why(known: Interference, place: int, usual: Whole) -> Why | None:
    """Unusual observations during a trial, with causes and suspects; None if there are none or it is unknown."""
    monitor = known.monitor(place)
    if monitor is None or usual.size < FEWEST or not _was_read(known, place):
        return None
    named = noisy_processes(known, place, usual)
    unusual = list(_unusual(known, place, usual))
    came_instead = known.is_full(place) and sum(each.cpus for each in named) >= OTHERS.matters
    if OTHERS not in unusual and came_instead:
        unusual.insert(0, OTHERS)  # if all CPUs are busy anyway, a new process takes time from the others
    lost = lost_time(known, place, usual)
    if lost.lost_s < -known.seconds(place) * QUICKER:
        return None  # it lost no time
    bounds = [can_cost_s(known, what, place, usual, lost) for what in unusual]
    came = sum(each.cpus for each in named) + max(0.0, known.unseen[place] - np.median(known.unseen[usual]))
    if OTHERS in unusual and known.is_full(place):
        bounds[unusual.index(OTHERS)] = max(
            bounds[unusual.index(OTHERS)],
            came * known.seconds(place),  # pressure does not show it
        )
    enough = [not bound < SUFFICES * lost.lost_s for bound in bounds]
    own = lost.own or (None if any(enough) else lost.last)
    findings: list[Finding] = [] if own is None else [own]
    findings += [
        _finding(what, known, place, usual, named)
        for what, suffices in zip(unusual, enough, strict=True)
        if suffices
    ]
    findings += [
        AtMost(_level(what, known, place, usual), float(bound), lost.lost_s)
        for what, bound, suffices in zip(unusual, bounds, enough, strict=True)
        if not suffices
    ]
    if not findings:
        return None
    if own is None and not any(enough):
        findings.insert(0, NothingEnough())
    blamed = OTHERS in [what for what, suffices in zip(unusual, enough, strict=True) if suffices]
    possible = OTHERS not in unusual and own is lost.own  # no other process delayed a trial that was stopped
    names = tuple(each.name for each in named[:NAMED]) if blamed or possible else ()
    causes = [what.name for what, suffices in zip(unusual, enough, strict=True) if suffices]
    cause = OWN_STATE if own else next(iter(causes), None)
    return Why(tuple(findings), monitor.every_s if known.is_coarse(place) else None, names, cause)


def _unusual(known: Interference, place: int, usual: Whole) -> Iterator[Quantity]:
    """Quantities that were unusual during this trial. Equal byte rates, of a device and the one below it or of both
    directions of the loopback network, appear once."""
    told = set()
    for what, values in known.values.items():
        others = values[usual]
        others = others[np.isfinite(others)]
        sign = -1.0 if what.falls else 1.0
        if others.size < FEWEST:
            continue
        matters = max(what.matters, what.share * abs(float(np.median(others))))
        if not exceeds(sign * float(values[place]), sign * others, matters):
            continue
        numbers = _rounded(float(values[place])), _rounded(float(np.median(others)))
        if not (what.unit == "B/s" and numbers in told):
            told.add(numbers)
            yield what


def _rounded(rate: float) -> tuple[str, str]:
    divisor, name = scale_of(rate, "B/s")
    return digits(rate / divisor, 2), name


def _level(what: Quantity, known: Interference, place: int, usual: Whole) -> Level:
    values = known.values[what]
    return Level(what.name, what.unit, float(values[place]), float(np.nanmedian(values[usual])))


def _finding(
    what: Quantity, known: Interference, place: int, usual: Whole, named: Sequence[NoisyProcess]
) -> Finding:
    if what is MESSAGES:
        return _message(known, place)
    level = _level(what, known, place, usual)
    if what is not OTHERS:
        return level
    as_usual = level.value - level.usual < what.matters
    gone = float(known.unseen[place])
    ended = gone if exceeds(gone, known.unseen[usual], 0.1) else None
    users = tuple(each for each in named if each.cpus >= 0.05)
    return OtherProcessesBeside(level.value, level.usual, as_usual, known.is_coarse(place), users, ended)


def _message(known: Interference, place: int) -> KernelMessage:
    monitor, span = known.monitor(place), known.span(place)
    assert isinstance(monitor, Monitor)
    assert span is not None
    found = [m for m in monitor.messages if m.level <= WORST and span[0] <= m.ns <= span[1]]
    return KernelMessage(found[0].text, len(found))
