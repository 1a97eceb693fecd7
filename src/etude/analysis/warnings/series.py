"""All warnings about one test and one of its metrics, without those that another cause explains: of the trials
themselves (failed, excluded, too few, larger than memory), and of their values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from etude.analysis.comparison import machines_of, within_reach
from etude.analysis.subject import WorkDifference
from etude.analysis.verdict_options import Thresholds
from etude.analysis.warnings import facts
from etude.analysis.warnings.shapes import (
    MEMORY,
    About,
    Course,
    autocorrelated,
    clock,
    course,
    far_ones,
    leaks,
    modes,
    neighbours_alike,
    skewed,
    tamed,
)
from etude.analysis.warnings.warning import DataWarning, warning
from etude.results.model import CALIBRATION, FIRST_RUN, is_printed
from etude.results.series import Series
from etude.results.trial_join import NONE
from etude.stats.intervals import mean_interval
from etude.stats.machines import deviating_machines
from etude.stats.ratio import more_trials


def machine_apart(series: Series, metric: str) -> list[DataWarning]:
    """One warning about the machines that stand out; nothing unless all values are above 0."""
    names = machines_of(series, metric)
    values = series.sample(metric)
    if len(set(names)) < 2 or not bool(np.all(values > 0.0)):
        return []
    sittings = None if series.sittings is None else series.sittings[_counted(series, metric)].tolist()
    found = deviating_machines(values, names, sittings)
    if not found:
        return []
    apart = tuple(facts.MachineLevel(one.machine, one.ratio, one.low, one.high, one.p) for one in found)
    return [warning("machine-apart", series.test, metric, facts.MachinesApart(apart, len(set(names))))]


def _counted(series: Series, metric: str) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Mask of the trials that `Series.sample` has."""
    return np.asarray(series.kept & np.isfinite(series.columns[metric].values))


def series_warnings(
    series: Series,
    metric: str,
    *,
    thresholds: Thresholds,
    factor: float = 1.0,
    precision: float | None = None,
    memory_bytes: int | None = None,
    watched: Sequence[str] = (),
) -> list[DataWarning]:
    """Warnings about a test and one of its metrics, most important first.

    factor: widening of the mean's interval by the stop rule. precision: requested relative margin of error.
    memory_bytes: of the machine. watched: other metrics to check for a trend. Warnings that do not depend on the
    metric come with each metric; `ranked` keeps them once.
    """
    found = [*failed(series), *caches_not_as_declared(series), *kernel_complained(series), *set_aside(series)]
    found += memory_cliff(series, memory_bytes, thresholds)
    of_the_program = printed(series)
    found += of_the_program
    memory = next((name for name in MEMORY if series.sample(name).size), None)
    if memory is not None:
        found += leaks(_about(_longest_session(series), memory, thresholds))
    for name in dict.fromkeys(watched):
        found += [] if name == metric else _in_the_course(series, name, thresholds)
    if metric in series.columns:
        about = _about(series, metric, thresholds)
        said = {(each.kind, each.metric) for each in of_the_program}
        if ("no-match", metric) not in said:
            few = too_few(series, metric, about.count, thresholds)
            found += [each for each in few if (each.kind, each.metric) not in said]
        if about.count:
            found += _of_each_machine(series, metric, thresholds)
            found += machine_apart(series, metric)
            found += _not_converged(about, factor, precision)
    return sorted(found, key=lambda w: w.rank)


def _in_the_course(series: Series, metric: str, thresholds: Thresholds) -> list[DataWarning]:
    """Warnings about changes of a watched metric; if it does not exist, a note with the existing names."""
    if metric not in series.columns:
        return [warning("note", series.test, metric, facts.UnknownMetric(tuple(series.columns)))]
    longest = _longest_session(series)
    if not longest.sample(metric).size:
        return []
    about = _about(longest, metric, thresholds)
    if metric in MEMORY:
        return leaks(about)
    return [] if bool(np.all(about.values == about.values[0])) else list(course(about).warnings)


def _about(series: Series, metric: str, thresholds: Thresholds) -> About:
    column = series.columns[metric]
    values, scale = tamed(series.sample(metric))
    places = series.places(metric)
    sessions = 1 if series.sittings is None else np.unique(series.sittings[series.kept]).size
    return About(series.test, metric, column.unit, column.kind, values, scale, places, thresholds, sessions)


def _of_each_machine(series: Series, metric: str, thresholds: Thresholds) -> list[DataWarning]:
    """Warnings about the values of each machine alone; together they may have a shape that none of them has."""
    names = list(dict.fromkeys(machines_of(series, metric)))
    if len(names) < 2:
        return _about_values(_about(series, metric, thresholds))
    found = []
    for name in names:
        there = np.array([machine == name for machine in series.labels["machine"]])
        about = _about(replace(series, kept=series.kept & there), metric, thresholds)
        found += [replace(each, machine=name) for each in _about_values(about)]
    return found


def _longest_session(series: Series) -> Series:
    """The series without all but its longest session: the machine may have been rebooted in between."""
    if (
        series.sittings is None
        or not series.sittings.size
        or bool(np.all(series.sittings == series.sittings[0]))
    ):
        return series
    numbers, counts = np.unique(series.sittings[series.kept], return_counts=True)
    if not numbers.size:
        return series
    kept = series.kept & (series.sittings == numbers[int(np.argmax(counts))])
    return Series(series.test, series.trials, kept, series.columns)


def _about_values(about: About) -> list[DataWarning]:
    """Warnings about the shape of the values; one cause gives one warning.

    All values equal: no other warning. A trial too short for its clock, or a clock too coarse for the spread: no
    shapes. A level shift or a drift: no groups, no autocorrelation, and outliers only among the remaining trials.
    Groups: no outliers; the same warning states autocorrelation. Outliers: no autocorrelation that disappears without
    them. Not normal: only if nothing else explains it, such as the steps of a count.
    """
    if about.kind == "binary":
        return []
    if about.count >= 3 and bool(np.all(about.values == about.values[0])):
        return _all_equal(about)
    thresholds = about.thresholds
    of_memory = about.metric in MEMORY  # a change over the series is a leak, or nothing
    passing = Course() if of_memory else course(about)
    found = list(passing.warnings)
    ticking, tick = clock(about)
    if ticking:
        return found + ticking
    dependent = not passing.warnings and not of_memory
    alike = neighbours_alike(about.values, thresholds) if dependent else None
    if not passing.warnings and (two := modes(about, tick.step if tick else 0.0, alike is not None)):
        return found + two
    outliers, others = far_ones(about, passing)
    found += outliers
    if alike is not None and (not outliers or neighbours_alike(others, thresholds) is not None):
        found.append(autocorrelated(about, alike))
    if not found and not (tick and tick.coarse):
        found += skewed(about)
    return found


def _all_equal(about: About) -> list[DataWarning]:
    """Warning that all values are equal; none for counts and sizes, which may well be the same every time."""
    if about.kind == "count" or about.unit == "B":
        return []
    value = about.plain(float(about.values[0]))
    return [about.warn("all-equal", facts.AllEqual(about.count, value, about.unit))]


def _not_converged(about: About, factor: float, precision: float | None) -> list[DataWarning]:
    if precision is None:
        return []
    mean = abs(float(about.values.mean()))
    interval = mean_interval(about.values, factor=factor) if about.count > 1 else None
    if interval is None or mean == 0.0:
        return [about.warn("not-converged", facts.PrecisionUnknown(precision, interval is None))]
    width = interval.half_width / mean
    if width < precision:
        return []
    more = more_trials(about.values, target=precision, factor=factor) if math.isfinite(width) else 0
    trial_s = about.plain(float(about.values.mean())) if about.metric == "elapsed" else 0.0
    reachable = within_reach(more, about.count, more * trial_s)
    return [about.warn("not-converged", facts.NotConverged(width, precision, more, reachable))]


def work_warnings(differences: Sequence[WorkDifference]) -> list[DataWarning]:
    """Signs that the tests did not do the same work, as warnings."""
    return [warning("different-work", "", "", facts.OtherWork(each)) for each in differences]


DATA = (
    "storage_read",
    "storage_written",
    "tree_read",
    "tree_written",
    "disk_read_bytes",
    "disk_write_bytes",
    "peak_memory",
    "tree_peak_memory",
)
"""Metrics of the bytes that a trial read, wrote or used."""


def failed(series: Series) -> list[DataWarning]:
    """Warning about trials whose commands failed; failures of several kinds rank higher."""
    ways: dict[str, list[int]] = {}
    for failure in series.failures:
        if not failure.of_experiment:
            ways.setdefault(failure.how, []).append(int(failure.trial))
    trials = sorted({trial for each in ways.values() for trial in each})
    if not trials:
        return []
    kept = set(series.trials[series.kept].tolist()).intersection(trials)
    kind = "failed" if len(ways) == 1 else "mixed-failures"
    by_way = tuple((how, tuple(each)) for how, each in ways.items())
    found = facts.FailedTrials(by_way, int(series.trials.size), len(kept))
    return [warning(kind, series.test, "", found, trials)]


def set_aside(series: Series) -> list[DataWarning]:
    """Warning about trials excluded for another reason than the plan or a failure."""
    broken = {int(f.trial) for f in series.failures if not f.of_experiment}
    reasons: dict[str, list[int]] = {}
    for place in np.flatnonzero(~series.kept).tolist() if series.why else ():
        trial, why = int(series.trials[place]), series.why[place]
        if trial not in broken and why not in (FIRST_RUN, CALIBRATION):
            reasons.setdefault(why or "", []).append(trial)
    if not reasons:
        return []
    found = facts.ExcludedTrials(
        tuple((why, tuple(trials)) for why, trials in reasons.items()), int(series.trials.size)
    )
    all_of_them = sorted(trial for trials in reasons.values() for trial in trials)
    return [warning("set-aside", series.test, "", found, all_of_them)]


def too_few(series: Series, metric: str, count: int, thresholds: Thresholds) -> list[DataWarning]:
    """Warnings if fewer trials have a value than are needed, or than are included."""
    kept = int(np.count_nonzero(series.kept))
    column = series.columns[metric]
    if count == 0:
        no_value = facts.NoValue(column.reason, kept, column.joined != NONE)
        return [warning("too-few", series.test, metric, no_value)]
    found = []
    if count < thresholds.few:
        found.append(warning("too-few", series.test, metric, facts.TooFew(count, thresholds.few)))
    if count < kept:
        found.append(_missing(series, metric, count, kept))
    return found


def never_begun(test: str, failure: Mapping[str, Any] | None) -> list[DataWarning]:
    """Warning that no trial of a script's test reached its EXEC; `failure`: of its last one, in experiment.json."""
    if failure is None:
        return []
    return [warning("failed", test, "", facts.NoTrialMade(str(failure["why"]), str(failure["log"])))]


def several_matches(test: str, notes: Mapping[str, str]) -> list[DataWarning]:
    """Warnings about patterns that found different values in one output; `notes`: by metric."""
    return [
        warning("several-matches", test, name, facts.SeveralMatches(text)) for name, text in notes.items()
    ]


def limited(test: str, reasons: Mapping[str, str]) -> list[DataWarning]:
    """Warning that a limit ended a script's test before its stop rule's target; `reasons`: of all such tests."""
    if test not in reasons:
        return []
    return [warning("not-converged", test, "", facts.LimitReached(reasons[test]))]


def printed(series: Series) -> list[DataWarning]:
    """Warnings about metrics to be printed that no included trial, or not every one, has a value of."""
    found = []
    for name, column in series.columns.items():
        if not is_printed(name) or column.reason is None or column.joined == NONE:
            continue
        count, kept = series.sample(name).size, int(np.count_nonzero(series.kept))
        if kept and not count:
            found.append(warning("no-match", series.test, name, facts.NoMatch(kept, column.reason)))
        elif count < kept:
            found.append(_missing(series, name, count, kept))
    return found


def _missing(series: Series, metric: str, count: int, kept: int) -> DataWarning:
    return warning("missing-values", series.test, metric, facts.MissingValues(kept - count, kept))


def caches_not_as_declared(series: Series) -> list[DataWarning]:
    """Warning about included trials whose caches were not prepared, or not in the declared state afterwards."""
    wrong: dict[int, str] = {}
    for trial, kept, cache in zip(series.trials.tolist(), series.kept.tolist(), series.caches, strict=False):
        why = _why_not(cache) if kept and cache else None
        if why is not None:
            wrong[trial] = why
    if not wrong:
        return []
    declared = next(cache["declared"] for cache in series.caches if cache)
    found = facts.CachesDiffer(declared, tuple(wrong.items()), int(np.count_nonzero(series.kept)))
    return [warning("caches", series.test, "", found, wrong)]


WARNING = 4
"""Level of the kernel's warnings; lower levels are more severe."""


def kernel_complained(series: Series) -> list[DataWarning]:
    """Warning about included trials in which the kernel warned of something, or throttled hot CPUs."""
    said: dict[int, str] = {}
    slowed: dict[int, int] = {}
    for trial, kept, found in zip(series.trials.tolist(), series.kept.tolist(), series.kernel, strict=False):
        if not kept or not found:
            continue
        if grave := [message for message in found["messages"] if message["level"] <= WARNING]:
            said[trial] = str(min(grave, key=lambda message: message["level"])["text"])
        if found["throttled"]:
            slowed[trial] = found["throttled"]
    if not said and not slowed:
        return []
    complaints = facts.KernelComplained(tuple(sorted(said.items())), tuple(sorted(slowed.items())))
    return [warning("kernel", series.test, "", complaints, sorted({*said, *slowed}))]


def _why_not(cache: Mapping[str, Any]) -> str | None:
    if cache["performed"] is None and cache["declared"] not in ("none", "warm"):
        return str(cache.get("why") or "")
    return cache.get("wrong")


def memory_cliff(series: Series, memory_bytes: int | None, thresholds: Thresholds) -> list[DataWarning]:
    """Warning about data of about the size of the memory: the named data set, or else the metric whose size is nearest
    to it."""
    share = data_share(series, memory_bytes)
    if share is not None and thresholds.memory_low <= share <= thresholds.memory_high:
        return [warning("memory-cliff", series.test, "", facts.DataNearMemory(share))]
    if not memory_bytes or memory_bytes <= 0:
        return []
    shares = [(name, share) for name, share in _shares(series, memory_bytes) if share > 0]
    near = [
        (name, share) for name, share in shares if thresholds.memory_low <= share <= thresholds.memory_high
    ]
    if not near:
        return []
    name, share = min(near, key=lambda pair: abs(pair[1] - 1.0))
    return [warning("memory-cliff", series.test, name, facts.DataNearMemory(share, memory_bytes))]


def data_share(series: Series, memory_bytes: int | None) -> float | None:
    """Size of the data set as a share of the memory, as the trial recorded it, or else of the machine's.

    None if no included trial names a data set, or the memory is unknown.
    """
    shares = []
    for kept, cache in zip(series.kept.tolist(), series.caches, strict=False):
        size = cache.get("bytes") if kept and cache else None
        memory = (cache.get("memory_bytes") if cache else None) or memory_bytes
        if isinstance(size, int) and memory:
            shares.append(size / memory)
    return float(np.median(shares)) if shares else None


def _shares(series: Series, memory_bytes: int) -> Iterable[tuple[str, float]]:
    for name in DATA:
        values = series.sample(name)
        if values.size and series.columns[name].unit == "B":
            yield name, float(np.median(values / memory_bytes))
