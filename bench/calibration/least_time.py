"""How long trials go on: what the mean's interval covers on machines whose pace changes within seconds."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from scipy.stats import ttest_ind

from etude.analysis.warnings import Thresholds, series_warnings
from etude.experiment.plan import MAXIMUM, MIN_TIME_S, MINIMUM
from etude.results.series import Column, Series
from etude.stats.factors import MEAN_FACTORS, factor_for
from etude.stats.stopping import MeanPrecision
from rows import paragraph, section, share, table
from support.simulated_rules import Floats, Stops, mean_stops
from support.synthetic_series import normal

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


def time_section(rng: Generator, replications: int) -> list[str]:
    rows = [
        [name, f"{1000 * length:g} ms", *_cells(rng, replications, pace, length, truth)]
        for name, pace, truth in MACHINES
        for length in LENGTHS_S
    ]
    words = ("covers", "misses show it", "of these warned of")
    header = [f"{least} s: {word}" for least in ("0", f"{MIN_TIME_S:g}") for word in words]
    text = (
        "Machines whose pace changes with the seconds, not with the trials; noise of cv "
        f"{100 * CV:g} %, trials of the length named, the rule of section 1. Coverage in % (trials on average) of "
        "the mean over a long time, where the rule ends a series as soon as its target is reached, and where it "
        f"ends none before {MIN_TIME_S:g} s (`--min-time`). Of the series whose interval misses, in %: how many have "
        "trials of more than one pace, so that they show it, and how many of these have a warning "
        f"({WARNED} at most were looked at; in brackets how many, if fewer than 100). The others were over before "
        f"it came, or lay within it: nothing in them can be warned of. {replications} replications."
    )
    return [
        *section("6. How long trials go on", text, ["machine", "trial", *header], rows),
        *_by_length_of_the_other_level(rng, replications),
        *_more_trials(rng, replications),
    ]


def _cells(rng: Generator, replications: int, pace: Pace, length_s: float, truth: float) -> list[str]:
    fewest = max(MINIMUM, math.ceil(MIN_TIME_S / length_s))
    trials, paces = _drawn(rng, replications, pace, length_s, max(MAXIMUM, fewest))
    cells = []
    for minimum in (MINIMUM, fewest):
        stops = _stops(trials, minimum)
        cells += [
            f"{share(stops.covers(truth), replications)} ({stops.count.mean():.0f})",
            *_warned(trials, paces, stops, truth),
        ]
    return cells


def _drawn(
    rng: Generator, replications: int, pace: Pace, length_s: float, maximum: int
) -> tuple[Floats, Floats]:
    """Trials after the one that is excluded, a row a series, and the pace of each."""
    paces = pace(rng, replications, length_s * np.arange(maximum + 1))[:, 1:]
    return paces * normal(CV)(rng, replications, maximum), paces


def _stops(trials: Floats, minimum: int) -> Stops:
    rule = MeanPrecision(minimum=minimum, maximum=trials.shape[1])
    return mean_stops(trials, rule, factor=factor_for(MINIMUM, MEAN_FACTORS))


def _by_length_of_the_other_level(rng: Generator, replications: int) -> list[str]:
    """The misses after one change, by the trials of its shorter side, and those that a test at a known place finds."""
    name, pace, truth = MACHINES[1]
    trials, paces = _drawn(rng, replications, pace, LENGTHS_S[-1], MAXIMUM)
    stops = _stops(trials, MINIMUM)
    found: dict[str, list[tuple[bool, bool]]] = {"1": [], "2": [], "3 or more": []}
    for i in np.flatnonzero(np.abs(stops.centre - truth) > stops.half):
        n = int(stops.count[i])
        first = int(np.argmax(paces[i, :n] > 1.0))
        if first == 0:
            continue
        values = trials[i, :n]
        known = ttest_ind(values[:first], values[first:]).pvalue < 0.01
        shorter = min(first, n - first)
        found["3 or more" if shorter > 2 else str(shorter)].append((_has_warning(values), known))
    total = sum(map(len, found.values()))
    rows = [
        [key, *(f"{100 * x:.0f}" for x in (len(each) / total, *np.mean(each, axis=0)))]
        for key, each in found.items()
        if each
    ]
    return [
        "",
        *paragraph(
            f'Machine "{name}", trials of {1000 * LENGTHS_S[-1]:g} ms: its misses that show the change, in %, by the',
            "number of trials on the shorter side of it; how many have a warning; and how many Student's test at",
            "1 % finds that is told the place of the change, which no warning is.",
        ),
        *table(["trials on the shorter side", "of the misses", "warned of", "found at a known place"], rows),
    ]


def _more_trials(rng: Generator, replications: int) -> list[str]:
    """Coverage of the last machine with a larger minimum."""
    name, pace, truth = MACHINES[-1]
    trials, _ = _drawn(rng, replications, pace, LENGTHS_S[-1], MAXIMUM)
    ten, twenty = (_stops(trials, minimum) for minimum in (MINIMUM, 2 * MINIMUM))
    return [
        "",
        *paragraph(
            f'Machine "{name}": {MINIMUM} trials hold no slow one in {100 * 0.85**MINIMUM:.0f} % of series,',
            f"{2 * MINIMUM} in {100 * 0.85 ** (2 * MINIMUM):.0f} %. Of trials of {1000 * LENGTHS_S[-1]:g} ms",
            f"a minimum of {MINIMUM} covers in {share(ten.covers(truth), replications)} ({ten.count.mean():.0f}),",
            f"one of {2 * MINIMUM} (`--min-trials {2 * MINIMUM}`) in {share(twenty.covers(truth), replications)}",
            f"({twenty.count.mean():.0f}).",
        ),
    ]


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
