"""All that is known of a surface, for the screen, the document and the report: optimum, ranges, effects, cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from etude.surface.effects import Interaction, MainEffect, interactions, main_effects
from etude.surface.factors import Configuration
from etude.surface.ranges import (
    LITTLE,
    BreakEven,
    Crossover,
    Limit,
    Range,
    break_evens,
    crossovers,
    effective_ranges,
    limits,
)
from etude.surface.surface_result import Estimate, SurfaceResult


@dataclass(frozen=True)
class Accuracy:
    """Mean absolute percentage error of leave-one-out predictions (Table 4 of the paper)."""

    mape: float
    """Mean error, a share."""
    low: float
    high: float
    worst: float
    count: int
    confidence: float


@dataclass(frozen=True)
class CostSummary:
    """Number of configurations by state, and benchmarking time."""

    cells: int
    measured: int
    predicted: int
    bounded: int
    failed: int
    bench_s: float
    trials: int


def accuracy(loo: Sequence[float], confidence: float = 0.95) -> Accuracy | None:
    """Accuracy from signed relative errors; None for fewer than three."""
    sizes = np.abs(np.asarray(loo, dtype=float))
    sizes = sizes[np.isfinite(sizes)]
    if len(sizes) < 3:
        return None
    mean = float(sizes.mean())
    quantile = float(special.stdtrit(len(sizes) - 1, (1 + confidence) / 2))
    half = quantile * float(sizes.std(ddof=1)) / math.sqrt(len(sizes))
    return Accuracy(mean, max(0.0, mean - half), mean + half, float(sizes.max()), len(sizes), confidence)


def cost_summary(mapped: SurfaceResult) -> CostSummary:
    """Costs over all attempts, or of the samples if attempts were not stored."""
    states = [mapped.estimate(configuration).state for configuration in mapped.space]
    taken = [(c.cost_s, c.trials) for c in mapped.costs] or [(s.cost_s, s.trials) for s in mapped.samples]
    return CostSummary(
        cells=len(states),
        measured=states.count("measured"),
        predicted=states.count("predicted"),
        bounded=states.count("bounded"),
        failed=states.count("failed"),
        bench_s=sum(cost for cost, _ in taken),
        trials=sum(trials for _, trials in taken),
    )


@dataclass(frozen=True)
class Missed:
    """A measured configuration whose target is not met."""

    cell: Configuration
    name: str
    why: str


@dataclass(frozen=True)
class Summary:
    """The findings on a surface."""

    optimum: Optimum | None
    limits: tuple[Limit, ...]
    ranges: tuple[tuple[Range, tuple[Range, ...]], ...]
    """Ranges of each factor: over all settings, and for each of them."""
    effects: tuple[MainEffect, ...]
    interactions: tuple[Interaction, ...]
    crossovers: tuple[Crossover, ...]
    break_evens: tuple[BreakEven, ...]
    accuracy: Accuracy | None
    spent: CostSummary
    missed: tuple[Missed, ...] = ()


def summarise(mapped: SurfaceResult, *, target: float | None = None, little: float = LITTLE) -> Summary:
    """Summary of a map. `target`: response for which break-even levels are given."""
    filled, better = mapped.filled, mapped.better
    rising = [f.name for f in mapped.space.factors if f.scale != "categorical" and len(f.levels) > 1]
    return Summary(
        optimum(mapped),
        limits(filled, better, little),
        effective_ranges(filled, little),
        main_effects(filled),
        interactions(filled),
        crossovers(filled, better),
        ()
        if target is None
        else tuple(each for name in rising for each in break_evens(filled, name, target, better)),
        accuracy(mapped.loo, mapped.confidence),
        cost_summary(mapped),
        tuple(
            Missed(cell, mapped.space.name(cell), sample.why)
            for cell, sample in mapped.last.items()
            if sample.state == "measured" and not sample.kept
        ),
    )


@dataclass(frozen=True)
class Optimum:
    """The best known response."""

    name: str
    """Name of the configuration."""
    best: Estimate
    alike: tuple[Configuration, ...]
    """Other configurations that may be as good or better; the list is complete with the confidence of the surface."""
    alike_names: tuple[str, ...]
    edges: tuple[str, ...]
    """Factors of which it has the lowest or highest level that was tried: the true optimum may lie beyond."""
    response: str
    unit: str


def optimum(mapped: SurfaceResult) -> Optimum | None:
    """The optimum; None if no configuration is known."""
    filled, space = mapped.filled, mapped.space
    sign = 1.0 if mapped.better == "higher" else -1.0
    known = [configuration for configuration in space if filled.known[configuration]]
    if not known:
        return None
    best = max(known, key=lambda configuration: sign * filled.log[configuration])
    others = [configuration for configuration in known if configuration != best]
    # One-sided, against each of the others: multiple comparisons with the best.
    z = float(special.ndtri(1 - (1 - mapped.confidence) / len(others))) if others else 0.0
    alike = []
    for configuration in others:
        apart, sd = filled.apart(best, configuration)
        if sign * apart <= z * sd:
            alike.append(configuration)
    alike.sort(key=lambda configuration: -sign * filled.log[configuration])
    return _optimum_of(mapped, best, alike)


def _optimum_of(mapped: SurfaceResult, best: Configuration, alike: list[Configuration]) -> Optimum:
    space = mapped.space
    names = tuple(map(space.name, alike))
    edges = tuple(
        f"{factor.name}={factor.text(level)}"
        for factor, level in zip(space.factors, best, strict=True)
        if factor.scale != "categorical" and len(factor.levels) > 1 and level in (0, len(factor.levels) - 1)
    )
    estimate = mapped.estimate(best)
    return Optimum(space.name(best), estimate, tuple(alike), names, edges, mapped.response, mapped.unit)
