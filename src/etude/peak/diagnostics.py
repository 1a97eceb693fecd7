"""Reasons to doubt a peak rate, found in the trials without a model of the server.

SLO ratios are compared in logs and in units of their standard deviations (`policies/belief/evidence.py`): `SURE` of
these, in repeated trials, are a finding, `DOUBT` of them a reason to repeat trials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from etude.peak.bottleneck import (
    find_cut_short,
    find_generator_late,
    find_generator_saturated,
    find_not_made,
    generator_limited,
)
from etude.peak.policies.belief.curves import Floats
from etude.peak.policies.belief.evidence import (
    CAP,
    FLOOR,
    Evidence,
    between_trial_variance,
    disturbed_trials,
    evidence_of,
    trials_by_load,
    without_trials,
)
from etude.peak.policies.belief.grid import split_modes
from etude.peak.task import Finding, Task, Trial
from etude.peak.window import Window, joined_windows
from etude.units.formatting import digits

SURE, DOUBT = 2.8, 1.6
SLOWER, SLOWER_BY = 2.6, math.log(1.3)
"""Standard deviations by which a load must be slower after an overload, and the minimum effect, in logs."""
OVERLOADED = math.log(1.5)
"""Log SLO ratio above which a trial may have affected later ones (hysteresis)."""
NEGLIGIBLE = math.log(0.1)
"""Log SLO ratio so far below the limit that being slower than a higher load is irrelevant."""
RARE, ALONE, RARE_OFF = 4.0, 6.0, 3.0
"""Multiples of the median window: two windows beyond the first, or one beyond the second, are stalls if they are
`RARE_OFF` robust standard deviations off: windows vary much near the limit."""
STEADY, STEADY_OFF = 2.5, 7.0
MOST_CALM = 1.1
"""SLO ratio above which a trial is an overload, in which windows vary much without stalls."""
STEADY_WINDOWS = 6
"""Minimum number of windows for a comparison of the halves of a trial."""
UNSTEADY, LEAST_STEADY = math.log(1.5), 0.1
"""Log by which the first half is slower in a trial that is not steady; lower bound of the variance of a window's
log."""
HAVE_MIDDLE = 5
"""Minimum number of windows whose median cannot be a stall."""
APART = 0.03
"""Loads closer than this share are treated as one load."""
HARMLESS = ("no-windows", "generator-limited", "load-not-made", "failing", "cut-short", "no-times")
"""Findings that do not invalidate the answer."""

Flags = NDArray[np.bool_]


def findings(task: Task, trials: Sequence[Trial]) -> tuple[Finding, ...]:
    """All findings, the most severe first."""
    known = evidence_of(task, trials)
    disturbed = disturbed_trials(known)
    counted = [trial for order, trial in enumerate(trials) if order not in {each.order for each in disturbed}]
    found = (
        find_stalling(task, trials),
        find_hysteretic(task, known),
        find_non_monotone(task, known),
        find_collapsing(task, trials),
        find_bimodal(task, known),
        find_drifting(known),
        find_disturbed(task, known, disturbed),
        find_unsteady(task, trials),
        find_dying(task, trials, known),
        find_failing(task, trials, known),
        generator_limited(task, trials),
        find_generator_late(task, counted),
        find_generator_saturated(task, counted),
        find_not_made(task, trials),
        find_cut_short(trials),
        find_no_times(task, trials),
        find_no_windows(trials),
    )
    return tuple(each for each in found if each is not None)


@dataclass(frozen=True, slots=True)
class Pooled:
    """Several trials of one load."""

    load: float
    value: float
    variance: float
    trials: int


def pooled_evidence(group: Sequence[Evidence], tau: float) -> Pooled:
    """Precision-weighted mean of the group."""
    weights = np.array([1 / (each.within + tau) for each in group])
    value = float(weights @ [each.value for each in group] / weights.sum())
    return Pooled(group[0].load, value, float(1 / weights.sum()), len(group))


def by_load(known: Sequence[Evidence]) -> list[Pooled]:
    """Pooled evidence of each load, by rising load."""
    tau = between_trial_variance(known)
    return [pooled_evidence(group, tau) for _, group in sorted(trials_by_load(known).items())]


def conflict(known: Sequence[Evidence], least: float) -> tuple[Pooled, Pooled] | None:
    """The pair of loads whose lower one is slower by the most standard deviations, lower first; None below `least`."""
    worst, found = least, None
    loads = by_load(known)
    for at, low in enumerate(loads):
        for high in loads[at + 1 :]:
            if high.load < low.load * (1 + APART) or low.value <= NEGLIGIBLE:
                continue
            # Both far beyond the limit: their order is irrelevant.
            off = (low.value - high.value) / math.sqrt(low.variance + high.variance)
            if min(low.value, high.value) < CAP and off >= worst:
                worst, found = off, (low, high)
    return found


def find_non_monotone(task: Task, known: Sequence[Evidence]) -> Finding | None:
    """A lower load is slower than a higher one, both with repeated trials."""
    repeated = {each.load for each in by_load(known) if each.trials > 1}
    pair = conflict([each for each in known if each.load in repeated], SURE)
    if pair is None:
        return None
    low, high = pair
    text = f"slower at {task.load_text(low.load)} ({_times(low)} of the limit)"
    text += f" than at {task.load_text(high.load)} ({_times(high)})"
    return Finding("non-monotone", f"{text}, {low.trials} and {high.trials} trials")


def find_collapsing(task: Task, trials: Sequence[Trial]) -> Finding | None:
    """Throughput falls with more load: by a tenth, and by more than counting noise.

    The second half of each trial is compared: earlier windows still lack requests queued during the warm-up. Trials in
    which the system died are excluded.
    """
    ran = [
        (trial.load, trial.windows[len(trial.windows) // 2 :])
        for trial in trials
        if trial.of_server and trial.ran_s > 0 and trial.ended != "died"
    ]
    done = sorted(
        (load, sum(w.completed for w in windows), sum(w.duration_s for w in windows)) for load, windows in ran
    )
    for at, (load, count, ran_s) in enumerate(done):
        if not at:
            continue
        lower, most, most_s = max(done[:at], key=lambda each: each[1] / each[2])
        rate, more = count / ran_s, most / most_s
        luck = SURE * math.sqrt(more / ran_s + more / most_s)
        if rate < min(0.9 * more, more - luck, 0.9 * load):
            text = f"at {task.load_text(load)} it answers {digits(rate)}/s, fewer than the {digits(more)}/s"
            text += f" at {task.load_text(lower)} (in the second half of a trial)"
            return Finding("non-monotone", text)
    return None


def overloads(known: Sequence[Evidence]) -> list[Evidence]:
    """Trials overloaded enough to affect later ones (hysteresis)."""
    return [each for each in known if each.value >= OVERLOADED + math.sqrt(each.within)]


def hysteresis_pair(known: Sequence[Evidence]) -> tuple[Pooled, Pooled] | None:
    """The lowest load that is slower after the first overload than before it, as (before, after)."""
    bad = overloads(known)
    if not bad:
        return None
    first = bad[0].order
    sides = [[e for e in known if e.order < first], [e for e in known if e.order > first]]
    # Estimated from the earlier trials: slower later ones would raise the variance that they are judged by.
    tau = between_trial_variance(sides[0])
    for load in sorted({each.load for each in known if each.load < bad[0].load}):
        before, after = ([each for each in side if each.load == load] for side in sides)
        if not before or not after:
            continue
        one, two = pooled_evidence(before, tau), pooled_evidence(after, tau)
        if two.value - one.value >= max(SLOWER * math.sqrt(one.variance + two.variance), SLOWER_BY):
            return one, two
    return None


def find_hysteretic(task: Task, known: Sequence[Evidence]) -> Finding | None:
    """A load is slower after an overload than before it."""
    found = hysteresis_pair(without_trials(known, disturbed_trials(known)))
    if found is None:
        return None
    one, two = found
    overload = task.load_text(overloads(known)[0].load)
    text = f"{task.load_text(one.load)} read {_times(one)} of the limit before the overload with {overload}"
    return Finding("hysteretic", f"{text}, and {_times(two)} after it")


@dataclass(frozen=True, slots=True)
class Multiples:
    """Windows of one trial in multiples of the median window."""

    ratios: Floats
    rare: Flags
    """Windows that look like stalls."""
    sure: Flags
    """Windows that are certainly stalls."""


def limit_multiples(task: Task, windows: Sequence[Window]) -> Multiples | None:
    """Windows in multiples of the median; None with too few windows or without readings.

    A window is rare at `RARE` times the middle one, sure at `ALONE` times, if it is `RARE_OFF` robust standard
    deviations (1.4826·MAD of the logs) off; where the others hardly differ, `STEADY` times is sure, when it is
    `STEADY_OFF` off.
    """
    values = np.array([task.goal.reading([window]) for window in windows])
    if len(values) < HAVE_MIDDLE or np.isnan(values).any() or float(np.median(values)) <= 0:
        return None
    ratios = np.maximum(values / np.median(values), 1e-6)
    spread = max(1.4826 * float(np.median(np.abs(np.log(ratios)))), 0.08)
    steady = (ratios >= STEADY) & (np.log(ratios) >= STEADY_OFF * spread)
    off = np.log(ratios) >= RARE_OFF * spread
    return Multiples(ratios, (ratios >= RARE) & off | steady, (ratios >= ALONE) & off | steady)


def find_stalling(task: Task, trials: Sequence[Trial]) -> Finding | None:
    """A few windows, many times slower than the others, dominate the mean of trials without overload."""
    found = _stalled(task, trials)
    rare = sum(int(each.rare.sum()) for each in found)
    if rare < 2 and not any(each.sure.any() for each in found):
        return None
    count = sum(len(each.ratios) for each in found)
    most = max(float(each.ratios.max()) for each in found)
    text = (
        f"{rare} of {count} windows took up to {most:.1f} times as long as the median window of their trial"
    )
    return Finding("stalling", f"{text}: {100 * stalled_share(task, trials):.0f} % of all response time")


def stalled_share(task: Task, trials: Sequence[Trial]) -> float:
    """Share of all response time spent in stalls, each trial's load weighted equally."""
    found = _stalled(task, trials)
    total = sum(float(each.ratios.sum()) for each in found)
    return sum(float(each.ratios[each.rare].sum()) for each in found) / total if total else 0.0


def _stalled(task: Task, trials: Sequence[Trial]) -> list[Multiples]:
    found = []
    for trial in trials:
        if not trial.of_server or trial.limited is not None or trial.ended == "died":
            continue
        each = limit_multiples(task, trial.windows)
        # In an overload answers take ever longer: late windows are no stalls.
        calm = task.goal.reading(without_stalls(task, trial).windows)
        if each is not None and 4 * int(each.rare.sum()) <= len(each.ratios) and calm < MOST_CALM:
            found.append(each)
    return found


def without_stalls(task: Task, trial: Trial) -> Trial:
    """The trial without its stalled windows."""
    each = limit_multiples(task, trial.windows)
    if each is None:
        return trial
    kept = tuple(w for w, rare in zip(trial.windows, each.rare, strict=True) if not rare)
    return replace(trial, windows=kept)


def find_bimodal(task: Task, known: Sequence[Evidence]) -> Finding | None:
    """Trials of one load are bimodal, further apart than their windows explain; or trials of several loads disagree."""
    apart = split_modes(known)
    if len(apart) > 1:
        loads = ", ".join(task.load_text(quicker[0].load) for quicker, _ in apart)
        quicker, slower = apart[-1]
        text = f"trials at {loads} disagree by more than their windows allow"
        last = f"at {task.load_text(quicker[0].load)} they are at {_shares(quicker)}"
        last += f" or at {_shares(slower)} of the limit"
        return Finding("bimodal", f"{text}; {last}")
    for load, trials in sorted(trials_by_load(known).items()):
        group = sorted((each for each in trials if FLOOR < each.value < CAP), key=lambda each: each.value)
        if len(group) < 4:
            continue
        gaps = [group[at + 1].value - group[at].value for at in range(len(group) - 1)]
        at = int(np.argmax(gaps))
        low, high = group[: at + 1], group[at + 1 :]
        noise = math.sqrt(float(np.mean([each.within for each in group])))
        rest = max([gap for n, gap in enumerate(gaps) if n != at], default=0.0)
        if min(len(low), len(high)) >= 2 and gaps[at] >= SURE * noise and gaps[at] >= 2 * rest:
            text = (
                f"trials at {task.load_text(load)} are at {_shares(low)} or at {_shares(high)} of the limit"
            )
            return Finding("bimodal", f"{text}, and not between")
    return None


def find_drifting(known: Sequence[Evidence]) -> Finding | None:
    """Repeated loads drift in one direction over time: a line through each load's trials with one common slope."""
    times, values, weights = [], [], []
    tau = between_trial_variance([])
    for _, group in sorted(trials_by_load(each for each in known if FLOOR < each.value < CAP).items()):
        if len(group) < 3:
            continue
        weight = np.array([1 / (each.within + tau) for each in group])
        order, value = np.array([e.order for e in group], float), np.array([e.value for e in group])
        times += list(order - weight @ order / weight.sum())
        values += list(value - weight @ value / weight.sum())
        weights += list(weight)
    if len(times) < 5:
        return None
    t, y, w = np.array(times), np.array(values), np.array(weights)
    square = float(w @ t**2)
    slope = float(w @ (t * y)) / square if square > 0 else 0.0
    left = float(w @ (y - slope * t) ** 2) / (len(t) - 2)
    if slope * math.sqrt(square) / math.sqrt(max(left, 1.0)) < SURE + 0.5:
        return None
    return Finding(
        "drifting", f"the same loads get {100 * math.expm1(slope):.1f} % slower from trial to trial"
    )


def find_disturbed(task: Task, known: Sequence[Evidence], found: Sequence[Evidence]) -> Finding | None:
    """Trials that were much slower than others of their load, where the others agree or these were suspect."""
    if not found:
        return None
    loads = ", ".join(task.load_text(load) for load in sorted({each.load for each in found}))
    one = len(found) == 1
    slower = f"{'was' if one else 'were'} slower than all others of {'its' if one else 'their'} load"
    suspect = sum(each.suspect for each in found)
    seen = f" ({suspect} with much steal time or a late generator)" if suspect else ""
    left_out = f"{slower}{seen} and {'is' if one else 'are'} left out"
    return Finding("disturbed", f"{len(found)} of {len(known)} trials, at {loads}, {left_out}")


def warm_up_shift(task: Task, windows: Sequence[Window]) -> tuple[float, float] | None:
    """Log ratio of first-half to second-half response in a trial, and its variance; None with too few windows."""
    values = np.array([task.goal.reading([window]) for window in windows])
    if len(values) < STEADY_WINDOWS or np.isnan(values).any() or (values <= 0).any():
        return None
    first, second = np.log(values[: len(values) // 2]), np.log(values[-(len(values) // 2) :])
    variance = max(float(first.var(ddof=1) + second.var(ddof=1)) / len(first), LEAST_STEADY / len(first))
    return float(np.median(first) - np.median(second)), variance


def find_unsteady(task: Task, trials: Sequence[Trial]) -> Finding | None:
    """Trials get faster while they run: an undeclared warm-up."""
    found = [
        settled for t in trials if t.of_server and (settled := warm_up_shift(task, t.windows)) is not None
    ]
    if not found:
        return None
    weights = np.array([1 / variance for _, variance in found])
    off = float(weights @ [each for each, _ in found] / weights.sum())
    quicker = [each for each, variance in found if each >= max(SURE * math.sqrt(variance), UNSTEADY)]
    if off * math.sqrt(float(weights.sum())) < SURE or off < UNSTEADY / 4 or not quicker:
        return None
    text = f"{len(quicker)} of {len(found)} trials of {STEADY_WINDOWS} windows or more read"
    what = f"{text} up to {math.exp(max(quicker)):.1f} times as much in their first half as in their second"
    return Finding("not-steady", f"{what}: declare a warm-up")


def find_dying(task: Task, trials: Sequence[Trial], known: Sequence[Evidence]) -> Finding | None:
    """The system died at a load that it sustained in another trial, or at a lower one."""
    fine = _most_fine(known)
    died = [trial.load for trial in trials if trial.ended == "died" and trial.load <= fine]
    if not died:
        return None
    return Finding(
        "dying",
        f"it died at {task.load_text(min(died))}, and sustained {task.load_text(fine)} in another trial",
    )


def _most_fine(known: Sequence[Evidence]) -> float:
    """The highest load that met the goal in a trial; 0 if none did."""
    return max((each.load for each in known if each.value < 0), default=0.0)


def find_failing(task: Task, trials: Sequence[Trial], known: Sequence[Evidence]) -> Finding | None:
    """Requests fail at loads that met the goal in another trial, or at the lowest load."""
    of_server = [t for t in trials if t.of_server]
    fine = _most_fine(known)
    if any(criterion.of == "errors" for criterion in task.goal.criteria):
        return _failing_at_lowest(task, of_server)
    for trial in of_server:
        ended = sum(w.completed + w.failed for w in trial.windows)
        failed = sum(w.failed for w in trial.windows)
        if trial.load <= fine and failed > 0.01 * ended:
            return Finding(
                "failing",
                f"{100 * failed / ended:.1f} % of requests failed at {task.load_text(trial.load)}"
                ", which is no overload",
            )
    return None


def _failing_at_lowest(task: Task, of_server: Sequence[Trial]) -> Finding | None:
    """The lowest load exceeds the error limit but not the response-time limits: less load would not help."""
    at_lowest = joined_windows([w for trial in of_server if trial.load <= task.lowest for w in trial.windows])
    by_errors = any((c.reading(at_lowest.windows) or 0) > 1 for c in task.goal.criteria if c.of == "errors")
    timed = [c for c in task.goal.criteria if c.of != "errors"] if at_lowest.completed else []
    if not by_errors or any((c.reading(at_lowest.windows) or 0) > 1 for c in timed):
        return None
    ended = at_lowest.completed + at_lowest.failed
    share = "all" if not at_lowest.completed else f"{100 * at_lowest.failed_share:.1f} %"
    return Finding(
        "failing", f"{share} of {ended} requests failed at {task.load_text(task.lowest)}, the lowest load"
    )


def not_bracketed(task: Task, low: float, high: float, trials: Sequence[Trial]) -> Finding:
    """Finding for a peak without measured loads near or beyond it. `low`: the highest load that met the goal, `high`:
    the lowest that did not; 0 and inf if there is none."""
    if high == math.inf:
        what = f"{task.load_text(low)} is fine, and no load near the limit or above it was measured"
        beyond = [trial.load for trial in trials if trial.limited == "generator" and trial.load > low]
        if beyond:
            return Finding(
                "not-bracketed", f"{what}: the load generator did not offer {task.load_text(min(beyond))}"
            )
        return Finding("not-bracketed", f"{what}: allow more time (--budget) or begin higher (--seed-load)")
    what = f"{task.load_text(high)} is too much, and no load near the limit or below it was measured"
    return Finding("not-bracketed", f"{what}: allow lower loads (`lowest`)")


def find_no_windows(trials: Sequence[Trial]) -> Finding | None:
    """The harness reports at most one window a trial: no trial can end early."""
    if len(trials) < 2 or any(len(trial.windows) > 1 for trial in trials):
        return None
    return Finding("no-windows", "no trial has more than one window: how far one may be off is a guess")


def find_no_times(task: Task, trials: Sequence[Trial]) -> Finding | None:
    """Response times of 0, which no server has."""
    timed = [c for c in task.goal.criteria if c.of != "errors"]
    told = [t for t in trials if t.of_server and timed and joined_windows(t.windows).completed]
    zero = [t for t in told if all(criterion.reading(t.windows) == 0 for criterion in timed)]
    if not zero:
        return None
    text = f"{len(zero)} of {len(told)} trials read a response time of 0"
    return Finding("no-times", f"{text}: what is read is rounded, or no response time")


def _times(each: Pooled) -> str:
    return f"{math.exp(each.value):.2f}"


def _shares(group: Sequence[Evidence]) -> str:
    low, high = math.exp(group[0].value), math.exp(group[-1].value)
    return f"{low:.2f} to {high:.2f}" if len(group) > 1 else f"{low:.2f}"
