"""False findings, and findings, of the tests of two samples and of equivalence."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import study
from numpy.random import Generator
from stop_rules import SERIES

from calibrate_tables import table
from etude.stats.compare import paired_mean_ratio, paired_ratio, unpaired_mean_ratio
from etude.stats.equivalence import equivalence_of
from etude.stats.ranks import mann_whitney, wilcoxon
from etude.stats.series import MACHINES, Draw, Floats, autoregressive, deal_into_blocks, lognormal, normal
from etude.stats.twosample import student, welch

Differs = Callable[[Floats, Floats], bool]

TESTS: dict[str, Differs] = {
    "Welch": lambda a, b: welch(a, b).p < 0.05,
    "Welch, logs": lambda a, b: welch(np.log(a), np.log(b)).p < 0.05,
    "Student": lambda a, b: student(a, b).p < 0.05,
    "Mann-Whitney": lambda a, b: mann_whitney(a, b).p < 0.05,
}

UNEVEN: tuple[tuple[str, Draw, int, Draw, int], ...] = (
    ("normal cv2 and cv8, 10 and 10", normal(0.02), 10, normal(0.08), 10),
    ("normal cv2 and cv8, 30 and 10", normal(0.02), 30, normal(0.08), 10),
    ("lognormal cv40 and cv10, 10 and 10", lognormal(0.40), 10, lognormal(0.10), 10),
    ("lognormal cv40 and cv10, 10 and 30", lognormal(0.40), 10, lognormal(0.10), 30),
    ("AR1 .3 cv5, 10 and 10", autoregressive(0.3, 0.05), 10, autoregressive(0.3, 0.05), 10),
    ("AR1 .6 cv5, 10 and 10", autoregressive(0.6, 0.05), 10, autoregressive(0.6, 0.05), 10),
    ("AR1 .6 cv5, 30 and 30", autoregressive(0.6, 0.05), 30, autoregressive(0.6, 0.05), 30),
)


def independent(rng: Generator, replications: int) -> list[str]:
    """Two samples of one series, made at different times, by every test."""
    cases = [(f"{s.name}, 10 and 10", s.draw, 10, s.draw, 10) for s in SERIES]
    rows = []
    for name, first, n, second, m in (*cases, *UNEVEN):
        drawn = first(rng, replications, n), second(rng, replications, m)
        cells = [percent(found(test, *drawn)) for test in TESTS.values()]
        rows.append([name, *(study.beside(cell, study.INDEPENDENT, name, i) for i, cell in enumerate(cells))])
    for effect in (1.02, 1.05):
        drawn = normal(0.05)(rng, replications, 10) * effect, normal(0.05)(rng, replications, 10)
        shifted = [percent(found(test, *drawn)) for test in TESTS.values()]
        rows.append([f"found: normal cv5, {100 * (effect - 1):.0f} % apart", *shifted])
    return [
        "## Two independent samples",
        "",
        "Share of pairs of samples that a test at 5 % calls different, in %. But for the last two lines nothing",
        "differs. No test survives dependence within a sample. In brackets the study's.",
        "",
        *table(["series and trials", *TESTS], rows),
    ]


def designs(rng: Generator, replications: int) -> list[str]:
    """What a machine does to a comparison: one test after the other, and interleaved in random pairs."""
    rows = []
    for machine in MACHINES:
        trials = machine.draw(rng, replications, 20) * normal(0.02)(rng, replications, 20)
        base, other = deal_into_blocks(rng, trials, 2)
        same = (
            percent(found(TESTS["Welch"], trials[:, :10], trials[:, 10:])),
            percent(found(TESTS["Welch"], base, other)),
            percent(found(_paired_differs, base, other)),
        )
        rows.append(
            [
                machine.name,
                *(study.beside(cell, study.DESIGNS, machine.name, i) for i, cell in enumerate(same)),
                percent(found(lambda a, b: wilcoxon(a, b).p < 0.05, base, other)),
                percent(found(_paired_differs, base, 1.02 * other)),
            ]
        )
    header = [
        "machine",
        "AAAABBBB, Welch",
        "pairs, Welch",
        "pairs, paired ratio",
        "pairs, Wilcoxon",
        "2 % found",
    ]
    return [
        "## Designs",
        "",
        "Two identical tests, 10 trials each, noise of cv 2 %: share called different at 5 %, in %. The last column is",
        "what the paired ratio finds when one test is 2 % slower. In brackets the study's.",
        "",
        *table(header, rows),
    ]


def equivalence(rng: Generator, replications: int) -> list[str]:
    """How often two tests are called the same within 2 %: when they are, and at the margin, where 5 % may be."""
    rows = []
    for cv in (0.005, 0.01, 0.02, 0.05):
        for n in (10, 30):
            base, other = normal(cv)(rng, 2 * replications, n).reshape(2, replications, n)
            cells = [f"normal cv {100 * cv:g} %", str(n)]
            for ratio in (1.0, 1.01, 1.02, 1.05):
                same = found(
                    lambda a, b: equivalence_of(unpaired_mean_ratio(a, b)).verdict == "the same",
                    base,
                    ratio * other,
                )
                cells.append(percent(same))
            rows.append(cells)
    for machine in MACHINES:
        trials = machine.draw(rng, replications, 40) * normal(0.01)(rng, replications, 40)
        base, other = deal_into_blocks(rng, trials, 2)
        cells = [f"{machine.name}, cv 1 %, in pairs", "20"]
        for ratio in (1.0, 1.01, 1.02, 1.05):
            same = found(
                lambda a, b: equivalence_of(paired_mean_ratio(a, b)).verdict == "the same",
                base,
                ratio * other,
            )
            cells.append(percent(same))
        rows.append(cells)
    return [
        "## The same within 2 %",
        "",
        "Share called the same, in %, by how far the tests really lie apart. At 2 % and beyond it must not exceed 5 %.",
        "",
        *table(["noise", "trials", "equal", "1 %", "2 %", "5 %"], rows),
    ]


def found(test: Differs, first: Floats, second: Floats) -> float:
    """Share of the pairs of rows for which the test says so; rows that it refuses count as no."""
    count = 0
    for a, b in zip(first, second, strict=True):
        with suppress(ValueError):
            count += test(a, b)
    return count / len(first)


def percent(value: float) -> str:
    """A share as text."""
    return f"{100 * value:.1f}"


def _paired_differs(a: Floats, b: Floats) -> bool:
    ratio = paired_ratio(a, b)
    return not ratio.low <= 1.0 <= ratio.high and not math.isnan(ratio.ratio)
