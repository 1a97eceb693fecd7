"""Curves over a size: how often their breaks are found, and what intervals of breaks and crossings cover."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from two_samples import percent

from calibrate_tables import paragraph, share, table
from etude.stats.crossings import crossing
from etude.stats.segmented import fit
from etude.stats.series import Floats

X = np.arange(3.0, 25.0)
"""8 B to 16 MiB, as logarithms to the base 2."""


@dataclass(frozen=True)
class Case:
    """Curves of one kind: where their breaks may lie, the slopes between them, and the noise of a trial."""

    name: str
    breaks: tuple[tuple[float, float], ...]
    slopes: tuple[float, ...]
    spread: float = 0.03
    trials: int = 10
    points: int = X.size
    tails: bool = False
    own: float = 0.0
    """Spread of what all trials of a point have in common."""


TWO = ((11.0, 13.0), (17.0, 19.0))
RISES_AND_FALLS = (0.9, 0.05, -0.4)

CASES = (
    Case("straight", (), (0.5,)),
    Case("two breaks, trials cv 0.5 %", TWO, RISES_AND_FALLS, 0.007),
    Case("two breaks, cv 2 %", TWO, RISES_AND_FALLS),
    Case("two breaks, cv 2 %, 4 trials", TWO, RISES_AND_FALLS, trials=4),
    Case("two breaks, cv 2 %, 20 trials", TWO, RISES_AND_FALLS, trials=20),
    Case("two breaks, cv 7 %", TWO, RISES_AND_FALLS, 0.1),
    Case("two breaks, heavy tails", TWO, RISES_AND_FALLS, tails=True),
    Case("one small break, cv 7 %", ((11.0, 16.0),), (0.0, -0.05), 0.1),
    Case("four breaks", ((7, 8), (11, 12), (15, 16), (18.5, 19.5)), (1.0, 0.6, 0.1, -0.3, 0.2)),
    Case("12 x, one break", ((7.0, 11.0),), (0.8, 0.0), points=12),
    Case("breaks less than 1 apart", ((14.0, 14.4), (14.8, 15.2)), (0.8, -0.3, 0.3)),
    Case("each point off by 2 %", TWO, RISES_AND_FALLS, own=0.03),
    Case("each point off by 7 %", TWO, RISES_AND_FALLS, own=0.1),
)


def bends(rng: Generator, replications: int) -> list[str]:
    """Continuous lines of pieces with known breaks."""
    few = max(2, replications // 20)
    rows = [_row(case, rng, few) for case in CASES]
    return [
        "## Curves over a size",
        "",
        *paragraph(
            "Lines of pieces over 22 powers of two with known breaks and slopes, 10 trials of cv 2 % a point unless",
            f"stated ({few} curves each). Share of curves with the right number of breaks, and with more, in %; where",
            "it is right, coverage of the intervals of breaks and of slopes in %, and the median width of those of",
            "breaks in powers of two.",
        ),
        *table(["curves", "right number", "more", "breaks covered", "slopes covered", "width"], rows),
    ]


def _row(case: Case, rng: Generator, few: int) -> list[str]:
    right = more = 0
    covered: list[bool] = []
    slopes: list[bool] = []
    widths: list[float] = []
    x = X[: case.points]
    for _ in range(few):
        breaks = [float(rng.uniform(*ends)) for ends in case.breaks]
        middle = curve(x, breaks, case.slopes) + rng.normal(0.0, case.own, x.size)
        found = fit(x, [y + _noise(case, rng) for y in middle], seed=int(rng.integers(1 << 31)))
        right += len(found.breaks) == len(breaks)
        more += len(found.breaks) > len(breaks)
        if len(found.breaks) != len(breaks):
            continue
        for each, truth in zip(found.breaks, breaks, strict=True):
            assert each.interval is not None
            covered.append(each.interval.low <= truth <= each.interval.high)
            widths.append(2.0 * each.interval.half_width)
        for slope, value in zip(found.slopes, case.slopes, strict=True):
            assert slope.interval is not None
            slopes.append(slope.interval.low <= value <= slope.interval.high)
    width = f"{np.median(widths):.2f}" if widths else "–"
    shares = [share(float(np.mean(held)), len(held)) if held else "–" for held in (covered, slopes)]
    return [case.name, percent(right / few), percent(more / few), *shares, width]


def curve(x: Floats, breaks: list[float], slopes: tuple[float, ...]) -> Floats:
    """The line's y; 10 at the first x."""
    changes = np.diff(slopes, prepend=0.0)
    parts = [c * np.maximum(0.0, x - at) for at, c in zip([x[0], *breaks], changes, strict=True)]
    return np.asarray(10.0 + np.sum(parts, axis=0))


def _noise(case: Case, rng: Generator) -> Floats:
    if not case.tails:
        return rng.normal(0.0, case.spread, case.trials)
    slow = rng.exponential(4.0 * case.spread, case.trials) * (rng.random(case.trials) < 0.1)
    return rng.standard_t(3, case.trials) * case.spread / 1.3 - slow


def level_crossings(rng: Generator, replications: int) -> list[str]:
    """Where a constant difference of two tests falls below 5 % and 1 % of a cost that grows with size."""
    few = max(2, replications // 8)
    sizes = 2.0 ** np.arange(10, 31)
    base = 4e-4 + sizes / 8e9
    ratios = 1.0 + 3e-4 / base
    rows = []
    for level in (1.05, 1.01):
        last = int(np.flatnonzero(ratios >= level)[-1])
        part = (ratios[last] - level) / (ratios[last] - ratios[last + 1])
        on_line = float(sizes[last] * 2.0**part)
        on_curve = (3e-4 / (level - 1.0) - 4e-4) * 8e9
        for trials in (10, 20):
            for spread in (0.003, 0.01, 0.03):
                held, open_end, wide = [], 0, []
                for _ in range(few):
                    samples = [
                        [y * np.exp(rng.normal(0.0, spread, trials)) for y in middle]
                        for middle in (base, base * ratios)
                    ]
                    found = crossing(sizes, *samples, level, seed=int(rng.integers(1 << 31)))
                    if found.interval is None:
                        open_end += 1
                        continue
                    low, high = found.interval.low, found.interval.high
                    held.append((low <= on_line <= high, low <= on_curve <= high))
                    wide.append(np.log2(high / low))
                means = np.mean(held, axis=0) if held else (np.nan, np.nan)
                covers = [share(float(m), len(held)) if held else "–" for m in means]
                width = f"{np.median(wide):.2f}" if wide else "–"
                shown = f"{100 * (level - 1):.0f} %, cv {100 * spread:g} %"
                rows.append([shown, str(trials), *covers, width, percent(open_end / few)])
    return [
        "## Where a ratio falls below a level",
        "",
        *paragraph(
            "Two tests that differ by 0.3 ms, over 1 KiB to 1 GiB at 8 GB/s. Of the interval of the size from which on",
            "they differ by less: coverage in % of the crossing of the line that is drawn between powers of two, and",
            "of that of the true curve between them; median width in powers of two; share without an interval, in %",
            f"({few} experiments each).",
        ),
        *table(["level and spread", "trials", "line covered", "curve covered", "width", "no interval"], rows),
    ]
