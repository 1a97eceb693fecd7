"""Simulation of precision rules on many series at once.

It makes the same decisions as MeanPrecision and RatioPrecision look by look (a test compares them), but for thousands
of series per second: the rules' coverage and factors are computed with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from etude.stats.factors import next_look
from etude.stats.intervals import DEPENDENCE_THRESHOLD
from etude.stats.multiplicity import bonferroni_confidence
from etude.stats.stopping import MeanPrecision, RatioPrecision

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Stops:
    """Stopping point of each series, and its reported values."""

    count: NDArray[np.intp]
    """Trials or pairs, shape (series,)."""
    centre: Floats
    """Mean, shape (series,); or log ratio of the means of every other test to the baseline, shape (others, series)."""
    half: Floats
    """Margin of error, same shape."""
    converged: NDArray[np.bool_]
    """Shape (series,)."""

    def covers(self, truth: float | Floats) -> float:
        """Share of the intervals that contain the true value."""
        return float(np.mean(np.abs(self.centre - truth) <= self.half))


def mean_stops(
    trials: Floats, rule: MeanPrecision, *, factor: float | None = None, effective_degrees: bool = False
) -> Stops:
    """Stops of `rule` on series of shape (series, rule.maximum or more); its time budget is ignored.

    factor: replaces the rule's own. effective_degrees: t with n_eff-1 instead of n-1 degrees of freedom.
    """
    trials = trials[:, : rule.maximum]
    mean, variance, worth = _prefixes(trials)
    counts = np.arange(1, rule.maximum + 1, dtype=np.float64)
    degrees = worth - 1.0 if effective_degrees else counts - 1.0
    half = _factor(rule, factor) * _t(degrees, rule.confidence) * np.sqrt(variance / worth)
    return _stop(mean, half, half < rule.precision * np.abs(mean), rule)


def ratio_stops(blocks: Floats, rule: RatioPrecision, *, factor: float | None = None) -> Stops:
    """Stops of `rule` on costs of shape (tests, series, rule.maximum or more blocks), the baseline first."""
    blocks = blocks[..., : rule.maximum]
    mean, variance = _moments(blocks)
    counts = np.arange(1, rule.maximum + 1, dtype=np.float64)
    with_base = _covariance(blocks[1:], blocks[0]) / mean[1:] / mean[0]
    squares = variance[1:] / mean[1:] ** 2 + variance[0] / mean[0] ** 2 - 2.0 * with_base
    both = _neighbours(blocks[1:], blocks[0]) + _neighbours(blocks[0], blocks[1:])
    apart = _neighbours(blocks, blocks) / mean**2
    neighbours = apart[1:] + apart[0] - both / mean[1:] / mean[0]
    worth = _worth(neighbours, squares * (counts - 1.0), counts)
    error = np.sqrt(np.maximum(squares, 0.0) / worth)
    half = (
        _factor(rule, factor) * _t(counts - 1.0, bonferroni_confidence(rule.confidence, len(error))) * error
    )
    return _stop(np.log(mean[1:] / mean[0]), half, (half < np.log1p(rule.precision)).all(axis=0), rule)


def _stop(
    centre: Floats, half: Floats, passed: NDArray[np.bool_], rule: MeanPrecision | RatioPrecision
) -> Stops:
    """Stops at the first look at which `passed` holds; else the last."""
    places = np.array(_looks(rule)) - 1
    looks = passed[:, places]
    converged = np.asarray(looks.any(axis=1), dtype=np.bool_)
    at = np.where(converged, places[looks.argmax(axis=1)], rule.maximum - 1)
    series = np.arange(at.size)
    return Stops(at + 1, centre[..., series, at], half[..., series, at], converged)


def _looks(rule: MeanPrecision | RatioPrecision) -> list[int]:
    """Numbers of trials at which the rule looks; the last is its maximum."""
    looks = [rule.minimum]
    while looks[-1] < rule.maximum:
        looks.append(min(next_look(looks[-1] + 1, rule.minimum), rule.maximum))
    return looks


def _moments(x: Floats) -> tuple[Floats, Floats]:
    """Mean and variance (n-1; 0 for n = 1) of the first 1, 2, … values along the last axis."""
    counts = np.arange(1, x.shape[-1] + 1, dtype=np.float64)
    origin = x.mean(axis=-1, keepdims=True)
    d = x - origin
    mean = np.cumsum(d, axis=-1) / counts
    squares = np.cumsum(d * d, axis=-1) - counts * mean * mean
    return mean + origin, np.maximum(squares, 0.0) / np.maximum(counts - 1.0, 1.0)


def _covariance(x: Floats, y: Floats) -> Floats:
    """Covariance (n-1; 0 for n = 1) of the first 1, 2, … values of either along the last axis."""
    counts = np.arange(1, x.shape[-1] + 1, dtype=np.float64)
    x, y = (each - each.mean(axis=-1, keepdims=True) for each in (x, y))
    products = np.cumsum(x * y, axis=-1) - np.cumsum(x, axis=-1) * np.cumsum(y, axis=-1) / counts
    return products / np.maximum(counts - 1.0, 1.0)


def _prefixes(x: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, variance and effective count of the first 1, 2, … values of every row."""
    counts = np.arange(1, x.shape[1] + 1, dtype=np.float64)
    mean, variance = _moments(x)
    d = x - x.mean(axis=1, keepdims=True)
    sums = np.cumsum(d, axis=1)
    middle = sums / counts
    products = np.zeros_like(d)
    products[:, 1:] = np.cumsum(d[:, 1:] * d[:, :-1], axis=1)
    neighbours = products - middle * (2.0 * sums - d[:, :1] - d) + (counts - 1.0) * middle**2
    total = variance * (counts - 1.0)
    worth = _worth(neighbours, total, counts)
    return mean, variance, worth


def _neighbours(x: Floats, y: Floats) -> Floats:
    """Sums of the products of each value of x and the next of y, over the first 1, 2, … along the last axis."""
    products = x[..., :-1] * y[..., 1:]
    return np.concatenate((np.zeros_like(products[..., :1]), np.cumsum(products, axis=-1)), axis=-1)


def _worth(neighbours: Floats, total: Floats, counts: Floats) -> Floats:
    """Effective counts, from the sums of products of neighbours and of squares around the mean."""
    r = np.divide(neighbours, total, out=np.zeros_like(total), where=total > 0.0) + 1.0 / counts
    dependent = (r > DEPENDENCE_THRESHOLD / np.sqrt(counts)) & (counts > 2.0) & (total > 0.0)
    found: Floats = np.where(dependent, np.maximum(2.0, counts * (1.0 - r) / (1.0 + r)), counts)
    return found


def _t(degrees: Floats, confidence: float) -> Floats:
    """Quantile of Student's t; that of a single value is never used, because every rule begins at two."""
    return np.asarray(stdtrit(np.maximum(degrees, 1.0), (1.0 + confidence) / 2.0), dtype=np.float64)


def _factor(rule: MeanPrecision | RatioPrecision, factor: float | None) -> float:
    return rule.factor if factor is None else factor
