"""Variance components of a result: trials within processes, sessions, boots, builds and machines.

More trials in one session narrow only the interval of that session's mean. The interval is therefore over the outermost
level that was varied, whose groups are the independent draws.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from etude.stats.intervals import Interval, t_quantile
from etude.stats.means import FITTING, Kind
from etude.stats.moments import deviation_of, interval_above_zero, interval_of_mean, mean_of
from etude.stats.samples import check_confidence, exponential, finite_sample

LEVELS = ("trial", "process", "sitting", "boot", "build", "machine")
"""Levels from the innermost to the outermost."""
LEVEL_WORDS = {"sitting": "session"}
"""Names of levels in sentences, if different."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Component:
    """Variance component of one level for a single trial."""

    level: str
    groups: int
    """Total number of different trials, sessions, …."""
    variance: float | None
    """Variance in the squared unit of the values, at least 0; None if it is confounded with an outer level's."""
    share: float | None
    """Share of the sum of all known components."""
    reason: str | None
    """Reason why the variance is unknown."""


@dataclass(frozen=True)
class Split:
    """Variance by level, and the mean with its interval over the outermost level that was varied."""

    components: tuple[Component, ...]
    """Components in order from "trial" outwards."""
    over: str
    """Level of the interval."""
    groups: int
    """Number of groups of that level."""
    mean: float
    """Mean of the means of those groups, each weighted equally; in the unit of the values."""
    interval: Interval | None
    """None for a single trial. For `split_by_kind` within the possible range, as `means.Average.interval`."""


def split_variance(
    x: ArrayLike, labels: Mapping[str, Sequence[Hashable]], *, confidence: float = 0.95, factor: float = 1.0
) -> Split:
    """Variance of `x`, shape (n,), in order of time, split over the labelled levels.

    labels: for each known level of process, session, boot, build and machine, its label in every trial; the same boot
    label on two machines is two boots. factor: widening factor of the stop rule, used if the interval is over trials.
    Raises ValueError for an empty sample, unknown levels, and a wrong number of labels.
    Source: nested analysis of variance with unequal counts, components by equating mean squares with their expectations
    (Searle, Casella and McCulloch 1992, chapter 5, "Henderson's method I"); negative ones are 0.
    """
    check_confidence(confidence)
    values = finite_sample(x)
    names = _checked(values, labels)
    groupings = _nested(values.size, names, labels)
    scale = float(np.max(np.abs(values))) or 1.0
    components = _components(values / scale, groupings, names, scale)
    varied = [name for name in names if groupings[name].max() > 0]
    over = varied[0] if varied else "trial"
    if over == "trial":
        interval = interval_of_mean(values, confidence=confidence, factor=factor)
        return Split(components, over, int(values.size), mean_of(values), interval)
    means = group_means(values, groupings[over])
    mean = mean_of(means)
    half = t_quantile(confidence, means.size - 1) * deviation_of(means) / math.sqrt(means.size)
    return Split(components, over, int(means.size), mean, Interval(mean - half, mean + half))


def split_by_kind(
    x: ArrayLike,
    kind: Kind,
    labels: Mapping[str, Sequence[Hashable]],
    *,
    confidence: float = 0.95,
    factor: float = 1.0,
) -> Split:
    """`split_variance`, with the mean that fits a metric of this kind: its interval is formed on the scale on which
    values add up.

    That is times for rates, logarithms for ratios. The components are those of the values themselves.
    Raises ValueError also for rates and ratios at or below zero.
    """
    found = split_variance(x, labels, confidence=confidence, factor=factor)
    values = finite_sample(x)
    which = FITTING[kind]
    if which == "arithmetic" and not bool(np.any(values < 0.0)):
        return replace(found, interval=interval_above_zero(found.interval, found.mean, found.groups))
    if which in ("arithmetic", "proportion"):
        return found
    if bool(np.any(values <= 0.0)):
        raise ValueError(f"this mean needs values above zero: the smallest is {values.min():g}")
    scale = float(values.min()) if which == "harmonic" else 1.0
    inner = split_variance(
        scale / values if which == "harmonic" else np.log(values),
        labels,
        confidence=confidence,
        factor=factor,
    )
    limits = inner.interval
    if which == "geometric":
        interval = limits and Interval(exponential(limits.low), exponential(limits.high))
        return replace(found, mean=exponential(inner.mean), interval=interval)
    limits = interval_above_zero(limits, inner.mean, inner.groups)
    interval = limits and Interval(scale / limits.high, scale / limits.low)
    return replace(found, mean=scale / inner.mean, interval=interval)


def at_least_as_wide(found: Split, mean: float, by_trials: Interval | None) -> Split:
    """The split with its interval extended to at least that of the trials' own mean.

    Few groups may agree by chance more closely than their trials allow, and their interval would then be far too
    narrow: its coverage is right over all experiments, but not in those.
    """
    if found.interval is None or by_trials is None:
        return found
    low = min(found.interval.low, found.mean - (mean - by_trials.low))
    if low <= 0.0 < min(found.interval.low, by_trials.low):
        low = min(found.interval.low, by_trials.low)
    return replace(
        found, interval=Interval(low, max(found.interval.high, found.mean + by_trials.high - mean))
    )


def group_means(values: Floats, groups: NDArray[np.intp]) -> Floats:
    """Mean of the values of each group, in the order of the groups' numbers (0, 1, …)."""
    scale = float(np.max(np.abs(values))) or 1.0
    sums = np.bincount(groups, weights=values / scale)
    found: Floats = sums / np.bincount(groups) * scale
    return found


def _checked(values: Floats, labels: Mapping[str, Sequence[Hashable]]) -> list[str]:
    """The labelled levels, outermost first, and "trial"."""
    if values.size == 0:
        raise ValueError("a sample without values has no variance to split")
    for name, given in labels.items():
        if name not in LEVELS[1:]:
            raise ValueError(f"a level is one of {', '.join(LEVELS[1:])}, not {name!r}")
        if len(given) != values.size:
            raise ValueError(f"{values.size} values need as many labels of their {name}, not {len(given)}")
    return [name for name in reversed(LEVELS) if name in labels or name == "trial"]


def _nested(
    n: int, names: Sequence[str], labels: Mapping[str, Sequence[Hashable]]
) -> dict[str, NDArray[np.intp]]:
    """Group number of each trial for every level, in order of first appearance."""
    found = {}
    groups: Sequence[int] = [0] * n
    for name in names:
        if name == "trial":
            found[name] = np.arange(n, dtype=np.intp)
            continue
        numbers: dict[tuple[int, Hashable], int] = {}
        keys = zip(groups, labels[name], strict=True)
        groups = [numbers.setdefault(key, len(numbers)) for key in keys]
        found[name] = np.array(groups, dtype=np.intp)
    return found


def _components(
    values: Floats, groupings: Mapping[str, NDArray[np.intp]], names: Sequence[str], scale: float
) -> tuple[Component, ...]:
    """Components solved from the trials outwards: E[SS of a level] is a sum over itself and the levels within it."""
    chain = [np.zeros(values.size, dtype=np.intp), *(groupings[name] for name in names)]
    known: dict[int, float] = {}
    found: list[Component] = []
    for i in range(len(names), 0, -1):
        groups, parents = chain[i], chain[i - 1]
        count = int(groups.max()) + 1
        degrees = count - int(parents.max()) - 1
        if degrees == 0:
            above, this = (LEVEL_WORDS.get(name, name) for name in (names[i - 2], names[i - 1]))
            reason = f"each {above} has one {this}" if i > 1 else f"there is one {this}"
            found.append(Component(names[i - 1], count, None, None, reason))
            continue
        squares = float(
            np.sum((group_means(values, groups)[groups] - group_means(values, parents)[parents]) ** 2)
        )
        own = _weight(chain[i], groups) - _weight(chain[i], parents)
        inner = sum(v * (_weight(chain[j], groups) - _weight(chain[j], parents)) for j, v in known.items())
        known[i] = max(0.0, (squares - inner) / own)
        found.append(Component(names[i - 1], count, known[i], None, None))
    total = sum(known.values())
    return tuple(
        Component(
            c.level,
            c.groups,
            None if c.variance is None else c.variance * scale * scale,
            c.variance / total if c.variance is not None and total > 0.0 else None,
            c.reason,
        )
        for c in found
    )


def _weight(inner: NDArray[np.intp], groups: NDArray[np.intp]) -> float:
    counts, sizes = np.bincount(inner).astype(np.float64), np.bincount(groups)
    outer = np.zeros(counts.size, dtype=np.intp)
    outer[inner] = groups
    return float(np.sum(counts**2 / sizes[outer]))
