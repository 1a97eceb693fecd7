"""Cost curve over a size: a sum of known costs, and the bends of its residual, at a controlled false-positive rate."""

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
"""False-positive rate of bends; up to 0.05 for noise that is not normal."""
LEAST = math.log(1.05)
"""Logarithm of the smallest change that counts as a bend, however significant."""
DRAWS = 999
COST = 4.0
"""Number of parameters of a bend in comparisons of curves (Schwarz's criterion)."""
POINTS_AT_ENDS = 2
"""Minimum number of x before the first bend, and after the last."""
NEIGHBOURS = 3
"""Number of values on either side that give the usual error of a value."""
LEAST_ERROR = 0.2
"""Lower bound of a value's error, as a share of the median error."""
_PARTS = 4  # places that are tried from one x to the next
_ROUNDS = 25
_SMALLEST = 1e-9  # deviations of a logarithm that are none


@dataclass(frozen=True)
class Bend:
    """A place from which on the costs grow, or fall, as a power of the size."""

    at: float
    interval: Interval
    """Interval of the place, in the unit of x."""
    end: float
    """End of the piece after it: the next bend, or the last x."""
    power: float
    """Change of the slope of ln(costs) over x: above 0, costs grow."""
    before: float
    """Factor of the sum of costs at the bend."""
    after: float
    """Factor at the end."""
    p: float
    """Probability that a curve without it has a bend as clear anywhere; at least 1/(draws + 1)."""


@dataclass(frozen=True)
class CostCurve:
    """costs · factors, times a power of the size from each bend on."""

    factors: tuple[float, ...]
    """Factors of the cost columns, 0 or more."""
    intervals: tuple[Interval | None, ...]
    """Intervals of the factors; None for a column with factor 0."""
    bends: tuple[Bend, ...]
    deviation: float
    """Root mean square of the residuals of the logarithms."""


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
    """Best-fitting sum of costs, and the bends of its residual.

    x: shape (n,), rising; give logarithms of sizes. values: shape (n,), positive, the response (such as time per byte).
    costs: shape (n, columns), none below 0. errors: relative standard errors of the values, from which weights follow.
    Least squares of logarithms. Candidates are hinges, and steps from one x to the next, which are two bends. The one
    that explains most of the residual is accepted if normal noise of the same costs, without it, has one as clear
    anywhere in at most `level` of `draws`, and if it changes the costs by at least `least`. Known bends are moved when
    others are added. The interval of a place contains those at which the sum of squares is not significantly larger.
    Raises ValueError if x does not rise, values are not positive, or there are too few.
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
    """Square roots of weights. Estimated errors vary themselves: up to twice the usual error of the neighbours counts
    as the usual one, which may change along the curve."""
    if errors is None:
        return np.ones(n)
    from scipy.ndimage import median_filter  # takes long to import

    given = np.asarray(errors, dtype=np.float64)
    usual = median_filter(given, 2 * NEIGHBOURS + 1, mode="mirror")
    used = np.maximum(np.where(given > 2.0 * usual, given, usual), LEAST_ERROR * float(np.median(given)))
    return np.ones(n) if not np.all(used > 0.0) else float(np.median(used)) / used


@dataclass(frozen=True, eq=False)
class _State:
    factors: Floats
    powers: Floats
    design: Floats
    """Weighted derivatives by positive factors, and by powers."""
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
        """Gauss-Newton fit with factors of at least 0; `begin`: approximate factors."""
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
            # half a step if a whole one would leave a value without costs
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
        """The clearest further hinge and the clearest step, by their ends, and the p-value of the clearer one."""
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
        """Schwarz's criterion; lower is better."""
        n = self.x.size
        variance = max(state.squares / n, _SMALLEST**2)
        return n * math.log(variance) + COST * state.powers.size * math.log(n)

    def needed(self, at: list[float], ps: list[float], least: float) -> tuple[list[float], list[float]]:
        """Bends without which the fit would be worse and the curve would change by at least `least` somewhere."""
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
        return abs(self.rank(one) - self.rank(other)) >= 1.0 - 1e-9

    def rank(self, place: float) -> float:
        """Index of a place among the x, interpolated."""
        return float(np.interp(place, self.x, self.between))

    def profile(self, at: Sequence[float], n: int) -> tuple[Floats, Floats]:
        """Possible places of bend n, and the sum of squares for each, with the others fixed."""
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
        found = list(at)
        for _ in range(2 if len(found) > 1 else 1):
            for n in range(len(found)):
                tried, squares = self.profile(found, n)
                if squares.min() < self.solve(found).squares:
                    found[n] = float(tried[int(squares.argmin())])
        return found

    def end(self, at: Sequence[float], place: float) -> float:
        """End of the piece after a bend: the next one, or the last x."""
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
