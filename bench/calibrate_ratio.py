"""RatioPrecision: its factors are found here, then judged on series drawn afresh."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.random import Generator

from calibrate_tables import NOMINAL, paragraph, share, table
from etude.stats.factors import RATIO_FACTORS, Factors, factor_for
from etude.stats.series import MACHINES, OWN, REFERENCE, Draw, in_blocks, lognormal, normal
from etude.stats.simulation import Floats, log_ratio_stops
from etude.stats.stopping import RatioPrecision

CVS = (0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.10, 0.14, 0.20)
TARGETS = (0.02, 0.05)
MACHINE_NOISES = (0.005, 0.01, 0.02, 0.03)
TRUE_RATIO = 1.05
BEYOND = 3.0  # a factor larger than anyone would pay for
BLOCKS = 51  # the first is set aside, 50 is the rule's most

INTRODUCTION = """## 2. Ratios, stopped by RatioPrecision

Two tests run in blocks of one trial each, in random order; the first block is set aside, at least 10
and at most 50 are kept; the rule stops when the log ratio's half width is below log(1 + target). Noise
and machine act on every trial; a machine keeps its pace per trial for as long as the rule goes on.
"""

CELLS = """Every cell: coverage in % of identical tests, with factor 1.00 ("plain") and with the
rule's, and the pairs kept on average. "false" is the share whose interval excludes 1, which is what the
coverage leaves. "1.05" is what is covered when the second test takes 1.05 times as long (other draws),
"seen" the share of those whose interval excludes 1.
"""

UNREACHED = """At the limit, or far above it: alternating speeds ("period 2") put the log ratios at two values, and
the few pairs of a short series fall on one side often enough to look narrow. A warm-up longer than the
block set aside is conservative: its outsized first pairs widen everything after them.
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
            logs = _log_ratios(case, rng, replications)
            for target in TARGETS:
                rule = RatioPrecision(precision=target, minimum=minimum)
                while log_ratio_stops(logs, rule, factor=hundredths / 100).covers(0.0) < NOMINAL:
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
    """What the rule covers with these factors on fresh draws."""
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
        same, longer = (_log_ratios(case, rng, replications) for _ in range(2))
        row = [case.name]
        for target in TARGETS:
            rule = RatioPrecision(precision=target)
            plain, ruled = (log_ratio_stops(same, rule, factor=f) for f in (1.0, factor))
            moved = log_ratio_stops(longer + np.log(TRUE_RATIO), rule, factor=factor)
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
                logs = _log_ratios(case, rng, replications)
                for target in TARGETS:
                    rule = RatioPrecision(precision=target, minimum=minimum)
                    stops = log_ratio_stops(logs, rule, factor=tried)
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
            logs = _log_ratios(Case("", normal(cv)), rng, replications, tests=tests, blocks=rule.maximum + 1)
            covered.append(log_ratio_stops(logs, rule, factor=factor).covers(0.0))
        rows.append([name, share(min(covered), replications, rule.confidence)])
    return [
        "### Other settings with a minimum of 10: the worst coverage over normal noise, target 2 %",
        "",
        *table(["setting", "worst"], rows),
        *_unlike(rng, replications, factor),
    ]


def _unlike(rng: Generator, replications: int, factor: float) -> list[str]:
    """Two tests with the same mean and unlike spread."""
    rows = []
    kinds = (
        ("normal cv 2 % and 8 %", normal(0.02), normal(0.08)),
        ("log-normal cv 10 % and 40 %", lognormal(0.10), lognormal(0.40)),
    )
    for name, first, second in kinds:
        centres = [float(np.mean(np.log(draw(rng, 200_000, 5)))) for draw in (first, second)]
        logs = np.log(second(rng, replications, 50)) - np.log(first(rng, replications, 50))
        for target in TARGETS:
            stops = log_ratio_stops(logs[np.newaxis], RatioPrecision(precision=target), factor=factor)
            covered = [stops.covers(truth) for truth in (centres[1] - centres[0], 0.0)]
            rows.append([f"{name}, target {100 * target:g} %", *(share(c, replications) for c in covered)])
    return [
        *paragraph(
            "The ratio is one of geometric means. Two tests with equal means and unlike spread have another",
            "ratio of geometric means, and an interval for the one is none for the other:",
        ),
        *table(["tests", "covers the ratio of geometric means", "covers the ratio of means"], rows),
    ]


def _log_ratios(
    case: Case, rng: Generator, replications: int, *, tests: int = 2, blocks: int = BLOCKS
) -> Floats:
    """Shape (tests-1, replications, blocks-1): the first block is set aside."""
    dealt = np.log(in_blocks(rng, case.draw(rng, replications, blocks * tests), tests)[..., 1:])
    return np.asarray(dealt[1:] - dealt[0], dtype=np.float64)


def _on(machine: Draw, noise: Draw) -> Draw:
    return lambda rng, series, trials: machine(rng, series, trials) * noise(rng, series, trials)
