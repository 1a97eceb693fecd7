"""A history in words, and as a document for other programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from etude.analysis.subject import SIMULATED
from etude.history.backtest import LEAST, Alert, Backtest, Rate, Rule, StoredBacktest
from etude.history.comparison import newest_with_before
from etude.history.metric_history import Change, Course, SlowChange
from etude.stats.cross_session import NotSupported
from etude.stats.samples import exponential
from etude.store.entry import Entry
from etude.units.formatting import counted, percent, quantity, span

MOST_FACTS = 4
MOST_TIMES = 10.0
"""A size whose limits are factors this many times apart is not known."""
WILD = 4.0
"""Spreads from its level beyond which a result is called wild."""
MOST_COMMANDS = 2
"""Changes of the measured command without a step that have a line each."""
JUDGED = {True: ", for the worse", False: ", for the better", None: ""}
"""Words for a change, by whether it is for the worse."""


def heading(course: Course) -> str:
    """Heading of a course: what it is, its length, and its first and last time."""
    first, last = course.entries[0], course.entries[-1]
    span = f", {first.day} to {last.day}" if len(course.entries) > 1 else f", {first.day}"
    return (
        f"{course.test}, {course.metric}, on {course.machine.name}: "
        f"{counted(len(course.entries), 'result')}{span}"
    )


def lines(course: Course) -> Iterator[str]:
    """Lines on the steps, the drift, other changes of the machine, and the noise around the levels."""
    yield from simulated_lines(course.entries)
    for change in course.changes:
        yield change_line(course, change)
    if course.drift is not None:
        yield drift_line(course, course.drift)
    elif not course.changes:
        yield f"No step shown among {counted(len(course.entries), 'result')}."
    told = {place for c in course.changes if c.differences for place in _range(c)}
    for place, facts in course.machines:
        if place not in told:
            there = course.entries[place]
            yield f"The machine is another from {there} on ({named(facts)}), without a step."
    commands = [(place, text) for place, text in course.commands if place not in told]
    for place, text in commands[:MOST_COMMANDS]:
        yield f"The test is another from {course.entries[place]} on ({text}), without a step."
    if len(commands) > MOST_COMMANDS:
        yield f"Its command changes at {counted(len(commands) - MOST_COMMANDS, 'more result')}."
    if course.found.noise.deviation > 0.0:
        yield noise_line(course)


def simulated_lines(entries: Sequence[Entry]) -> Iterator[str]:
    """A line on how many of these results are simulated; none where all were measured."""
    if found := {entry.result for entry in entries if SIMULATED in entry.tags}:
        count = len({entry.result for entry in entries})
        which = (
            "All results are" if len(found) == count else f"{len(found)} of {counted(count, 'result')} are"
        )
        yield f"{which} simulated: no machine served these loads."


def verdict_line(course: Course) -> str:
    """`host-a: one step, +8.3 % for the worse at …; no drift. The newest result, …, …`: a history in two sentences."""
    shown = [change for change in course.changes if change.step.shown]
    newest = max(shown, key=lambda change: change.step.at, default=None)
    steps = "no step shown"
    if newest is not None:
        size = f"{course.size_text(newest.size)} ({_within(course, newest.low, newest.high)}){JUDGED[newest.worse]}"
        steps = (
            f"{counted(len(shown), 'step')}{', the newest' * (len(shown) > 1)} of {size}, at {newest.first}"
        )
        steps += f", where the {newest.cause} changes" if newest.cause in ("machine", "test") else ""
    if less := len(course.changes) - len(shown):
        steps += f"; {counted(less, 'change')} of the level not shown"
    drift = "no drift shown"
    if (slow := course.drift) is not None:
        perhaps = "perhaps a drift" if slow.low <= 0.0 <= slow.high else "a drift"
        size = f"{course.size_text(slow.size)} ({_within(course, slow.low, slow.high)})"
        drift = f"{perhaps} of {size}{JUDGED[slow.worse]}"
    told = (
        f"{course.machine.name}: {steps}; {drift}.",
        newest_line(course),
        *simulated_lines(course.entries),
    )
    return " ".join(told)


def newest_line(course: Course) -> str:
    """Sentence on the newest result against the one before it."""
    last, found = course.entries[-1], newest_with_before(course)
    value = quantity(course.value(float(course.levels[-1])), course.unit)
    told = f"The newest result, {last}, is {value}"
    if len(course.entries) < 2:
        return f"{told}; there is no other."
    if found is None:
        return f"{told}; not compared with the one before: such values have no ratio."
    if isinstance(ratio := found.found, NotSupported):
        return f"{told}; not compared with the one before: {ratio.reason}."
    same = ratio.low <= 1.0 <= ratio.high
    sign = "−" if ratio.ratio < 1.0 else "+"
    size = f"{sign}{percent(abs(ratio.ratio - 1.0))} against the one before ({span(ratio.low, ratio.high)} times, 95 %)"
    other = "; the machine is another" if found.differences else ""
    return f"{told}: {size}{', no significant difference' if same else ''}{other}."


def change_line(course: Course, change: Change) -> str:
    """`Step of +10 % (95 %: +9.7 % to +10.3 %; p < 0.001 by ranks), for the worse: first at …; last before it: ….`"""
    step = change.step
    judged = JUDGED[change.worse] if step.shown else ", a change of the level not shown"
    levels = course.found.fitted[step.at - 1 : step.at + 1]
    values = [quantity(course.value(float(level)), course.unit) for level in levels]
    there = "" if course.drift is None else " there, the drift taken along"
    told = (
        f"Step of {course.size_text(change.size)} ({_within(course, change.low, change.high)}; "
        f"{p_text(step.p)} by ranks){judged}, from {values[0]} to {values[1]}{there}: "
        f"first at {change.first!s}; last before it {change.last!s}."
    )
    if step.earliest != step.latest:
        ends = [str(course.entries[place]) for place in (step.earliest, step.latest)]
        told += f" It may begin anywhere from {ends[0]} to {ends[1]} (95 %)."
    if step.or_drift:
        told += " It may be a drift instead: the results do not decide it."
    if change.cause == "machine":
        told += f" The machine changes there: {named(change.differences)}. It is not known to be the code's."
    elif change.cause == "test":
        told += f" The test changes there: {named(change.differences)}. It is not known to be the code's."
    elif change.cause == "neither":
        told += " Both are of the same commit, and nothing that is recorded of the machine changes there."
    elif change.cause == "commit" and change.first.commit == change.last.commit:
        told += " Both are of the same commit, one with changes that are not committed: it may be the code's."
    if change.expected is not None:
        told += f" Expected: {change.expected}."
    return told


def drift_line(course: Course, slow: SlowChange) -> str:
    """`Drift of +10 % (95 %: +9.1 % to +11 %; p < 0.001), for the worse, as a line over all 120 results, from …: …`"""
    told = (
        f"{'Perhaps a drift' if slow.low <= 0.0 <= slow.high else 'Drift'} of {course.size_text(slow.size)} "
        f"({_within(course, slow.low, slow.high)}; {p_text(slow.drift.p)})"
        f"{JUDGED[slow.worse]}, as a line over all {counted(len(course.entries), 'result')}"
    )
    if course.changes:
        told += ", besides the steps."
    else:
        ends = [quantity(course.value(float(level)), course.unit) for level in course.found.fitted[[0, -1]]]
        told += f", from {ends[0]} to {ends[1]}: it describes them better than levels, each step counted at its cost."
    told += " Its beginning is not searched, and no rule raises an alert for it."
    if slow.drift.or_steps:
        begins = " and ".join(str(course.entries[place]) for place in slow.drift.or_steps)
        what = _steps(course, len(slow.drift.or_steps))
        told += f" It may be {what} instead, first at {begins}: the results do not decide it."
    return told


def _steps(course: Course, count: int) -> str:
    """`a step`, `a second step`, `2 further steps`."""
    if count > 1:
        return f"{count} {'further ' if course.changes else ''}steps"
    return {0: "a step", 1: "a second step"}.get(len(course.changes), "a further step")


def noise_line(course: Course) -> str:
    """Sentence on the spread of results around their level, and the part that their trials explain."""
    noise = course.found.noise
    spread = (
        percent(exponential(noise.deviation) - 1.0)
        if course.relative
        else quantity(noise.deviation, course.unit)
    )
    within = (
        "" if course.within is None else f"; their trials explain {percent(course.within)} of that variance"
    )
    depends = (
        f"; the autocorrelation of those that follow each other is taken as {noise.dependence:.1f}"
        if noise.dependence >= 0.25
        else ""
    )
    line = "level" if course.drift is None else "line"
    return f"Results lie {spread} around their {line}{_wild(course)}{within}{depends}."


def _wild(course: Course) -> str:
    """Text on the number of results that the spread leaves out."""
    off = np.abs(course.levels - course.found.fitted)
    count = int(np.sum(off > WILD * course.found.noise.deviation))
    return f", but for {count} beyond {WILD:.0f} × that, which count less" if count else ""


UNKNOWN = "its size is not known"


def limits_text(course: Course, low: float, high: float) -> str:
    """`+4.9 % to +5.1 %`; in words where the larger is many times the smaller."""
    if course.relative and 1.0 + high > MOST_TIMES * (1.0 + low):
        return UNKNOWN
    return f"{course.size_text(low)} to {course.size_text(high)}"


def _within(course: Course, low: float, high: float) -> str:
    """`95 %: +4.9 % to +5.1 %`."""
    limits = limits_text(course, low, high)
    return limits if limits == UNKNOWN else f"95 %: {limits}"


def p_text(p: float) -> str:
    """`p = 0.02`."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def named(facts: Sequence[str]) -> str:
    """The first few differences of two machines."""
    more = len(facts) - MOST_FACTS
    shown = "; ".join(facts[:MOST_FACTS]) or "what differs is not recorded"
    return f"{shown}; and {more} more" if more > 0 else shown


def alert_line(alert: Alert) -> str:
    """An alert, and the step that it is for."""
    return f"ALERT by {alert.rule.name}, on {alert.course.machine.name}: {change_line(alert.course, alert.change)}"


def backtest_lines(found: Backtest, course: Course) -> list[str]:
    """Error rates of a rule: false alarms, misses, and its alerts as the history grew."""
    rule = found.rule
    lines = [
        f"{rule.name}, on {course.machine.name}, {found.results} results:",
        f"  False alarms: in {_rate(found.false)} flat histories as long as this one (its rests around its levels, "
        "in blocks in random order), replayed result by result.",
        f"  Misses: {_rate(found.missed)} injected steps of {course.size_text(rule.sees)} were not seen within "
        f"{rule.within} results.",
    ]
    instead = " (which show a drift)" if course.drift is not None else ""
    for each in found.alerts:
        stays = "" if each.stays else f"; no longer found with the results since{instead}"
        lines.append(
            f"  As it grew: alert after {each.after} results of the step of "
            f"{course.size_text(each.change.size)} at {each.change.first}{stays}."
        )
    if found.unseen:
        lines.append(f"  {found.unseen} of its steps raised none while it grew.")
    return lines


def _rate(rate: Rate) -> str:
    """`4 of 100 (4.0 %, 95 %: 1.1 % to 9.9 %)`."""
    ends = rate.interval
    return f"{rate.count} of {rate.of} ({percent(rate.share)}, 95 %: {percent(ends.low)} to {percent(ends.high)})"


def too_short_line(rule: Rule, course: Course) -> str:
    """A history that is too short for a backtest."""
    return (
        f"{rule.name}, on {course.machine.name}: {len(course.entries)} results are too few for a backtest; "
        f"it needs {LEAST}."
    )


def known_line(rule: Rule, known: StoredBacktest, course: Course) -> str:
    """Error rates of a rule here, as its stored backtest found them."""
    return (
        f"{rule.name}, on {course.machine.name}: false alarms in {_rate(known.false)} flat histories, misses "
        f"{_rate(known.missed)} steps of {course.size_text(rule.sees)} within {rule.within} results, by its "
        f"backtest on {known.results} results."
    )


def to_document(course: Course) -> dict[str, Any]:
    """The same for other programs (docs/howto/history.md)."""
    noise = course.found.noise
    return {
        "test": course.test,
        "metric": course.metric,
        "unit": course.unit,
        "machine": course.machine.name,
        "relative": course.relative,
        "results": [
            _point(entry) | {"level": course.value(float(level)), "trials": len(entry.values)}
            for entry, level in zip(course.entries, course.levels, strict=True)
        ],
        "levels": [course.value(level) for level in course.found.levels],
        "noise": {"deviation": noise.deviation, "dependence": noise.dependence, "within": course.within},
        "steps": [_change(change) for change in course.changes],
        "drift": None if course.drift is None else _drift(course.drift),
        "machines": [{"at": place, "differences": list(facts)} for place, facts in course.machines],
        "commands": [{"at": place, "differences": [text]} for place, text in course.commands],
    }


def _change(change: Change) -> dict[str, Any]:
    step = change.step
    return {
        "at": step.at,
        "earliest": step.earliest,
        "latest": step.latest,
        "size": change.size,
        "low": change.low,
        "high": change.high,
        "p": step.p,
        "or_drift": step.or_drift,
        "worse": change.worse,
        "cause": change.cause,
        "differences": list(change.differences),
        "expected": change.expected,
        "first": _point(change.first),
        "last": _point(change.last),
    }


def _drift(slow: SlowChange) -> dict[str, Any]:
    return {
        "size": slow.size,
        "low": slow.low,
        "high": slow.high,
        "p": slow.drift.p,
        "or_steps": list(slow.drift.or_steps),
        "worse": slow.worse,
    }


def _point(entry: Entry) -> dict[str, Any]:
    return {
        "result": entry.result,
        "commit": entry.commit,
        "committed": entry.committed and entry.committed.isoformat(),
        "measured": entry.measured.isoformat(),
        "tags": list(entry.tags),
    }


def _range(change: Change) -> range:
    return range(change.step.earliest, change.step.latest + 1)
