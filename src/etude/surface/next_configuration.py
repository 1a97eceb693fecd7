"""Choice of the next configuration, and the end of a map ("Cutting Corners", Algorithm 1).

A decision depends only on the rules, the samples and the pending configurations, so an interrupted map resumes with the
same decisions. If several machines measure at once, a pending configuration counts as measured with an unknown
response: its information gain is not counted again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy import special

from etude.surface import plans
from etude.surface.factors import Configuration, Factor, Floats, Space
from etude.surface.plans import expected_cost
from etude.surface.samples import KnownResponses, Sample, known_samples
from etude.surface.surrogates import Predicted
from etude.surface.surrogates.selection import Choice, SelectedSurrogate

BY = math.log(1.5)
"""Log difference that is the minimum for an outlier."""
FAR = 4.0
"""Robust standard deviations (1.4826·MAD of all configurations) that are the minimum for an outlier."""
LEAST_CONFIGURATIONS = 8
"""Minimum number of configurations for outliers."""
ALIKE = math.log(1.1)
"""Log difference up to which two measurements of a configuration agree."""
MOST = 3
"""Maximum measurements of a configuration."""


def outlier_index(
    fit: Choice, samples: Sequence[Sample], besides: Collection[Configuration] = ()
) -> int | None:
    """Index, in `fit.known`, of the largest outlier that was measured once, or repeatedly without agreement; None if
    there is none. `besides`: configurations to skip."""
    if len(fit.known.cells) < LEAST_CONFIGURATIONS or not np.isfinite(fit.left_out.log).all():
        return None
    values: dict[Configuration, list[float]] = {}
    tried = Counter(sample.cell for sample in samples)
    for sample in samples:
        if sample.state == "measured" and sample.value:
            values.setdefault(sample.cell, []).append(math.log(sample.value))
    for at in outlier_indices(fit.known.log - fit.left_out.log):
        configuration = fit.known.cells[at]
        *_, last = logs = values[configuration]
        settled = any(abs(each - last) <= ALIKE for each in logs[:-1])
        if configuration not in besides and tried[configuration] < MOST and not settled:
            return at
    return None


def outlier_indices(off: Floats) -> list[int]:
    """Indices of outliers among log differences, the largest first."""
    usual = 1.4826 * float(np.median(np.abs(off)))
    order = np.argsort(-np.abs(off), kind="stable")
    return [int(at) for at in order if abs(off[at]) >= max(BY, FAR * usual)]


Plan = Literal["full", "in-order", "one-at-a-time", "d-optimal", "adaptive"]
"""*full*: every configuration, by falling information. *in-order*: every configuration, as in the paper.
*one-at-a-time*: the base and those that differ from it in one factor. *d-optimal*: a design of `count` configurations.
*adaptive*: by information, until `count` configurations or the required error."""

LEAST_SPREAD = 0.02
"""Lower bound of the standard deviation of a predicted log response."""
DOUBTED_SPREAD = 0.3
"""Lower bound of the same for a configuration that is measured again as an outlier."""
BELIEVED = 4.0
"""Prior weight (pseudo-count) of calibrated predictions."""
LEAST_WIDENING = 1.2
"""Lower bound of the widening factor: configurations are skipped where the predicted sd is smallest, and so most often
too small."""
CALIBRATED = 1.5
"""Widening up to which a prediction counts as a trial of its configuration."""
EACH = 256
"""Number of samples up to which the surrogate is refitted after each one."""
RECENT = 30
"""Number of last predictions whose calibration is checked."""
FIRST = 2
"""Samples after which a surrogate gives the first load of a search; before, the nearest sample does."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of a map."""

    plan: Plan = "full"
    count: int | None = None
    """Maximum number of measured configurations."""
    error: float | None = None
    """*adaptive*: mean absolute leave-one-out error of predictions at which the map ends."""
    skip: bool = False
    """True if well-predicted configurations are not measured."""
    within: float = 0.10
    confidence: float = 0.90
    """Well-predicted: within this share of the true response, with this confidence."""
    checks: int = 5
    """Number of last predictions that must have been true before configurations are skipped."""
    base: Configuration | None = None
    """*one-at-a-time*: the base; None: the middle of each factor."""
    seed: int = 0


MOST_EXCHANGED = 20_000_000
"""Maximum product of a design's size and the number of configurations: some 20 s of planning for two factors."""


def contradiction(rules: Rules, size: int) -> tuple[str, str] | None:
    """The rule that contradicts the others, by its option, and the reason; `size`: number of configurations. None if
    there is none."""
    if rules.count is not None and rules.count > size:
        return (
            "count",
            f"is {rules.count}: expected a whole number up to {size}, the configurations that there are",
        )
    if rules.plan == "d-optimal" and rules.count is None:
        return "plan", "d-optimal needs a count: how many configurations the design has"
    if rules.plan == "d-optimal" and (rules.count or 0) * size > MOST_EXCHANGED:
        most = MOST_EXCHANGED // size
        return (
            "count",
            f"is {rules.count}: a d-optimal design of {size:,} configurations has {most:,} at most, since planning "
            "more takes minutes; take plan adaptive, or fewer levels",
        )
    if rules.plan == "adaptive" and rules.count is None and rules.error is None:
        return "plan", "adaptive needs a count, or an error that is small enough"
    if rules.plan != "adaptive" and rules.error is not None:
        return "error", f"is for plan adaptive, not {rules.plan}"
    if rules.plan == "in-order" and rules.skip:
        return "skip", "is not for plan in-order, which predicts nothing"
    if rules.plan != "one-at-a-time" and rules.base is not None:
        return "base", f"is for plan one-at-a-time, not {rules.plan}"
    return None


@dataclass(frozen=True, slots=True)
class Visit:
    """A configuration to be measured."""

    cell: Configuration
    expected: float | None
    """Expected response; None before the first measurement."""
    spread: float | None
    """Standard deviation of its log; None if it is another configuration's response."""
    why: str
    proven: bool = False
    """True if predictions have been calibrated so far, so that this one counts as a trial."""


@dataclass(frozen=True, slots=True)
class MapComplete:
    """The map is complete, and no configuration is pending."""

    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    """No further configuration is worth starting until a pending one has ended."""

    why: str


def decide(
    space: Space,
    rules: Rules,
    samples: Sequence[Sample],
    pending: Sequence[Configuration] = (),
    cost: plans.Cost | None = None,
) -> Visit | MapComplete | Wait:
    """The next configuration, or the end; `pending`: configurations being measured on other machines. With a `cost`,
    the one with the highest information gain per cost."""
    again = _again(space, rules, samples, pending)
    if again is not None:
        return again
    decision = _decided(space, rules, samples, tuple(dict.fromkeys(pending)), cost)
    if isinstance(decision, MapComplete) and pending:
        return Wait(decision.why)
    return decision


def _again(
    space: Space, rules: Rules, samples: Sequence[Sample], pending: Sequence[Configuration]
) -> Visit | None:
    """An outlier to measure again; its expected response is the prediction from the others."""
    seen = tuple(samples[: learned_at(len(samples), len(pending))])
    fit = fit_surrogate(space, seen) if rules.plan != "in-order" else None
    at = None if fit is None else outlier_index(fit, samples, pending)
    if fit is None or at is None:
        return None
    told, measured = math.exp(float(fit.left_out.log[at])), math.exp(float(fit.known.log[at]))
    spread = max(float(fit.left_out.sd[at]), DOUBTED_SPREAD)
    why = f"once more: {measured:.4g} is far from {told:.4g}, which the other configurations predict"
    return Visit(fit.known.cells[at], told, spread, why)


def learned_at(count: int, under_way: int = 0) -> int:
    """Number of samples that a choice is fitted to: all of few, else all but at most the last 1/16; with many pending
    configurations, all but the last 1/16 of their number.

    The others only reduce variance, like pending configurations: a surrogate is not refitted to thousands of samples
    after each one.
    """
    step = _power(count) // 16 if count > EACH else 1
    step = max(step, min(_power(under_way) // 16, _power(count) // 4), 1)
    return count // step * step


def _power(count: int) -> int:
    """The greatest power of two up to `count`; 0 for 0."""
    return (1 << count.bit_length()) >> 1


def _decided(
    space: Space,
    rules: Rules,
    samples: Sequence[Sample],
    pending: tuple[Configuration, ...],
    cost: plans.Cost | None,
) -> Visit | MapComplete:
    """The next configuration, or the reason why those measured or pending are enough."""
    taken = {*(sample.cell for sample in samples), *pending}
    if rules.count is not None and rules.plan != "d-optimal" and len(taken) >= rules.count:
        return MapComplete(f"{len(taken)} configurations were requested")
    left = [
        configuration for configuration in planned_configurations(space, rules) if configuration not in taken
    ]
    if not left:
        return MapComplete("every configuration of the plan has been tried")
    seen = tuple(samples[: learned_at(len(samples), len(pending))])
    ahead = (*(sample.cell for sample in samples[len(seen) :]), *pending)
    fit = fit_surrogate(space, seen) if rules.plan != "in-order" else None
    if fit is not None and rules.plan == "adaptive" and (why := known_enough(fit, rules)):
        return MapComplete(why)
    skipping = fit is not None and rules.skip
    if (
        skipping
        and is_proven(space, rules, seen)
        and (told := predict_configurations(space, seen, left, ahead)) is not None
    ):
        unsure = [
            configuration
            for configuration, known in zip(left, well_predicted(told, rules), strict=True)
            if not known
        ]
        if not unsure:
            return MapComplete(f"the other {len(left)} configurations are predicted well enough")
        left = unsure
    configuration = _longest(space, rules, left, samples, pending)
    if configuration is None:
        configuration = _next(space, rules, left, fit, seen, ahead, cost)
    return _visit(space, configuration, fit, seen, skipping and is_calibrated(space, rules, seen))


def planned_configurations(space: Space, rules: Rules) -> tuple[Configuration, ...]:
    """Configurations that may be measured."""
    return _planned(space.factors, space.without, rules)


@lru_cache(maxsize=8)
def _planned(
    factors: tuple[Factor, ...], without: frozenset[Configuration], rules: Rules
) -> tuple[Configuration, ...]:
    space = Space(factors, without)
    if rules.plan == "one-at-a-time":
        return plans.one_factor(space, rules.base or middle_configuration(space))
    if rules.plan == "d-optimal":
        return plans.d_optimal(space, min(rules.count or space.size, space.size), (), rules.seed)
    return tuple(space)


def middle_configuration(space: Space) -> Configuration:
    """The configuration nearest to the middle of all factors."""
    wanted = tuple(len(factor.levels) // 2 for factor in space.factors)
    configurations = list(space)
    off = np.abs(space.coded(configurations) - space.coded([wanted])).sum(axis=1)
    return configurations[int(off.argmin())]


@dataclass(frozen=True, slots=True)
class _Seen:
    """Samples as a cache key: comparing identities is faster than hashing thousands."""

    samples: tuple[Sample, ...]

    def __hash__(self) -> int:
        return hash((len(self.samples), self.samples[-1:]))


@lru_cache(maxsize=4)
def _known(seen: _Seen) -> KnownResponses:
    return known_samples(seen.samples)


@lru_cache(maxsize=64)
def _fitted(factors: tuple[Factor, ...], seen: _Seen) -> Choice | None:
    data = known_samples(seen.samples)
    return SelectedSurrogate().fit(Space(factors), data) if len(data.cells) >= FIRST else None


def fit_surrogate(space: Space, samples: tuple[Sample, ...]) -> Choice | None:
    """Surrogate fitted to these samples; None if they are too few."""
    measured = tuple(sample for sample in samples if sample.state == "measured")
    return _fitted(space.factors, _Seen(measured))


def known_enough(fit: Choice, rules: Rules) -> str:
    """Reason why the surface is known well enough; empty if it is not."""
    error = min((each.error for each in fit.judged if each.name == fit.name), default=math.inf)
    if rules.error is None or len(fit.left_out.log) < plans.START + 2 or error > rules.error:
        return ""
    return f"predictions are {100 * error:.1f} % off on average"


def is_proven(space: Space, rules: Rules, samples: tuple[Sample, ...]) -> bool:
    """True if the last predictions, each made before its measurement, were true."""
    tried = forecast_of(space, samples)
    return len(tried) >= rules.checks and all(each.came_true(rules) for each in tried[-rules.checks :])


def is_calibrated(space: Space, rules: Rules, samples: tuple[Sample, ...]) -> bool:
    """True if prediction errors have matched their standard deviations so far."""
    return len(forecast_of(space, samples)) >= rules.checks and widening_of(space, samples) <= CALIBRATED


@dataclass(frozen=True, slots=True)
class PredictionCheck:
    """A prediction and its measurement, in logs of the response."""

    off: float
    """Measured minus predicted."""
    spread: float
    """Standard deviation of the prediction."""
    measured_sd: float
    """Standard deviation of the measurement alone."""

    @property
    def square(self) -> float:
        """Squared standardised error, capped at 8²."""
        return min(self.off**2 / (self.spread**2 + self.measured_sd**2), 64.0)

    def came_true(self, rules: Rules) -> bool:
        """True if the configuration is as predicted, within the measurement error."""
        return abs(self.off) <= math.log1p(rules.within) + self.measured_sd


def forecast_of(space: Space, samples: tuple[Sample, ...]) -> list[PredictionCheck]:
    """Checks of the last predictions, each by a surrogate fitted without its configuration."""
    measured = [each for each in samples if each.state == "measured" and each.value]
    first = max(plans.START, len(measured) - RECENT)
    every = (_foretold(space, measured, at) for at in range(first, len(measured)))
    return [each for each in every if each is not None]


def _foretold(space: Space, measured: Sequence[Sample], at: int) -> PredictionCheck | None:
    sample = measured[at]
    log, variance = sample.alone
    if sample.expected is not None and sample.spread is not None:
        return PredictionCheck(log - math.log(sample.expected), sample.spread, math.sqrt(variance))
    fit = fit_surrogate(space, tuple(measured[: learned_at(at)]))
    if fit is None:
        return None
    told = fit.predict([sample.cell])
    return PredictionCheck(log - float(told.log[0]), float(told.sd[0]), math.sqrt(variance))


def widening_of(space: Space, samples: tuple[Sample, ...]) -> float:
    """Widening factor of all standard deviations, by the errors of predictions so far (prequential: Dawid 1984);
    LEAST_WIDENING at least.

    Configurations are skipped where the sd is smallest, and so most often too small: leave-one-out errors, by which a
    surrogate widens its own sd, do not include this selection.
    """
    squares = [each.square for each in forecast_of(space, samples)]
    return math.sqrt(max((BELIEVED + sum(squares)) / (BELIEVED + len(squares)), LEAST_WIDENING**2))


def predict_configurations(
    space: Space,
    samples: tuple[Sample, ...],
    configurations: Sequence[Configuration],
    pending: Sequence[Configuration] = (),
) -> Predicted | None:
    """Predictions of configurations, once `pending` ones are measured, widened by the calibration so far; None if there
    is no surrogate."""
    fit = fit_surrogate(space, samples)
    if fit is None or not configurations:
        return None
    told = fit.predict(configurations)
    return Predicted(told.log, plans.sd_after(fit, configurations, pending) * widening_of(space, samples))


def well_predicted(predicted: Predicted, rules: Rules) -> list[bool]:
    """True for each prediction that is good enough to skip its measurement."""
    quantile = float(special.ndtri((1 + rules.confidence) / 2))
    return [bool(sd * quantile <= math.log1p(rules.within)) for sd in predicted.sd]


def predicted_samples(space: Space, samples: Sequence[Sample], confidence: float) -> tuple[Sample, ...]:
    """Predicted samples of all untried configurations; empty without a surrogate."""
    fit = fit_surrogate(space, tuple(samples))
    done = {sample.cell for sample in samples}
    left = [configuration for configuration in space if configuration not in done]
    told = predict_configurations(space, tuple(samples), left)
    if fit is None or told is None:
        return ()
    quantile = float(special.ndtri((1 + confidence) / 2))
    return tuple(
        Sample(
            configuration,
            "predicted",
            math.exp(log),
            math.exp(log - quantile * sd),
            math.exp(log + quantile * sd),
            confidence,
            why=f"{fit.name} of {len(fit.left_out.log)} samples",
        )
        for configuration, log, sd in zip(left, told.log.tolist(), told.sd.tolist(), strict=True)
    )


def _longest(
    space: Space,
    rules: Rules,
    left: Sequence[Configuration],
    samples: Sequence[Sample],
    pending: Sequence[Configuration],
) -> Configuration | None:
    """The configuration with the longest expected measurement if all that are left can start now or next, so that none
    is waited for alone (Graham 1969); None if there is a choice to make, or costs are unknown."""
    room = len(left)
    if rules.count is not None and rules.plan != "d-optimal":
        room = rules.count - len({*(sample.cell for sample in samples), *pending})
    if not pending or rules.plan == "in-order" or not len(left) <= min(room, len(pending) + 1):
        return None
    expected_s = expected_cost(space, samples)
    return None if expected_s is None else max(left, key=expected_s)


def _next(
    space: Space,
    rules: Rules,
    left: Sequence[Configuration],
    fit: Choice | None,
    samples: Sequence[Sample],
    pending: Sequence[Configuration],
    cost: plans.Cost | None,
) -> Configuration:
    if rules.plan == "in-order":
        return left[0]
    if rules.plan in ("full", "adaptive"):
        data = _known(_Seen(tuple(samples)))
        measured = set(data.cells)
        tried = [sample.cell for sample in samples if sample.cell not in measured]
        return plans.next_sample(space, fit, data, cost, pending, tried, left)
    if fit is None:
        return left[0]
    return left[int(plans.sd_after(fit, left, pending).argmax())]


def visit(space: Space, rules: Rules, configuration: Configuration, samples: Sequence[Sample]) -> Visit:
    """A visit to a given configuration, with its expected response."""
    fit = fit_surrogate(space, tuple(samples)) if rules.plan != "in-order" else None
    return _visit(space, configuration, fit, samples)


def _visit(
    space: Space,
    configuration: Configuration,
    fit: Choice | None,
    samples: Sequence[Sample],
    trusted: bool = False,
) -> Visit:
    if fit is not None:
        told = fit.predict([configuration])
        if math.isfinite(float(told.sd[0])):
            spread = max(float(told.sd[0]), LEAST_SPREAD)
            why = f"predicted by {fit.name}, ± {100 * spread:.0f} %"
            return Visit(configuration, math.exp(float(told.log[0])), spread, why, trusted)
    near = nearest_response(space, configuration, samples)
    return Visit(configuration, near, None, "as the nearest sample" if near is not None else "the first")


def nearest_response(space: Space, configuration: Configuration, samples: Sequence[Sample]) -> float | None:
    """Response of the nearest sample; if none has the same categories, the median of all ("Cutting Corners", section
    3.7)."""
    data = known_samples(samples)
    if not data.cells:
        return None
    words = [at for at, factor in enumerate(space.factors) if factor.scale == "categorical"]
    alike = [n for n, other in enumerate(data.cells) if all(other[at] == configuration[at] for at in words)]
    if not alike:
        return math.exp(float(np.median(data.log)))
    apart = ((space.coded([data.cells[n] for n in alike]) - space.coded([configuration])) ** 2).sum(axis=1)
    return math.exp(float(data.log[alike[int(apart.argmin())]]))
