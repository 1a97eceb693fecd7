"""All warnings about one metric of one test, without those that another cause explains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from etude.analysis.comparison import within_reach
from etude.analysis.output_equivalence import WorkDifference
from etude.analysis.pairs import machines_of
from etude.analysis.warnings import facts
from etude.analysis.warnings.shapes import autocorrelated, clock, far_ones, modes, neighbours_alike, skewed
from etude.analysis.warnings.thresholds import Thresholds
from etude.analysis.warnings.trend import MEMORY, Course, course, leaks
from etude.analysis.warnings.trials import (
    caches_not_as_declared,
    failed,
    kernel_complained,
    memory_cliff,
    printed,
    set_aside,
    too_few,
)
from etude.analysis.warnings.values import About, tamed
from etude.analysis.warnings.warning import DataWarning, warning
from etude.results.series import Series
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
    resolution: float | None = None,
    watched: Sequence[str] = (),
) -> list[DataWarning]:
    """Warnings about a test and one of its metrics, most important first.

    factor: widening of the mean's interval by the stop rule. precision: requested relative margin of error.
    memory_bytes: of the machine. resolution: of the clock, in the metric's unit, if known. watched: other metrics to
    check for a trend. Warnings that do not depend on the metric come with each metric; `ranked` keeps them once.
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
            found += _of_each_machine(series, metric, thresholds, resolution)
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


def _of_each_machine(
    series: Series, metric: str, thresholds: Thresholds, resolution: float | None
) -> list[DataWarning]:
    """Warnings about the values of each machine alone; together they may have a shape that none of them has."""
    names = list(dict.fromkeys(machines_of(series, metric)))
    if len(names) < 2:
        return _about_values(_about(series, metric, thresholds), resolution)
    found = []
    for name in names:
        there = np.array([machine == name for machine in series.labels["machine"]])
        about = _about(replace(series, kept=series.kept & there), metric, thresholds)
        found += [replace(each, machine=name) for each in _about_values(about, resolution)]
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


def _about_values(about: About, resolution: float | None) -> list[DataWarning]:
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
    ticking, tick = clock(about, resolution)
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
