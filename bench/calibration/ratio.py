"""MeanPrecision and RatioPrecision: what the reported intervals cover; the factors for ratios are found here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
from numpy.random import Generator

from etude.figures.lines import Series
from etude.stats.factors import MEAN_FACTORS, RATIO_FACTORS, Factors, factor_for
from etude.stats.intervals import median_interval
from etude.stats.ratio import Ratio, paired_mean_ratio, paired_ratio, unpaired_mean_ratio
from etude.stats.stopping import MeanPrecision, RatioPrecision
from rows import NOMINAL, paragraph, share, table
from support.simulated_rules import Floats, Stops, mean_stops, ratio_stops
from support.synthetic_series import MACHINES, OWN, REFERENCE, Draw, deal_into_blocks, lognormal, normal

CVS = (0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.10, 0.14, 0.20)
TARGETS = (0.02, 0.05)
MACHINE_NOISES = (0.005, 0.01, 0.02, 0.03)
TRUE_RATIO = 1.05
BEYOND = 3.0  # a factor larger than anyone would pay for
BLOCKS = 51  # the first is excluded, 50 is the rule's most

UNLIKE = (
    ("normal cv 2 % and 8 %", normal(0.02), normal(0.08)),
    ("normal cv 10 %, both", normal(0.10), normal(0.10)),
    ("normal cv 2 %, log-normal cv 40 %", normal(0.02), lognormal(0.40)),
    ("log-normal cv 10 % and 40 %", lognormal(0.10), lognormal(0.40)),
    ("log-normal cv 40 %, both", lognormal(0.40), lognormal(0.40)),
)
"""Tests of the same mean."""

INTRODUCTION = """## 2. Ratios, stopped by RatioPrecision

Two tests run in blocks of one trial each, in random order; the first block is excluded, at least 10
and at most 50 are kept; the rule stops when the margin of error of the logarithm of the ratio of means is below
log(1 + target). Noise and machine act on every trial; a machine keeps its pace per trial for as long as
the rule goes on.
"""

CELLS = """Every cell: coverage in % of identical tests, with factor 1.00 ("plain") and with the
rule's, and the pairs kept on average. "false" is the share whose interval excludes 1, which is what the
coverage leaves. "1.05" is what is covered when the second test takes 1.05 times as long (other draws),
"seen" the share of those whose interval excludes 1.
"""

UNREACHED = """At the limit, or far above it: alternating speeds ("period 2") put the log ratios at two values, and
the few pairs of a short series fall on one side often enough to look narrow. A warm-up longer than the
block excluded is conservative: its outsized first pairs widen everything after them.
"""


@dataclass(frozen=True)
class Case:
    """One kind of noise, as trials in order of time."""

    name: str
    draw: Draw


def noises() -> Iterator[Case]:
    """Normal and log-normal noise on a steady machine."""
    for cv in CVS:
        yield Case(f"normal cv {100 * cv:g} %", normal(cv))
        yield Case(f"log-normal cv {100 * cv:g} %", lognormal(cv))


def machines() -> Iterator[Case]:
    """Every machine with normal noise of several sizes."""
    for machine, noise in product(MACHINES, MACHINE_NOISES):
        yield Case(f"{machine.name}, noise {100 * noise:g} %", _on(machine.draw, normal(noise)))


def others() -> Iterator[Case]:
    """The series of section 1, whose own noise acts on both tests alike."""
    for series in (*REFERENCE, *OWN):
        yield Case(series.name, series.draw)


def find_factors(rng: Generator, replications: int) -> tuple[Factors, list[str]]:
    """The smallest factors, in hundredths, that bring every case to 95 %, and a table of what decided."""
    factors, rows = [], []
    for minimum, _ in RATIO_FACTORS:
        cases = [*noises(), *(machines() if minimum >= 10 else ())]
        hundredths, decider = 100, "none"
        for case in cases:
            blocks = _blocks(case, rng, replications)
            for target in TARGETS:
                rule = RatioPrecision(precision=target, minimum=minimum)
                while ratio_stops(blocks, rule, factor=hundredths / 100).covers(0.0) < NOMINAL:
                    hundredths += 1
                    decider = f"{case.name}, target {100 * target:g} %"
        factors.append((minimum, hundredths / 100))
        rows.append([str(minimum), f"{hundredths / 100:.2f}", decider, str(len(cases) * len(TARGETS))])
    lines = [
        INTRODUCTION,
        *paragraph(
            f"Smallest factor, in hundredths, with which every case reached 95 % ({replications} replications",
            "a case; normal and log-normal noise of cv 0.5 to 20 %, for the minimum of 10 the machines too;",
            "targets 2 and 5 %):",
        ),
        *table(["minimum", "factor", "case that decided", "cases"], rows),
    ]
    return tuple(factors), lines


def validation(rng: Generator, replications: int, factors: Factors) -> list[str]:
    parts = [
        ("Steady machine, noise as named", noises()),
        ("Machines", machines()),
        ("Other series, which took no part in the search", others()),
    ]
    lines = ["### With a minimum of 10, on fresh draws", "", CELLS]
    for title, cases in parts:
        lines += [f"{title}:", "", *_table_of(cases, rng, replications, factor_for(10, factors))]
    minima = _smaller_minima(rng, replications, factors)
    return [*lines, UNREACHED, *minima, *_variations(rng, replications, factor_for(10, factors))]


def _table_of(cases: Iterator[Case], rng: Generator, replications: int, factor: float) -> list[str]:
    header = ["case"]
    for target in TARGETS:
        header += [f"{100 * target:g} %: plain", "rule", "false", "1.05", "seen"]
    rows = []
    for case in cases:
        same, longer = (_blocks(case, rng, replications) for _ in range(2))
        longer[1:] *= TRUE_RATIO
        row = [case.name]
        for target in TARGETS:
            rule = RatioPrecision(precision=target)
            plain, ruled = (ratio_stops(same, rule, factor=f) for f in (1.0, factor))
            moved = ratio_stops(longer, rule, factor=factor)
            row += [f"{share(s.covers(0.0), replications)} ({s.count.mean():.1f})" for s in (plain, ruled)]
            row += [
                f"{100 * (1 - ruled.covers(0.0)):.1f}",
                share(moved.covers(np.log(TRUE_RATIO)), replications),
            ]
            row += [f"{100 * (1 - moved.covers(0.0)):.0f}"]
        rows.append(row)
    return table(header, rows)


def _smaller_minima(rng: Generator, replications: int, factors: Factors) -> list[str]:
    rows = []
    for minimum, factor in factors:
        worst = []
        for cases, tried in ((noises(), factor), (machines(), factor), (machines(), BEYOND)):
            covered = []
            for case in cases:
                blocks = _blocks(case, rng, replications)
                for target in TARGETS:
                    rule = RatioPrecision(precision=target, minimum=minimum)
                    stops = ratio_stops(blocks, rule, factor=tried)
                    covered.append((stops.covers(0.0), f"{case.name}, target {100 * target:g} %"))
            worst += [f"{share(min(covered)[0], replications)} ({min(covered)[1]})"]
        rows.append([str(minimum), f"{factor:.2f}", *worst])
    return [
        "### All minima: the worst coverage, on fresh draws",
        "",
        *paragraph(
            "Minima below 10 are calibrated on steady machines alone. On a machine that alternates between two",
            "speeds a few pairs often fall on one side and show hardly any spread: more pairs help, not a factor.",
        ),
        *table(
            ["minimum", "factor", "worst noise", "worst machine", f"worst machine, factor {BEYOND:g}"], rows
        ),
    ]


def _variations(rng: Generator, replications: int, factor: float) -> list[str]:
    """Does this factor, that for a minimum of 10, hold for other settings of the rule?"""
    settings = [("two tests, cap 50, 95 %", RatioPrecision(), 2), ("four tests", RatioPrecision(), 4)]
    settings += [(f"cap {cap}", RatioPrecision(maximum=cap), 2) for cap in (20, 30, 100)]
    settings += [(f"confidence {100 * c:g} %", RatioPrecision(confidence=c), 2) for c in (0.90, 0.99)]
    rows = []
    for name, rule, tests in settings:
        covered = []
        for cv in CVS:
            blocks = _blocks(Case("", normal(cv)), rng, replications, tests=tests, blocks=rule.maximum + 1)
            covered.append(ratio_stops(blocks, rule, factor=factor).covers(0.0))
        rows.append([name, share(min(covered), replications, rule.confidence)])
    return [
        "### Other settings with a minimum of 10: the worst coverage over normal noise, target 2 %",
        "",
        *table(["setting", "worst"], rows),
        *_unlike(rng, replications, factor),
    ]


def _unlike(rng: Generator, replications: int, factor: float) -> list[str]:
    """Two tests with the same mean and other spreads, or other shapes."""
    few = min(replications, 4000)  # these call the library one series at a time
    rows = []
    for name, first, second in UNLIKE:
        for count in (10, 50, 200):
            base, other = first(rng, few, count), second(rng, few, count)
            cells = (
                _covers(partial(paired_mean_ratio, factor=factor), base, other),
                _covers(partial(paired_ratio, factor=factor), base, other),
                _covers(unpaired_mean_ratio, base, other),
            )
            rows.append([name, str(count), *(share(c, few) for c in cells)])
    return [
        *paragraph(
            "The ratio is one of means. Two tests with equal means and unlike spread have another ratio of geometric",
            f"means, and the interval of that one covers a ratio of 1 less and less often. {few} replications of as",
            f"many pairs each (the first two intervals widened by {factor:.2f}):",
        ),
        *table(["tests", "pairs", "ratio of means", "of geometric means", "of means, unpaired"], rows),
    ]


def _covers(ratio: Callable[[Floats, Floats], Ratio], base: Floats, other: Floats) -> float:
    found = [ratio(x, y) for x, y in zip(base, other, strict=True)]
    return float(np.mean([r.low <= 1.0 <= r.high for r in found]))


def _blocks(case: Case, rng: Generator, replications: int, *, tests: int = 2, blocks: int = BLOCKS) -> Floats:
    """Shape (tests, replications, blocks-1): the first block is excluded."""
    return deal_into_blocks(rng, case.draw(rng, replications, blocks * tests), tests)[..., 1:]


def _on(machine: Draw, noise: Draw) -> Draw:
    return lambda rng, series, trials: machine(rng, series, trials) * noise(rng, series, trials)


MEDIAN_DRAWS = 400_000
FEW = 4000
NORMAL_CVS = (0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.10, 0.12, 0.15, 0.20, 0.30)

MEANS = """## 1. The mean, stopped by MeanPrecision

The first trial is excluded, at least 10 and at most 50 are kept, the aim is a margin of error below 5 % of
the mean at 95 %. Coverage in % (included trials on average). "plain" is the rule with factor 1.00, "rule"
with the factor of the code, "rule, n_eff-1" the same with n_eff-1 instead of n-1 degrees of freedom.
"unfinished" is the share that reached 50 trials. "median" is what the order-statistic interval of the
median covers in the first 4000 of the same stopped series, in brackets the share of those that are worth
too few independent trials for one. The true value is that of a steady trial; under drift it is the mean of the
trials made.
"""


def mean_section(rng: Generator, replications: int) -> list[str]:
    rows = [_row(series, rng, replications) for series in (*REFERENCE, *OWN)]
    header = ["series", "plain", "rule", "rule, n_eff-1", "unfinished", "median"]
    return [MEANS, *table(header, rows), *_smaller_minima_of_means(rng, replications)]


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


def _smaller_minima_of_means(rng: Generator, replications: int) -> list[str]:
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
