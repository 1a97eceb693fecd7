"""MeanPrecision on every synthetic series: what the reported intervals cover."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from etude.stats.factors import MEAN_FACTORS
from etude.stats.intervals import median_interval
from etude.stats.series import OWN, REFERENCE, Series, normal
from etude.stats.simulation import Floats, Stops, mean_stops
from etude.stats.stopping import MeanPrecision
from markdown import NOMINAL, paragraph, share, table

MEDIAN_DRAWS = 400_000
FEW = 4000
NORMAL_CVS = (0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.10, 0.12, 0.15, 0.20, 0.30)

INTRODUCTION = """## 1. The mean, stopped by MeanPrecision

The first trial is excluded, at least 10 and at most 50 are kept, the aim is a margin of error below 5 % of
the mean at 95 %. Coverage in % (included trials on average). "plain" is the rule with factor 1.00, "rule"
with the factor of the code, "rule, n_eff-1" the same with n_eff-1 instead of n-1 degrees of freedom.
"unfinished" is the share that reached 50 trials. "median" is what the order-statistic interval of the
median covers in the first 4000 of the same stopped series, in brackets the share of those that are worth
too few independent trials for one. The true value is that of a steady trial; under drift it is the mean of the
trials made.
"""


def mean_section(rng: Generator, replications: int) -> list[str]:
    """All lines on MeanPrecision."""
    rows = [_row(series, rng, replications) for series in (*REFERENCE, *OWN)]
    header = ["series", "plain", "rule", "rule, n_eff-1", "unfinished", "median"]
    return [INTRODUCTION, *table(header, rows), *_smaller_minima(rng, replications)]


def _row(series: Series, rng: Generator, replications: int) -> list[str]:
    rule = MeanPrecision()
    trials = series.draw(rng, replications, rule.maximum + 1)[:, 1:]
    stops = mean_stops(trials, rule)
    unfinished = f"{100 * (1 - stops.converged.mean()):.0f}"
    median = _median_coverage(series, trials, stops, rng)
    if series.mean is None:
        return [series.name, "no mean", "no mean", "no mean", unfinished, median]
    plain = mean_stops(trials, rule, factor=1.0)
    fewer = min(replications, 5000)  # the quantiles of broken degrees of freedom are slow
    effective = mean_stops(trials[:fewer], rule, effective_degrees=True)
    cells = [
        f"{share(_coverage(series, s), s.count.size)} ({s.count.mean():.1f})"
        for s in (plain, stops, effective)
    ]
    return [series.name, *cells, unfinished, median]


def _coverage(series: Series, stops: Stops) -> float:
    """Share of intervals that hold the mean of the kept trials, which begin with the second one made."""
    assert series.mean is not None
    return stops.covers(series.mean + series.drift * (stops.count.astype(np.float64) + 1.0) / 2.0)


def _median_coverage(series: Series, trials: Floats, stops: Stops, rng: Generator) -> str:
    """The same for the median's interval, its truth from many late trials."""
    if series.drift:
        return "-"
    truth = float(np.median(series.draw(rng, MEDIAN_DRAWS // 50, 100)[:, 50:]))
    few = zip(trials[:FEW], stops.count[:FEW], strict=True)  # this calls the library one series at a time
    each = [median_interval(x[:count]) for x, count in few]
    found = [interval for interval in each if interval is not None]
    none = 100 * (1 - len(found) / len(each))
    held = float(np.mean([i.low <= truth <= i.high for i in found]))
    return share(held, len(found)) + (f" ({none:.0f})" if none >= 0.5 else "")


def _smaller_minima(rng: Generator, replications: int) -> list[str]:
    rows = []
    for minimum, factor in MEAN_FACTORS:
        rule = MeanPrecision(minimum=minimum)
        samples = [normal(cv)(rng, replications, rule.maximum) for cv in NORMAL_CVS]
        worst = [min(mean_stops(x, rule, factor=f).covers(1.0) for x in samples) for f in (1.0, factor)]
        needed = 1.0
        while min(mean_stops(x, rule, factor=needed).covers(1.0) for x in samples) < NOMINAL:
            needed += 0.01
        rows.append(
            [str(minimum), *(share(c, replications) for c in worst), f"{factor:.2f}", f"{needed:.2f}"]
        )
    cvs = f"{100 * NORMAL_CVS[0]:g} to {100 * NORMAL_CVS[-1]:g} %"
    return [
        *paragraph(
            f"By minimum, the worst coverage over normal series of cv {cvs}, and the smallest factor",
            "(in hundredths) that brought every one of them to 95 % in this run:",
        ),
        *table(
            ["minimum", "worst, plain", "worst, with the factor", "factor in the code", "smallest found"],
            rows,
        ),
    ]
