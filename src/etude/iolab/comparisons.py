"""Programs against the first one, over total sizes, as data: ratios, what one takes more, crossings and p-values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr

from etude.iolab.points import Points, Swept
from etude.stats import crossings
from etude.stats.multiplicity import holm
from etude.stats.ranks import mann_whitney
from etude.stats.twosample import student

LEVELS = (1.05, 1.01)
FEW = f"trials overlap, and there are fewer than {crossings.FEWEST_TRIALS} of either at a size"
UNSURE = "medians of trials drawn anew lie on both sides"
FIRST = 10
ALPHA = 0.05

State = Literal["crosses", "open", "below everywhere", "not below"]


@dataclass(frozen=True)
class Ratio:
    """Medians at one size, in seconds, and how many times the base the other takes."""

    size: float
    base: float
    other: float
    ratio: float


@dataclass(frozen=True)
class Difference:
    """Extra time of the other over the base, s: differences of medians over the sizes."""

    median: float
    least: float
    most: float
    constant: bool
    """The same at every size, as far as the quartiles tell."""


@dataclass(frozen=True)
class Level:
    """Size from which the slower of both is slower by less than a share."""

    level: float
    slower: str
    """The slower by the median of the differences."""
    state: State
    """`open`: by the medians it crosses, but the 95 % interval is not closed, or it does not, of which medians drawn
    anew are not sure; `why` says more."""
    at: float | None
    """The crossing of the medians, bytes."""
    low: float | None
    high: float | None
    why: str | None


@dataclass(frozen=True)
class SizeTest:
    """Two-sided p-values at one size, and what they count among all sizes (Holm). Student's are None where neither
    sample varies."""

    size: float
    base_trials: int
    other_trials: int
    student: float | None
    mann_whitney: float
    student_adjusted: float | None
    mann_whitney_adjusted: float | None


@dataclass(frozen=True)
class Tests:
    """All sizes, by the first `trials` trials; None: by all."""

    trials: int | None
    sizes: tuple[SizeTest, ...]

    def below(self, test: str) -> list[float]:
        """The sizes whose adjusted p of `student` or `mann_whitney` is below 0.05, rising."""
        p = [getattr(each, f"{test}_adjusted") for each in self.sizes]
        return [
            each.size
            for each, value in zip(self.sizes, p, strict=True)
            if value is not None and value < ALPHA
        ]

    @property
    def too_few_for_ranks(self) -> bool:
        """True if at no size the ranks of so few trials can reach 0.05 adjusted, however far apart they lie."""
        least = [2 / math.comb(each.base_trials + each.other_trials, each.base_trials) for each in self.sizes]
        return min(least) * len(self.sizes) >= ALPHA


@dataclass(frozen=True)
class Comparison:
    """One program against the base. Without a size that both have, all but the names is empty."""

    base: str
    other: str
    ratios: tuple[Ratio, ...]
    p: float | None
    """Over all sizes together."""
    difference: Difference | None
    crossings: tuple[Level, ...]
    """Empty where no difference is shown, and of a single size."""
    tests: tuple[Tests, ...]

    @property
    def differs(self) -> bool:
        """True if the difference is significant."""
        return self.p is not None and self.p < ALPHA


def comparisons_of(swept: Swept) -> tuple[Comparison, ...]:
    """Every other curve against the first."""
    base, *others = swept.curves
    return tuple(compared(base, other) for other in others)


def compared(base: Points, other: Points) -> Comparison:
    """One curve against the base."""
    common = np.intersect1d(base.sizes, other.sizes)
    if not common.size:
        return Comparison(base.name, other.name, (), None, None, (), ())
    ratios = []
    for size in common:
        a, b = _medians(base, other, size)
        ratios.append(Ratio(float(size), a, b, b / a))
    p = p_over_sizes(base, other, common)
    shown = p < ALPHA and common.size > 1
    difference = _difference(base, other, common)
    quick, slow = (base, other) if difference.median >= 0.0 else (other, base)
    return Comparison(
        base.name,
        other.name,
        tuple(ratios),
        p,
        difference,
        tuple(_level(quick, slow, common, level) for level in LEVELS) if shown else (),
        tuple(_tests(base, other, common)),
    )


def p_over_sizes(base: Points, other: Points, common: np.ndarray) -> float:
    """p-value of the hypothesis that neither program takes longer: rank sums at each size, added up over sizes (a
    stratified Wilcoxon test, by its normal approximation), or the clearest single size with a correction for their
    number; either at half of the level, so that the smaller p counts twice."""
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


def _medians(base: Points, other: Points, size: float) -> tuple[float, float]:
    return float(np.median(base.at(size))), float(np.median(other.at(size)))


def _difference(base: Points, other: Points, common: np.ndarray) -> Difference:
    differences, low, high = [], [], []
    for size in common:
        a, b = base.at(size), other.at(size)
        differences.append(float(np.median(b) - np.median(a)))
        low.append(float(np.quantile(b, 0.25) - np.quantile(a, 0.75)))
        high.append(float(np.quantile(b, 0.75) - np.quantile(a, 0.25)))
    middle = float(np.median(differences))
    return Difference(middle, min(differences), max(differences), max(low) <= middle <= min(high))


def _level(quick: Points, slow: Points, common: np.ndarray, level: float) -> Level:
    found = crossings.crossing(
        common, [quick.at(size) for size in common], [slow.at(size) for size in common], level
    )
    if found.at is None and not found.settled:
        why = FEW if found.share is None else UNSURE
        return Level(level, slow.name, "open", None, None, None, why)
    if found.at is None:
        least, most = _medians(quick, slow, common[-1])
        state: State = "not below" if most >= level * least else "below everywhere"
        return Level(level, slow.name, state, None, None, None, None)
    if found.interval is None:
        return Level(level, slow.name, "open", found.at, None, None, crossings.without_size(found))
    return Level(level, slow.name, "crosses", found.at, found.interval.low, found.interval.high, None)


def _tests(base: Points, other: Points, common: np.ndarray) -> Iterator[Tests]:
    fewest = min(sample.size for curve in (base, other) for sample in curve.samples)
    for count in (FIRST, None) if fewest > FIRST else (None,):
        samples = [(float(size), base.at(size)[:count], other.at(size)[:count]) for size in common]
        samples = [(size, a, b) for size, a, b in samples if min(a.size, b.size) >= 2]
        by_t = [_student(a, b) for _, a, b in samples]
        by_ranks = [mann_whitney(a, b).p for _, a, b in samples]
        columns = zip(samples, by_t, by_ranks, _adjusted(by_t), _adjusted(by_ranks), strict=True)
        tested = tuple(
            SizeTest(size, a.size, b.size, t, ranks, t_adjusted, ranks_adjusted)
            for (size, a, b), t, ranks, t_adjusted, ranks_adjusted in columns
        )
        if tested:
            yield Tests(count, tested)


def _adjusted(p: Sequence[float | None]) -> list[float | None]:
    return [each.adjusted for each in holm(p)]


def _student(a: np.ndarray, b: np.ndarray) -> float | None:
    try:
        return student(a, b).p
    except ValueError:  # none of them varies
        return None


def document(found: Comparison) -> dict[str, Any]:
    """The comparison as plain data, in bytes and seconds."""
    return {**asdict(found), "differs": found.differs}
