"""Stop rules: the end of a series of trials.

A rule is called after each trial (each block if tests are compared) with all trials so far, and reads neither clock nor
disk. Rules on precision are calibrated for the looks of `factors.next_look`, or fewer. Reported intervals of their
series must be widened by the rule's `factor`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from etude.stats.factors import MEAN_FACTORS, RATIO_FACTORS, factor_for
from etude.stats.machines import is_repeated, mean_over_machines, ratio_over_machines
from etude.stats.means import Kind
from etude.stats.ratio import Ratio, paired_mean_ratio, paired_ratio, ratio_of_fitting_means
from etude.stats.samples import check_confidence, check_positive, finite_sample


@dataclass(frozen=True, eq=False)
class SamplesSoFar:
    """All included trials so far.

    values: one array per test, values[0] the baseline. In a comparison all have the same length, and the same index is
    the same block.
    measured_s: seconds spent so far that count against a budget, as defined by the caller.
    machines: per test, the machine of each value; empty for a single machine. Several are a block each, never one
    sample (stats/machines.py).
    kind: kind of the metric, which determines the means that are compared.
    sessions: number of sessions of the values; the rule treats them as one sample, and reports it.
    """

    values: tuple[NDArray[np.float64], ...]
    measured_s: float = 0.0
    machines: tuple[tuple[str, ...], ...] = ()
    kind: Kind = "cost"
    sessions: int = 1

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("a stop rule needs at least one test")
        if math.isnan(self.measured_s) or self.measured_s < 0.0:
            raise ValueError(f"measured time must be 0 or more seconds, not {self.measured_s}")
        object.__setattr__(self, "values", tuple(finite_sample(x) for x in self.values))
        machines = self.machines or tuple(("",) * x.size for x in self.values)
        if [len(names) for names in machines] != [x.size for x in self.values]:
            raise ValueError("a stop rule needs the machine of each value, or of none")
        object.__setattr__(self, "machines", machines)

    @property
    def fewest(self) -> int:
        """Trials of the test with the fewest."""
        return min(int(x.size) for x in self.values)


@dataclass(frozen=True)
class Decision:
    """Decision to stop, its reason as text, and whether the requested precision was reached.

    converged is None for rules without precision.
    """

    enough: bool
    why: str
    converged: bool | None


class Rule(Protocol):
    """Interface of stop rules."""

    @property
    def factor(self) -> float:
        """Widening factor for intervals of a series ended by this rule."""
        ...

    def decide(self, seen: SamplesSoFar) -> Decision:
        """Decision on the trials so far."""
        ...


@dataclass(frozen=True)
class FixedCount:
    """Stop after `count` trials of every test."""

    count: int

    def __post_init__(self) -> None:
        check_positive("count", self.count)

    @property
    def factor(self) -> float:
        """1: there is only one look, at the end."""
        return 1.0

    def decide(self, seen: SamplesSoFar) -> Decision:
        """Enough when the test with the fewest trials has `count`."""
        if seen.fewest >= self.count:
            return Decision(True, f"{_trials(seen.fewest)}, as requested", None)
        return Decision(False, f"{seen.fewest} of {_trials(self.count)}", None)


@dataclass(frozen=True)
class TimeBudget:
    """Stop once `seconds` were measured and every test has `minimum` trials."""

    seconds: float
    minimum: int = 2

    def __post_init__(self) -> None:
        check_positive("seconds", self.seconds)
        check_positive("minimum", self.minimum)

    @property
    def factor(self) -> float:
        """1: it does not depend on the spread."""
        return 1.0

    def decide(self, seen: SamplesSoFar) -> Decision:
        """Enough when both time and minimum are reached."""
        if seen.fewest < self.minimum:
            return Decision(False, f"{seen.fewest} of at least {_trials(self.minimum)}", None)
        if seen.measured_s < self.seconds:
            return Decision(False, f"{_seconds(seen.measured_s)} of {self.seconds:g} s used", None)
        used = f"{_seconds(seen.measured_s)} of {self.seconds:g} s used"
        return Decision(True, f"{used} after {_trials(seen.fewest)}, as requested", None)


@dataclass(frozen=True)
class MeanPrecision:
    """Stop when the mean of every test is known within `precision`, relative.

    Tests are judged one by one, by factor·t·s/√n_eff (see mean_interval, mean_over_machines); all must pass. At
    `maximum` trials, or when `budget_s` seconds are used, it stops unconverged, but never below `minimum` trials.
    budget_s may be math.inf. Before `least_s` seconds are used neither precision nor the maximum ends a test, since a
    few trials within a fraction of a second sample only one moment of a machine; `exact`: the maximum does.
    """

    precision: float = 0.05
    minimum: int = 10
    maximum: int = 50
    budget_s: float = 30.0
    confidence: float = 0.95
    least_s: float = 0.0
    exact: bool = False

    def __post_init__(self) -> None:
        _check_precision_rule(self)

    @property
    def factor(self) -> float:
        """Widening for repeated looks from `minimum` on."""
        return factor_for(self.minimum, MEAN_FACTORS)

    def decide(self, seen: SamplesSoFar) -> Decision:
        """Enough when every mean is precise, or can get no more trials."""
        if seen.fewest < self.minimum:
            return Decision(False, f"{seen.fewest} of at least {_trials(self.minimum)}", False)
        widths = [self._relative_half_width(*each) for each in zip(seen.values, seen.machines, strict=True)]
        early = seen.measured_s < self.least_s
        can_go_on = any(
            (early or not width < self.precision) and x.size < self.maximum
            for x, width in zip(seen.values, widths, strict=True)
        )
        return _judge(self, seen, max(widths), "mean", "trial", can_go_on)

    def _relative_half_width(self, x: NDArray[np.float64], machines: Sequence[str]) -> float:
        interval = mean_over_machines(x, machines, confidence=self.confidence, factor=self.factor)
        if interval is None:
            return math.inf
        mean = abs(interval.low / 2.0 + interval.high / 2.0)
        if interval.half_width == 0.0:
            return 0.0
        return interval.half_width / mean if mean > 0.0 else math.inf


@dataclass(frozen=True)
class RatioPrecision:
    """Stop when the ratio of every other test to the baseline is known within a factor of 1 + `precision`.

    The ratio is that of the verdict: of the means that fit the metric (see ratio_of_fitting_means), with several
    machines within each. It depends on the width of the intervals, never on whether they exclude 1: stopping at a
    difference would cause false positives. With several ratios the intervals hold simultaneously, as those of a
    verdict. Limits as in MeanPrecision, counted in blocks.
    """

    precision: float = 0.02
    minimum: int = 10
    maximum: int = 50
    budget_s: float = 30.0
    confidence: float = 0.95
    least_s: float = 0.0
    exact: bool = False

    def __post_init__(self) -> None:
        _check_precision_rule(self)

    @property
    def factor(self) -> float:
        """Widening for repeated looks from `minimum` on."""
        return factor_for(self.minimum, RATIO_FACTORS)

    def decide(self, seen: SamplesSoFar) -> Decision:
        """Enough when every ratio is precise, or blocks or time are used up."""
        base, *others = seen.values
        if not others:
            raise ValueError("a rule on ratios needs two or more tests")
        if any(x.size != base.size for x in others):
            raise ValueError("a rule on ratios needs as many trials of every test")
        if seen.fewest < self.minimum:
            return Decision(False, f"{seen.fewest} of at least {_trials(self.minimum, 'pair')}", False)
        worst = max(self._ratio(base, x, seen).among(len(others)).half_width for x in others)
        return _judge(self, seen, worst, "ratio", "pair", seen.fewest < self.maximum)

    def _ratio(self, base: NDArray[np.float64], other: NDArray[np.float64], seen: SamplesSoFar) -> Ratio:
        machines, confidence, factor = seen.machines[0], self.confidence, self.factor
        if is_repeated(machines):
            return ratio_over_machines(
                base, other, machines, kind=seen.kind, confidence=confidence, factor=factor
            )
        mean_ratio = partial(paired_mean_ratio, confidence=confidence, factor=factor)
        return ratio_of_fitting_means(base, other, seen.kind, mean_ratio) or paired_ratio(
            base, other, confidence=confidence, factor=factor
        )


def _judge(
    rule: MeanPrecision | RatioPrecision,
    seen: SamplesSoFar,
    width: float,
    of_what: str,
    word: str,
    can_go_on: bool,
) -> Decision:
    """Decision on the widest relative margin of error, once the minimum is reached."""
    several = seen.sessions > 1 and word == "trial"
    pooled = f", the trials of {seen.sessions} sessions taken as one sample," if several else ""
    state = f"the {of_what}{pooled} is known to ± {_percent(width)} % after {_trials(seen.fewest, word)}"
    target = f"the target is ± {100 * rule.precision:g} %"
    early, spent = seen.measured_s < rule.least_s, seen.measured_s >= rule.budget_s
    capped = not can_go_on and (rule.exact or not early)
    if width < rule.precision:
        if capped or spent or not early:
            return Decision(True, f"{state}, {target}", True)
        return Decision(
            False,
            f"{state}, {target}; {_seconds(seen.measured_s)} of at least {rule.least_s:g} s used",
            False,
        )
    if capped:
        limit = "the most allowed" if seen.fewest <= rule.maximum else f"{_seconds(seen.measured_s)} s used"
        return Decision(True, f"not converged: {state}, {limit}; {target}", False)
    if spent:
        used = f"{_seconds(seen.measured_s)} of {rule.budget_s:g} s used"
        return Decision(True, f"not converged: {state}, {used}; {target}", False)
    return Decision(False, f"{state}, {target}", False)


def _check_precision_rule(rule: MeanPrecision | RatioPrecision) -> None:
    check_positive("precision", rule.precision)
    check_confidence(rule.confidence)
    _ = rule.factor  # raises for a minimum that no factor is known for
    if rule.maximum < rule.minimum:
        raise ValueError(f"maximum ({rule.maximum}) is below minimum ({rule.minimum})")
    if not rule.budget_s > 0.0:
        raise ValueError(f"budget must be above 0 s, not {rule.budget_s}")
    if not 0.0 <= rule.least_s < math.inf:
        raise ValueError(f"the least time must be 0 or more seconds, not {rule.least_s}")


def _seconds(time_s: float) -> str:
    """`6.8`, `0.012`: without an exponent from 1 ms on."""
    return f"{time_s:.1f}" if time_s >= 1.0 else f"{time_s:.2g}"


def _trials(count: int, word: str = "trial") -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _percent(width: float) -> str:
    """Two significant digits without an exponent: `1.9`, `19`, `192`."""
    return f"{100 * width:.2g}" if 100 * width < 99.5 else f"{100 * width:.0f}"
