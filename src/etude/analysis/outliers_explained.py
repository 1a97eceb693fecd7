"""Why a trial is an outlier, as far as the monitor saw: its seconds beside those of the other trials of its test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from etude.analysis.excess_time import SUFFICES, can_cost_s, lost_time
from etude.analysis.interference import (
    MESSAGES,
    OTHERS,
    WORST,
    Interference,
    Quantity,
    byte_rate,
    cpus,
    every,
    interference_of,
    load_monitors,
)
from etude.analysis.noisy_processes import NoisyProcess, exceeds, noisy_processes
from etude.analysis.subject import Subject
from etude.analysis.warnings import DataWarning
from etude.analysis.warnings.warning import warning
from etude.errors import InputError
from etude.results.monitor import Monitor
from etude.results.series import Floats, Whole
from etude.units.formatting import quantity

GROUPED = ("bimodal", "warm-up", "late-level", "never-steady", "drift")
"""Warnings of which the slower trials are explained together."""
COMPARED = 50
"""So many of them are looked at."""
MOST = 10
"""So many outliers of a test are explained, the farthest."""
FEWEST = 3
"""Other trials that it takes to know what is usual."""
QUICKER = 0.1
"""A trial that took less time than the others, by more than this part of its own, lost none."""
NAMED = 3
"""Processes, and further findings, of one trial."""
LONGEST_TEXT = 100

NOTHING_ENOUGH = "nothing in the monitor's series accounts for the time it lost"
NOTHING = "nothing in the monitor's series explains it"
QUICK = "it took less time than the others"


OWN_STATE = "own state"


@dataclass(frozen=True)
class Why:
    """An explanation of one trial."""

    text: str
    advice: str
    cause: str | None
    """What is named first; None where nothing accounts for the lost time."""


def explain_outliers(
    subject: Subject, warnings: Sequence[DataWarning], *, every_one: bool = False
) -> list[DataWarning]:
    """A sentence for each trial that a warning calls an outlier, and one for the slower trials of two groups, of
    another level at an end, and of a drift; none where nothing was monitored.

    every_one: also where the monitor saw nothing unusual, or is too coarse for the trial. Without it such a sentence,
    which explains nothing, is left out.
    """
    asked = [each for each in warnings if each.kind == "outliers" or each.kind in GROUPED]
    if not asked:
        return []
    try:
        monitors = load_monitors(subject.directory, subject.experiment)
    except InputError as error:
        return [warning("note", "", "", f"{error}; outliers are not explained", "")]
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
    """The cause that at least half of the slower trials have in common; nothing where there is none."""
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
    shown = [quantity(float(value), column.unit) for value in (column.values[farthest], median)]
    text = (
        f"{len(most)} of the {len(odd)} slower trials have one cause in common; trial {series.trials[farthest]} "
        f"({shown[0]}, median of the others {shown[1]}): {whys[farthest].text}"
    )
    yield warning("outlier-explained", series.test, "", text, whys[farthest].advice, trials)


def _slower(apart: DataWarning, trials: Whole, costs: Floats) -> NDArray[np.bool_]:
    """Which trials are the slower ones of two groups, of another level at the ends, or of a drift; of `trials`."""
    if apart.kind == "bimodal":
        centres = (float(apart.numbers["low"]) + float(apart.numbers["high"])) / 2
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
        text, advice = (why.text, why.advice) if why else _why_not(known, place, others)
        number = int(series.trials[place])
        unit = series.columns[outliers.metric].unit
        size = f"{quantity(float(values[place]), unit)}, median of the others {quantity(median, unit)}"
        yield warning(
            "outlier-explained", series.test, "", f"trial {number} ({size}): {text}", advice, [number]
        )
    if every_one and len(farthest) > MOST:
        rest = [int(series.trials[place]) for place in sorted(farthest[MOST:])]
        text = f"{len(rest)} outliers that lie less far were not looked at in the monitor's series"
        yield warning("outlier-explained", series.test, "", text, "", rest)


def _was_read(known: Interference, place: int) -> bool:
    """Whether the monitor has a reading of a trial."""
    monitor, span = known.monitor(place), known.span(place)
    if monitor is None or span is None:
        return False
    within = span[1] > monitor.edges_ns[0] and span[0] < monitor.edges_ns[-1]
    return within and any(np.isfinite(values[place]) for values in known.values.values())


def _why_not(known: Interference, place: int, usual: Whole) -> tuple[str, str]:
    """Why there is no explanation of a trial, and what helps."""
    monitor = known.monitor(place)
    assert monitor is not None
    if not _was_read(known, place):
        return "the monitor has no reading of it", ""
    if usual.size < FEWEST:
        return "too few other trials were read to tell what is usual", ""
    if lost_time(known, place, usual).lost_s < -known.seconds(place) * QUICKER:
        return QUICK, ""
    if not known.is_coarse(place):
        return NOTHING, ""
    interval = every(monitor.every_s)
    text = f"{NOTHING}; it is shorter than the {interval} between readings, which are too coarse for it"
    return text, "measure with etude bench --monitor 100ms or less, or make a trial longer"


def _why(known: Interference, place: int, usual: Whole) -> Why | None:
    """What was unusual beside a trial, and what helps; None where nothing was, or it is not known."""
    monitor = known.monitor(place)
    if monitor is None or usual.size < FEWEST or not _was_read(known, place):
        return None
    named = noisy_processes(known, place, usual)
    unusual = list(_unusual(known, place, usual))
    came_instead = known.is_full(place) and sum(each.cpus for each in named) >= OTHERS.matters
    if OTHERS not in unusual and came_instead:
        unusual.insert(0, OTHERS)  # where all CPUs are busy anyway, who comes takes from the others
    lost = lost_time(known, place, usual)
    if lost.lost_s < -known.seconds(place) * QUICKER:
        return None  # it lost no time that something could account for
    bounds = [can_cost_s(known, what, place, usual, lost) for what in unusual]
    came = sum(each.cpus for each in named) + max(0.0, known.unseen[place] - np.median(known.unseen[usual]))
    if OTHERS in unusual and known.is_full(place):
        bounds[unusual.index(OTHERS)] = max(
            bounds[unusual.index(OTHERS)],
            came * known.seconds(place),  # no pressure can show it
        )
    enough = [not bound < SUFFICES * lost.lost_s for bound in bounds]
    own = lost.own or (None if any(enough) else lost.last)
    told = [] if own is None else [own]
    told += [
        _words(what, known, place, usual, named)
        for what, suffices in zip(unusual, enough, strict=True)
        if suffices
    ]
    told += [
        f"{what.words} {what.show(float(known.values[what][place]))} (usually "
        f"{what.show(_median(known.values[what], usual))}), which explains at most {quantity(bound, 's')} of "
        f"{quantity(lost.lost_s, 's')}"
        for what, bound, suffices in zip(unusual, bounds, enough, strict=True)
        if not suffices
    ]
    if not told:
        return None
    if own is None and not any(enough):
        told.insert(0, NOTHING_ENOUGH)
    more = f"; and {len(told) - NAMED - 1} more" if len(told) > NAMED + 1 else ""
    text = f"{'; '.join(told[: NAMED + 1])}{more}"
    if known.is_coarse(place):
        text = (
            f"in the {every(monitor.every_s)} around it (it is shorter than the time between readings) {text}"
        )
    blamed = OTHERS in [what for what, suffices in zip(unusual, enough, strict=True) if suffices]
    possible = OTHERS not in unusual and own is lost.own  # who was stopped, no other process kept waiting
    names = [each.name for each in named[:NAMED]] if blamed or possible else []
    causes = [what.words for what, suffices in zip(unusual, enough, strict=True) if suffices]
    cause = OWN_STATE if own else next(iter(causes), None)
    return Why(text, f"see whether it stays away without {_listed(names)}" if names else "", cause)


def _unusual(known: Interference, place: int, usual: Whole) -> Iterator[Quantity]:
    """What was read beside this trial and not beside the others; the same bytes, of a device and of the one below it,
    or of both directions of the loopback network, once."""
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
        numbers = what.show(float(values[place])), what.show(float(np.median(others)))
        if not (what.show is byte_rate and numbers in told):
            told.add(numbers)
            yield what


def _words(
    what: Quantity, known: Interference, place: int, usual: Whole, named: Sequence[NoisyProcess]
) -> str:
    value = float(known.values[what][place])
    usually = what.show(_median(known.values[what], usual))
    if what is MESSAGES:
        return _message(known, place)
    if what is not OTHERS:
        return f"{what.words} {what.show(value)} (usually {usually})"
    seconds = "" if known.is_coarse(place) else " in these seconds"
    if value - _median(known.values[what], usual) < what.matters:
        return f"the CPUs were as busy as usual, but with others: {_named(known, place, usual, named)}"
    text = f"{what.words} {what.show(value)}{seconds} (usually {usually.removesuffix(' CPUs')})"
    return f"{text}: {_named(known, place, usual, named)}"


def _named(known: Interference, place: int, usual: Whole, named: Sequence[NoisyProcess]) -> str:
    """Who used the CPUs."""
    users = [each for each in named if each.cpus >= 0.05]
    told = [_culprit(each) for each in users[:NAMED]]
    if len(users) > NAMED:
        told.append(f"and {len(users) - NAMED} more")
    gone = float(known.unseen[place])
    if exceeds(gone, known.unseen[usual], 0.1):
        told.append(f"processes that had ended before they were seen {cpus(gone)}")
    return ", ".join(told) or "none of the processes that were listed"


def _culprit(each: NoisyProcess) -> str:
    count = len(each.pids)
    which = f"pid {each.pids[0]}" if count == 1 else f"{count} processes, such as pid {each.pids[0]}"
    return f"{each.name} {cpus(each.cpus)} ({which})"


def _message(known: Interference, place: int) -> str:
    monitor, span = known.monitor(place), known.span(place)
    assert isinstance(monitor, Monitor)
    assert span is not None
    found = [m for m in monitor.messages if m.level <= WORST and span[0] <= m.ns <= span[1]]
    text = " ".join(found[0].text.split())
    text = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
    more = f", and {len(found) - 1} messages more" if len(found) > 1 else ""
    return f'the kernel said "{text}"{more}'


def _median(values: Floats, usual: Whole) -> float:
    return float(np.nanmedian(values[usual]))


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
