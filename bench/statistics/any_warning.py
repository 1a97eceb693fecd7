"""What `etude stats` warns of by default: how often on clean series, and how often where something is the matter.

    python bench/statistics/any_warning.py [--replications N] [--seed N]

prints the tables of docs/warnings.md; run.py has them, too.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.random import Generator

sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: calibrate_tables

from own_series import OWN as NEW
from two_samples import percent

from calibrate_tables import table
from etude.analysis.warnings import Thresholds, series_warnings
from etude.results.series import Column, Series
from etude.stats.series import (
    OWN,
    REFERENCE,
    Draw,
    Floats,
    autoregressive,
    first_trials,
    gamma,
    lognormal,
    mixture,
    normal,
    slow_start,
)

REPLICATIONS, SEED = 4000, 20260402

COUNTS = (10, 20, 30, 100)

MIB = float(1 << 20)

KINDS = (
    "outliers",
    "drift",
    "never-steady",
    "warm-up",
    "late-level",
    "bimodal",
    "autocorrelated",
    "too-short",
    "coarse-clock",
    "not-normal",
    "leak",
)
"""Those that chance decides."""

CLEAN: tuple[tuple[str, Draw], ...] = (
    ("normal cv2", normal(0.02)),
    ("normal cv5", normal(0.05)),
    ("normal cv10", normal(0.10)),
    ("lognormal cv30", lognormal(0.30)),
)


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(description="Simulate the warnings that are given by default.")
    parser.add_argument("--replications", type=int, default=REPLICATIONS, help="half of them a clean case")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    seeds = np.random.SeedSequence(options.seed).spawn(2)
    for section, seed in zip((clean, defects), seeds, strict=True):
        print("\n".join(section(np.random.default_rng(seed), options.replications)))
    return 0


def clean(rng: Generator, replications: int) -> list[str]:
    """Series with nothing the matter: any warning, and each kind."""
    few = max(20, replications // 2)
    rows = []
    for name, draw in CLEAN:
        for n in COUNTS:
            found = _counted(draw(rng, few, n), _memory(rng, few, n, 0.0))
            rows.append([f"{name}, n = {n}", *(percent(found[kind] / few) for kind in ("any", *KINDS))])
    return [
        "## Any warning, of all that are given by default",
        "",
        f"Share of clean series with a warning, in % ({few} series each), with a column of free memory that goes up",
        "and down by 3 MiB.",
        "",
        *table(["series", "any", *KINDS], rows),
    ]


def defects(rng: Generator, replications: int) -> list[str]:
    """How often each defect is found, by the kind that is meant for it, and by any."""
    few = max(20, replications // 4)
    rows = []
    for name, wanted, draw, lost in DEFECTS:
        cells = [name, ", ".join(wanted)]
        for n in COUNTS:
            drawn, memory = draw(rng, few, n), _memory(rng, few, n, lost)
            each = [_kinds(x, m) for x, m in zip(drawn, memory, strict=True)]
            right = np.mean([bool(kinds & set(wanted)) for kinds in each])
            cells += [percent(float(right)), percent(float(np.mean([bool(kinds) for kinds in each])))]
        rows.append(cells)
    header = [f"{word}, n = {n}" for n in COUNTS for word in ("named", "any")]
    return [
        "Share of series with a defect of which there is a warning that names it, and of which there is any,",
        f"in % ({few} series each). The drifts, the leak and the levels are over the whole series.",
        "",
        *table(["defect", "kind", *header], rows),
    ]


def rising(by: float, cv: float) -> Draw:
    """Normal, and `by` more at the end than at the beginning."""
    return lambda rng, series, trials: normal(cv)(rng, series, trials) * np.linspace(1.0, 1.0 + by, trials)


def late(rng: Generator, series: int, trials: int) -> Floats:
    """10 % slower in the last third."""
    slower = np.where(np.arange(trials) >= trials - trials // 3, 1.1, 1.0)
    return normal(0.02)(rng, series, trials) * slower


def exactly(count: int, times: float, cv: float) -> Draw:
    """Normal, but for so many trials, anywhere."""

    def draw(rng: Generator, series: int, trials: int) -> Floats:
        values = normal(cv)(rng, series, trials)
        places = np.argsort(rng.random((series, trials)), axis=1)[:, :count]
        values[np.arange(series)[:, None], places] *= times
        return values

    return draw


ENDS, TRENDS = ("warm-up", "late-level", "never-steady"), ("drift", "never-steady")

DEFECTS: tuple[tuple[str, tuple[str, ...], Draw, float], ...] = (
    ("rises by 5 %, cv2", TRENDS, rising(0.05, 0.02), 0.0),
    ("rises by 10 %, cv2", TRENDS, rising(0.10, 0.02), 0.0),
    ("rises by 5 %, cv5", TRENDS, rising(0.05, 0.05), 0.0),
    ("rises by 10 %, cv5", TRENDS, rising(0.10, 0.05), 0.0),
    ("loses 0.5 MiB a trial", ("leak",), normal(0.05), 0.5 * MIB),
    ("loses 1 MiB a trial", ("leak",), normal(0.05), MIB),
    ("first 3 trials +30 %, cv2", ENDS, slow_start(first_trials(3, 0.3), 0.02), 0.0),
    ("first 3 trials +30 %, cv5", ENDS, slow_start(first_trials(3, 0.3), 0.05), 0.0),
    ("last third +10 %, cv2", ("late-level", "warm-up", *TRENDS), late, 0.0),
    ("two groups 10 % apart, cv1", ("bimodal",), mixture(0.5, plus=0.1), 0.0),
    ("15 % of trials +30 %, cv1", ("bimodal", "outliers", "heavy-tail"), mixture(0.15, plus=0.3), 0.0),
    ("AR(1) .3 cv5", ("autocorrelated", *TRENDS), autoregressive(0.3, 0.05), 0.0),
    ("AR(1) .6 cv5", ("autocorrelated", *TRENDS), autoregressive(0.6, 0.05), 0.0),
    ("one trial +30 %, cv5", ("outliers",), exactly(1, 1.3, 0.05), 0.0),
    ("two trials +30 %, cv5", ("outliers", "bimodal", "heavy-tail"), exactly(2, 1.3, 0.05), 0.0),
    ("spikes 5 % ×1.5, cv3", ("outliers", "bimodal", "heavy-tail"), mixture(0.05, times=1.5, cv=0.03), 0.0),
    ("gamma, skewness 1.4", ("not-normal",), gamma, 0.0),
    ("Weibull .9, skewness 2.3", ("not-normal",), next(s.draw for s in OWN if s.name == "Weibull .9"), 0.0),
    (
        "Pareto tail",
        ("not-normal", "outliers", "heavy-tail"),
        next(s.draw for s in REFERENCE if s.name.startswith("pareto")),
        0.0,
    ),
    ("ticks of 5 %, cv 3 %", ("too-short",), next(s.draw for s in NEW if s.name.startswith("ticks")), 0.0),
)


def _memory(rng: Generator, series: int, trials: int, lost: float) -> Floats:
    return 4096.0 * MIB + rng.normal(0.0, 3.0 * MIB, (series, trials)) - lost * np.arange(trials)


def _kinds(values: Floats, memory: Floats) -> set[str]:
    columns = {"elapsed": Column("s", "cost", values), "memory_available": Column("B", "cost", memory)}
    trials = np.arange(1, values.size + 1)
    series = Series("a", trials, np.ones(values.size, dtype=np.bool_), columns)
    return {w.kind for w in series_warnings(series, "elapsed", thresholds=Thresholds())}


def _counted(drawn: Floats, memory: Floats) -> Counter[str]:
    found: Counter[str] = Counter()
    for values, free in zip(drawn, memory, strict=True):
        kinds = _kinds(values, free)
        found.update(kinds)
        found["any"] += bool(kinds)
    return found


if __name__ == "__main__":
    sys.exit(main())
