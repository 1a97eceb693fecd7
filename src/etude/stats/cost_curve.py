"""A curve of costs over a size: a sum of known costs, and the bends of what it leaves, at a controlled false rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from etude.stats.intervals import Interval, t_quantile
from etude.stats.samples import check_confidence, finite_sample

Floats = NDArray[np.float64]

MOST = 4
LEVEL = 0.02
"""Probability that a curve without a bend shows one; of noise that is not normal up to 0.05."""
LEAST = math.log(1.05)
"""Logarithm of the smallest change that is a bend, however sure it is."""
DRAWS = 999
COST = 4.0
"""Parameters that a bend counts as where two curves are compared (Schwarz's criterion)."""
POINTS_AT_ENDS = 2
"""x before the first bend, and behind the last."""
NEIGHBOURS = 3
"""Values on either side from which the usual error of a value is taken."""
LEAST_ERROR = 0.2
"""The share of the median error below which no value's error counts."""
_PARTS = 4  # places that are tried from one x to the next
_ROUNDS = 25
_SMALLEST = 1e-9  # deviations of a logarithm that are none


@dataclass(frozen=True)
class Bend:
    """A place from which on the costs grow, or fall, as a power of the size."""

    at: float
    interval: Interval
    """Of the place, in the unit of x."""
    end: float
    """Where the piece behind it ends: the next bend, or the last x."""
    power: float
    """Change of the slope of ln(costs) over x: above 0 it becomes dearer."""
    before: float
    """Factor of the sum of costs at the bend."""
    after: float
    """... and at the end."""
    p: float
    """Probability that a curve without it shows one as clear, wherever; not below 1/(draws + 1)."""


@dataclass(frozen=True)
class CostCurve:
    """costs · factors, times a power of the size from each bend on."""

    factors: tuple[float, ...]
    """Of the cost columns, 0 or more."""
    intervals: tuple[Interval | None, ...]
    """Of these; None of a column that takes no part."""
    bends: tuple[Bend, ...]
    deviation: float
    """Root mean square of what the values lie off it, of their logarithms."""


def fit(
    x: ArrayLike,
    values: ArrayLike,
    costs: ArrayLike,
    *,
    errors: ArrayLike | None = None,
    most: int = MOST,
    level: float = LEVEL,
    least: float = LEAST,
    draws: int = DRAWS,
    seed: int = 0,
) -> CostCurve:
    """The sum of costs that fits best, and the bends of its residual.

    x: shape (n,), rising; give logarithms of sizes. values: shape (n,), positive, what is explained (as time per byte).
    costs: shape (n, columns), none below 0. errors: relative standard errors of the values; those that are less sure
    than most count less.
    Least squares of logarithms. Candidates are hinges, and steps from one x to the next, which are two bends. The one
    that explains most of the residual is taken if normal noise of the same costs, without it, has one as clear in at
    most `level` of `draws`, wherever it lies, and if it changes the costs by at least `least`. Bends that are known are
    moved when others are added. The interval of a place
    are those at which the sum of squares is not significantly larger.
    Raises ValueError for x that do not rise, values that are not positive and fewer values than it takes.
    Source: forward selection with the null distribution of the largest F simulated; its false rate is tested.
    """
    check_confidence(1.0 - level)
    places, y = finite_sample(x), finite_sample(values)
    columns = np.asarray(costs, dtype=np.float64)
    if places.size != y.size or columns.shape[0] != y.size:
        raise ValueError(f"{places.size} x, {y.size} values and {columns.shape[0]} rows of costs")
    if bool(np.any(np.diff(places) <= 0.0)) or bool(np.any(y <= 0.0)) or bool(np.any(columns < 0.0)):
        raise ValueError("x must rise, values must be positive, and costs 0 or more")
    if y.size < columns.shape[1] + 2:
        raise ValueError(f"{columns.shape[1]} costs need {columns.shape[1] + 2} or more values, not {y.size}")
    root = _roots(errors, y.size)
    curve = _Curve(places, np.log(y), columns / columns.max(axis=0) / math.exp(float(np.log(y).mean())), root)
    rng = np.random.default_rng(seed)
    found: list[float] = []
    ps: list[float] = []
    state = curve.solve(found)
    while len(found) < most and state.freedom >= 4:
        candidates, p = curve.next_bend(state, found, rng.normal(size=(draws, y.size)))
        if not candidates or p > level:
            break
        added = [curve.moved([*found, *each]) for each in candidates]
        best = min(added, key=lambda at: curve.score(curve.solve(at)))
        if curve.solve(best).squares > state.squares * (1.0 - 1e-6):
            break
        ps += [p] * (len(best) - len(found))
        found, state = best, curve.solve(best)
    found, ps = curve.needed(found, ps, least)
    state = curve.solve(found)
    return _told(curve, state, found, ps, columns, y)


def _roots(errors: ArrayLike | None, n: int) -> Floats:
    """Square roots of weights; errors that are estimated vary, and up to twice the usual of the neighbours counts as
    usual. What is usual may change along the curve."""
    if errors is None:
        return np.ones(n)
    from scipy.ndimage import median_filter  # takes long to import

    given = np.asarray(errors, dtype=np.float64)
    usual = median_filter(given, 2 * NEIGHBOURS + 1, mode="mirror")
    used = np.maximum(np.where(given > 2.0 * usual, given, usual), LEAST_ERROR * float(np.median(given)))
    return np.ones(n) if not np.all(used > 0.0) else float(np.median(used)) / used


@dataclass(frozen=True, eq=False)
class _State:
    """A fit with given bends."""

    factors: Floats
    powers: Floats
    design: Floats
    """Weighted derivatives by factors that are above 0, and by powers."""
    residual: Floats
    squares: float

    @property
    def freedom(self) -> int:
        return int(self.residual.size - self.design.shape[1])


class _Curve:
    def __init__(self, x: Floats, y: Floats, costs: Floats, root: Floats) -> None:
        self.x, self.y, self.costs, self.root = x, y, costs, root
        n = x.size
        inner = np.arange(POINTS_AT_ENDS - 1, n - POINTS_AT_ENDS + 1e-9, 1 / _PARTS)
        self.tried = np.interp(inner, np.arange(n), x)
        self.between = np.arange(n, dtype=np.float64)

    def hinges(self, at: Sequence[float] | Floats) -> Floats:
        found: Floats = np.maximum(self.x[:, None] - np.asarray(at, dtype=np.float64)[None, :], 0.0)
        return found

    def solve(self, at: Sequence[float], begin: Floats | None = None) -> _State:
        """Gauss-Newton, the factors kept at 0 or above; `begin`: factors that are near."""
        from scipy.optimize import nnls  # takes long to import

        hinges, p = self.hinges(at), self.costs.shape[1]
        shown = np.exp(self.y)[:, None]
        factors = nnls(self.root[:, None] * self.costs / shown, self.root)[0] if begin is None else begin
        powers = np.zeros(len(at))
        for _ in range(_ROUNDS):
            base = np.maximum(self.costs @ factors, 1e-300)
            design = self.root[:, None] * np.hstack([self.costs / base[:, None], hinges, -hinges])
            found = nnls(design, self.root * (self.y - np.log(base) + 1.0))[0]
            new, turned = found[:p], found[p : p + len(at)] - found[p + len(at) :]
            if not np.any(self.costs @ new > 0.0):
                break
            near = np.allclose(new, factors, rtol=1e-5, atol=0.0) and np.allclose(turned, powers, atol=1e-5)
            # half a step, where a whole one would leave a value without costs
            ok = bool(np.all(self.costs @ new > 1e-3 * base))
            factors, powers = (new, turned) if ok else ((new + factors) / 2, (turned + powers) / 2)
            if near:
                break
        base = np.maximum(self.costs @ factors, 1e-300)
        active = factors > 0.0
        design = self.root[:, None] * np.hstack([self.costs[:, active] / base[:, None], hinges])
        residual = self.root * (self.y - np.log(base) - hinges @ powers)
        return _State(factors, powers, design, residual, float(residual @ residual))

    def next_bend(
        self, state: _State, at: Sequence[float], noise: Floats
    ) -> tuple[list[tuple[float, ...]], float]:
        """The clearest further hinge, the clearest step by its ends, and the p-value of the clearer of them."""
        tried: list[tuple[float, ...]] = [(float(place),) for place in self.tried]
        tried += list(pairwise(self.x[POINTS_AT_ENDS - 1 : 1 - POINTS_AT_ENDS].tolist()))
        tried = [ends for ends in tried if all(self.apart(end, other) for end in ends for other in at)]
        if not tried or math.sqrt(state.squares / self.x.size) < _SMALLEST:
            return [], 1.0
        q = np.linalg.qr(state.design)[0]
        shapes = np.stack([self.hinges(ends) @ (1.0, -1.0)[: len(ends)] for ends in tried], axis=1)
        shapes *= self.root[:, None]
        left = shapes - q @ (q.T @ shapes)
        norms = np.linalg.norm(left, axis=0)
        left /= np.where(norms > 1e-6 * np.linalg.norm(shapes, axis=0), norms, np.inf)
        own = (state.residual @ left) ** 2
        noise = noise - (noise @ q) @ q.T
        theirs = ((noise @ left) ** 2).max(axis=1) / np.einsum("ri,ri->r", noise, noise)
        clear = np.count_nonzero(theirs >= own.max() / state.squares)
        kinds = [[n for n, ends in enumerate(tried) if len(ends) == count] for count in (1, 2)]
        best = [tried[max(kind, key=lambda n: own[n])] for kind in kinds if kind]
        return best, float((1 + clear) / (1 + len(noise)))

    def score(self, state: _State) -> float:
        """Schwarz's criterion; less is better."""
        n = self.x.size
        variance = max(state.squares / n, _SMALLEST**2)
        return n * math.log(variance) + COST * state.powers.size * math.log(n)

    def needed(self, at: list[float], ps: list[float], least: float) -> tuple[list[float], list[float]]:
        """Bends without which the curve would fit worse, and would be another by at least `least` somewhere."""
        while at:
            state = self.solve(at)
            without = [self.solve([*at[:n], *at[n + 1 :]]) for n in range(len(at))]
            changes = [float(np.max(np.abs(each.residual - state.residual) / self.root)) for each in without]
            scores = [self.score(each) - self.score(state) for each in without]
            spare = [n for n in range(len(at)) if changes[n] < least or scores[n] < 0.0]
            if not spare:
                break
            n = min(spare, key=lambda n: scores[n])
            at, ps = self.moved([*at[:n], *at[n + 1 :]]), [*ps[:n], *ps[n + 1 :]]
        return at, ps

    def apart(self, one: float, other: float) -> bool:
        """Whether two bends have at least the distance of two x."""
        return abs(self.rank(one) - self.rank(other)) >= 1.0 - 1e-9

    def rank(self, place: float) -> float:
        """The number of the x at a place, between two of them a fraction."""
        return float(np.interp(place, self.x, self.between))

    def profile(self, at: Sequence[float], n: int) -> tuple[Floats, Floats]:
        """Places at which bend n could be, and the sum of squares of each, the others held."""
        others = [*at[:n], *at[n + 1 :]]
        usable = [
            all(self.apart(place, other) and (place > other) == (at[n] > other) for other in others)
            for place in self.tried
        ]
        tried, known = self.tried[np.array(usable)], self.solve(at)
        if not tried.size:
            return np.array([at[n]]), np.array([known.squares])
        squares = [
            self.solve([*at[:n], float(place), *at[n + 1 :]], known.factors).squares for place in tried
        ]
        return tried, np.array(squares)

    def moved(self, at: Sequence[float]) -> list[float]:
        """Each bend in turn moved to where the sum of squares is smallest."""
        found = list(at)
        for _ in range(2 if len(found) > 1 else 1):
            for n in range(len(found)):
                tried, squares = self.profile(found, n)
                if squares.min() < self.solve(found).squares:
                    found[n] = float(tried[int(squares.argmin())])
        return found

    def end(self, at: Sequence[float], place: float) -> float:
        """Of the piece behind a bend: the next one, or the last x."""
        return min((other for other in at if other > place), default=float(self.x[-1]))


def _factor(x: float, at: Sequence[float], powers: Floats) -> float:
    return math.exp(sum(float(p) * max(x - place, 0.0) for p, place in zip(powers, at, strict=True)))


def _told(
    curve: _Curve, state: _State, at: Sequence[float], ps: Sequence[float], columns: Floats, y: Floats
) -> CostCurve:
    unit = 1.0 / columns.max(axis=0) / math.exp(float(np.log(y).mean()))
    freedom = max(state.freedom, 1)
    variance = state.squares / freedom
    reach = t_quantile(0.95, freedom)
    inverse = np.linalg.pinv(state.design.T @ state.design)
    errors = np.sqrt(np.maximum(np.diag(inverse), 0.0) * variance)
    active = np.flatnonzero(state.factors > 0.0).tolist()
    intervals: list[Interval | None] = [None] * state.factors.size
    for rank, column in enumerate(active):
        value, half = float(state.factors[column]), reach * float(errors[rank])
        scale = float(unit[column])
        intervals[column] = Interval(max(0.0, value - half) * scale, (value + half) * scale)
    bends = []
    for n, place in enumerate(at):
        tried, squares = curve.profile(at, n)
        near = squares <= squares.min() + reach**2 * max(variance, _SMALLEST**2)
        low, high = (
            float(np.interp(curve.rank(float(end)) + half, curve.between, curve.x))
            for end, half in ((tried[near].min(), -0.5 / _PARTS), (tried[near].max(), 0.5 / _PARTS))
        )
        power = float(state.powers[n])
        end = curve.end(at, place)
        before, after = (_factor(x, at, state.powers) for x in (place, end))
        bends.append(Bend(place, Interval(low, high), end, power, before, after, ps[n]))
    return CostCurve(
        tuple((state.factors * unit).tolist()),
        tuple(intervals),
        tuple(sorted(bends, key=lambda bend: bend.at)),
        math.sqrt(state.squares / y.size),
    )
