"""The quadratic of response-surface methodology, by least squares ("Cutting Corners", section 4).

Terms: a constant, each coded level, its square where a factor has three levels or more, and each product of two
factors. A categorical factor has a column for each level but the first, and no squares; its products with other factors
are left out if samples are too few.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg, special

from etude.surface.factors import Configuration, Floats, Space
from etude.surface.samples import KnownResponses
from etude.surface.surrogates import Predicted

SPARE = 1.5
"""Minimum samples per term for an estimate of errors."""
LEAST_SHARE = 0.05
"""Lower bound of predictions of the raw quadratic, which may be negative, as a share of the smallest sample."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A Fit."""

    space: Space
    known: KnownResponses
    logs: bool
    products: bool
    """True if products of categorical factors with others are included."""
    name: str
    directions: Floats
    corner: Floats
    """Factors of the samples' terms: orthonormal columns, and a triangle."""

    def predict(self, configurations: Sequence[Configuration]) -> Predicted:
        rows = terms(self.space, configurations, products=self.products)
        found, inside = rows @ self._coefficients, linalg.solve_triangular(self.corner, rows.T, trans="T")
        freedom = len(self.known.cells) - rows.shape[1]
        if len(self.known.cells) < SPARE * rows.shape[1]:
            return Predicted(self._to_logs(found), np.full(len(configurations), math.inf))
        wider = float(special.stdtrit(freedom, 0.975)) / 1.959964
        sd = wider * self._residual_sd * np.sqrt(1 + (inside**2).sum(axis=0))
        return self._in_logs(found, sd)

    @cached_property
    def left_out(self) -> Predicted:
        """Leave-one-out prediction of each sample; sd is inf if unknown."""
        free = 1 - (self.directions**2).sum(axis=1)
        alone = (free < 1e-9) | (len(self.known.cells) < SPARE * self.corner.shape[1])
        free = np.where(alone, 1.0, free)
        found = self._response - self._residual / free
        sd = np.where(alone, math.inf, self._residual_sd / np.sqrt(free))
        return self._in_logs(found, sd)

    @cached_property
    def _response(self) -> Floats:
        return self.known.log if self.logs else np.exp(self.known.log)

    @cached_property
    def _coefficients(self) -> Floats:
        return np.asarray(linalg.solve_triangular(self.corner, self.directions.T @ self._response))

    @cached_property
    def _residual(self) -> Floats:
        return self._response - self.directions @ (self.directions.T @ self._response)

    @cached_property
    def _residual_sd(self) -> float:
        freedom = len(self._response) - self.corner.shape[1]
        return math.sqrt(float((self._residual**2).sum()) / freedom) if freedom else math.inf

    def _to_logs(self, found: Floats) -> Floats:
        if self.logs:
            return found
        least = LEAST_SHARE * float(np.exp(self.known.log).min())
        return np.asarray(np.log(np.maximum(found, least)))

    def _in_logs(self, found: Floats, sd: Floats) -> Predicted:
        logs = self._to_logs(found)
        return Predicted(logs, sd if self.logs else sd / np.exp(logs))


@dataclass(frozen=True)
class Quadratic:
    """A Surrogate: of the response itself, as in the paper, or of its log."""

    logs: bool = False

    @property
    def name(self) -> str:
        return "log-quadratic" if self.logs else "quadratic"

    def fit(self, space: Space, known: KnownResponses) -> Fitted | None:
        for products in (True, False):
            columns = terms(space, known.cells, products=products)
            if len(known.cells) >= columns.shape[1] and np.linalg.matrix_rank(columns) == columns.shape[1]:
                return Fitted(space, known, self.logs, products, self.name, *np.linalg.qr(columns))
        return None


def terms(space: Space, configurations: Sequence[Configuration], *, products: bool = True) -> Floats:
    """Terms of the quadratic, shape (configurations, terms). `products`: include those of categorical factors with
    others."""
    coded, one = space.coded(configurations), np.ones((len(configurations), 1))
    mains, squares, categorical = [], [], []
    for at, factor in enumerate(space.factors):
        of_words = factor.scale == "categorical"
        column = coded[:, at : at + 1]
        main = (column == np.arange(1, len(factor.levels))).astype(float) if of_words else column
        if len(factor.levels) < 2:
            continue
        mains.append(main)
        categorical.append(of_words)
        if not of_words and len(factor.levels) > 2:
            squares.append(column**2)
    crossed = [
        mains[left][:, at : at + 1] * mains[right]
        for left, right in itertools.combinations(range(len(mains)), 2)
        if products or not (categorical[left] or categorical[right])
        for at in range(mains[left].shape[1])
    ]
    return np.hstack([one, *mains, *squares, *crossed])
