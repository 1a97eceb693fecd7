"""Prior of a peak rate and of a curve's shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from etude.peak.policies.belief.curves import Floats, family
from etude.peak.task import Task

_SEEDED, _SEED_WIDTH = 0.7, 0.25
"""Trust in a seed: share of the prior around it, and the scale of that share in log rate."""
_PREDICTED, _FREEDOM = 0.95, 5.0
"""Trust in a predicted seed with a stated error: share of the prior, and Student's degrees of freedom, for poor
predictions."""
_ALIKE = 0.9
"""Trust in the shapes of similar configurations."""


@dataclass(frozen=True, slots=True)
class Seed:
    """Prior of a task: its `seed_load`, `seed_spread` and `seed_shapes`."""

    load: float | None
    spread: float | None
    shapes: tuple[tuple[str, float], ...] = ()

    def shape_weights(self) -> Floats:
        """Prior weights of all shapes, shape (K,); a similar configuration may have another shape."""
        own = family().weights
        known = dict(self.shapes)
        told = np.array([known.get(name, 0.0) for name in family().names])
        return own if not told.sum() else (1 - _ALIKE) * own + _ALIKE * told / told.sum()

    def log_prior(self, grid: Floats) -> Floats:
        """Log prior of log λ*, up to a constant."""
        if self.load is None:
            return np.zeros_like(grid)
        if self.spread is None:
            share, near = _SEEDED, stats.cauchy.pdf(grid, np.log(self.load), _SEED_WIDTH)
        else:
            share, near = _PREDICTED, stats.t.pdf(grid, _FREEDOM, np.log(self.load), self.spread)
        return np.asarray(np.log((1 - share) / 5.0 + share * near))


def weight_of_seed(off: float, spread: float) -> float:
    """Weight of a prediction relative to measurements, an inverse variance: a normal law with it exerts the same pull
    at this distance, in log rate, from the prediction. It falls with the distance."""
    near = _PREDICTED * float(stats.t.pdf(off, _FREEDOM, 0.0, spread))
    counted = near / (near + (1 - _PREDICTED) / 5.0)
    return counted * (_FREEDOM - 1) / (_FREEDOM * spread**2 + off**2)


def seed_of(task: Task) -> Seed:
    """Prior of a task."""
    return Seed(task.seed_load, task.seed_spread, task.seed_shapes)
