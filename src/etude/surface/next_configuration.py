"""Which cell is measured next, and when the surface is known well enough ("Cutting Corners", Algorithm 1).

A decision follows from the rules, the samples and the cells under way alone: a map that was interrupted goes on as it
would have. Where several machines measure at once, a cell under way counts as measured but for its response, which
nobody knows yet: what it will teach is no reason to measure another one.
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
from etude.surface.cost_model import expected_cost
from etude.surface.factors import Cell, Factor, Floats, Space
from etude.surface.samples import KnownResponses, Sample, known_samples
from etude.surface.surrogate import Predicted
from etude.surface.surrogates.selection import Choice, SelectedSurrogate

BY = math.log(1.5)
"""Log of the least that counts as far off."""
FAR = 4.0
"""Robust standard deviations (1.4826·MAD of all cells)."""
LEAST_CELLS = 8
"""Fewer do not predict each other."""
ALIKE = math.log(1.1)
"""Log within which two measurements of a cell agree."""
MOST = 3
"""Measurements of a cell."""


def doubtful_cells(fit: Choice, samples: Sequence[Sample], besides: Collection[Cell] = ()) -> int | None:
    """The number, in `fit.known`, of the cell that is farthest off what the others predict and was measured once, or
    twice without agreement; None where there is none. `besides`: cells that are not asked for."""
    if len(fit.known.cells) < LEAST_CELLS or not np.isfinite(fit.left_out.log).all():
        return None
    values: dict[Cell, list[float]] = {}
    tried = Counter(sample.cell for sample in samples)
    for sample in samples:
        if sample.state == "measured" and sample.value:
            values.setdefault(sample.cell, []).append(math.log(sample.value))
    for at in far_off(fit.known.log - fit.left_out.log):
        cell = fit.known.cells[at]
        *_, last = logs = values[cell]
        settled = any(abs(each - last) <= ALIKE for each in logs[:-1])
        if cell not in besides and tried[cell] < MOST and not settled:
            return at
    return None


def far_off(off: Floats) -> list[int]:
    """Of differences in logs, those that are far from all others, the farthest first."""
    usual = 1.4826 * float(np.median(np.abs(off)))
    order = np.argsort(-np.abs(off), kind="stable")
    return [int(at) for at in order if abs(off[at]) >= max(BY, FAR * usual)]


Plan = Literal["full", "in-order", "one-at-a-time", "d-optimal", "adaptive"]
"""*full*: every cell, in the order in which they teach most. *in-order*: every cell, as the paper. *one-at-a-time*: the
base and what differs from it in one factor. *d-optimal*: a design of `count` cells. *adaptive*: what teaches most,
until `count` cells or the error wanted."""

LEAST_SPREAD = 0.02
"""Standard deviation of the log of a response that a prediction is trusted to at most."""
DOUBTED_SPREAD = 0.3
"""The same, at least, of a cell that is measured again for being far off its prediction."""
BELIEVED = 4.0
"""Predictions that count as having come as true as they said, before any was tried."""
LEAST_WIDENING = 1.2
"""How much too small the spread is where it is smallest, which is where cells are left out."""
CALIBRATED = 1.5
"""Up to this widening a prediction counts as a trial of its cell."""
EACH = 256
"""Samples up to which each is learnt from at once."""
RECENT = 30
"""Of the last so many predictions it is looked at how true they came."""
FIRST = 2
"""Samples after which a surrogate says where a search begins; before, the nearest sample does."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What is asked of a map."""

    plan: Plan = "full"
    count: int | None = None
    """Cells that are measured at most."""
    error: float | None = None
    """*adaptive*: mean absolute error of predictions, by leaving samples out, that is small enough."""
    skip: bool = False
    """Whether cells that are predicted well enough are left unmeasured."""
    within: float = 0.10
    confidence: float = 0.90
    """Well enough: within this share of the truth, with this confidence."""
    checks: int = 5
    """So many predictions in a row must have come true before any is believed unmeasured."""
    base: Cell | None = None
    """*one-at-a-time*: from where; None: the middle of each factor."""
    seed: int = 0


def contradiction(rules: Rules, size: int) -> tuple[str, str] | None:
    """The rule that cannot be kept, as it is called, and why not; `size`: cells that there are."""
    if rules.count is not None and rules.count > size:
        return "count", f"is {rules.count}: expected a whole number up to {size}, the cells that there are"
    if rules.plan == "d-optimal" and rules.count is None:
        return "plan", "d-optimal needs a count: how many cells the design has"
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
    """A cell that is to be measured."""

    cell: Cell
    expected: float | None
    """The response that is expected there; None where nothing was measured yet."""
    spread: float | None
    """Standard deviation of its log; None where it is another cell's response."""
    why: str
    proven: bool = False
    """Whether predictions were as good as they said so far, so that this one counts as a trial."""


@dataclass(frozen=True, slots=True)
class MapComplete:
    """The map is made, and no cell is under way."""

    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    """There is enough with the cells under way: no other is worth beginning until one of them has ended."""

    why: str


def decide(
    space: Space,
    rules: Rules,
    samples: Sequence[Sample],
    pending: Sequence[Cell] = (),
    cost: plans.Cost | None = None,
) -> Visit | MapComplete | Wait:
    """The next cell, or the end; `pending` are cells under way on other machines. With a `cost`, it is the cell that
    teaches most for what it costs."""
    again = _again(space, rules, samples, pending)
    if again is not None:
        return again
    decision = _decided(space, rules, samples, tuple(dict.fromkeys(pending)), cost)
    if isinstance(decision, MapComplete) and pending:
        return Wait(decision.why)
    return decision


def _again(space: Space, rules: Rules, samples: Sequence[Sample], pending: Sequence[Cell]) -> Visit | None:
    """A cell that is not believed yet; its expectation is that of the others."""
    seen = tuple(samples[: learned_at(len(samples), len(pending))])
    fit = fit_surrogate(space, seen) if rules.plan != "in-order" else None
    at = None if fit is None else doubtful_cells(fit, samples, pending)
    if fit is None or at is None:
        return None
    told, measured = math.exp(float(fit.left_out.log[at])), math.exp(float(fit.known.log[at]))
    spread = max(float(fit.left_out.sd[at]), DOUBTED_SPREAD)
    why = f"once more: {measured:.4g} is far off the {told:.4g} that the other cells predict"
    return Visit(fit.known.cells[at], told, spread, why)


def learned_at(count: int, under_way: int = 0) -> int:
    """How many of so many samples a choice has learnt from: all of few; of many all but the last 1/16 at most; where
    many cells are under way, all but the last 1/16 of as many.

    The others, as cells under way, take variance away and nothing more: a surrogate is not fitted to thousands of
    samples anew after each of them.
    """
    step = _power(count) // 16 if count > EACH else 1
    step = max(step, min(_power(under_way) // 16, _power(count) // 4), 1)
    return count // step * step


def _power(count: int) -> int:
    """The greatest power of two that is no more; 0 of 0."""
    return (1 << count.bit_length()) >> 1


def _decided(
    space: Space,
    rules: Rules,
    samples: Sequence[Sample],
    pending: tuple[Cell, ...],
    cost: plans.Cost | None,
) -> Visit | MapComplete:
    """The next cell, or why those that are measured or under way do."""
    taken = {*(sample.cell for sample in samples), *pending}
    if rules.count is not None and rules.plan != "d-optimal" and len(taken) >= rules.count:
        return MapComplete(f"{len(taken)} cells were asked for")
    left = [cell for cell in planned_cells(space, rules) if cell not in taken]
    if not left:
        return MapComplete("every cell of the plan has been tried")
    seen = tuple(samples[: learned_at(len(samples), len(pending))])
    ahead = (*(sample.cell for sample in samples[len(seen) :]), *pending)
    fit = fit_surrogate(space, seen) if rules.plan != "in-order" else None
    if fit is not None and rules.plan == "adaptive" and (why := known_enough(fit, rules)):
        return MapComplete(why)
    skipping = fit is not None and rules.skip
    if (
        skipping
        and is_proven(space, rules, seen)
        and (told := is_predicted(space, seen, left, ahead)) is not None
    ):
        unsure = [cell for cell, known in zip(left, is_sure(told, rules), strict=True) if not known]
        if not unsure:
            return MapComplete(f"the other {len(left)} cells are predicted well enough")
        left = unsure
    cell = _longest(space, rules, left, samples, pending)
    if cell is None:
        cell = _next(space, rules, left, fit, seen, ahead, cost)
    return _visit(space, cell, fit, seen, skipping and calibration_of(space, rules, seen))


def planned_cells(space: Space, rules: Rules) -> tuple[Cell, ...]:
    """The cells that may be measured."""
    return _planned(space.factors, space.without, rules)


@lru_cache(maxsize=8)
def _planned(factors: tuple[Factor, ...], without: frozenset[Cell], rules: Rules) -> tuple[Cell, ...]:
    space = Space(factors, without)
    if rules.plan == "one-at-a-time":
        return plans.one_factor(space, rules.base or middle_cell(space))
    if rules.plan == "d-optimal":
        return plans.d_optimal(space, min(rules.count or space.size, space.size), (), rules.seed)
    return tuple(space)


def middle_cell(space: Space) -> Cell:
    """The cell nearest to the middle of all factors."""
    wanted = tuple(len(factor.levels) // 2 for factor in space.factors)
    cells = list(space)
    off = np.abs(space.coded(cells) - space.coded([wanted])).sum(axis=1)
    return cells[int(off.argmin())]


@dataclass(frozen=True, slots=True)
class _Seen:
    """Samples as a key: to hash thousands takes longer than to see that they are the same objects."""

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
    """What is believed of the surface after these samples; None while they are too few."""
    measured = tuple(sample for sample in samples if sample.state == "measured")
    return _fitted(space.factors, _Seen(measured))


def known_enough(fit: Choice, rules: Rules) -> str:
    """Why the surface is known well enough; empty if it is not."""
    error = min((each.error for each in fit.judged if each.name == fit.name), default=math.inf)
    if rules.error is None or len(fit.left_out.log) < plans.START + 2 or error > rules.error:
        return ""
    return f"predictions are {100 * error:.1f} % off on average"


def is_proven(space: Space, rules: Rules, samples: tuple[Sample, ...]) -> bool:
    """Whether the last predictions, each made before its cell was measured, came true."""
    tried = forecast_of(space, samples)
    return len(tried) >= rules.checks and all(each.came_true(rules) for each in tried[-rules.checks :])


def calibration_of(space: Space, rules: Rules, samples: tuple[Sample, ...]) -> bool:
    """Whether predictions were about as far off as they said, so far."""
    return len(forecast_of(space, samples)) >= rules.checks and widening_of(space, samples) <= CALIBRATED


@dataclass(frozen=True, slots=True)
class PredictionCheck:
    """A cell that was predicted, then measured. In logs of the response."""

    off: float
    """Measured less predicted."""
    spread: float
    """Standard deviation of the prediction."""
    measured_sd: float
    """Of the measurement, by itself."""

    @property
    def square(self) -> float:
        """Of how far it was off, in units of what was to be expected; no single one counts as farther than 8."""
        return min(self.off**2 / (self.spread**2 + self.measured_sd**2), 64.0)

    def came_true(self, rules: Rules) -> bool:
        """Whether the cell is as was predicted, as far as measuring can tell."""
        return abs(self.off) <= math.log1p(rules.within) + self.measured_sd


def forecast_of(space: Space, samples: tuple[Sample, ...]) -> list[PredictionCheck]:
    """The last predictions, each made by a surrogate that had not seen its cell."""
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
    """Factor of all standard deviations, by how far predictions were off so far (prequential: Dawid 1984);
    LEAST_WIDENING at least.

    Cells are left unmeasured where the spread is smallest, and so most often where it is too small: errors of left-out
    samples, by which a surrogate widens its own, do not know of that choice.
    """
    squares = [each.square for each in forecast_of(space, samples)]
    return math.sqrt(max((BELIEVED + sum(squares)) / (BELIEVED + len(squares)), LEAST_WIDENING**2))


def is_predicted(
    space: Space, samples: tuple[Sample, ...], cells: Sequence[Cell], pending: Sequence[Cell] = ()
) -> Predicted | None:
    """Of cells, with all that is known of how good predictions are, once `pending` ones have been measured; None where
    nothing can be said."""
    fit = fit_surrogate(space, samples)
    if fit is None or not cells:
        return None
    told = fit.predict(cells)
    return Predicted(told.log, plans.sd_after(fit, cells, pending) * widening_of(space, samples))


def is_sure(predicted: Predicted, rules: Rules) -> list[bool]:
    """Of each, whether it is good enough to be left unmeasured."""
    quantile = float(special.ndtri((1 + rules.confidence) / 2))
    return [bool(sd * quantile <= math.log1p(rules.within)) for sd in predicted.sd]


def as_predicted(space: Space, samples: Sequence[Sample], confidence: float) -> tuple[Sample, ...]:
    """A sample for each cell that was not tried, from what is believed; none where nothing is."""
    fit = fit_surrogate(space, tuple(samples))
    done = {sample.cell for sample in samples}
    left = [cell for cell in space if cell not in done]
    told = is_predicted(space, tuple(samples), left)
    if fit is None or told is None:
        return ()
    quantile = float(special.ndtri((1 + confidence) / 2))
    return tuple(
        Sample(
            cell,
            "predicted",
            math.exp(log),
            math.exp(log - quantile * sd),
            math.exp(log + quantile * sd),
            confidence,
            why=f"{fit.name} of {len(fit.left_out.log)} samples",
        )
        for cell, log, sd in zip(left, told.log.tolist(), told.sd.tolist(), strict=True)
    )


def _longest(
    space: Space, rules: Rules, left: Sequence[Cell], samples: Sequence[Sample], pending: Sequence[Cell]
) -> Cell | None:
    """Where all that is left is begun now or as soon as a machine is free: what will take longest, lest it be waited
    for alone (Graham 1969); None where there is a choice to make, or costs are not known."""
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
    left: Sequence[Cell],
    fit: Choice | None,
    samples: Sequence[Sample],
    pending: Sequence[Cell],
    cost: plans.Cost | None,
) -> Cell:
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


def visit(space: Space, rules: Rules, cell: Cell, samples: Sequence[Sample]) -> Visit:
    """A given cell, with what is expected there."""
    fit = fit_surrogate(space, tuple(samples)) if rules.plan != "in-order" else None
    return _visit(space, cell, fit, samples)


def _visit(
    space: Space, cell: Cell, fit: Choice | None, samples: Sequence[Sample], trusted: bool = False
) -> Visit:
    if fit is not None:
        told = fit.predict([cell])
        if math.isfinite(float(told.sd[0])):
            spread = max(float(told.sd[0]), LEAST_SPREAD)
            why = f"{fit.name} says so, ± {100 * spread:.0f} %"
            return Visit(cell, math.exp(float(told.log[0])), spread, why, trusted)
    near = nearest_cells(space, cell, samples)
    return Visit(cell, near, None, "as the nearest sample" if near is not None else "the first")


def nearest_cells(space: Space, cell: Cell, samples: Sequence[Sample]) -> float | None:
    """The response of the nearest sample; where none has the same categories, the middle of all ("Cutting Corners",
    section 3.7)."""
    data = known_samples(samples)
    if not data.cells:
        return None
    words = [at for at, factor in enumerate(space.factors) if factor.scale == "categorical"]
    alike = [n for n, other in enumerate(data.cells) if all(other[at] == cell[at] for at in words)]
    if not alike:
        return math.exp(float(np.median(data.log)))
    apart = ((space.coded([data.cells[n] for n in alike]) - space.coded([cell])) ** 2).sum(axis=1)
    return math.exp(float(data.log[alike[int(apart.argmin())]]))
