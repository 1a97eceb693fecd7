"""Permutation, bootstrap, and percentiles of merged histograms: what they find falsely and what they cover."""

from __future__ import annotations

import numpy as np
import study
from numpy.random import Generator
from two_samples import percent

from calibrate_tables import share, table
from etude.stats.resampling import (
    Histograms,
    bootstrap_ratio,
    merged_percentile,
    percentile_ratio,
    permutation,
)
from etude.stats.series import Draw, Floats, autoregressive, gamma, lognormal, mixture, normal

RESAMPLES = 499
RESPONSES = 2000
SHARES = (0.5, 0.9, 0.99, 0.999)
EDGES = np.geomspace(0.1, 20.0, 531)

PAIRS: tuple[tuple[str, Draw, Draw], ...] = (
    ("normal cv5", normal(0.05), normal(0.05)),
    ("normal cv2 and cv8", normal(0.02), normal(0.08)),
    ("lognormal cv30", lognormal(0.3), lognormal(0.3)),
    ("spikes 5% x1.5, cv3", mixture(0.05, times=1.5, cv=0.03), mixture(0.05, times=1.5, cv=0.03)),
    ("bimodal 50/50 +10%", mixture(0.5, plus=0.1), mixture(0.5, plus=0.1)),
    ("AR1 .6 cv5", autoregressive(0.6, 0.05), autoregressive(0.6, 0.05)),
    ("gamma .8+G(2)", gamma, gamma),
)

LOADS: tuple[tuple[str, float, float], ...] = (
    ("all trials alike", 0.0, 0.0),
    ("trials 5 % apart", 0.05, 0.0),
    ("1 trial in 5 has a slow second", 0.02, 0.2),
)
"""Name, spread of the trials' levels, share of trials in which 3 % of the responses take five times as long."""


def resampling(rng: Generator, replications: int) -> list[str]:
    """Tests by resampling, on pairs of samples that do not differ."""
    few = max(20, replications // 4)
    rows = []
    for name, first, second in PAIRS:
        counts = np.zeros(4)
        for a, b in zip(first(rng, few, 10), second(rng, few, 10), strict=True):
            seed = int(rng.integers(1 << 31))
            counts[0] += permutation(a, b, statistic="mean", resamples=RESAMPLES, seed=seed).p < 0.05
            counts[1] += permutation(a, b, resamples=RESAMPLES, seed=seed).p < 0.05
            for place, of in ((2, "median"), (3, "mean")):
                found = bootstrap_ratio(a, b, of=of, resamples=RESAMPLES, seed=seed)  # type: ignore[arg-type]
                counts[place] += not found.low <= 1.0 <= found.high
        shares = counts / few
        rows.append([name, *(study.beside(percent(shares[i]), study.RESAMPLED, name, i) for i in range(4))])
    return [
        "## Two samples by resampling",
        "",
        f"Share of pairs of samples of 10 trials that do not differ but are called different at 5 %, in % ({few} pairs",
        f"each, {RESAMPLES} resamples; as shipped there are 9999). In brackets the study's.",
        "",
        *table(
            ["series", "permutation", "permutation, studentised", "ratio of medians", "ratio of means"], rows
        ),
    ]


def merged(rng: Generator, replications: int) -> list[str]:
    """Percentiles of the responses of whole trials: coverage, and false differences between two tests."""
    few = max(5, replications // 16)
    rows = []
    for name, spread, slow in LOADS:
        many = _responses(rng, 1000, spread, slow)
        truths = [many.percentile(q) for q in SHARES]
        for trials in (10, 20, 30):
            held, false = np.zeros(len(SHARES)), np.zeros(len(SHARES))
            for _ in range(few):
                a, b = (_responses(rng, trials, spread, slow) for _ in range(2))
                seed = int(rng.integers(1 << 31))
                for place, (q, truth) in enumerate(zip(SHARES, truths, strict=True)):
                    _, interval = merged_percentile(a, q, resamples=RESAMPLES, seed=seed)
                    held[place] += interval is not None and interval.low <= truth <= interval.high
                    ratio = percentile_ratio(a, b, q, resamples=RESAMPLES, seed=seed)
                    false[place] += not ratio.low <= 1.0 <= ratio.high
            shares = [f"{share(h / few, few)} / {percent(f / few)}" for h, f in zip(held, false, strict=True)]
            rows.append([name, str(trials), *shares])
    return [
        "## Percentiles of merged histograms",
        "",
        f"{RESPONSES} responses a trial, log-normal of cv 60 %, in classes 1 % wide. Coverage of the interval in %,",
        f"and share of two identical tests whose ratio excludes 1, in % ({few} experiments each, {RESAMPLES}",
        "resamples; as shipped there are 1999).",
        "",
        *table(["trials are", "trials", "p50", "p90", "p99", "p99.9"], rows),
    ]


def _responses(rng: Generator, trials: int, spread: float, slow: float) -> Histograms:
    """Histograms of trials: a level each, and in some of them a slow second."""
    sigma = float(np.sqrt(np.log1p(0.6**2)))
    levels = np.exp(rng.normal(0.0, spread, (trials, 1)))
    values: Floats = levels * np.exp(rng.normal(0.0, sigma, (trials, RESPONSES)))
    busy = rng.random((trials, 1)) < slow
    values = np.where(busy & (rng.random(values.shape) < 0.03), 5.0 * values, values)
    classes = np.clip(np.searchsorted(EDGES, values), 1, EDGES.size - 1) - 1
    place = classes + np.arange(trials)[:, None] * (EDGES.size - 1)
    counts = np.bincount(place.ravel(), minlength=trials * (EDGES.size - 1)).reshape(trials, -1)
    return Histograms(np.sqrt(EDGES[:-1] * EDGES[1:]), counts)
