"""Warnings about the shape of a series' values: coarse, two groups, outliers, autocorrelated, skewed."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from etude.analysis.warnings import facts
from etude.analysis.warnings.thresholds import Thresholds
from etude.analysis.warnings.trend import Course, other_ends
from etude.analysis.warnings.values import About, Floats
from etude.analysis.warnings.warning import DataWarning
from etude.stats.intervals import autocorrelation
from etude.stats.outliers import outlier_places
from etude.stats.shape import Groups, Ticks, groups, normality, ticks
from etude.stats.warmup import LevelShift

AT_ONE_END = "outliers"
"""Method of a level shift that consists of outliers."""
FEW_OUTLIERS = 2
"""Number of outliers that are never called a distribution, however few the trials."""
TIMES = ("s", "ms", "us", "µs", "ns", "min", "h")
"""Units of quantities that a clock counts."""


def clock(about: About, resolution: float | None) -> tuple[list[DataWarning], Ticks | None]:
    """Warning about a clock with too large a tick, and the step that all values are multiples of.

    For a time, the trial may be too short for the tick, or else the spread too small; for a rate only the latter
    counts. Other quantities have steps by nature.
    """
    step = None if resolution is None else resolution / about.scale
    if step == math.inf:  # too small for values counted by a clock
        return [], None
    found = ticks(about.values, resolution=step)
    if found is None:
        return [], None
    of_time = about.unit in TIMES
    tick = about.plain(found.step)
    times = found.share * about.thresholds.ticks
    if of_time and times > 1.0:
        median, within = about.plain(float(np.median(about.values))), 1 / about.thresholds.ticks
        short = facts.TooShort(median, tick, about.unit, 1 / found.share, within, times)
        return [about.warn("too-short", short)], found
    if found.coarse and (of_time or about.kind == "rate"):
        return [about.warn("coarse-clock", facts.CoarseClock(tick, about.unit, of_time))], found
    return [], found


def modes(about: About, step: float, alike: bool) -> list[DataWarning]:
    """Warning about two groups that are far enough apart; `alike`: consecutive trials tend to share a group."""
    found = groups(about.values, step=step)
    if found is None or not _far_enough(found, about):
        return []
    (few, many), (low, high) = found.counts, found.centres
    two = facts.TwoGroups(few, many, about.plain(low), about.plain(high), about.unit, about.count, alike)
    return [about.warn("bimodal", two)]


def _far_enough(found: Groups, about: About) -> bool:
    middle = abs(float(np.median(about.values)))
    return found.centres[1] - found.centres[0] > about.thresholds.bimodal * middle


def neighbours_alike(values: Floats, thresholds: Thresholds) -> float | None:
    """Effective number of trials, if they are autocorrelated enough to matter; else None."""
    r, n = autocorrelation(values), values.size
    if n < 3 or r <= float(ndtri(1.0 - thresholds.autocorrelation)) / math.sqrt(n):
        return None
    worth = max(2.0, n * (1.0 - r) / (1.0 + r))
    return worth if worth < thresholds.worth * n else None


def autocorrelated(about: About, worth: float) -> DataWarning:
    """Warning that consecutive trials are autocorrelated, with the effective number of trials."""
    return about.warn("autocorrelated", facts.AutocorrelatedTrials(about.count, worth))


def far_ones(about: About, course: Course) -> tuple[list[DataWarning], Floats]:
    """Warning about outliers among the trials outside level shifts at the ends, and the values without them.

    The test uses logarithms, so that a slow tail has no outliers; values below the median must also be outliers on
    the plain scale, so that logarithms make none of the quickest. Two or more that are all at one end are a level
    shift. A value too near to the median is no outlier, and more than a tenth of the trials are a distribution.
    """
    values = about.values[course.first : about.count - course.last]
    found = outlier_places(values, level=about.thresholds.outliers)
    middle = float(np.median(values)) if found.size else 0.0
    if bool(np.any(values[found] < middle)) and bool(np.all(values > 0.0)):
        plainly = outlier_places(-values, level=about.thresholds.outliers)
        found = found[(values[found] > middle) | np.isin(found, plainly)]
    found = found[np.abs(values[found] - middle) > about.thresholds.outlier_distance * abs(middle)]
    if not found.size:
        return [], values
    others = np.delete(values, found)
    level = _at_one_end(found, values.size) if len(set(np.sign(values[found] - middle))) == 1 else None
    if level is not None and middle and not course.warnings:
        between = float(np.median(others)) or middle
        off = (float(values[found].mean()) - between) / abs(between)
        ends = LevelShift(*level, off, off if level[1] else 0.0, AT_ONE_END)
        return [other_ends(about, ends)], others
    farthest = float(values[found[np.argmax(np.abs(values[found] - middle))]])
    shift = (farthest - middle) / abs(middle) if middle else 0.0
    among = int(values.size) if values.size < about.count else None
    far = facts.FarValues(int(found.size), about.count, shift, among)
    if found.size > max(FEW_OUTLIERS, about.thresholds.outlier_share * values.size):
        return [about.warn("heavy-tail", far)], others
    return [about.warn("outliers", far, [int(t) for t in about.places[found + course.first]])], others


def _at_one_end(places: NDArray[np.intp], n: int) -> tuple[int, int] | None:
    """Number of first and of last trials, if the places are two or more at one end and nothing else; else None."""
    count = int(places.size)
    if count < 2 or int(places[-1]) - int(places[0]) != count - 1:
        return None
    if int(places[0]) == 0:
        return count, 0
    return (0, count) if int(places[-1]) == n - 1 else None


def skewed(about: About) -> list[DataWarning]:
    """Warning about non-normal values too few for Student's interval to hold at their skewness."""
    values, n, thresholds = about.values, about.count, about.thresholds
    if n < 3:
        return []
    centred = values - values.mean()
    spread = math.sqrt(float(centred @ centred) / n)
    if spread == 0.0:
        return []
    skewness = float(np.mean((centred / spread) ** 3))
    if n > thresholds.skewness * skewness**2:
        return []
    found = normality(values)
    if found is None or found.p >= thresholds.normality:
        return []
    return [about.warn("not-normal", facts.SkewedValues(found.p, skewness, n, found.power))]
