"""What a surface cost, and how good its predictions are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from etude.units.formatting import counted, duration, percent
from etude.workbench.surfaces.mapped import Mapped


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
class Spent:
    """Cells by state, and bench time."""

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
        return f"{told}: {counted(self.trials, 'trial')}, {duration(self.bench_s)} of bench time."


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


def spent(mapped: Mapped) -> Spent:
    """Over all attempts; of samples where no costs were kept."""
    states = [mapped.estimate(cell).state for cell in mapped.space]
    taken = [(c.cost_s, c.trials) for c in mapped.costs] or [(s.cost_s, s.trials) for s in mapped.samples]
    return Spent(
        cells=len(states),
        measured=states.count("measured"),
        predicted=states.count("predicted"),
        bounded=states.count("bounded"),
        failed=states.count("failed"),
        bench_s=sum(cost for cost, _ in taken),
        trials=sum(trials for _, trials in taken),
    )
