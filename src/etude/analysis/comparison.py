"""How one test's metric relates to another's: the ratio with its interval, and what limits what it says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeGuard

from etude.results.series import Column, Series
from etude.stats.equivalence import Equivalence
from etude.stats.intervals import Interval
from etude.stats.means import Mean
from etude.stats.ranks import Shift
from etude.stats.ratio import Ratio, further_range
from etude.units.formatting import DAY_S, HOUR_S


@dataclass(frozen=True)
class NoComparison:
    """Tests of which a metric that was asked for is not compared."""

    metric: str
    tests: tuple[str, ...]
    base: str
    """What they were to be compared with; empty where they lack the metric."""
    reason: str
    """Why their values have no ratio; empty where they lack the metric."""


@dataclass(frozen=True)
class Secondary:
    """Another metric of two compared tests than the one that is judged."""

    metric: str
    ratio: Ratio
    adjusted_p: float | None
    """By Benjamini and Hochberg, over all secondary metrics of all comparisons of the experiment."""
    unsteady: bool = False
    """Whether the reference differs from itself in it: then a difference is not that of the tests."""


@dataclass(frozen=True)
class OnMachine:
    """A ratio on one of several machines."""

    machine: str
    pairs: int
    ratio: Ratio | None
    """None for a single pair."""


@dataclass(frozen=True)
class Comparison:
    """How one test's metric relates to the reference's."""

    base: str
    other: str
    metric: str
    unit: str
    base_mean: float
    ratio: Ratio
    floor: float | None
    """Relative half width that the ratio of as many pairs of identical commands shows; None below five A/A pairs."""
    floor_pairs: int
    floor_ratio: Ratio | None
    """The reference against itself."""
    asked: float | None
    """The relative half width of `ratio` that was asked for; None for a fixed number of trials."""
    finer: float
    """That half width if it was not reached, else one finer than what was, …"""
    more: int
    """… and the further pairs that would show it,"""
    more_s: float
    """… which take about this long, seconds by the clock: what runs between trials included."""
    contention: bool
    """Both ran at once: a ratio under contention."""
    which: Mean = "arithmetic"
    """Which mean `base_mean` is: the one that fits the metric's kind."""
    base_mean_over: str = "trial"
    """The level each of whose groups counts once in `base_mean`: "sitting", "boot", … where there are several."""
    sittings: int = 1
    """In how many the pairs, or trials, were made."""
    difference: Interval | None = None
    """Interval of the difference of the means, other - base, in the metric's unit: paired, or Welch's; None where
    values do not add up."""
    shift: Shift | None = None
    """other/base by ranks: Hodges and Lehmann's, with Wilcoxon's or Mann and Whitney's p."""
    equivalence: Equivalence | None = None
    """The answer to `--same-within`; None where that was not given."""
    machines: tuple[OnMachine, ...] = ()
    """The ratio on each, where pairs come from several machines: then `ratio` is their mean, each counting once."""
    machines_p: float | None = None
    """p of one and the same ratio on all of them."""
    secondary: tuple[Secondary, ...] = ()
    uncompared: tuple[str, ...] = ()
    """Other metrics of both tests that have no ratio, since a value is 0 or below."""
    typical: Ratio | None = None
    """The ratio of geometric means, beside a `ratio` of arithmetic or harmonic ones."""
    quieter: QuieterMetric | None = None
    """Another metric that the same trials know much better; of the elapsed time only."""
    trials: int | None = None
    """Values that it rests on, the fewest of either test, each trial of each machine or process counted; None where
    that is not known."""
    most_trials: int | None = None
    """Values of the test that has more, of an unpaired comparison."""
    extended: bool = False
    """Whether the number of trials was raised after as many as had been asked for were there to be looked at."""
    span_s: float | None = None
    """Seconds by the clock over which the trials are spread, summed over sessions; None where it is not known."""

    @property
    def opposed(self) -> bool:
        """Whether the means and the typical run point in different directions."""
        return self.typical is not None and (self.ratio.ratio - 1.0) * (self.typical.ratio - 1.0) < 0.0

    @property
    def missed(self) -> bool:
        """Whether the precision that was asked for was not reached."""
        return self.asked is not None and self.ratio.half_width >= self.asked

    @property
    def more_range(self) -> tuple[int, int]:
        """`more` as far as the spread is known."""
        return self.range_of(self.more)

    def range_of(self, more: int) -> tuple[int, int]:
        """The fewest and the most of so many further pairs, as far as the spread is known."""
        degrees = self.ratio.degrees if self.ratio.degrees > 0.0 else max(self.ratio.count - 1, 1)
        return further_range(self.ratio.count, more, degrees)

    @property
    def within_reach(self) -> bool:
        """Whether `more` further pairs are worth advising."""
        return within_reach(self.more, self.ratio.count, self.more_s)

    @property
    def adjusted_p(self) -> float | None:
        """The ratio's p counting all comparisons of the experiment; None where there is only one."""
        return self.ratio.adjusted_p if self.ratio.together > 1 else None

    @property
    def shift_p(self) -> float | None:
        """The p of `shift` counting all comparisons of the experiment (Bonferroni)."""
        return None if self.shift is None else min(1.0, self.ratio.together * self.shift.p)

    @property
    def excludes_one(self) -> bool:
        """Whether the interval does, as one of all comparisons of the experiment."""
        return self.ratio.low > 1.0 or self.ratio.high < 1.0

    @property
    def within_noise(self) -> bool:
        """Whether identical commands differ by as much on this machine: the ratio lies within the A/A noise."""
        return self.floor is not None and self.ratio.off_one <= self.floor

    @property
    def within_steady_noise(self) -> bool:
        """Whether the reference differs from itself by as much, so that more pairs do not tell the ratio from 1."""
        return (
            self.within_noise
            and is_steady(self.floor_ratio)
            and self.floor_ratio.off_one >= self.ratio.off_one
        )

    @property
    def varies(self) -> bool:
        """Whether any value does: else the ratio has no interval, however coarse the clock is that counted them."""
        return self.ratio.low < self.ratio.high

    @property
    def differs(self) -> bool:
        """Whether a difference is claimed.

        The interval excludes 1, the ratio lies beyond the A/A noise, and the typical run does not point the other way.
        """
        return self.varies and self.excludes_one and not self.within_noise and not self.opposed


def is_steady(itself: Ratio | None) -> TypeGuard[Ratio]:
    """Whether the reference differs from itself by what more pairs do not average out."""
    return itself is not None and not itself.low <= 1.0 <= itself.high


TIMES_MEASURED = 100
"""Beyond an hour, more trials than this many times those that were made are no advice."""
MOST_TRIALS = 10**7


def within_reach(more: int, measured: int, seconds: float) -> bool:
    """Whether `more` trials after `measured` ones are worth advising: an hour is; a day, or a hundred times as many
    trials in more than an hour, is not. seconds: what they take by the clock, 0 where it is not known."""
    if more >= MOST_TRIALS or not seconds <= DAY_S:
        return False
    return more <= TIMES_MEASURED * measured or 0 < seconds <= HOUR_S


CPU_TIME = "CPU time"
"""user + system."""

CANDIDATES = (CPU_TIME, "instructions")

TIMES_NARROWER = 3.0
"""How many times narrower an interval (or spread) than that of the elapsed time is before it is named."""

LEAST_KNOWN = 0.5
"""Half width of an interval of a ratio above which it says too little to be named."""


@dataclass(frozen=True)
class QuieterMetric:
    """A metric whose ratio the same trials know at least `TIMES_NARROWER` times as well as that of the elapsed time."""

    metric: str
    ratio: Ratio
    floor: float | None = None
    """Its own A/A noise, as of the elapsed time; None where that is not known."""


def with_cpu_time(series: Series) -> Series:
    """The series with user + system of each trial as a column; as it is where either is not known."""
    user, system = series.column("user"), series.column("system")
    if user is None or system is None:
        return series
    spent = Column("s", "cost", user.values + system.values)
    return replace(series, columns={**series.columns, CPU_TIME: spent})
