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
from etude.stats.series import mixture, normal
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


def steady(rng: Generator, series: int, at_s: Floats) -> Floats:
    """Always the same."""
    return np.ones((series, at_s.size))


MACHINES: tuple[tuple[str, Pace, float], ...] = (
    ("steady", steady, 1.0),
    ("8 % slower from a moment in the first 3 s on", throttled, 1.08),
    ("10 % slower for 2 s of 10", another_level, 1.02),
    ("two frequencies 12 % apart, half a second each", frequencies, 1.06),
    ("bursts of 0.2 s in 2 s, 25 % slower", bursts, 1.025),
)
"""A name, the pace, and the pace on average over a long time."""


def section(rng: Generator, replications: int) -> list[str]:
    """All lines on the least time."""
    rows = [
        [name, f"{1000 * length:g} ms", *cells]
        for name, draw, truth in _draws()
        for length in LENGTHS_S
        for cells in (_cells(rng, replications, draw, length, truth),)
    ]
    header = [
        "machine",
        "trial",
        "0 s: covers",
        "misses warned of",
        f"{LEAST_S:g} s: covers",
        "misses warned of",
    ]
    return [
        "## 6. How long trials go on",
        "",
        *paragraph(
            "Machines whose pace changes with the seconds, not with the trials; noise of cv",
            f"{100 * CV:g} %, trials of the length named, the rule of section 1. Coverage in % (trials on average) of",
            "the mean over a long time, where the rule ends a series as soon as its target is reached, and where it",
            f"ends none before {LEAST_S:g} s (`--min-time`). Beside it, in %, how many of the series whose interval",
            f"misses have a warning ({WARNED} at most were looked at; in brackets how many, if fewer than 100).",
            f"{replications} replications. Where a change comes seldom, no warning can be expected of a series that",
            "was over before it, or lay within it.",
        ),
        *table(header, rows),
    ]


def _draws() -> list[tuple[str, Callable[[Generator, int, Floats], Floats], float]]:
    """Trials that begin at these seconds, by machine, and their mean over a long time."""
    timed = [(name, _noisy(pace), truth) for name, pace, truth in MACHINES]
    groups = mixture(0.15, plus=0.3, cv=0.02)
    return [*timed, ("15 % of trials 30 % slower", lambda rng, n, at_s: groups(rng, n, at_s.size), 1.045)]


def _noisy(pace: Pace) -> Callable[[Generator, int, Floats], Floats]:
    return lambda rng, n, at_s: pace(rng, n, at_s) * normal(CV)(rng, n, at_s.size)


def _cells(
    rng: Generator,
    replications: int,
    draw: Callable[[Generator, int, Floats], Floats],
    length_s: float,
    truth: float,
) -> list[str]:
    fewest = max(MINIMUM, math.ceil(LEAST_S / length_s))
    maximum = max(MAXIMUM, fewest)
    at_s = length_s * np.arange(maximum + 1)
    trials = draw(rng, replications, at_s)[:, 1:]
    cells = []
    for minimum in (MINIMUM, fewest):
        rule = MeanPrecision(minimum=minimum, maximum=maximum)
        stops = mean_stops(trials, rule, factor=factor_for(MINIMUM, MEAN_FACTORS))
        cells += [
            f"{share(stops.covers(truth), replications)} ({stops.count.mean():.0f})",
            _warned(trials, stops, truth),
        ]
    return cells


def _warned(trials: Floats, stops: Stops, truth: float) -> str:
    """The share of the series whose interval misses that have a warning."""
    missed = np.flatnonzero(np.abs(stops.centre - truth) > stops.half)[:WARNED]
    if not missed.size:
        return "–"
    found = np.mean([_has_warning(trials[i, : stops.count[i]]) for i in missed])
    return f"{100 * found:.0f}" + (f" ({missed.size})" if missed.size < 100 else "")


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
