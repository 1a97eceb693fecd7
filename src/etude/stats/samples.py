"""Validation of samples: one row of finite numbers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray


def finite_sample(x: ArrayLike) -> NDArray[np.float64]:
    """The values of `x` as a one-dimensional array of float64 (a copy only if the type requires it).

    Raises ValueError if `x` is not a row of numbers, or contains NaN or an infinity.
    """
    try:
        values = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("a sample must be one row of numbers") from None
    if values.ndim != 1:
        raise ValueError(f"a sample must be one row of numbers, not an array of {values.ndim} dimensions")
    finite = np.isfinite(values)
    if not finite.all():
        place = int(np.flatnonzero(~finite)[0])
        raise ValueError(f"a sample must be finite: value {place + 1} of {values.size} is {values[place]}")
    return values


def check_confidence(confidence: float) -> None:
    """Raise ValueError unless `confidence` is a fraction between 0 and 1, such as 0.95."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be a fraction between 0 and 1, not {confidence}")


def check_positive(name: str, value: float) -> None:
    """Raise ValueError unless `value` is a finite number above zero."""
    if not (math.isfinite(value) and value > 0.0):
        raise ValueError(f"{name} must be a number above 0, not {value}")


def positive_logarithms(x: ArrayLike) -> NDArray[np.float64]:
    """Natural logarithms of a sample for ratios. Raises ValueError for values at or below zero."""
    values = finite_sample(x)
    if bool(np.any(values <= 0.0)):
        raise ValueError(f"ratio needs positive values: the smallest is {values.min():g}")
    return np.log(values)


def exponential(value: float) -> float:
    """e to the value; infinite on overflow."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
