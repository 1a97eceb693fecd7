"""Means that fit kinds of metrics, with refusal of others; Huber's mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from etude.stats.intervals import Interval, effective_count
from etude.stats.moments import interval_above_zero, interval_of_mean, mean_of
from etude.stats.samples import check_confidence, exponential, finite_sample

Kind = Literal["cost", "rate", "ratio", "count", "binary"]
"""cost: seconds, bytes, joules per trial; rate: amount per second; ratio: to a baseline; count: number of events;
binary: 0 or 1."""

Mean = Literal["arithmetic", "harmonic", "geometric", "proportion"]
MARKS = {"harmonic": " (h)", "geometric": " (g)", "proportion": " (share)"}
"""Marks behind means that are not arithmetic."""

ADDING_UP: frozenset[Kind] = frozenset(("cost", "count", "rate"))
"""Kinds whose values add up, so that a ratio is of their arithmetic (rates: harmonic) means."""

FITTING: dict[Kind, Mean] = {
    "cost": "arithmetic",
    "rate": "harmonic",
    "ratio": "geometric",
    "count": "arithmetic",
    "binary": "proportion",
}

REASONS: dict[Kind, str] = {
    "cost": "costs add up, so their mean is the total over the trials: arithmetic",
    "rate": "equal work at several rates takes the time of their harmonic mean; an arithmetic one needs weights "
    "by time",
    "ratio": "a mean of ratios must not depend on which test is the baseline: geometric",
    "count": "counts add up, so their mean is the total over the trials: arithmetic",
    "binary": "the mean of yes and no is a proportion, with Wilson's interval",
}


class MeanRefused(ValueError):
    """The requested mean does not fit the metric's kind; the message gives the reason and the fitting one."""


@dataclass(frozen=True)
class Average:
    """The fitting mean, in the unit of the values, with its interval."""

    mean: float
    interval: Interval | None
    """Limits within the possible range. None below two values, and if fewer than five values vary so much
    that Student's interval reaches zero."""
    which: Mean
    why: str
    effective_count: float
    """Effective number of independent values for this mean: of the values on its additive scale."""


def average(
    x: ArrayLike,
    kind: Kind,
    *,
    which: Mean | None = None,
    confidence: float = 0.95,
    factor: float = 1.0,
) -> Average:
    """The mean of `x`, shape (n,), n >= 1, in order of time, that fits a metric of this kind.

    factor: widening factor of the stop rule that ended the series; not for proportions.
    which: requested mean; raises MeanRefused if it does not fit.
    Raises ValueError for an empty sample, rates and ratios at or below zero, binary values other than 0 and 1.
    Source: Fleming and Wallace (1986) on ratios, Smith (1988) on rates, Wilson (1927) on proportions.
    """
    check_confidence(confidence)
    values = finite_sample(x)
    if values.size == 0:
        raise ValueError("a sample without values has no mean")
    if kind not in get_args(Kind):
        raise ValueError(f"a metric's kind is one of {', '.join(get_args(Kind))}, not {kind!r}")
    if which is not None and which != FITTING[kind]:
        raise MeanRefused(f"no {which} mean of a {kind}: {REASONS[kind]}")
    mean, interval, worth = _plain(values, FITTING[kind], confidence, factor)
    return Average(mean, interval, FITTING[kind], REASONS[kind], worth)


def to_additive_scale(values: NDArray[np.float64], which: Mean) -> NDArray[np.float64]:
    """Values on the scale on which this mean adds them up: inverses, logarithms, or unchanged.

    Unchanged also if this mean is undefined for them.
    """
    if which not in ("harmonic", "geometric") or bool(np.any(values <= 0.0)):
        return values
    found: NDArray[np.float64] = values.min() / values if which == "harmonic" else np.log(values)
    return found


def wilson(successes: int, count: int, *, confidence: float = 0.95) -> Interval:
    """Interval of a proportion, within 0 and 1. Raises ValueError for no trials or impossible counts.

    Source: Wilson (1927), without correction for continuity; as scipy's binomtest(...).proportion_ci("wilson").
    """
    check_confidence(confidence)
    if not 0 <= successes <= count or count < 1:
        raise ValueError(
            f"a proportion needs trials and no more successes than those, not {successes} of {count}"
        )
    z2 = float(ndtri((1.0 + confidence) / 2.0)) ** 2
    share = successes / count
    centre = (share + z2 / (2.0 * count)) / (1.0 + z2 / count)
    half = (
        math.sqrt(z2) / (1.0 + z2 / count) * math.sqrt(share * (1.0 - share) / count + z2 / (4.0 * count**2))
    )
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    return Interval(low, 1.0 if successes == count else min(1.0, centre + half))


def _plain(
    values: NDArray[np.float64], which: Mean, confidence: float, factor: float
) -> tuple[float, Interval | None, float]:
    """The mean, its interval and the effective count."""
    if which in ("harmonic", "geometric"):
        _check_above_zero(values)
    scaled = to_additive_scale(values, which)
    worth = effective_count(scaled)
    if which == "proportion":
        if not bool(np.all((values == 0.0) | (values == 1.0))):
            raise ValueError("binary values are 0 or 1")
        successes = int(values.sum())
        return successes / values.size, wilson(successes, int(values.size), confidence=confidence), worth
    mean, interval = (
        mean_of(scaled),
        interval_of_mean(scaled, confidence=confidence, factor=factor, worth=worth),
    )
    if which == "geometric":
        ends = interval and Interval(exponential(interval.low), exponential(interval.high))
        return exponential(mean), ends, worth
    if float(values.min()) >= 0.0:
        interval = interval_above_zero(interval, mean, values.size)
    if which == "arithmetic":
        return mean, interval, worth
    scale = float(values.min())  # `scaled` are times of one unit of work, the slowest taking 1
    return scale / mean, interval and Interval(scale / interval.high, scale / interval.low), worth


def _check_above_zero(values: NDArray[np.float64]) -> None:
    if bool(np.any(values <= 0.0)):
        raise ValueError(f"this mean needs values above zero: the smallest is {values.min():g}")


Floats = NDArray[np.float64]

BEND = 2.0
"""Distance from the fit, in scales, beyond which the loss is linear instead of quadratic."""

ROUNDS = 12

STILL = 1e-4
"""Convergence tolerance of the fit, in scales."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A robust least-squares fit."""

    coefficients: Floats
    cost: float
    """Sum of the losses of the residuals, in squared scales."""


def huber_fit(design: Floats, values: Floats, scale: float) -> Fit:
    """Robust fit of `values`, shape (n,), by the columns of `design`, shape (n, k); scale: of the noise, above 0.

    Source: Huber (1964), by iteratively reweighted least squares from a start with winsorised values.
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
