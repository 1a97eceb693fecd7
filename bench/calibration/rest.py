"""The smaller promises: time budgets, A/A noise, subtracted costs, outliers, trends, and dependent trials."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from etude.stats.factors import RATIO_FACTORS, factor_for
from etude.stats.intervals import mean_interval, median_interval
from etude.stats.ratio import (
    Ratio,
    noise_floor,
    paired_mean_ratio,
    paired_ratio,
    unpaired_mean_ratio,
    unpaired_ratio,
)
from etude.stats.shape import count_outliers
from etude.stats.stopping import MeanPrecision, RatioPrecision
from etude.stats.trend import trend_p
from rows import paragraph, section, share, table
from support.simulated_rules import Floats, Stops, mean_stops, ratio_stops
from support.synthetic_series import Draw, autoregressive, lognormal, normal

FIRST_MINIMUM = 2


def smaller_promises(rng: Generator, replications: int) -> list[str]:
    """All lines on what is neither a precision rule on means nor one on ratios."""
    few = min(replications, 4000)  # these call the library one series at a time
    return [
        "## 3. The rest",
        "",
        f"{few} replications each (standard error at 95 %: {100 * np.sqrt(0.95 * 0.05 / few):.2f} points).",
        "",
        *_time_budget(rng, few),
        *_noise_floor(rng, few),
        *_subtraction(rng, few),
        *_flags(rng, few),
        *_converged(rng, replications),
        *_families(rng, few),
    ]


def _converged(rng: Generator, replications: int) -> list[str]:
    """Coverage of the series that a rule ended as converged, where others run on to its limit."""
    rows = []
    for cv in (0.10, 0.15, 0.17, 0.20):
        stops = mean_stops(normal(cv)(rng, replications, 50), MeanPrecision())
        rows.append([f"mean within 5 %, cv {100 * cv:g} %", *_by_end(stops, np.abs(stops.centre - 1.0))])
    for cv in (0.03, 0.05, 0.055, 0.06):
        stops = ratio_stops(normal(cv)(rng, 2 * replications, 50).reshape(2, -1, 50), RatioPrecision())
        rows.append([f"ratio within 2 %, cv {100 * cv:g} %", *_by_end(stops, np.abs(stops.centre))])
    return [
        *paragraph(
            "A factor restores 95 % over all series that a rule ends. Where most of them run on to the limit, the few",
            "that converge do so because chance made them look steady, and fewer of those intervals cover",
            f"(normal noise, 10 to 50 trials, {replications} replications, in %):",
        ),
        *table(["target, noise", "converged", "covered, all", "of those that converged"], rows),
    ]


def _by_end(stops: Stops, off: Floats) -> list[str]:
    covered, converged = (off <= stops.half).reshape(-1), stops.converged
    return [f"{100 * part:.1f}" for part in (converged.mean(), covered.mean(), covered[converged].mean())]


def _families(rng: Generator, replications: int) -> list[str]:
    """How often any of several identical tests differs from the first, by intervals of one and of all of them."""
    factor = factor_for(10, RATIO_FACTORS)
    rows = []
    for name, draw, pairs in (
        ("normal cv 5 %", normal(0.05), 10),
        ("normal cv 5 %", normal(0.05), 50),
        ("log-normal cv 40 %", lognormal(0.40), 10),
        ("log-normal cv 40 %", lognormal(0.40), 50),
    ):
        cells = []
        for together in (5, 10, 20):
            alone, among = 0, 0
            drawn = draw(rng, replications * (together + 1), pairs)
            for base, *others in drawn.reshape(replications, together + 1, pairs):
                ratios = [paired_mean_ratio(base, other, factor=factor) for other in others]
                alone += any(not r.low <= 1.0 <= r.high for r in ratios)
                adjusted = [r.among(together) for r in ratios]
                among += any(not r.low <= 1.0 <= r.high for r in adjusted)
            cells.append(f"{100 * among / replications:.1f} ({100 * alone / replications:.1f})")
        rows.append([name, str(pairs), *cells])
    return [
        *paragraph(
            "Several identical commands beside the first: share of experiments in which any ratio of means excludes 1",
            "by the intervals that are printed, which hold together (in brackets by intervals of one ratio each), in",
            "%:",
        ),
        *table(["noise", "pairs", "5 others", "10 others", "20 others"], rows),
    ]


def _time_budget(rng: Generator, replications: int) -> list[str]:
    rows = []
    for name, draw in (("normal cv 10 %", normal(0.10)), ("log-normal cv 30 %", lognormal(0.30))):
        for budget in (5, 20):
            trials = draw(rng, replications, 4 * budget)
            counts = np.maximum((np.cumsum(trials, axis=1) < budget).sum(axis=1) + 1, FIRST_MINIMUM)
            intervals = [mean_interval(x[:n]) for x, n in zip(trials, counts, strict=True)]
            held = np.mean([i is not None and i.low <= 1.0 <= i.high for i in intervals])
            rows.append([name, f"{budget} mean trials", share(float(held), replications)])
    return [
        "TimeBudget does not look at the spread, and has no factor:",
        "",
        *table(["series", "budget", "coverage"], rows),
    ]


def _noise_floor(rng: Generator, replications: int) -> list[str]:
    rows = []
    for known, pairs in ((5, 20), (10, 20), (20, 20)):
        held = 0
        for _ in range(replications):
            base, again = np.exp(rng.normal(0.0, 0.03, (2, known)))
            floor = noise_floor(base, again, pairs=pairs)
            observed = abs(float(rng.normal(0.0, 0.03 * np.sqrt(2.0 / pairs))))
            held += floor is not None and observed <= np.log1p(floor)
        rows.append([str(known), str(pairs), share(held / replications, replications)])
    return [
        "A/A noise: share of identical tests whose ratio stays within it:",
        "",
        *table(["A/A pairs", "pairs compared", "share"], rows),
    ]


def _subtraction(rng: Generator, replications: int) -> list[str]:
    rows = []
    for error in (0.0, 0.01, 0.03):
        held = 0
        for _ in range(replications):
            base = 0.5 + rng.normal(0.5, 0.01, 15)
            other = 0.5 + rng.normal(0.75, 0.01, 15)
            ratio = paired_ratio(base, other, subtract=(0.5 + float(rng.normal(0.0, error)), error))
            held += ratio.low <= 1.5 <= ratio.high
        rows.append([f"{error:g}", share(held / replications, replications)])
    return [
        "Subtraction of a cost of 0.50 known with the standard error named, tests of 1.00 and 1.25 (n = 15):",
        "",
        *table(["standard error", "coverage"], rows),
    ]


def _flags(rng: Generator, replications: int) -> list[str]:
    rows = [
        [
            name,
            *(f"{100 * _flagged(draw, n, rng, replications):.1f}" for n in (10, 20, 30)),
            *(f"{100 * _trending(draw, n, rng, replications // 4):.1f}" for n in (10, 20, 30)),
        ]
        for name, draw in (
            ("normal cv 5 %", normal(0.05)),
            ("log-normal cv 30 %", lognormal(0.30)),
            ("AR(1) .5, cv 5 %", autoregressive(0.5, 0.05)),
        )
    ]
    found = 0
    for x in normal(0.05)(rng, replications, 10):
        x[4] *= 1.3
        found += count_outliers(x) > 0
    return [
        *paragraph(
            "Clean series with at least one outlier flagged, and with a trend at p < 0.05, in %",
            "(the latter from a quarter of the replications). Dependence passes for a trend.",
        ),
        *table(["series", "outlier n=10", "n=20", "n=30", "trend n=10", "n=20", "n=30"], rows),
        f"One trial of +30 % among ten (normal cv 5 %): {100 * found / replications:.0f} % flagged.",
        "",
    ]


def _flagged(draw: Draw, n: int, rng: Generator, replications: int) -> float:
    return float(np.mean([count_outliers(x) > 0 for x in draw(rng, replications, n)]))


def _trending(draw: Draw, n: int, rng: Generator, replications: int) -> float:
    return float(np.mean([(trend_p(x) or 0.0) < 0.05 for x in draw(rng, replications, n)]))


CV = 0.1
SERIES = (
    ("independent", normal(CV)),
    *((f"AR(1) {r:g}", autoregressive(r, CV)) for r in (0.3, 0.6, 0.8)),
)
COUNTS = (10, 20, 30, 50, 100)


def dependent_trials(rng: Generator, replications: int) -> list[str]:
    """All lines on medians and unpaired ratios of dependent trials."""
    few = min(replications, 4000)  # these call the library one series at a time
    rows = []
    for name, draw in SERIES:
        for count in COUNTS:
            first, second = draw(rng, few, count), draw(rng, few, count)
            mixed = [rng.permuted(x, axis=1) for x in (first, second)]
            medians = (_medians(each, few) for each in (mixed[0], first))
            means = (_false(unpaired_mean_ratio, *pair) for pair in (mixed, (first, second)))
            rows.append([name, str(count), *medians, *means, _false(unpaired_ratio, first, second)])
    text = (
        f"Medians, and two identical tests one after the other, with trials of cv {100 * CV:g} % that depend "
        f"on the one before; {few} replications each. What the median's interval covers, in brackets the share "
        "of series too short for one; and how often an unpaired ratio of means, or of geometric means, excludes 1, in "
        '%. "shuffled": the same trials in random order, which is what a method does that takes them for independent.'
    )
    header = ["trials", "n", "median, shuffled", "median", "means, shuffled", "means", "geometric means"]
    return section("4. Dependent trials", text, header, rows)


def _medians(series: Floats, replications: int) -> str:
    found = [each for x in series if (each := median_interval(x)) is not None]
    none = f" ({100 * (1 - len(found) / replications):.0f})" if len(found) < replications else ""
    if not found:
        return f"–{none}"
    return share(float(np.mean([i.low <= 1.0 <= i.high for i in found])), len(found)) + none


def _false(ratio: Callable[[Floats, Floats], Ratio], base: Floats, other: Floats) -> str:
    found = [ratio(x, y) for x, y in zip(base, other, strict=True)]
    return f"{100 * np.mean([r.low > 1.0 or r.high < 1.0 for r in found]):.1f}"
