"""Linear fits that a few wild values do not move: least squares near the fit, least distances far from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BEND = 2.0
"""Scales from the fit beyond which a value counts by its distance and no longer by its square."""

ROUNDS = 12

STILL = 1e-4
"""Scales by which the fit may move in a round that is the last."""


@dataclass(frozen=True, eq=False)
class Fit:
    """The values that a design explains best."""

    coefficients: Floats
    cost: float
    """Sum of the losses of the residuals, in scales: of squares, where none is wild."""


def huber_fit(design: Floats, values: Floats, scale: float) -> Fit:
    """The fit of `values`, shape (n,), by the columns of `design`, shape (n, k); scale: of the noise, above 0.

    Source: Huber (1964), by iteratively reweighted least squares from a start with far values drawn in.
    """
    middle = float(np.median(values))
    spread = 1.4826 * float(np.median(np.abs(values - middle)))
    limit = 5.0 * max(spread, scale)
    coefficients = _solved(design, np.clip(values, middle - limit, middle + limit))
    rest = values - design @ coefficients
    for _ in range(ROUNDS):
        before, roots = rest, np.sqrt(BEND / np.maximum(np.abs(rest) / scale, BEND))
        coefficients = _solved(design * roots[:, None], values * roots)
        rest = values - design @ coefficients
        if float(np.abs(rest - before).max()) <= STILL * scale:
            break
    off = np.abs(rest) / scale
    near = np.minimum(off, BEND)
    return Fit(coefficients, float((near * (2.0 * off - near)).sum()))


def _solved(design: Floats, values: Floats) -> Floats:
    return np.asarray(np.linalg.lstsq(design, values, rcond=None)[0], dtype=np.float64)
