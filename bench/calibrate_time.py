"""How long trials go on: what the mean's interval covers on machines whose pace changes within seconds.

    python bench/calibrate_time.py [REPLICATIONS]

Prints the section of docs/calibration.md.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from calibrate_tables import paragraph, share, table
from etude.experiment.ask import LEAST_S, MAXIMUM, MINIMUM
from etude.report.warnings import Thresholds, series_warnings
from etude.results.series import Column, Series
from etude.stats.factors import MEAN_FACTORS, factor_for
from etude.stats.series import normal
from etude.stats.simulation import Floats, Stops, mean_stops
from etude.stats.stopping import MeanPrecision

LENGTHS_S = (0.01, 0.05, 0.1, 0.3)
CV = 0.02
WARNED = 500
"""So many intervals that miss are looked at for a warning, of each case."""

Pace = Callable[[Generator, int, Floats], Floats]
"""How many times its usual time a trial takes that begins at these seconds; a row a series."""


def throttled(rng: Generator, series: int, at_s: Floats) -> Floats:
    """Slower by 8 % from a moment within the first 3 s on."""
    return np.where(at_s >= rng.uniform(0.0, 3.0, (series, 1)), 1.08, 1.0)


def another_level(rng: Generator, series: int, at_s: Floats) -> Floats:
    """Slower by 10 % for 2 s of each 10 s."""
    return np.where((at_s + rng.uniform(0.0, 10.0, (series, 1))) % 10.0 < 2.0, 1.1, 1.0)


def frequencies(rng: Generator, series: int, at_s: Floats) -> Floats:
    """Two speeds 12 % apart, each for half a second on average."""
    return 1.0 + 0.12 * _switching(rng, series, at_s, 0.5, 0.5)


def bursts(rng: Generator, series: int, at_s: Floats) -> Floats:
    """Slower by 25 % for 0.2 s, every 2 s on average."""
    return 1.0 + 0.25 * _switching(rng, series, at_s, 0.2, 1.8)


def two_groups(rng: Generator, series: int, at_s: Floats) -> Floats:
    """Slower by 30 % in 15 % of the trials."""
    return np.where(rng.random((series, at_s.size)) < 0.15, 1.3, 1.0)


def steady(rng: Generator, series: int, at_s: Floats) -> Floats:
    """Always the same."""
    return np.ones((series, at_s.size))


MACHINES: tuple[tuple[str, Pace, float], ...] = (
    ("steady", steady, 1.0),
    ("8 % slower from a moment in the first 3 s on", throttled, 1.08),
    ("10 % slower for 2 s of 10", another_level, 1.02),
    ("two frequencies 12 % apart, half a second each", frequencies, 1.06),
    ("bursts of 0.2 s in 2 s, 25 % slower", bursts, 1.025),
    ("15 % of trials 30 % slower", two_groups, 1.045),
)
"""A name, the pace, and the pace on average over a long time."""


def section(rng: Generator, replications: int) -> list[str]:
    """All lines on the least time."""
    rows = [
        [name, f"{1000 * length:g} ms", *_cells(rng, replications, pace, length, truth)]
        for name, pace, truth in MACHINES
        for length in LENGTHS_S
    ]
    words = ("covers", "misses show it", "of these warned of")
    header = [
        "machine",
        "trial",
        *(f"{least} s: {word}" for least in ("0", f"{LEAST_S:g}") for word in words),
    ]
    return [
        "## 6. How long trials go on",
        "",
        *paragraph(
            "Machines whose pace changes with the seconds, not with the trials; noise of cv",
            f"{100 * CV:g} %, trials of the length named, the rule of section 1. Coverage in % (trials on average) of",
            "the mean over a long time, where the rule ends a series as soon as its target is reached, and where it",
            f"ends none before {LEAST_S:g} s (`--min-time`). Of the series whose interval misses, in %: how many have",
            "trials of more than one pace, so that they show it, and how many of these have a warning",
            f"({WARNED} at most were looked at; in brackets how many, if fewer than 100). The others were over before",
            f"it came, or lay within it: nothing in them can be warned of. {replications} replications.",
        ),
        *table(header, rows),
    ]


def _cells(rng: Generator, replications: int, pace: Pace, length_s: float, truth: float) -> list[str]:
    fewest = max(MINIMUM, math.ceil(LEAST_S / length_s))
    maximum = max(MAXIMUM, fewest)
    at_s = length_s * np.arange(maximum + 1)
    paces = pace(rng, replications, at_s)[:, 1:]
    trials = paces * normal(CV)(rng, replications, maximum)
    cells = []
    for minimum in (MINIMUM, fewest):
        rule = MeanPrecision(minimum=minimum, maximum=maximum)
        stops = mean_stops(trials, rule, factor=factor_for(MINIMUM, MEAN_FACTORS))
        cells += [
            f"{share(stops.covers(truth), replications)} ({stops.count.mean():.0f})",
            *_warned(trials, paces, stops, truth),
        ]
    return cells


def _warned(trials: Floats, paces: Floats, stops: Stops, truth: float) -> tuple[str, str]:
    """Of the series whose interval misses: the share that has more than one pace, and of these that with a warning."""
    missed = np.flatnonzero(np.abs(stops.centre - truth) > stops.half)
    shown = [i for i in missed if np.ptp(paces[i, : stops.count[i]]) > 0.0]
    if not shown:
        return ("0" if missed.size else "–"), "–"
    looked = shown[:WARNED]
    found = np.mean([_has_warning(trials[i, : stops.count[i]]) for i in looked])
    few = f" ({len(looked)})" if len(looked) < 100 else ""
    return f"{100 * len(shown) / missed.size:.0f}", f"{100 * found:.0f}{few}"


def _has_warning(values: Floats) -> bool:
    kept = np.ones(values.size, dtype=np.bool_)
    series = Series("a", np.arange(1, values.size + 1), kept, {"elapsed": Column("s", "cost", values)})
    return bool(series_warnings(series, "elapsed", thresholds=Thresholds()))


def _switching(rng: Generator, series: int, at_s: Floats, on_s: float, off_s: float) -> Floats:
    """1 while on, 0 while off: a Markov process in time with these mean stays, begun in its steady state."""
    state = rng.random(series) < on_s / (on_s + off_s)
    rate, share_on = 1.0 / on_s + 1.0 / off_s, on_s / (on_s + off_s)
    stays = np.exp(-rate * np.diff(at_s, prepend=at_s[0]))
    found = np.empty((series, at_s.size))
    for i, kept in enumerate(stays):
        state = rng.random(series) < share_on + (state - share_on) * kept
        found[:, i] = state
    return found


if __name__ == "__main__":
    print("\n".join(section(np.random.default_rng(2026), int(sys.argv[1]) if len(sys.argv) > 1 else 4000)))
