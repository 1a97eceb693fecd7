"""How often each warning is raised where nothing is the matter, and where something is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from own_series import OWN as NEW
from stop_rules import SERIES
from two_samples import percent

from calibrate_tables import table
from etude.stats.leak import drift, leak
from etude.stats.outliers import count_outliers
from etude.stats.series import (
    Draw,
    Floats,
    autoregressive,
    decaying,
    first_trials,
    lognormal,
    mixture,
    normal,
    slow_start,
)
from etude.stats.shape import groups, normality, ticks
from etude.stats.warmup import level_shift, no_steady_state_p

COUNTS = (10, 15, 20, 30, 60)


def warm_up(rng: Generator, replications: int) -> list[str]:
    """Series with another level at either end, by the detector that is used at this length."""
    cases: list[tuple[str, Draw]] = [(s.name, s.draw) for s in SERIES]
    cases += [
        ("AR1 .5 cv5", autoregressive(0.5, 0.05)),
        ("warm: 3 trials +30%, cv2", slow_start(first_trials(3, 0.3), 0.02)),
        ("warm: 6 trials +5%, cv2", slow_start(first_trials(6, 0.05), 0.02)),
        ("warm: exp 30% over 1.5 trials, cv2", slow_start(decaying(0.3, 1.5), 0.02)),
        ("late: +10% from 70 % on, cv2", _late),
        ("late: +10% from the middle on, cv2", _half),
    ]
    few = max(20, replications // 8)
    rows = [
        [name, *(percent(_said(lambda x: level_shift(x) is not None, draw(rng, few, n))) for n in COUNTS)]
        for name, draw in cases
    ]
    return [
        "## Warm-up and other levels",
        "",
        f"Share of series of which the first or last trials are called another level, in % ({few} series each):",
        "one change by the largest t below 30 trials, PELT from 30 on.",
        "",
        *table(["series", *(f"n = {n}" for n in COUNTS)], rows),
    ]


def trends(rng: Generator, replications: int) -> list[str]:
    """Drift warnings by Theil and Sen and by least squares, "never steady", and suspected leaks."""
    few = max(20, replications // 4)
    cases: list[tuple[str, Draw]] = [
        ("normal cv1", normal(0.01)),
        ("normal cv5", normal(0.05)),
        ("lognormal cv30", lognormal(0.30)),
        ("AR1 .5 cv5", autoregressive(0.5, 0.05)),
        *((s.name, s.draw) for s in NEW),
        ("rises by 10 %, cv5", lambda r, s, n: normal(0.05)(r, s, n) * np.linspace(1.0, 1.1, n)),
        ("rises by 20 %, cv5", lambda r, s, n: normal(0.05)(r, s, n) * np.linspace(1.0, 1.2, n)),
    ]
    rows = []
    for name, draw in cases:
        cells = [name]
        for n in (10, 20, 30):
            drawn = draw(rng, few, n)
            cells += [
                percent(_said(lambda x: _suspected(drift(x)), drawn)),
                percent(_said(lambda x: _suspected(drift(x, method="least squares")), drawn)),
                percent(_said(_unsteady, drawn)),
            ]
        rows.append(cells)
    header = [f"{word}, n = {n}" for n in (10, 20, 30) for word in ("drift", "least squares", "never steady")]
    return [
        "## Drift",
        "",
        f"Share of series with a drift warning (p < .01 and above 2 % over the series), in % ({few} series each).",
        "",
        *table(["series", *header], rows),
        *_leaks(rng, few),
    ]


def _leaks(rng: Generator, replications: int) -> list[str]:
    mib = float(1 << 20)
    rows = []
    for lost in (0.0, 0.1, 0.5, 1.0, 5.0):
        cells = [f"{lost:g} MiB a trial"]
        for n in (10, 20, 30):
            noise = rng.normal(0.0, 3.0 * mib, (replications, n))
            free = 4096.0 * mib + noise - lost * mib * np.arange(n)
            seen = [leak(x) for x in free]
            held = np.mean([x is not None and x.low <= lost * mib <= x.high for x in seen])
            cells += [percent(np.mean([_suspected(x) for x in seen])), percent(float(held))]
        rows.append(cells)
    header = [f"{word}, n = {n}" for n in (10, 20, 30) for word in ("suspected", "size covered")]
    return [
        "Free memory that goes up and down by 3 MiB (standard deviation), and what is lost on top of it:",
        "",
        *table(["loss", *header], rows),
    ]


def shapes(rng: Generator, replications: int) -> list[str]:
    """Outliers, two groups, not normal, coarse clock."""
    few = max(20, replications // 4)
    cases: list[tuple[str, Draw]] = [(s.name, s.draw) for s in SERIES]
    cases += [
        ("uniform", lambda r, s, n: 0.9 + 0.2 * r.random((s, n))),
        ("exponential", lambda r, s, n: 0.5 + r.exponential(0.5, (s, n))),
        ("modes 5 deviations apart", mixture(0.5, plus=0.05)),
    ]
    rows = []
    for name, draw in cases:
        cells = [name]
        for n in (10, 30):
            drawn = draw(rng, few, n)
            cells += [
                percent(_said(lambda x: count_outliers(x) > 0, drawn)),
                percent(_said(lambda x: groups(x) is not None, drawn)),
                percent(_said(_not_normal, drawn)),
                percent(_said(_coarse, drawn)),
            ]
        rows.append(cells)
    header = [
        f"{word}, n = {n}" for n in (10, 30) for word in ("outliers", "two groups", "not normal", "coarse")
    ]
    return [
        "## Outliers and shape",
        "",
        f"Share of series with a warning, in % ({few} series each): generalised ESD on logarithms at 5 %, two groups,",
        "Shapiro and Wilk at 5 %, values that are multiples of a step as large as their spread.",
        "",
        *table(["series", *header], rows),
    ]


def _said(warning: Callable[[Floats], bool], drawn: Floats) -> float:
    return float(np.mean([warning(x) for x in drawn]))


def _suspected(found: object) -> bool:
    return bool(getattr(found, "suspected", False))


def _unsteady(x: Floats) -> bool:
    p = no_steady_state_p(x, level_shift(x))
    return p is not None and p < 0.01


def _not_normal(x: Floats) -> bool:
    found = normality(x)
    return found is not None and found.p < 0.05


def _coarse(x: Floats) -> bool:
    found = ticks(x)
    return found is not None and found.coarse


def _late(rng: Generator, series: int, trials: int) -> Floats:
    return normal(0.02)(rng, series, trials) * np.where(np.arange(trials) < 0.7 * trials, 1.0, 1.1)


def _half(rng: Generator, series: int, trials: int) -> Floats:
    return normal(0.02)(rng, series, trials) * np.where(np.arange(trials) < trials // 2, 1.0, 1.1)
