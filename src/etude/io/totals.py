"""The reading of a sweep over total sizes: static against dynamic linking (L41 Lab 1 notes, Figures 2 and 3)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
from scipy.special import ndtr

from etude.io.landmarks import size_text
from etude.io.points import Points, Swept
from etude.report.text import p_value, percent, quantity
from etude.stats import crossings
from etude.stats.ranks import mann_whitney
from etude.stats.twosample import student

LEVELS = (1.05, 1.01)
FIRST = 10
ALPHA = 0.05

CAVEATS = (
    "on axes that are both logarithmic, two curves seem to become one long before they are: read the ratio below",
    "a small p says that a difference is there, not that it is large: look at the ratio beside it",
    "Student's t test supposes values that are spread evenly around their mean, which times seldom are",
    "the time is that of the whole program, from its start to its end; the program prepares nothing and prints nothing",
)


def findings(swept: Swept) -> Iterator[str]:
    """Sentences, the most important first: every other curve against the first."""
    base, *others = swept.curves
    for other in others:
        common = np.intersect1d(base.sizes, other.sizes)
        if common.size:
            yield from _ratios(base, other, common)
            yield from _significance(base, other, common)
        else:
            yield f"{base.name} and {other.name}: no size has trials of both."
    if not others:
        yield f"{base.name}: a single curve has nothing to be compared with."


def _ratios(base: Points, other: Points, common: np.ndarray) -> Iterator[str]:
    for size in (common[0], common[-1]):
        a, b = _pair(base, other, size)
        yield (
            f"{size_text(size)}: {base.name} {quantity(a, 's')}, {other.name} {quantity(b, 's')}, which is "
            f"{b / a:.3f} times that."
        )
    p = p_over_sizes(base, other, common)
    if p >= ALPHA:
        yield (
            f"No difference between {base.name} and {other.name} is shown: over all sizes {p_value(p)} "
            "(Mann-Whitney at each size, added up)."
        )
        return
    yield _difference(base, other, common)
    for level in LEVELS if common.size > 1 else ():
        yield _crossing(base, other, common, level)


def p_over_sizes(base: Points, other: Points, common: np.ndarray) -> float:
    """Whether one of two programs takes longer: rank sums at each size, added up over sizes (a stratified Wilcoxon
    test, by its normal approximation), or at the clearest single size with all sizes paid for; either at half of the
    level, so that the smaller p counts twice."""
    off, variance, least = 0.0, 0.0, 1.0
    for size in common:
        a, b = base.at(size), other.at(size)
        n, m = a.size, b.size
        found = mann_whitney(a, b)
        off += found.statistic - n * m / 2
        variance += n * m * (n + m + 1) / 12
        least = min(least, found.p)
    both = 2.0 * float(ndtr(-abs(off) / math.sqrt(variance)))
    return min(1.0, 2.0 * min(both, least * len(common)))


def _pair(base: Points, other: Points, size: float) -> tuple[float, float]:
    return float(np.median(base.at(size))), float(np.median(other.at(size)))


def _difference(base: Points, other: Points, common: np.ndarray) -> str:
    """What the other takes more: one number where it is the same at every size, as far as these trials tell."""
    differences, low, high = [], [], []
    for size in common:
        a, b = base.at(size), other.at(size)
        differences.append(float(np.median(b) - np.median(a)))
        low.append(float(np.quantile(b, 0.25) - np.quantile(a, 0.75)))
        high.append(float(np.quantile(b, 0.75) - np.quantile(a, 0.25)))
    middle = float(np.median(differences))
    if max(low) <= middle <= min(high):
        return f"{other.name} takes {_more(middle)} than {base.name}, however much is read, by these trials."
    least, most = _more(min(differences)), _more(max(differences))
    return f"{other.name} takes {least} to {most} than {base.name}, by size; the median is {_more(middle)}."


def _more(seconds: float) -> str:
    return f"{quantity(abs(seconds), 's')} {'more' if seconds >= 0 else 'less'}"


def _crossing(base: Points, other: Points, common: np.ndarray, level: float) -> str:
    """From where on the slower of the two, at the smallest size, is slower by less than a share."""
    first, second = _pair(base, other, common[0])
    quick, slow = (base, other) if second >= first else (other, base)
    quicks, slows = [quick.at(size) for size in common], [slow.at(size) for size in common]
    found = crossings.crossing(common, quicks, slows, level)
    share = f"{100 * (level - 1):.0f} %"
    if found.at is None:
        least, most = _pair(quick, slow, common[-1])
        if most >= level * least:
            return f"The difference does not fall below {share} up to {size_text(common[-1])}."
        return f"The difference is below {share} from {size_text(common[0])} on."
    if found.interval is not None:
        low, high = size_text(found.interval.low), size_text(found.interval.high)
        where = f"at {low}" if low == high else f"between {low} and {high}"
        return f"The difference falls below {share} {where} (95 %; by the medians at {size_text(found.at)})."
    by_medians = f"by the medians at {size_text(found.at)}, but {crossings.without_size(found)}"
    return f"Where the difference falls below {share} is not settled: {by_medians}."


def _significance(base: Points, other: Points, common: Sequence[float] | np.ndarray) -> Iterator[str]:
    """What a t test says of the first trials and of all of them, beside the size of the difference."""
    fewest = min(sample.size for curve in (base, other) for sample in curve.samples)
    for count in (FIRST, None) if fewest > FIRST else (None,):
        tested = {}
        for size in common:
            a, b = base.at(size)[:count], other.at(size)[:count]
            if min(a.size, b.size) >= 2:
                with suppress(ValueError):  # none of them varies
                    tested[float(size)] = student(a, b).p
        if not tested:
            continue
        below = [size for size, p in tested.items() if p < ALPHA]
        name = f"the first {count} trials" if count else "all trials"
        text = f"By {name} p is below {ALPHA:g} at {len(below)} of {len(tested)} sizes"
        if below:
            first, second = _pair(base, other, below[-1])
            text += f"; the largest is {size_text(below[-1])}, where the medians differ by "
            text += percent(abs(second / first - 1))
        yield f"{text}."
