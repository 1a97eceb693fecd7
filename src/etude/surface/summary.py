"""All that a surface says, made once for the screen, the document and the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from etude.surface.crossover import Crossover, crossovers
from etude.surface.effects import Interaction, MainEffect, interactions, main_effects
from etude.surface.limits import Limit, limits, limits_text
from etude.surface.optimum import Optimum, optimum
from etude.surface.ranges import (
    LITTLE,
    BreakEven,
    Range,
    break_even_lines,
    break_evens,
    effective_ranges,
)
from etude.surface.surface_result import SurfaceResult
from etude.units.formatting import counted, duration, percent


@dataclass(frozen=True)
class Accuracy:
    """The mean absolute percentage error of predictions (Table 4 of the paper), from leaving each sample out."""

    mape: float
    """A share."""
    low: float
    high: float
    worst: float
    count: int
    confidence: float

    @property
    def text(self) -> str:
        """`Predictions are off by 9.1 % on average (6.0 % … 12 %; …)`."""
        return (
            f"Predictions are off by {percent(self.mape)} on average ({percent(self.low)} … {percent(self.high)}), "
            f"by {percent(self.worst)} at most: each of {counted(self.count, 'measured cell')} predicted from all "
            "others."
        )


@dataclass(frozen=True)
class CostSummary:
    """Cells by state, and benchmarking time."""

    cells: int
    measured: int
    predicted: int
    bounded: int
    failed: int
    bench_s: float
    trials: int

    @property
    def text(self) -> str:
        """`12 of 32 cells measured, 20 predicted: 212 trials, 14.2 h of bench time.`."""
        further = [
            f"{count} {word}"
            for count, word in (
                (self.predicted, "predicted"),
                (self.bounded, "with a bound only"),
                (self.failed, "of which nothing is known"),
            )
            if count
        ]
        told = ", ".join([f"{self.measured} of {counted(self.cells, 'cell')} measured", *further])
        return f"{told}: {counted(self.trials, 'trial')}, {duration(self.bench_s)} of benchmarking time."


def accuracy(loo: Sequence[float], confidence: float = 0.95) -> Accuracy | None:
    """From relative errors, signs and all; None of fewer than three."""
    sizes = np.abs(np.asarray(loo, dtype=float))
    sizes = sizes[np.isfinite(sizes)]
    if len(sizes) < 3:
        return None
    mean = float(sizes.mean())
    quantile = float(special.stdtrit(len(sizes) - 1, (1 + confidence) / 2))
    half = quantile * float(sizes.std(ddof=1)) / math.sqrt(len(sizes))
    return Accuracy(mean, max(0.0, mean - half), mean + half, float(sizes.max()), len(sizes), confidence)


def cost_summary(mapped: SurfaceResult) -> CostSummary:
    """Over all attempts; of samples where no costs were kept."""
    states = [mapped.estimate(cell).state for cell in mapped.space]
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


MOST_INTERACTIONS, MOST_CROSSOVERS, MOST_SETTINGS = 3, 6, 6


@dataclass(frozen=True)
class Summary:
    """What a surface says."""

    optimum: Optimum | None
    limits: tuple[Limit, ...]
    ranges: tuple[tuple[Range, tuple[Range, ...]], ...]
    """Of each factor: over all settings, and for each of them."""
    effects: tuple[MainEffect, ...]
    interactions: tuple[Interaction, ...]
    crossovers: tuple[Crossover, ...]
    break_evens: tuple[BreakEven, ...]
    accuracy: Accuracy | None
    spent: CostSummary


def summarise(mapped: SurfaceResult, *, target: float | None = None, little: float = LITTLE) -> Summary:
    """target: a response of which is said how much of each factor it takes."""
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
    )


def summary_lines(said: Summary) -> list[tuple[str, tuple[str, ...]]]:
    """Sentences under headings; those that have none are left out."""
    if said.optimum is None:
        limits = (limits_text(said.limits),)
        return [
            ("Optimum", ("Nothing is known yet.",)),
            ("What limits", limits),
            ("Cost", (said.spent.text,)),
        ]
    ranges = tuple(line.text for overall, each in said.ranges for line in _told(overall, each))
    parts = [
        ("Optimum", said.optimum.text),
        ("What limits", (limits_text(said.limits),)),
        ("Effective range", ranges),
        ("Main effects", tuple(effect.text for effect in said.effects)),
        ("Interactions", tuple(each.text for each in said.interactions[:MOST_INTERACTIONS])),
        ("Crossovers", tuple(each.text for each in said.crossovers[:MOST_CROSSOVERS])),
        ("Break-even", break_even_lines(said.break_evens)),
        ("Accuracy", (said.accuracy.text,) if said.accuracy and said.spent.predicted else ()),
        ("Cost", (said.spent.text,)),
    ]
    return [(heading, lines) for heading, lines in parts if lines]


def _told(overall: Range, each: tuple[Range, ...]) -> list[Range]:
    """Overall, and the settings in which it is another."""
    others = [r for r in each if (r.low, r.high) != (overall.low, overall.high)]
    return [overall, *(others if len(others) <= MOST_SETTINGS else [])]
