"""What the values of a series look like: too coarse, two groups, far ones, neighbours alike, skewed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from etude.analysis.warnings.thresholds import Thresholds
from etude.analysis.warnings.trend import Course, other_ends
from etude.analysis.warnings.values import About, Floats, named, signed, size
from etude.analysis.warnings.warning import DataWarning
from etude.stats.intervals import autocorrelation
from etude.stats.outliers import outlier_places
from etude.stats.shape import Groups, Ticks, groups, normality, ticks
from etude.stats.warmup import LevelShift
from etude.units.formatting import counted

FEW_OUTLIERS = 2
"""So many are never called a distribution, however few the trials."""
TIMES = ("s", "ms", "us", "µs", "ns", "min", "h")
"""Units of what a clock counts."""


def clock(about: About, resolution: float | None) -> tuple[list[DataWarning], Ticks | None]:
    """What the clock's tick is too large for, and the step that all values are multiples of.

    Of a time: a trial that is too short for it, else a spread that is; of a rate the latter only. The steps of other
    quantities are their nature.
    """
    step = None if resolution is None else resolution / about.scale
    if step == math.inf:  # values so small that no clock of ours has counted them
        return [], None
    found = ticks(about.values, resolution=step)
    if found is None:
        return [], None
    of_time = about.unit in TIMES
    one = about.shown(found.step)
    share = found.share * about.thresholds.ticks
    if of_time and share > 1.0:
        text = (
            f"a trial's {about.metric} of {about.shown(float(np.median(about.values)))} is {1 / found.share:.3g} ticks "
            f"of {one}: not known within {size(1 / about.thresholds.ticks)}"
        )
        longer = f"{math.ceil(share):,} times as long" if math.isfinite(share) else "much longer"
        return [
            about.warn("too-short", text, f"make a trial {longer}", times=share, ticks=1 / found.share)
        ], found
    if found.coarse and (of_time or about.kind == "rate"):
        text = f"{about.metric} is counted in steps of {one}, as large as its spread"
        advice = "read a finer clock or make trials longer" if of_time else "have it printed with more digits"
        return [
            about.warn("coarse-clock", text, advice, step=about.plain(found.step), unit=about.unit)
        ], found
    return [], found


def modes(about: About, step: float, alike: bool) -> list[DataWarning]:
    """Two groups, at least as far apart as matters; `alike`: neighbours tend to be of the same."""
    found = groups(about.values, step=step)
    if found is None or not _far_enough(found, about):
        return []
    (few, many), (low, high) = found.counts, found.centres
    text = (
        f"{about.metric} falls into two groups: {few} of {about.count} trials near {about.shown(low)}, {many} near "
        f"{about.shown(high)}" + (", and neighbours tend to be in the same" if alike else "")
    )
    return [
        about.warn(
            "bimodal",
            text,
            "find what the groups differ in; report both centres rather than the mean",
            few=few,
            many=many,
            low=about.plain(low),
            high=about.plain(high),
            unit=about.unit,
        )
    ]


def _far_enough(found: Groups, about: About) -> bool:
    middle = abs(float(np.median(about.values)))
    return found.centres[1] - found.centres[0] > about.thresholds.bimodal * middle


def neighbours_alike(values: Floats, thresholds: Thresholds) -> float | None:
    """What the trials are worth where neighbours resemble each other enough to matter, else None."""
    r, n = autocorrelation(values), values.size
    if n < 3 or r <= float(ndtri(1.0 - thresholds.autocorrelation)) / math.sqrt(n):
        return None
    worth = max(2.0, n * (1.0 - r) / (1.0 + r))
    return worth if worth < thresholds.worth * n else None


def autocorrelated(about: About, worth: float) -> DataWarning:
    """That neighbours resemble each other, and what that costs."""
    text = (
        f"{about.metric} of neighbouring trials is alike: {about.count} trials are worth {worth:.0f} independent ones, "
        "for which the interval is widened, though still too little where they are much alike"
    )
    advice = "let the machine settle between trials, or restart what outlives them"
    return about.warn("autocorrelated", text, advice, of=about.count, worth=worth)


def far_ones(about: About, course: Course) -> tuple[list[DataWarning], Floats]:
    """The outliers among the trials that are not at an end which is another level, and the values without them.

    On logarithms, so that a slow tail is none, and those below the median on the plain values as well, so that
    logarithms make none of the quickest. Two or more that all stand at one end are another level. A value nearer to
    the median than matters is none, and a tenth of the trials or more are a distribution.
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
        ends = LevelShift(*level, off, off if level[1] else 0.0, "outliers, all of them there")
        return [other_ends(about, ends)], others
    farthest = float(values[found[np.argmax(np.abs(values[found] - middle))]])
    shift = (farthest - middle) / abs(middle) if middle else 0.0
    numbers: dict[str, Any] = {"count": int(found.size), "of": about.count, "farthest": shift}
    on_one_level = ""
    if values.size < about.count:
        numbers |= {"among": int(values.size)}
        on_one_level = " on one level"
    farthest_of = f", the farthest {signed(shift)} their median" if middle else ""
    if found.size > max(FEW_OUTLIERS, about.thresholds.outlier_share * values.size):
        text = (
            f"{found.size} of {values.size} values of {about.metric}{on_one_level} lie far from the others"
            f"{farthest_of}: too many for outliers, a heavy tail or another state"
        )
        advice = "compare medians and percentiles, not only means"
        return [about.warn("heavy-tail", text, advice, **numbers)], others
    trials = [int(t) for t in about.places[found + course.first]]
    what = counted(len(trials), "outlier")
    text = f"{what} among {values.size} trials{on_one_level} by {about.metric} ({named(trials)}{farthest_of}); kept"
    advice = "look at what ran beside them, and see whether median and mean agree"
    return [about.warn("outliers", text, advice, trials, **numbers)], others


def _at_one_end(places: NDArray[np.intp], n: int) -> tuple[int, int] | None:
    """How many of the first and the last trials they are, where they are two or more and nothing else."""
    count = int(places.size)
    if count < 2 or int(places[-1]) - int(places[0]) != count - 1:
        return None
    if int(places[0]) == 0:
        return count, 0
    return (0, count) if int(places[-1]) == n - 1 else None


def skewed(about: About) -> list[DataWarning]:
    """Not normal, and too few for Student's interval of so skewed values to hold nevertheless."""
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
    text = (
        f"{about.metric} is not normal (Shapiro–Wilk p = {found.p:.2g}, skewness {skewness:.1f}) and {n} trials are "
        f"few for the interval of its mean; of log-normal values of 30 % that check notices {100 * found.power:.0f} % "
        "at this number (at p < .05)"
    )
    advice = "for a typical run rely on the median and its interval; for the mean make many more trials"
    return [about.warn("not-normal", text, advice, p=found.p, skewness=skewness)]
