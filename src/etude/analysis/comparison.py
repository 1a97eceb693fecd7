"""The ratio of one test's metric to another's, its interval and what limits it; and the values of both in pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress
from typing import NamedTuple, TypeGuard

import numpy as np

from etude.results.series import Column, Floats, Series
from etude.stats.equivalence import Equivalence
from etude.stats.intervals import Interval
from etude.stats.levels import group_means
from etude.stats.means import Mean
from etude.stats.ranks import Shift
from etude.stats.ratio import Ratio, further_range
from etude.units.formatting import DAY_S, HOUR_S


@dataclass(frozen=True)
class NoComparison:
    """Tests for which a requested metric is not compared."""

    metric: str
    tests: tuple[str, ...]
    base: str
    """Test that they were to be compared with; empty where they lack the metric."""
    reason: str
    """Reason why their values have no ratio; empty where they lack the metric."""
    difference: Interval | None = None
    """Interval of the difference of the means, in `unit`; None if there is none."""
    unit: str = ""
    confidence: float = 0.0
    """Level of the interval, over all planned comparisons together."""


@dataclass(frozen=True)
class Secondary:
    """Ratio of another metric of two compared tests, beside the judged one."""

    metric: str
    ratio: Ratio
    adjusted_p: float | None
    """p of the ratio, adjusted by Benjamini-Hochberg over all secondary metrics of all comparisons."""
    unsteady: bool = False
    """True if the baseline differs from itself in this metric, so that a difference is not due to the tests."""


@dataclass(frozen=True)
class OnMachine:
    """A ratio on one of several machines."""

    machine: str
    pairs: int
    ratio: Ratio | None
    """None for a single pair."""


@dataclass(frozen=True)
class Comparison:
    """Ratio of one test's metric to the baseline's, with its precision."""

    base: str
    other: str
    metric: str
    unit: str
    base_mean: float
    ratio: Ratio
    floor: float | None
    """A/A noise: relative margin of error of as many pairs of identical commands; None below five A/A pairs."""
    floor_pairs: int
    floor_ratio: Ratio | None
    """Ratio of the baseline to itself (A/A)."""
    asked: float | None
    """Requested relative margin of error of `ratio`; None for a fixed number of trials."""
    finer: float
    """Target margin of error of `more`: the requested one if it was missed, else a finer one."""
    more: int
    """Further pairs that reach `finer`."""
    more_s: float
    """Wall-clock time of `more` pairs (s), including what runs between trials."""
    contention: bool
    """True if both tests ran at the same time: a ratio under contention."""
    which: Mean = "arithmetic"
    """Kind of `base_mean`: the mean that fits the metric's kind."""
    base_mean_over: str = "trial"
    """Level whose groups count once each in `base_mean`: "sitting", "boot", … or "trial"."""
    sittings: int = 1
    """Number of sessions in which the pairs, or trials, were measured."""
    difference: Interval | None = None
    """Interval of the difference of the means, other - base, in the metric's unit: paired, or Welch's; None where
    values do not add up."""
    shift: Shift | None = None
    """other/base by ranks: Hodges and Lehmann's, with Wilcoxon's or Mann and Whitney's p."""
    equivalence: Equivalence | None = None
    """Result of the equivalence test (`--same-within`); None without that option."""
    machines: tuple[OnMachine, ...] = ()
    """Ratio per machine, where pairs come from several; `ratio` is then their mean, each machine weighted equally."""
    machines_p: float | None = None
    """p of the hypothesis that the ratio is the same on all machines."""
    secondary: tuple[Secondary, ...] = ()
    uncompared: tuple[str, ...] = ()
    """Other metrics of both tests that have no ratio, since a value is 0 or below."""
    same_in_pairs: bool = False
    """True if values vary but the ratio of every pair is the same, so that it has no interval."""
    typical: Ratio | None = None
    """Ratio of geometric means, beside a `ratio` of arithmetic or harmonic means."""
    quieter: QuieterMetric | None = None
    """Another metric with a much more precise ratio from the same trials; only for the elapsed time."""
    trials: int | None = None
    """Number of values that the ratio rests on: the fewer of both tests, counted per trial of each machine or process;
    None if unknown."""
    most_trials: int | None = None
    """Number of values of the larger test, in an unpaired comparison."""
    extended: bool = False
    """True if the number of trials was raised after the requested ones were complete."""
    span_s: float | None = None
    """Wall-clock time over which the trials are spread (s), summed over sessions; None if unknown."""

    @property
    def opposed(self) -> bool:
        """True if the means and the typical run point in different directions."""
        return self.typical is not None and (self.ratio.ratio - 1.0) * (self.typical.ratio - 1.0) < 0.0

    @property
    def missed(self) -> bool:
        """True if the requested precision was not reached."""
        return self.asked is not None and self.ratio.half_width >= self.asked

    @property
    def more_range(self) -> tuple[int, int]:
        """Likely range of `more`, given how well the spread is known."""
        return self.range_of(self.more)

    def range_of(self, more: int) -> tuple[int, int]:
        """Likely range (fewest, most) of `more` further pairs, given how well the spread is known."""
        degrees = self.ratio.degrees if self.ratio.degrees > 0.0 else max(self.ratio.count - 1, 1)
        return further_range(self.ratio.count, more, degrees)

    @property
    def within_reach(self) -> bool:
        """True if `more` further pairs are worth recommending."""
        return within_reach(self.more, self.ratio.count, self.more_s)

    @property
    def adjusted_p(self) -> float | None:
        """p of the ratio, adjusted for all comparisons of the experiment; None for a single comparison."""
        return self.ratio.adjusted_p if self.ratio.together > 1 else None

    @property
    def shift_p(self) -> float | None:
        """p of `shift`, adjusted for all comparisons of the experiment (Bonferroni); None without a shift."""
        return None if self.shift is None else min(1.0, self.ratio.together * self.shift.p)

    @property
    def excludes_one(self) -> bool:
        """True if the interval, adjusted for all comparisons of the experiment, excludes 1."""
        return self.ratio.low > 1.0 or self.ratio.high < 1.0

    @property
    def within_noise(self) -> bool:
        """True if the ratio lies within the A/A noise: identical commands differ by as much on this machine."""
        return self.floor is not None and self.ratio.off_one <= self.floor

    @property
    def within_steady_noise(self) -> bool:
        """True if the baseline steadily differs from itself by as much, so that more pairs do not help."""
        return (
            self.within_noise
            and is_steady(self.floor_ratio)
            and self.floor_ratio.off_one >= self.ratio.off_one
        )

    @property
    def varies(self) -> bool:
        """True if the values vary; else the ratio has no interval, however coarse the clock."""
        return self.ratio.low < self.ratio.high

    @property
    def differs(self) -> bool:
        """True if the verdict claims a difference.

        The interval excludes 1, the ratio lies beyond the A/A noise, and the typical run does not point the other way.
        """
        return self.varies and self.excludes_one and not self.within_noise and not self.opposed


def is_steady(itself: Ratio | None) -> TypeGuard[Ratio]:
    """True if the baseline differs from itself by an amount that more pairs do not average out."""
    return itself is not None and not itself.low <= 1.0 <= itself.high


TIMES_MEASURED = 100
"""Multiple of the measured trials above which more are not recommended, if they take over an hour."""
MOST_TRIALS = 10**7


def within_reach(more: int, measured: int, seconds: float) -> bool:
    """True if `more` trials after `measured` ones are worth recommending: if they take at most an hour, or at most a
    day and `TIMES_MEASURED` times the measured trials. seconds: their wall-clock time, 0 if unknown."""
    if more >= MOST_TRIALS or not seconds <= DAY_S:
        return False
    return more <= TIMES_MEASURED * measured or 0 < seconds <= HOUR_S


CPU_TIME = "CPU time"
"""user + system."""

CANDIDATES = (CPU_TIME, "instructions")

TIMES_NARROWER = 3.0
"""Factor by which an interval (or spread) must be narrower than that of the elapsed time to be named."""

LEAST_KNOWN = 0.5
"""Margin of error of a ratio above which it is too imprecise to be named."""


@dataclass(frozen=True)
class QuieterMetric:
    """A metric whose ratio is at least `TIMES_NARROWER` times as precise as that of the elapsed time."""

    metric: str
    ratio: Ratio
    floor: float | None = None
    """A/A noise of this metric; None if unknown."""


def with_cpu_time(series: Series) -> Series:
    """The series with user + system of each trial as a column; unchanged if either is missing."""
    user, system = series.column("user"), series.column("system")
    if user is None or system is None:
        return series
    spent = Column("s", "cost", user.values + system.values)
    return replace(series, columns={**series.columns, CPU_TIME: spent})


class Pairs(NamedTuple):
    """Values of two tests in common blocks; shape (pairs,) each."""

    base: Floats
    other: Floats
    machines: tuple[str, ...]
    """Machine of each pair; all empty if unknown."""

    @property
    def several(self) -> bool:
        """True if the pairs come from more than one machine."""
        return len(set(self.machines)) > 1


def pairs_of(base: Series, other: Series, metric: str) -> Pairs:
    """Values of both tests in each block that is complete and within one session group."""
    kept = [_by_block(series, metric) for series in (base, other)]
    _, first, second = np.intersect1d(kept[0][0], kept[1][0], assume_unique=False, return_indices=True)
    machines = machines_of(base, metric)
    return Pairs(kept[0][1][first], kept[1][1][second], tuple(machines[place] for place in first))


def paired_values(base: Series, other: Series, metric: str) -> tuple[Floats, Floats]:
    """The values of `pairs_of`."""
    return pairs_of(base, other, metric)[:2]


def samples(base: Series, other: Series, metric: str) -> tuple[Floats, Floats]:
    """Values of both tests. If both were measured by several processes, these are the means of each process, since
    values of one process are not independent."""
    found = [_by_process(series, metric) for series in (base, other)]
    if min(means.size for means in found) >= 2:
        return found[0], found[1]
    return base.sample(metric), other.sample(metric)


def _by_process(series: Series, metric: str) -> Floats:
    column, labels = series.column(metric), series.labels.get("process")
    if column is None or not labels:
        return np.empty(0)
    there = series.kept & np.isfinite(column.values)
    _, groups = np.unique(np.array(labels)[there], return_inverse=True)
    return group_means(column.values[there], groups) if groups.size else np.empty(0)


def machines_of(series: Series, metric: str) -> list[str]:
    """Machine of each value of `Series.sample`; empty names if unknown."""
    column, names = series.column(metric), series.labels.get("machine") or ("",) * series.trials.size
    if column is None:
        return []
    there = series.kept & np.isfinite(column.values)
    return list(compress(names, there.tolist()))


def _by_block(series: Series, metric: str) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], Floats]:
    column = series.column(metric)
    if column is None or series.blocks is None:
        return np.empty(0, dtype=np.int64), np.empty(0)
    there = series.kept & np.isfinite(column.values)
    blocks = series.blocks[there]
    sittings = series.sittings if series.stretches is None else series.stretches
    if sittings is not None:
        blocks = blocks + (sittings[there] << 40)
    return blocks, column.values[there]
