"""Least squares of continuous lines of straight pieces, for many rows of y at once.

x goes from 0 to 1 and y is of the order of 1. Every break is a hinge max(0, x - break) beside a constant and x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

POINTS_A_PIECE = 4
"""So many x a piece are needed on average: of 8 x one break can be told, of 24 five."""

COST = 4.0
"""Parameters that a break counts as: its slope, and three for its place, which is searched for (docs/statistics.md)."""

_PLACES = 30  # x at which breaks are looked for at first
_STARTS = 12  # of the best such combinations are moved
_KEPT = 200  # combinations that are looked at again in each draw
_ROUNDS = 8
_STEPS = (1.0, 0.5, 0.25, 0.05)
_LITTLE = (-0.5, 0.5, -0.2, 0.2, -0.05, 0.05)  # of the distance of two x
_RIDGE = 1e-13


@dataclass(frozen=True, eq=False)
class Best:
    """The best lines of one number of breaks."""

    breaks: Floats
    """Shape (rows, breaks)."""
    residual: Floats
    """Weighted sum of squares, shape (rows,)."""
    starts: NDArray[np.intp]
    """Combinations of x to begin from, the best first, shape (combinations, breaks)."""


class Lines:
    """Lines over one set of x, with the weights that its points have."""

    def __init__(self, x: Floats, weights: Floats, most: int) -> None:
        self.x = x
        self.root = np.sqrt(weights / weights.mean())
        self.most = max(0, min(most, x.size // POINTS_A_PIECE - 1))
        self.places = np.arange(x.size, dtype=np.float64)
        self._straight = np.linalg.qr(self._design(np.empty((1, 0)))[0])[0]

    def best(self, y: Floats) -> list[Best]:
        """For one row of y, shape (1, n), and each number of breaks: all combinations of x tried, the best moved."""
        found = []
        for count in range(self.most + 1):
            starts = self._ordered(y, self._combinations(count))
            rows = np.repeat(y, min(_STARTS, len(starts)), axis=0)
            breaks, residual = self._one_by_one(*self._moved(self.x[starts[:_STARTS]], rows), rows)
            one = int(np.argmin(residual))
            found.append(Best(breaks[one : one + 1], residual[one : one + 1], starts[:_KEPT]))
        return found

    def best_again(self, y: Floats, known: list[Best]) -> list[Best]:
        """The same for rows that differ little from that of `known`, shape (rows, n): begun where it was best."""
        found = []
        for each in known:
            rows, count = y.shape[0], each.starts.shape[1]
            costs = self._at_x(y, each.starts)
            own = self.x[each.starts[np.argmin(costs, axis=1)]]
            starts = np.concatenate([own, np.repeat(each.breaks, rows, axis=0)]) if count else own
            breaks, residual = self._moved(starts, np.concatenate([y, y]) if count else y)
            if count:
                second = residual[rows:] < residual[:rows]
                breaks = np.where(second[:, None], breaks[rows:], breaks[:rows])
                residual = np.where(second, residual[rows:], residual[:rows])
            found.append(Best(breaks, residual, each.starts))
        return found

    def number(self, found: list[Best], smallest: float) -> NDArray[np.intp]:
        """How many breaks each row's line has by Schwarz's criterion, where deviations of `smallest` are none."""
        n = self.x.size
        variance = np.maximum(np.array([each.residual for each in found]) / n, smallest**2)
        costs = (2.0 + COST * np.arange(len(found))) * math.log(n)
        least: NDArray[np.intp] = np.argmin(n * np.log(variance) + costs[:, None], axis=0)
        return least

    def solve(self, breaks: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Constant, slope and changes of slope, shape (rows, breaks + 2), and the weighted sum of squares."""
        design = self._design(breaks)
        target = y * self.root
        found = _solved(design, target)
        left = target - (design @ found[:, :, None])[:, :, 0]
        return found, np.einsum("ri,ri->r", left, left)

    def _design(self, breaks: Floats) -> Floats:
        """Shape (rows, n, breaks + 2)."""
        rows, count = breaks.shape
        design = np.empty((rows, self.x.size, count + 2))
        design[:, :, 0] = 1.0
        design[:, :, 1] = self.x
        np.maximum(self.x[:, None] - breaks[:, None, :], 0.0, out=design[:, :, 2:])
        design *= self.root[:, None]
        return design

    def _combinations(self, count: int) -> NDArray[np.intp]:
        """All of so many inner x, shape (combinations, count); of many x, of some that are spread over them."""
        inner = np.arange(1, self.x.size - 1)
        if inner.size > _PLACES:
            inner = inner[np.unique(np.linspace(0, inner.size - 1, _PLACES).round().astype(np.intp))]
        return inner[np.array(list(combinations(range(inner.size), count)), dtype=np.intp)]

    def _ordered(self, y: Floats, places: NDArray[np.intp]) -> NDArray[np.intp]:
        return places[np.argsort(self._at_x(y, places)[0], kind="stable")[:_KEPT]]

    def _at_x(self, y: Floats, places: NDArray[np.intp]) -> Floats:
        """Less is better: the sum of squares with breaks at these x, but for a constant; shape (rows, combinations)."""
        hinges = np.maximum(self.x[:, None] - self.x[None, :], 0.0) * self.root[:, None]
        hinges -= self._straight @ (self._straight.T @ hinges)
        products, along = hinges.T @ hinges, (y * self.root) @ hinges
        gram = products[places[:, :, None], places[:, None, :]]
        inverse = np.linalg.inv(gram + _RIDGE * np.eye(places.shape[1]) * np.max(products, initial=1e-9))
        chosen = along[:, places]
        gains: Floats = np.einsum("rci,cij,rcj->rc", chosen, inverse, chosen, optimize=True)
        return -gains

    def _moved(self, breaks: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Breaks moved to where the pieces beside them, fitted each for itself, meet; as long as that helps."""
        breaks = self._apart(breaks)
        found, residual = self.solve(breaks, y)
        moving = np.arange(breaks.shape[0]) if breaks.shape[1] else np.arange(0)
        for _ in range(_ROUNDS):
            if not moving.size:
                break
            steps = self._steps(breaks[moving], found[moving], y[moving])
            before = residual[moving].copy()
            for part in _STEPS:
                trial = self._apart(breaks[moving] + part * steps)
                coefficients, cost = self.solve(trial, y[moving])
                better = cost < residual[moving]
                at = moving[better]
                breaks[at], found[at], residual[at] = trial[better], coefficients[better], cost[better]
            moving = moving[residual[moving] < before * (1.0 - 1e-4)]
        return breaks, residual

    def _one_by_one(self, breaks: Floats, residual: Floats, y: Floats) -> tuple[Floats, Floats]:
        """One break after the other moved a little, as long as that helps: past an x that held them all up."""
        rows, count = breaks.shape
        for _ in range(_ROUNDS):
            before = residual.copy()
            for k in range(count):
                trial = np.repeat(breaks[:, None, :], len(_LITTLE), axis=1)
                at = np.interp(breaks[:, k], self.x, self.places)[:, None] + np.array(_LITTLE)
                trial[:, :, k] = np.interp(at, self.places, self.x)
                flat = self._apart(trial.reshape(-1, count))
                costs = self.solve(flat, np.repeat(y, len(_LITTLE), axis=0))[1].reshape(rows, -1)
                which = np.argmin(costs, axis=1) + np.arange(rows) * len(_LITTLE)
                better = costs.min(axis=1) < residual
                breaks[better], residual[better] = flat[which][better], costs.min(axis=1)[better]
            breaks, residual = self._moved(breaks, y)
            if bool(np.all(residual >= before * (1.0 - 1e-4))):
                break
        return breaks, residual

    def _steps(self, breaks: Floats, found: Floats, y: Floats) -> Floats:
        """Towards the meeting points: each break's jump, in a fit that allows one, over its change of slope."""
        design = self._design(breaks)
        beyond = (self.x[:, None] > breaks[:, None, :]) * -found[:, None, 2:] * self.root[:, None]
        steps = _solved(np.concatenate([design, beyond], axis=2), y * self.root)[:, design.shape[2] :]
        return np.clip(steps, -0.2, 0.2)

    def _apart(self, breaks: Floats) -> Floats:
        """Two x before the first break, two behind the last, and the distance of two neighbours between two."""
        at = np.sort(np.interp(breaks, self.x, self.places), axis=1)
        count = at.shape[1]
        for k in range(count):
            at[:, k] = np.maximum(at[:, k], at[:, k - 1] + 1.0 if k else 1.0)
        for k in range(count - 1, -1, -1):
            last = self.places[-1] - 1.0
            at[:, k] = np.minimum(at[:, k], at[:, k + 1] - 1.0 if k + 1 < count else last)
        return np.interp(at, self.places, self.x)


def _solved(design: Floats, target: Floats) -> Floats:
    """Least squares by normal equations, row by row; what is not determined stays small."""
    turned = np.swapaxes(design, 1, 2)
    gram = turned @ design
    width = gram.shape[1]
    scale: Floats = np.maximum(np.einsum("rii->ri", gram), 1e-12)
    gram[:, np.arange(width), np.arange(width)] += _RIDGE * scale
    return np.asarray(np.linalg.solve(gram, turned @ target[:, :, None])[:, :, 0], dtype=np.float64)
