"""What intervals cover where the number of trials was fixed, and Auto-pilot's own rule beside them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import study
from numpy.random import Generator
from scipy.special import stdtrit
from stop_rules import SERIES

from calibrate_tables import share, table
from etude.stats.intervals import Interval, mean_interval, median_interval
from etude.stats.means import Kind, average, wilson
from etude.stats.percentiles import percentile, trimmed_mean
from etude.stats.predicate import figures
from etude.stats.series import Floats, Series, autoregressive, lognormal, mixture, normal

DRAWS = 400_000

Limits = Callable[[Floats], Interval | None]


def fixed(rng: Generator, replications: int) -> list[str]:
    """Mean and median at 10 and 30 trials; Student's interval, which Getstats prints; Auto-pilot's stop rule."""
    rows = []
    for series in SERIES:
        middle = _median(series, rng)
        cells = [series.name]
        for place, n in enumerate((10, 30)):
            drawn = series.draw(rng, replications, n)
            mean = None if series.mean is None else series.mean + series.drift * (n - 1) / 2.0
            plain = _cover(_student, drawn, mean)
            cells += [
                _cover(mean_interval, drawn, mean),
                study.beside(plain, study.MEAN, series.name, place),
                _cover(median_interval, drawn, middle),
            ]
        cells.append(study.beside(_auto_pilot(series, rng, replications), study.MEAN, series.name, 2))
        rows.append(cells)
    return [
        "## A fixed number of trials",
        "",
        "Coverage in % of the mean's interval with n_eff (\"mean\"), of Student's, which Getstats prints, and of the",
        "median's between order statistics (in brackets the series that are worth too few independent trials for one),",
        "the first trial not excluded; and of Student's interval where the rule of Auto-pilot stopped (10 to 30",
        "trials, half width below 5 %). In brackets otherwise the study's.",
        "",
        *table(
            [
                "series",
                *(f"{what}, n = {n}" for n in (10, 30) for what in ("mean", "Student", "median")),
                "Auto-pilot",
            ],
            rows,
        ),
    ]


def kinds(rng: Generator, replications: int) -> list[str]:
    """Means that fit other kinds of metrics, the trimmed mean, percentiles, proportions."""
    steady, skewed, spikes = normal(0.05), lognormal(0.3), mixture(0.05, times=1.5, cv=0.03)
    cases: list[tuple[str, Callable[[Generator, int, int], Floats], Limits, Callable[[Floats], float]]] = [
        (
            "harmonic mean of rates, normal cv5",
            steady,
            _of_kind("rate"),
            lambda x: 1.0 / float(np.mean(1 / x)),
        ),
        (
            "harmonic mean of rates, lognormal cv30",
            skewed,
            _of_kind("rate"),
            lambda x: 1.0 / float(np.mean(1 / x)),
        ),
        ("geometric mean of ratios, lognormal cv30", skewed, _of_kind("ratio"), _geometric),
        ("trimmed mean, 10 %, normal cv5", steady, _trimmed, lambda x: _middle_of(x, 0.1)),
        ("trimmed mean, 10 %, spikes 5% x1.5", spikes, _trimmed, lambda x: _middle_of(x, 0.1)),
        ("p90, lognormal cv30", skewed, _p90, lambda x: float(np.quantile(x, 0.9))),
        ("p90, AR1 .6 cv5", autoregressive(0.6, 0.05), _p90, lambda x: float(np.quantile(x, 0.9))),
    ]
    rows = []
    for name, draw, limits, truth in cases:
        true = truth(draw(rng, DRAWS // 40, 40).ravel())
        rows.append([name, *(_cover(limits, draw(rng, replications, n), true) for n in (10, 30, 60))])
    for p in (0.5, 0.9, 0.99):
        cells = [f"proportion of {p:g}"]
        for n in (10, 30, 60):
            hits = rng.binomial(n, p, replications)
            limits = [wilson(int(k), n) for k in hits]
            held = np.mean([i.low <= p <= i.high for i in limits])
            cells.append(share(float(held), replications))
        rows.append(cells)
    return [
        "## Other means, percentiles, proportions",
        "",
        "Coverage in % at a fixed number of trials; – where so few values have no interval.",
        "",
        *table(["interval", "n = 10", "n = 30", "n = 60"], rows),
    ]


def _cover(limits: Limits, drawn: Floats, truth: float | None) -> str:
    """Share of the intervals that hold the truth, and in brackets of the rows without one."""
    if truth is None:
        return "–"
    each = [limits(x) for x in drawn]
    found = [interval for interval in each if interval is not None]
    if not found:
        return "–"
    held = [interval.low <= truth <= interval.high for interval in found]
    without = f" ({100 * (1 - len(found) / len(each)):.0f})" if len(found) < 0.995 * len(each) else ""
    return share(float(np.mean(held)), len(held)) + without


def _student(x: Floats) -> Interval:
    said = figures(x)
    return Interval(said.mean - said.delta, said.mean + said.delta)


def _auto_pilot(series: Series, rng: Generator, replications: int) -> str:
    """`0.05 * $mean > $delta` judged after every trial from the tenth on, at most thirty."""
    if series.mean is None:
        return "–"
    x = series.draw(rng, replications, 30)
    n = np.arange(1, 31)
    mean = np.cumsum(x, axis=1) / n
    centred = x - x.mean(axis=1, keepdims=True)
    variance = np.cumsum(centred**2, axis=1) - np.cumsum(centred, axis=1) ** 2 / n
    half = stdtrit(np.maximum(n - 1, 1), 0.975) * np.sqrt(
        np.maximum(variance, 0.0) / np.maximum(n - 1, 1) / n
    )
    passed = (half < 0.05 * mean)[:, 9:]
    at = np.where(passed.any(axis=1), 9 + passed.argmax(axis=1), 29)
    rows = np.arange(replications)
    first = figures(x[0, : at[0] + 1])  # the shipped figures say the same
    assert abs(first.delta - half[0, at[0]]) < 1e-9
    assert abs(first.mean - mean[0, at[0]]) < 1e-9
    truth = series.mean + series.drift * at / 2.0
    return share(float(np.mean(np.abs(mean[rows, at] - truth) <= half[rows, at])), replications)


def _median(series: Series, rng: Generator) -> float | None:
    """Of a steady trial, late in the series; None under drift."""
    if series.drift:
        return None
    return float(np.median(series.draw(rng, DRAWS // 40, 80)[:, 40:]))


def _of_kind(kind: Kind) -> Limits:
    return lambda x: average(x, kind).interval


def _trimmed(x: Floats) -> Interval | None:
    return trimmed_mean(x, 0.1).interval


def _p90(x: Floats) -> Interval | None:
    return percentile(x, 0.9).interval


def _geometric(x: Floats) -> float:
    return float(np.exp(np.mean(np.log(x))))


def _middle_of(x: Floats, cut: float) -> float:
    ordered = np.sort(x)
    k = int(cut * x.size)
    return float(ordered[k : x.size - k].mean())
