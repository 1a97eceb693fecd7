"""Several machines in one result: a block each, never one sample.

Comparisons are made within each machine, with equal weights. They hold for these machines only: two or three machines
do not allow an inference on others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtrc, stdtr

from etude.stats.intervals import Interval, mean_interval, standard_error, t_quantile
from etude.stats.means import ADDING_UP, Kind
from etude.stats.multiplicity import holm
from etude.stats.ratio import Ratio, ratio_of
from etude.stats.samples import check_confidence, check_positive, exponential, positive_logarithms

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DeviatingMachine:
    """A machine whose level differs from that of its peers."""

    machine: str
    ratio: float
    """Its geometric mean over that of its peers, each weighted equally."""
    low: float
    high: float
    p: float
    """p-value adjusted by Holm over the machines."""


def ratio_over_machines(
    base: ArrayLike,
    other: ArrayLike,
    machines: Sequence[str],
    *,
    kind: Kind = "ratio",
    confidence: float = 0.95,
    factor: float = 1.0,
    subtract: tuple[float, float] = (0.0, 0.0),
) -> Ratio:
    """other/base of pairs from several machines: geometric mean of the machines' own ratios.

    kind: kind of the metric; a machine's own ratio is of the means that fit it, arithmetic for costs and counts,
    harmonic for rates, else geometric.
    base, other: shape (n,) each, positive, the same index for the same pair; machines: machine of each pair, at least
    two. factor and subtract: as for `paired_ratio`. The spread is that of pairs within machines, pooled, so that ratios
    that differ between machines do not count as noise; `ratios_differ` tests for that.
    Raises ValueError for one machine, values at or below zero, or no machine with two pairs.
    Source: a randomised block design with replication, the machine as a fixed block (Montgomery, Design and Analysis of
    Experiments, chapter 4).
    """
    check_confidence(confidence)
    check_positive("factor", factor)
    cost, cost_error = subtract
    lower, upper = (np.asarray(values, dtype=np.float64) - cost for values in (base, other))
    logs = _log_ratios(lower, upper, machines, kind)
    groups = _groups(logs, machines)
    spread, degrees = _within(groups)
    sensitivity = float(np.mean(1.0 / lower - 1.0 / upper))
    error = math.hypot(_error(spread, groups), sensitivity * cost_error)
    centre = math.fsum(float(group.mean()) for group in groups) / len(groups)
    return ratio_of(centre, factor * error, degrees, int(logs.size), "paired", confidence, factor)


def unpaired_over_machines(
    base: ArrayLike,
    other: ArrayLike,
    machines: Sequence[str],
    other_machines: Sequence[str],
    *,
    kind: Kind = "ratio",
    confidence: float = 0.95,
) -> Ratio:
    """other/base of two samples taken on the same machines, but not side by side.

    base, other: shapes (n,) and (m,), positive; machines are weighted equally, and `kind` is as for
    `ratio_over_machines`. Raises ValueError if the machines differ, or none has two values. Source: as
    `ratio_over_machines`.
    """
    check_confidence(confidence)
    sides = [_by_machine(base, machines, kind), _by_machine(other, other_machines, kind)]
    if sides[0].keys() != sides[1].keys():
        raise ValueError(contrasts(sides[0], sides[1]))
    groups = [side[name] for side in sides for name in sides[0]]
    spread, degrees = _within(groups)
    off = [float(sides[1][name].mean()) - float(sides[0][name].mean()) for name in sides[0]]
    error = math.sqrt(spread * sum(1.0 / group.size for group in groups)) / len(off)
    count = min(sum(part.size for part in side.values()) for side in sides)
    return ratio_of(math.fsum(off) / len(off), error, degrees, count, "unpaired", confidence, 1.0)


def mean_over_machines(
    x: ArrayLike, machines: Sequence[str], *, confidence: float = 0.95, factor: float = 1.0
) -> Interval | None:
    """Interval of the mean of these machines' means, each weighted equally, by the spread within them.

    x: shape (n,), a machine's values in the order in which they were measured; machines: machine of each value. If no
    machine has two values, or there is one machine: `mean_interval`, with the same `factor`. None below two values.
    Source: as `ratio_over_machines`.
    """
    check_confidence(confidence)
    check_positive("factor", factor)
    values = level_machines(x, machines)
    if not is_repeated(machines):
        return mean_interval(values, confidence=confidence, factor=factor)
    degrees = values.size - len(set(machines))
    half = factor * t_quantile(confidence, degrees) * standard_error(values)
    mean = float(values.mean())
    return Interval(mean - half, mean + half)


def level_machines(x: ArrayLike, machines: Sequence[str]) -> Floats:
    """Values with the machines' own levels removed, for functions of one sample; shape (n,), in their order.

    Their mean is that of the machines' means, weighted equally, and their standard error (s/√n) that of this mean
    with the machine as a fixed block: s·√(1/n₁ + 1/n₂ + …)/k, s pooled within the k machines, with n - k degrees of
    freedom. Unless `is_repeated`, they are unchanged: differences between machines then count as noise.
    """
    values = np.asarray(x, dtype=np.float64)
    if not is_repeated(machines):
        return values
    groups = _groups(values, machines)
    means = {name: float(group.mean()) for name, group in zip(dict.fromkeys(machines), groups, strict=True)}
    off = values - np.array([means[name] for name in machines])
    stretched = math.sqrt((values.size - 1) / (values.size - len(groups)) * values.size) * _error(1.0, groups)
    found: Floats = math.fsum(means.values()) / len(groups) + stretched * off
    return found


def is_repeated(machines: Sequence[str]) -> bool:
    """True if there are several machines, at least one of them with a repeated measurement."""
    return 1 < len(set(machines)) < len(machines)


def contrasts(base: Iterable[str], other: Iterable[str]) -> str:
    """Message that tests on different machines are not compared."""
    on = [", ".join(sorted(set(names))) for names in (base, other)]
    return (
        f"one was measured on {on[0]}, the other on {on[1]}: interleave them, so that each machine runs both"
    )


def _by_machine(x: ArrayLike, machines: Sequence[str], kind: Kind) -> dict[str, Floats]:
    logs, labels = _logs(x, machines, kind), np.array(machines)
    return {name: logs[labels == name] for name in dict.fromkeys(machines)}


def _logs(x: ArrayLike, machines: Sequence[str], kind: Kind) -> Floats:
    """Logarithms; for a metric that adds up, the log of each machine's mean plus the relative deviations of its values.

    Their mean within a machine is then the logarithm of the mean that fits the metric, and their spread that of the
    delta method.
    """
    logs = positive_logarithms(x)
    if kind not in ADDING_UP:
        return logs
    sign = -1.0 if kind == "rate" else 1.0  # equal work takes times proportional to the inverse rates
    labels = np.array(machines)
    found = sign * logs
    for name in dict.fromkeys(machines):
        own = found[labels == name]
        shares = np.exp(own - own.max())
        mean = float(shares.mean())
        found[labels == name] = own.max() + math.log(mean) + shares / mean - 1.0
    return sign * found


def _error(spread: float, groups: Sequence[Floats]) -> float:
    """Standard error of the mean of the groups' means."""
    return math.sqrt(spread * sum(1.0 / group.size for group in groups)) / len(groups)


def ratios_differ(
    base: ArrayLike, other: ArrayLike, machines: Sequence[str], *, kind: Kind = "ratio"
) -> float | None:
    """p-value of the same ratio on all machines; arguments as for `ratio_over_machines`. None without variation.

    Source: F test of one-way analysis of variance on the logarithms of the pairs' ratios.
    """
    groups = _groups(_log_ratios(base, other, machines, kind), machines)
    spread, degrees = _within(groups)
    mean = float(np.concatenate(groups).mean())
    between = sum(group.size * (float(group.mean()) - mean) ** 2 for group in groups) / (len(groups) - 1)
    if spread == 0.0:
        return None if between == 0.0 else 0.0
    return float(fdtrc(len(groups) - 1, degrees, between / spread))


def deviating_machines(
    x: ArrayLike,
    machines: Sequence[str],
    sessions: Sequence[int] | None = None,
    *,
    level: float = 0.01,
    least: float = 0.01,
    confidence: float = 0.95,
) -> tuple[DeviatingMachine, ...]:
    """Machines whose level differs from that of their peers, the farthest first; of two, only the second is reported.

    x: shape (n,), positive. If some machine has several sessions, the spread within a machine is that of their means,
    else that of the trials. level: level of p, adjusted by Holm over the machines. least: smallest relative difference
    that counts. Empty for one machine, and without repetition within a machine. Raises ValueError for values at or
    below zero.
    Source: contrasts of each group with the mean of the others, on logarithms, with the pooled variance.
    """
    logs = positive_logarithms(x)
    names = list(dict.fromkeys(machines))
    parts = [_units(logs, machines, sessions, name) for name in names]
    degrees = sum(part.size for part in parts) - len(parts)
    if len(names) < 2 or degrees < 1:
        return ()
    spread, _ = _within(parts)
    found = [_contrast(parts, at) for at in range(len(parts))]
    p = [_p(off, math.sqrt(spread * per), degrees) for off, per in found]
    adjusted = [each.adjusted for each in holm(p[1:] if len(p) == 2 else p)]
    half = t_quantile(confidence, degrees) * math.sqrt(spread)
    told = []
    for name, (off, per), chance in zip(
        names[-len(adjusted) :], found[-len(adjusted) :], adjusted, strict=True
    ):
        if chance is not None and chance < level and abs(off) >= math.log1p(least):
            low, ratio, high = (exponential(off + sign * half * math.sqrt(per)) for sign in (-1, 0, 1))
            told.append(DeviatingMachine(name, ratio, low, high, chance))
    return tuple(sorted(told, key=lambda each: -abs(math.log(each.ratio))))


def _units(logs: Floats, machines: Sequence[str], sessions: Sequence[int] | None, name: str) -> Floats:
    """Repeated values within a machine: its sessions' means if some machine has several, else its trials."""
    of = np.array([machine == name for machine in machines], dtype=np.bool_)
    several = sessions is not None and len(set(zip(machines, sessions, strict=True))) > len(set(machines))
    if not several:
        return logs[of]
    numbers = np.asarray(sessions)
    return np.array([logs[of & (numbers == each)].mean() for each in np.unique(numbers[of])])


def _contrast(parts: Sequence[Floats], at: int) -> tuple[float, float]:
    """One group's mean minus the mean of the others' means, and its variance per unit variance of a single value."""
    others = [part for place, part in enumerate(parts) if place != at]
    off = float(parts[at].mean()) - math.fsum(float(part.mean()) for part in others) / len(others)
    return off, 1.0 / parts[at].size + sum(1.0 / part.size for part in others) / len(others) ** 2


def _p(off: float, error: float, degrees: float) -> float:
    if error == 0.0:
        return 1.0 if off == 0.0 else 0.0
    return 2.0 * float(stdtr(degrees, -abs(off) / error))


def _log_ratios(base: ArrayLike, other: ArrayLike, machines: Sequence[str], kind: Kind) -> Floats:
    lower, upper = positive_logarithms(base), positive_logarithms(other)
    if lower.size != upper.size:
        raise ValueError(f"ratio of pairs needs equally many values, not {lower.size} and {upper.size}")
    return _logs(other, machines, kind) - _logs(base, machines, kind)


def _groups(logs: Floats, machines: Sequence[str]) -> list[Floats]:
    names = list(dict.fromkeys(machines))
    if len(names) < 2:
        raise ValueError("several machines are two at least")
    labels = np.array(machines)
    return [logs[labels == name] for name in names]


def _within(groups: Sequence[Floats]) -> tuple[float, float]:
    """Pooled variance within groups, and its degrees of freedom. Raises ValueError if no group has two values."""
    degrees = sum(group.size - 1 for group in groups)
    if degrees < 1:
        raise ValueError("no machine has two values: nothing is known of the spread within one")
    return math.fsum(float(((group - group.mean()) ** 2).sum()) for group in groups) / degrees, float(degrees)
