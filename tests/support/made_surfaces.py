"""Surfaces whose answers are known: a function over levels, measured at some cells and predicted at the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from etude.surface.factors import Configuration, Factor, Space
from etude.surface.samples import Sample
from etude.surface.surface_result import Cost, SurfaceResult
from etude.surface.surrogates import Predicted

DISKS = Factor("disks", "linear", (1.0, 2.0, 3.0, 4.0))
NFSDS = Factor("nfsds", "log", (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0))
FS = Factor("fs", "categorical", ("ext4", "xfs", "btrfs"))
Z = 1.959963984540054


def power(disks: float, nfsds: float) -> float:
    """A product of power laws: effects are exact ratios, and nothing interacts."""
    return 100.0 * disks**0.5 * nfsds**0.25


def soft_minimum(disks: float, nfsds: float) -> float:
    """Disks bear 180/s each, daemons 120/s each; the lower of both limits, with a soft knee."""
    return float(((180 * disks) ** -6 + (120 * nfsds) ** -6) ** (-1 / 6))


def surface(
    factors: tuple[Factor, ...],
    response: Callable[..., float],
    *,
    predicted: Callable[[int], bool] = lambda number: False,
    failed: Collection[Configuration] = (),
    bounded: Collection[Configuration] = (),
    sd: float = 0.01,
    guess_sd: float = 0.02,
    without: Collection[Configuration] = (),
    **members: Any,
) -> SurfaceResult:
    """Values are the function's own; `sd` and `guess_sd` are those of the logs. predicted: of a cell by its number."""
    space = Space(factors, frozenset(without))
    true = {
        cell: response(*(factor.levels[level] for factor, level in zip(factors, cell, strict=True)))
        for cell in space
    }
    samples = []
    for number, cell in enumerate(space):
        value, away = true[cell], math.exp(Z * sd)
        if cell in failed:
            samples.append(Sample(cell, "failed", None, 0.0, math.inf, 0.95, 60.0, 1, False, "it died"))
        elif cell in bounded:
            samples.append(Sample(cell, "bounded", None, value, math.inf, 0.95, 60.0, 2))
        elif not predicted(number):
            samples.append(Sample(cell, "measured", value, value / away, value * away, 0.95, 1800.0, 9))
    measured = {sample.cell for sample in samples if sample.state == "measured"}
    others = [cell for cell in space if cell not in measured]
    logs = np.log(np.array([true[cell] for cell in others], dtype=float))
    costs = tuple(Cost(s.cell, s.cost_s, s.trials, s.state) for s in samples)
    usual: dict[str, Any] = {
        "response": "peak rate",
        "unit": "1/s",
        "better": "higher",
        "surrogate": "quadratic",
        "costs": costs,
    }
    known = Predicted(logs, np.full(len(others), guess_sd))
    return SurfaceResult(space=space, samples=tuple(samples), predicted=known, **(usual | members))
