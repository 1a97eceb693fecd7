"""Sampling plans: all configurations, one factor at a time, a design, or each time the one with the most information.

Designs are made before the first measurement; `next_sample` uses the samples so far.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from etude.surface.factors import Configuration, Floats, Space, distance, farthest_configuration, with_level
from etude.surface.samples import KnownResponses, Sample
from etude.surface.surrogates import Fit
from etude.surface.surrogates.process import InformationGains, trend
from etude.surface.surrogates.quadratic import terms

STARTS = 10
SWEEPS = 30
RIDGE = 1e-4
"""Regularisation of the information matrix, so that designs with fewer configurations than terms are comparable too."""


def d_optimal(
    space: Space, count: int, fixed: Sequence[Configuration] = (), seed: int = 0
) -> tuple[Configuration, ...]:
    """`count` configurations that, together with the `fixed` ones, maximise the determinant of the information matrix.

    Raises ValueError if fewer are left.
    """
    configurations = [configuration for configuration in space if configuration not in set(fixed)]
    if not 0 <= count <= len(configurations):
        raise ValueError(f"{count} configurations beside {len(fixed)} fixed ones: the space has {space.size}")
    rows = terms(space, configurations)
    known = terms(space, fixed)
    base = known.T @ known + RIDGE * np.eye(known.shape[1])
    generator = np.random.default_rng(seed)
    designs = (_exchanged(rows, base, _greedy(rows, base, count, generator)) for _ in range(STARTS))
    best = max(designs, key=lambda at: float(np.linalg.slogdet(base + rows[at].T @ rows[at])[1]))
    return tuple(configurations[at] for at in sorted(best))


def _greedy(rows: Floats, base: Floats, count: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """A start: half of it at random, then each time the candidate with the largest prediction variance."""
    chosen = list(generator.choice(len(rows), size=(count + 1) // 2, replace=False))
    while len(chosen) < count:
        inverse = np.linalg.inv(base + rows[chosen].T @ rows[chosen])
        spread = np.einsum("ij,ij->i", rows @ inverse, rows)
        spread[chosen] = -1
        chosen.append(int(spread.argmax()))
    return np.array(chosen, dtype=np.intp)


def _exchanged(rows: Floats, base: Floats, design: NDArray[np.intp]) -> NDArray[np.intp]:
    """Exchange each configuration for the candidate that gains most, until none does."""
    for _ in range(SWEEPS):
        changed = False
        for place in range(len(design)):
            rest = np.delete(design, place)
            inverse = np.linalg.inv(base + rows[rest].T @ rows[rest])
            # det(M + xx') = det(M) (1 + x' M⁻¹ x)
            spread = np.einsum("ij,ij->i", rows @ inverse, rows)
            spread[rest] = -1
            better = int(spread.argmax())
            if spread[better] > spread[design[place]] * (1 + 1e-9):
                design[place], changed = better, True
        if not changed:
            break
    return design


START = 4
"""Samples before an adaptive plan uses a surrogate."""
AMONG = 400
"""Maximum number of configurations over which the information gain of a sample is summed."""
CANDIDATES = 2000
"""Maximum number of candidates whose gain is computed: those with the largest variance."""
DIGITS = 9
"""Decimal digits to which gains are compared."""

Cost = Callable[[Configuration], float]
"""Cost of measuring a configuration, s; only ratios matter."""


@runtime_checkable
class CovarianceFit(Fit, Hashable, Protocol):
    """A Fit with the covariance of configurations."""

    def information_gains(
        self, configurations: Sequence[Configuration], among: Sequence[Configuration]
    ) -> InformationGains:
        """Information gains of `configurations`, for the variances of `among`."""
        ...

    def sd_after(self, configurations: Sequence[Configuration], pending: Sequence[Configuration]) -> Floats:
        """Standard deviations as in `predict`, after measuring `pending`."""
        ...


def full(space: Space, seed: int) -> tuple[Configuration, ...]:
    """All configurations in random order, so that drift is not confounded with a factor."""
    configurations = list(space)
    order = np.random.default_rng(seed).permutation(len(configurations))
    return tuple(configurations[at] for at in order)


def one_factor(space: Space, base: Configuration) -> tuple[Configuration, ...]:
    """The base, and every configuration that differs from it in one factor. Raises ValueError for a base outside the
    space."""
    configurations = set(space)
    if base not in configurations:
        raise ValueError(f"{base} is no configuration of the space")
    varied = [
        with_level(base, at, level)
        for at, factor in enumerate(space.factors)
        for level in range(len(factor.levels))
        if level != base[at]
    ]
    return (base, *(configuration for configuration in varied if configuration in configurations))


def next_sample(
    space: Space,
    fit: Fit | None,
    known: KnownResponses,
    cost: Cost | None = None,
    pending: Sequence[Configuration] = (),
    tried: Sequence[Configuration] = (),
    left: Iterable[Configuration] | None = None,
) -> Configuration:
    """The configuration of `left` (None: all) with the most information per cost. `pending` ones count as measured;
    `tried` ones gave no value, so their neighbours are not tried first.

    Without a fit, or with fewer than START samples, it is far from the others. Raises ValueError if all configurations
    are measured or pending.
    """
    taken = {*known.cells, *pending, *tried}
    configurations = [
        configuration for configuration in (space if left is None else left) if configuration not in taken
    ]
    if not configurations:
        raise ValueError("all configurations are measured")
    if fit is None or len(taken) < START:
        return farthest_configuration(space, taken)
    if not isinstance(fit, CovarianceFit):
        worth = _plain(space, fit, configurations, [*tried, *pending])
    else:
        configurations, worth = _learnt(space, fit, configurations, known, tried, pending)
    if cost is not None:
        worth = worth / np.array([cost(configuration) for configuration in configurations])
    return configurations[int(worth.argmax())]


def sd_after(fit: Fit, configurations: Sequence[Configuration], pending: Sequence[Configuration]) -> Floats:
    """Standard deviations of predictions once `pending` configurations are measured; unchanged for a fit without
    covariances."""
    return (
        fit.sd_after(configurations, pending)
        if pending and isinstance(fit, CovarianceFit)
        else fit.predict(configurations).sd
    )


def _plain(
    space: Space, fit: Fit, configurations: Sequence[Configuration], pending: Sequence[Configuration]
) -> Floats:
    """Gain without covariances: the variance, times the distance from pending configurations."""
    variance = fit.predict(configurations).sd ** 2
    near, places = np.ones(len(configurations)), space.coded(configurations)
    for place in space.coded(pending):
        near = np.minimum(near, distance(space, places, place))
    return np.asarray(np.where(np.isfinite(variance), variance, 1e6) * near)


def _learnt(
    space: Space,
    fit: CovarianceFit,
    configurations: list[Configuration],
    known: KnownResponses,
    tried: Sequence[Configuration],
    pending: Sequence[Configuration],
) -> tuple[list[Configuration], Floats]:
    """Candidates that are left, and the variance that each removes."""
    there, taken = _candidates(fit, tuple(tried)), (*tried, *pending)
    if there.information_gains is None or not there.information_gains.follows(taken):
        there.begin(space, fit, known, tried, taken)
    assert there.information_gains is not None
    there.information_gains.take(taken)
    left, worth = set(configurations), there.information_gains.worth()
    if pending:
        # Rounding errors depend on the order of measurement; the choice among equal configurations must not.
        worth = np.round(worth / worth.max(), DIGITS)
    which = [at for at, configuration in enumerate(there.cells) if configuration in left]
    if not which:
        return configurations, fit.sd_after(configurations, taken)
    return [there.cells[at] for at in which], worth[which]


@dataclass(eq=False)
class _Candidates:
    """Candidates of one fit after failed configurations: a function of the samples, updated while others are
    pending."""

    cells: list[Configuration] = field(default_factory=list)
    information_gains: InformationGains | None = None

    def begin(
        self,
        space: Space,
        fit: CovarianceFit,
        known: KnownResponses,
        tried: Sequence[Configuration],
        taken: Sequence[Configuration],
    ) -> None:
        """Choose the candidates with the largest variance if there are many."""
        measured = {*known.cells, *tried}
        every = [configuration for configuration in space if configuration not in measured]
        among = every[:: max(len(every) // AMONG, 1)]
        self.cells = every
        if len(every) > CANDIDATES:
            variance = fit.predict(every).sd ** 2
            self.cells = [every[at] for at in np.sort(np.argsort(-variance, kind="stable")[:CANDIDATES])]
        held = set(self.cells)
        outside = [configuration for configuration in dict.fromkeys(taken) if configuration not in held]
        self.information_gains = fit.information_gains([*self.cells, *outside], among)


@lru_cache(maxsize=2)
def _candidates(fit: CovarianceFit, tried: tuple[Configuration, ...]) -> _Candidates:
    return _Candidates()


LEAST_COSTS = 4
"""Minimum number of samples."""
NEWEST_COSTS = 500
"""Number of last samples that are used."""
COST_VARIANCE = 1.0
"""Residual variance of a log cost, relative to slopes of prior variance 1 (ridge regression)."""


def expected_cost(space: Space, samples: Sequence[Sample]) -> Callable[[Configuration], float] | None:
    """Expected cost of a configuration, s; None with too few samples."""
    paid = [each for each in samples[-NEWEST_COSTS:] if each.cost_s > 0]
    if len(paid) < LEAST_COSTS:
        return None
    logs = np.log([each.cost_s for each in paid])
    rows = _terms(space, [each.cell for each in paid])
    ridge = COST_VARIANCE * np.eye(rows.shape[1])
    slopes = np.linalg.solve(rows.T @ rows + ridge, rows.T @ (logs - logs.mean()))
    return lambda configuration: float(np.exp(logs.mean() + _terms(space, [configuration])[0] @ slopes))


def _terms(space: Space, configurations: Sequence[Configuration]) -> Floats:
    """Model terms: a slope for each ordered factor, an indicator for each level of a categorical one."""
    kinds = [
        np.array(
            [
                [float(configuration[at] == level) for level in range(len(factor.levels))]
                for configuration in configurations
            ]
        )
        for at, factor in enumerate(space.factors)
        if factor.scale == "categorical"
    ]
    return np.hstack([trend(space, configurations), *kinds])
