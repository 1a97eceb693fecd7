"""Posterior over the commit at which a metric steps, from trials of some of the commits.

A trial's level is the sum of the level of its commit, the offset of its block, a slow drift of the machine, an offset
of its build (memory layout) and noise. The levels of the commits have no step, one, several, or drift. For each such
hypothesis the marginal likelihood is exact: the general level has a flat prior, steps a normal one and the variance of
the noise an inverse gamma one. The ratios of the other variances to the noise's are averaged over a grid.

Source: O'Hagan and Forster (2004), "Bayesian Inference", chapter 11, for the marginal likelihood of a linear model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve_banded, cholesky_banded
from scipy.special import logsumexp, stdtr, stdtrit

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

NONE, ONE, DRIFT, TWO, THREE = "none", "one", "drift", "two", "three"
PRIOR = {NONE: 0.5, ONE: 0.44, DRIFT: 0.01, TWO: 0.03, THREE: 0.02}
"""Prior probabilities of the hypotheses. With half of it on no step, a step is seen by chance in at most one history
of twenty (Ville's inequality) at a confidence of 95 %."""

BLOCK_RATIOS = (0.0, 0.2, 1.0, 5.0, 50.0)
"""Variance of a block's offset, over the noise variance of one trial."""
DRIFT_RATIOS = (0.0, 0.02, 0.2, 2.0)
"""Variance of the machine's drift (a random walk) from one block to the next, over the same."""
BUILD_OFFSETS = (0.0, 0.1, 0.4)
"""Standard deviation of a build's own offset, over the smallest step of interest …"""
BUILD_PRIOR = (0.6, 0.3, 0.1)
"""… and its prior."""
SESSION_BLOCKS = 50.0
"""Drift between two sessions, in blocks."""

TREND = 0.01
"""Prior precision of a steady drift of the machine, in the noise's: it hardly restrains it."""

WIDEST_STEP = 0.05
"""Prior standard deviation of a step, relative; at least twice the smallest step of interest."""
WINSOR = 3.0
"""Distance at which a trial is winsorised, in robust standard deviations of the noise."""
WINSOR_ROUNDS = 5
SEVERAL = 8
"""Gaps considered for two or three steps: those that one step makes most probable, and those of the largest changes."""


@dataclass(frozen=True)
class Evidence:
    """Trials of a bisection, in the order in which they ran; each array has shape (trials,)."""

    commits: Indices
    """Index of the commit, 0 for GOOD."""
    blocks: Indices
    """Number of the block, rising."""
    sessions: Indices
    """Number of the session of the block, rising."""
    values: Floats
    """Logarithm of the metric, or the metric where it reaches zero."""

    def measured(self) -> Indices:
        """Indices of the commits with trials, rising."""
        return np.unique(self.commits)


@dataclass(frozen=True)
class Hypothesis:
    """Steps in some of the gaps between measured commits, none, or a drift over the commits."""

    kind: str
    gaps: tuple[int, ...]
    """Gap j lies between the measured commits j and j+1, in their order."""
    probability: float
    sizes: tuple[float, ...]
    """Expected size of each step; of a drift its whole change."""


@dataclass(frozen=True)
class Posterior:
    """Result of `posterior_of`. Levels and sizes are in the unit of the evidence's values."""

    commits: Floats
    """Probability, shape (commits,), that the step in question is at this commit; entry 0 is 0. The step in question
    is the one, or of several the largest in the direction of the whole change."""
    none: float
    drift: float
    several: float
    """Probabilities of no step, of a drift, and of more than one step (which are also in `commits`)."""
    hypotheses: tuple[Hypothesis, ...]
    """All of a probability above 0.1 %, the most probable first."""
    step: float
    """Expected size of the step in question, given that there is one …"""
    step_error: float
    """… and its standard deviation."""
    noise: float
    """Standard deviation of one trial within its block."""
    block_ratio: float
    """Variance of the offset of a block from what is known of it by earlier blocks, over the noise variance."""
    build_ratio: float
    """Variance of a build's offset, over the noise variance."""
    change: float
    """Estimated change from GOOD to BAD …"""
    change_error: float
    degrees: float
    """… its standard error, and the degrees of freedom."""
    levels: Floats = field(repr=False)
    """Estimated levels of the measured commits relative to GOOD, shape (measured,) …"""
    level_errors: Floats = field(repr=False)
    """… and their standard errors."""

    def below(self, size: float) -> float:
        """Probability that GOOD and BAD differ by less than `size` in either direction, with a flat prior."""
        if self.change_error == 0.0:
            return float(abs(self.change) < size)
        ends = [(end - self.change) / self.change_error for end in (size, -size)]
        return float(stdtr(self.degrees, ends[0]) - stdtr(self.degrees, ends[1]))

    def change_interval(self, confidence: float) -> tuple[float, float]:
        """Confidence interval of the change from GOOD to BAD."""
        half = float(stdtrit(self.degrees, 0.5 + confidence / 2.0)) * self.change_error
        return self.change - half, self.change + half


def posterior_of(evidence: Evidence, count: int, *, smallest: float) -> Posterior:
    """Posterior over `count` commits.

    smallest: the smallest step of interest, in the unit of the values.
    Raises ValueError if GOOD or BAD, index 0 and count - 1, has no trial.
    """
    measured = evidence.measured()
    if measured.size < 2 or measured[0] != 0 or measured[-1] != count - 1:
        raise ValueError("GOOD and BAD need a trial each")
    model = _Model(_sums_of(evidence, measured), measured, smallest)
    tested = model.hypotheses()
    return _summary(model, tested, measured, count)


@dataclass(frozen=True)
class _Sums:
    """Sums over trials, which is all that the models need."""

    counts: Floats
    """Trials of each measured commit in each block, shape (blocks, measured) …"""
    sums: Floats
    """… and the sums of their values, shape (blocks,)."""
    by_commit: Floats
    """Sums of the values of each commit, shape (measured,)."""
    squares: float
    """Sum of the squared values."""
    trend: Floats
    """Time of each block in trials, scaled from -1 to 1, shape (blocks,): the machine may drift steadily."""
    pauses: Floats
    """Time from each block to the next, in blocks, shape (blocks - 1,)."""
    noise: float
    """Robust standard deviation of a trial."""


def _sums_of(evidence: Evidence, measured: Indices) -> _Sums:
    places = np.searchsorted(measured, evidence.commits)
    numbers, first = np.unique(evidence.blocks, return_index=True)
    blocks = np.searchsorted(numbers, evidence.blocks)
    counts = np.zeros((numbers.size, measured.size))
    np.add.at(counts, (blocks, places), 1.0)
    values, noise = _winsorised(evidence.values - np.mean(evidence.values), places, blocks, counts)
    pauses = np.where(np.diff(evidence.sessions[first]) != 0, SESSION_BLOCKS, 1.0)
    ends = np.cumsum(counts.sum(axis=1))
    trend = (ends - 0.5 * counts.sum(axis=1)) * 2.0 / ends[-1] - 1.0
    squares = float(np.sum(values**2))
    of_blocks, of_commits = np.zeros(numbers.size), np.zeros(measured.size)
    np.add.at(of_blocks, blocks, values)
    np.add.at(of_commits, places, values)
    return _Sums(counts, of_blocks, of_commits, squares, trend, pauses, noise)


def _winsorised(values: Floats, places: Indices, blocks: Indices, counts: Floats) -> tuple[Floats, float]:
    """Values with outliers drawn to `WINSOR` robust deviations of the fit of commits and blocks; and this deviation.

    Source: Huber (1981), "Robust Statistics", section 7.8: modified residuals.
    """
    # Least squares in both ways, blocks with a weak prior, after the blocks are eliminated.
    size = counts.sum(axis=1) + 1.0 / BLOCK_RATIOS[-2]
    matrix = np.diag(counts.sum(axis=0)) - counts.T @ (counts / size[:, None])
    free = values.size - min(counts.shape[1] + counts.shape[0] * 0.5, 0.5 * values.size)
    found, spread = values, 0.0
    for _ in range(WINSOR_ROUNDS):
        of_blocks = np.bincount(blocks, found)
        right = np.bincount(places, found) - counts.T @ (of_blocks / size)
        levels = np.linalg.lstsq(matrix, right, rcond=None)[0]
        fitted = levels[places] + ((of_blocks - counts @ levels) / size)[blocks]
        rest = values - fitted
        spread = 1.4826 * float(np.median(np.abs(rest))) * math.sqrt(values.size / free)
        if spread == 0.0:
            return values, 0.0
        found = fitted + np.clip(rest, -WINSOR * spread, WINSOR * spread)
    return found, spread


@dataclass(frozen=True)
class _Tested:
    """Hypotheses of one kind; arrays over (grid, hypotheses)."""

    kind: str
    gaps: Indices
    """Shape (hypotheses, steps)."""
    weights: Floats
    """Logarithms of prior times marginal likelihood."""
    sizes: Floats
    """Shape (grid, hypotheses, steps)."""
    errors: Floats
    """Standard deviations of the sizes, the same shape."""


class _Model:
    """Linear models of the cells' means, for each point of the grid of variance ratios."""

    def __init__(self, sums: _Sums, measured: Indices, smallest: float) -> None:
        self.measured = measured
        noise = max(sums.noise, 0.01 * smallest)
        builds = [(share * smallest / noise) ** 2 for share in BUILD_OFFSETS]
        self.grid = np.array(list(product(BLOCK_RATIOS, DRIFT_RATIOS, builds)))
        prior = np.array([math.log(p) for _, _, p in product(BLOCK_RATIOS, DRIFT_RATIOS, BUILD_PRIOR)])
        found = [_products(sums, *each) for each in product(BLOCK_RATIOS, DRIFT_RATIOS)]
        without = np.stack([each for each, _ in found]), np.array([each for _, each in found])
        products, logdets = _with_builds(*without, np.array(builds))
        # Columns: the general level, the trend, a step in each gap, the slope over the commits, the values.
        count = measured.size
        columns = np.zeros((count + 2, count + 3))
        columns[:count, 0] = columns[count, 1] = columns[count + 1, -1] = 1.0
        columns[:count, 2 : count + 1] = np.arange(count)[:, None] > np.arange(count - 1)[None, :]
        columns[:count, count + 1] = measured / measured[-1]
        whole = columns.T @ products @ columns
        common = whole[:, :2, :2] + np.diag((0.0, TREND))
        left = whole[:, 2:, 2:] - whole[:, 2:, :2] @ np.linalg.solve(common, whole[:, :2, 2:])
        self.gram, self.moment = left[:, :-1, :-1], left[:, :-1, -1]
        self.squares: Floats = np.maximum(left[:, -1, -1], 0.0)
        self.degrees = float(sums.counts.sum()) - 1.0
        self.base = prior - 0.5 * logdets - 0.5 * np.linalg.slogdet(common)[1]
        # A weak prior of the noise keeps it above zero where few trials agree exactly.
        self.floor = 1e-3 * max(1e-6, sums.squares / sums.counts.sum()) + 1e-300
        self.scale = self._noise_variance()
        self.spread: Floats = max(WIDEST_STEP, 2.0 * smallest) ** 2 / self.scale
        """Prior variance of a step over the noise variance, shape (grid,)."""

    def _noise_variance(self) -> Floats:
        """Noise variance with free levels of all measured commits, shape (grid,)."""
        steps = self.measured.size - 1
        gram = self.gram[:, :steps, :steps] + 1e-9 * np.eye(steps)
        fitted = np.einsum("hi,hi->h", self.moment[:, :steps], self._solve(gram, self.moment[:, :steps]))
        rest = np.maximum(self.squares - fitted, 0.0) + self.floor
        found: Floats = rest / max(1.0, self.degrees - steps)
        return found

    @staticmethod
    def _solve(matrices: Floats, vectors: Floats) -> Floats:
        found: Floats = np.asarray(np.linalg.solve(matrices, vectors[..., None])[..., 0], dtype=np.float64)
        return found

    def test(self, kind: str, columns: Indices, prior: Floats) -> _Tested:
        """Marginal likelihoods of hypotheses with the given columns, shape (hypotheses, steps)."""
        steps = columns.shape[1]
        gram = self.gram[:, columns[:, :, None], columns[:, None, :]]
        moment = self.moment[:, columns]
        precision = gram + np.eye(steps) / self.spread[:, None, None, None]
        sizes = self._solve(precision, moment)
        rest = self.squares[:, None] - np.sum(moment * sizes, axis=2) + self.floor
        _, logdet = np.linalg.slogdet(precision)
        logdet = logdet + steps * np.log(self.spread)[:, None]
        likelihood = self.base[:, None] - 0.5 * logdet - 0.5 * self.degrees * np.log(rest)
        variances = np.diagonal(np.linalg.inv(precision), axis1=2, axis2=3)
        errors = np.sqrt(variances * (rest / self.degrees)[:, :, None])
        return _Tested(kind, columns, likelihood + np.log(prior)[None, :], sizes, errors)

    def hypotheses(self) -> list[_Tested]:
        """All that are considered."""
        gaps = self.measured.size - 1
        widths = np.diff(self.measured) / self.measured[-1]
        nothing = self.base - 0.5 * self.degrees * np.log(self.squares + self.floor) + math.log(PRIOR[NONE])
        empty = np.empty((self.grid.shape[0], 1, 0))
        one = self.test(ONE, np.arange(gaps)[:, None], PRIOR[ONE] * widths)
        slope = self.test(DRIFT, np.array([[gaps]]), np.array([PRIOR[DRIFT]]))
        found = [_Tested(NONE, np.empty((1, 0), dtype=np.intp), nothing[:, None], empty, empty), one, slope]
        if gaps > 1:
            likely = self._likely_gaps(one)
            for kind, steps in ((TWO, 2), (THREE, 3)):
                chosen = np.array(list(combinations(likely, steps)), dtype=np.intp).reshape(-1, steps)
                if chosen.size:
                    prior = PRIOR[kind] * math.factorial(steps) * np.prod(widths[chosen], axis=1)
                    found.append(self.test(kind, chosen, prior))
        return found

    def _likely_gaps(self, one: _Tested) -> Sequence[int]:
        """Gaps of the `SEVERAL` most probable single steps, and of the largest changes of free levels."""
        by_step = np.argsort(-logsumexp(one.weights, axis=0))
        _, _, jumps, errors = self.free_levels()
        by_jump = np.argsort(-np.abs(jumps) / np.maximum(errors, 1e-300))
        both = dict.fromkeys(int(gap) for pair in zip(by_jump, by_step, strict=True) for gap in pair)
        return sorted(list(both)[:SEVERAL])

    def free_levels(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Levels relative to GOOD with their errors, shape (measured,), and jumps of gaps with theirs, averaged over
        the grid by the likelihood of the model without steps in common."""
        steps = self.measured.size - 1
        gram = self.gram[:, :steps, :steps] + 1e-9 * np.eye(steps)
        covariance = np.linalg.inv(gram)
        jumps = np.einsum("hij,hj->hi", covariance, self.moment[:, :steps])
        rest = np.maximum(self.squares - np.sum(jumps * self.moment[:, :steps], axis=1), 0.0) + self.floor
        free = max(1.0, self.degrees - steps)
        _, logdet = np.linalg.slogdet(gram)
        weights = self.base - 0.5 * logdet - 0.5 * free * np.log(rest)
        weights = np.exp(weights - logsumexp(weights))
        lower = np.tril(np.ones((steps, steps)))
        covariance = covariance * (rest / free)[:, None, None]
        levels = weights @ (jumps @ lower.T)
        summed = lower @ covariance @ lower.T
        errors = np.sqrt(weights @ np.diagonal(summed, axis1=1, axis2=2))
        alone = np.sqrt(weights @ np.diagonal(covariance, axis1=1, axis2=2))
        start = np.zeros(1)
        return np.concatenate((start, levels)), np.concatenate((start, errors)), weights @ jumps, alone


def _products(sums: _Sums, block: float, drift: float) -> tuple[Floats, float]:
    """Products X' V⁻¹ X of the indicators of the commits, the trend and the values, shape (measured + 2, measured + 2),
    and the logarithm of the determinant of V, the covariance of the trials over the noise variance.

    Source: the identities of Woodbury and Sylvester, first for the offsets of blocks, then the drift, whose inverse
    covariance is tridiagonal.
    """
    count = sums.by_commit.size
    of_blocks = sums.counts.sum(axis=1)
    both = np.column_stack((sums.counts, of_blocks * sums.trend, sums.sums))
    whole = np.diag(np.append(sums.counts.sum(axis=0), (of_blocks @ sums.trend**2, sums.squares)))
    whole[:count, count] = whole[count, :count] = sums.trend @ sums.counts
    whole[:count, -1] = whole[-1, :count] = sums.by_commit
    whole[count, -1] = whole[-1, count] = sums.trend @ sums.sums
    size = 1.0 + block * of_blocks
    logdet = float(np.sum(np.log(size)))
    whole = whole - both.T @ (both * (block / size)[:, None])
    if drift > 0.0 and size.size > 1:
        inside = both[1:] / size[1:, None]
        precision = 1.0 / (drift * sums.pauses)
        bands = np.zeros((2, size.size - 1))
        bands[0] = precision + np.append(precision[1:], 0.0) + of_blocks[1:] / size[1:]
        bands[1, :-1] = -precision[1:]
        factor = cholesky_banded(bands, lower=True, check_finite=False)
        whole = whole - inside.T @ cho_solve_banded((factor, True), inside, check_finite=False)
        logdet += 2.0 * float(np.sum(np.log(factor[0]))) - float(np.sum(np.log(precision)))
    return whole, logdet


def _with_builds(products: Floats, logdets: Floats, builds: Floats) -> tuple[Floats, Floats]:
    """Products and logarithms of determinants with offsets of builds of each variance in `builds` too; shapes (grid,
    …) become (grid * builds, …)."""
    count = products.shape[1] - 2
    rows, square = products[:, None, :count, :], products[:, None, :count, :count]
    inside = np.eye(count) + builds[:, None, None] * square
    whole = products[:, None] - builds[:, None, None] * products[:, None, :, :count] @ np.linalg.solve(
        inside, rows
    )
    found = logdets[:, None] + np.linalg.slogdet(inside)[1]
    return whole.reshape(-1, *products.shape[1:]), found.ravel()


def _summary(model: _Model, tested: Sequence[_Tested], measured: Indices, count: int) -> Posterior:
    total = logsumexp([logsumexp(each.weights) for each in tested])
    gaps = measured.size - 1
    levels, level_errors, _, _ = model.free_levels()
    direction = math.copysign(1.0, levels[-1])
    by_gap, by_kind = np.zeros(gaps), dict.fromkeys(PRIOR, 0.0)
    by_grid = np.zeros(model.grid.shape[0])
    found: list[Hypothesis] = []
    sizes: list[tuple[float, float, float]] = [
        (1e-300, float(levels[-1]), float(levels[-1] ** 2 + level_errors[-1] ** 2))
    ]
    for each in tested:
        shares = np.exp(each.weights - total)
        by_grid += shares.sum(axis=1)
        each_share = shares.sum(axis=0)
        by_kind[each.kind] += float(each_share.sum())
        for i in np.flatnonzero(each_share > 1e-12):
            mean = shares[:, i] @ each.sizes[:, i] / each_share[i]
            second = shares[:, i] @ (each.errors[:, i] ** 2 + each.sizes[:, i] ** 2) / each_share[i]
            columns = tuple(int(gap) for gap in each.gaps[i]) if each.kind != DRIFT else ()
            if each_share[i] > 1e-3:
                found.append(Hypothesis(each.kind, columns, float(each_share[i]), tuple(map(float, mean))))
            if each.kind in (ONE, TWO, THREE):
                largest = int(np.argmax(direction * mean))
                by_gap[columns[largest]] += each_share[i]
                sizes.append((float(each_share[i]), float(mean[largest]), float(second[largest])))
    commits = np.zeros(count)
    commits[1:] = np.repeat(by_gap / np.diff(measured), np.diff(measured))
    weights, means, seconds = (np.array(column) for column in zip(*sizes, strict=True))
    step = float(weights @ means / weights.sum())
    step_error = math.sqrt(max(0.0, float(weights @ seconds / weights.sum()) - step**2))
    by_grid /= by_grid.sum()
    return Posterior(
        commits,
        by_kind[NONE],
        by_kind[DRIFT],
        by_kind[TWO] + by_kind[THREE],
        tuple(sorted(found, key=lambda each: -each.probability)),
        step,
        step_error,
        math.sqrt(float(by_grid @ model.scale)),
        float(by_grid @ (model.grid[:, 0] + model.grid[:, 1])),
        float(by_grid @ model.grid[:, 2]),
        float(levels[-1]),
        float(level_errors[-1]),
        max(1.0, model.degrees - gaps),
        levels,
        level_errors,
    )
