"""How often warnings are raised: by each detector, and by all that `etude stats` gives by default.

    python bench/statistics/any_warning.py [--replications N] [--seed N]

prints the tables of which docs/reference/warnings.md has a part; run.py has them, too.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: rows, tables
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))  # support: series

import numpy as np
from coverage import CLEAN_OUTLIERS, KENDALL, NEW, SERIES, with_study
from numpy.random import Generator

from etude.analysis.warnings import Thresholds, series_warnings
from etude.results.series import Column, Series
from etude.stats.shape import count_outliers, groups, normality, ticks
from etude.stats.trend import drift, leak, trend_p
from etude.stats.warmup import level_shift, no_steady_state_p
from rows import options, paragraph, percent, section, table
from support.synthetic_series import (
    OWN,
    REFERENCE,
    Draw,
    Floats,
    autoregressive,
    decaying,
    first_trials,
    gamma,
    lognormal,
    mixture,
    normal,
    slow_start,
)

COUNTS = (10, 20, 30, 100)
MIB = float(1 << 20)

KINDS = (
    *("outliers", "drift", "never-steady", "warm-up", "late-level", "bimodal", "autocorrelated", "too-short"),
    *("coarse-clock", "not-normal", "leak"),
)
"""Those that chance decides."""

CLEAN: tuple[tuple[str, Draw], ...] = (
    ("normal cv2", normal(0.02)),
    ("normal cv5", normal(0.05)),
    ("normal cv10", normal(0.10)),
    ("lognormal cv30", lognormal(0.30)),
)

Case = tuple[str, Draw]
Detector = Callable[[Floats], bool]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--replications", type=int, default=4000, help="half of them a clean case")
    parser.add_argument("--seed", type=int, default=20260402)
    given = parser.parse_args()
    seeds = np.random.SeedSequence(given.seed).spawn(2)
    for part, seed in zip((clean, defects), seeds, strict=True):
        print("\n".join(part(np.random.default_rng(seed), given.replications)))


def clean(rng: Generator, replications: int) -> list[str]:
    """Series with nothing the matter: any warning, and each kind."""
    few = max(20, replications // 2)
    rows = []
    for name, draw in CLEAN:
        for n in COUNTS:
            counts: Counter[str] = Counter()
            for values, free in zip(draw(rng, few, n), _memory(rng, few, n, 0.0), strict=True):
                kinds = _kinds(values, free)
                counts.update([*kinds, *(["any"] if kinds else [])])
            rows.append([f"{name}, n = {n}", *(percent(counts[kind] / few) for kind in ("any", *KINDS))])
    text = (
        f"Share of clean series with a warning, in % ({few} series each), with a column of free memory that goes up "
        "and down by 3 MiB."
    )
    return section("Any warning, of all that are given by default", text, ["series", "any", *KINDS], rows)


def defects(rng: Generator, replications: int) -> list[str]:
    """How often each defect is found, by the kind that is meant for it, and by any."""
    few = max(20, replications // 4)
    rows = []
    for name, wanted, draw, lost in DEFECTS:
        cells = [name, ", ".join(wanted)]
        for n in COUNTS:
            drawn, memory = draw(rng, few, n), _memory(rng, few, n, lost)
            each = [_kinds(x, m) for x, m in zip(drawn, memory, strict=True)]
            cells.append(percent(np.mean([bool(kinds & set(wanted)) for kinds in each])))
            cells.append(percent(np.mean([bool(kinds) for kinds in each])))
        rows.append(cells)
    header = [f"{word}, n = {n}" for n in COUNTS for word in ("named", "any")]
    return [
        *paragraph(
            "Share of series with a defect of which there is a warning that names it, and of which there is any,",
            f"in % ({few} series each). The drifts, the leak and the levels are over the whole series.",
        ),
        *table(["defect", "kind", *header], rows),
    ]


def any_warning_at_all(rng: Generator, replications: int) -> list[str]:
    """Both tables of what is warned of by default: on clean series, and where something is the matter."""
    return [*clean(rng, replications), *defects(rng, replications)]


def warm_up(rng: Generator, replications: int) -> list[str]:
    """Series with another level at either end, by the detector that is used at this length."""
    cases: list[Case] = [(s.name, s.draw) for s in SERIES]
    cases += [
        ("AR1 .5 cv5", autoregressive(0.5, 0.05)),
        ("warm: 3 trials +30%, cv2", slow_start(first_trials(3, 0.3), 0.02)),
        ("warm: 6 trials +5%, cv2", slow_start(first_trials(6, 0.05), 0.02)),
        ("warm: exp 30% over 1.5 trials, cv2", slow_start(decaying(0.3, 1.5), 0.02)),
        ("late: +10% from 70 % on, cv2", _slower_from(lambda trials: 0.7 * trials)),
        ("late: +10% from the middle on, cv2", _slower_from(lambda trials: trials // 2)),
    ]
    few = max(20, replications // 8)
    counts = (10, 15, 20, 30, 60)
    rows = _rows(rng, few, cases, counts, [lambda x: level_shift(x) is not None])
    text = (
        f"Share of series of which the first or last trials are called a level shift, in % ({few} series each): "
        "one change by the largest t below 30 trials, PELT from 30 on."
    )
    return section("Warm-up and other levels", text, ["series", *(f"n = {n}" for n in counts)], rows)


def trends(rng: Generator, replications: int) -> list[str]:
    """Drift warnings by Theil and Sen and by least squares, "never steady", and suspected leaks."""
    few = max(20, replications // 4)
    cases: list[Case] = [
        ("normal cv1", normal(0.01)),
        ("normal cv5", normal(0.05)),
        ("lognormal cv30", lognormal(0.30)),
        ("AR1 .5 cv5", autoregressive(0.5, 0.05)),
        *((s.name, s.draw) for s in NEW),
        ("rises by 10 %, cv5", rising(0.10, 0.05)),
        ("rises by 20 %, cv5", rising(0.20, 0.05)),
    ]
    detectors: dict[str, Detector] = {
        "drift": lambda x: _suspected(drift(x)),
        "least squares": lambda x: _suspected(drift(x, method="least squares")),
        "never steady": _unsteady,
    }
    counts = (10, 20, 30)
    rows = _rows(rng, few, cases, counts, [*detectors.values()])
    text = f"Share of series with a drift warning (p < .01 and above 2 % over the series), in % ({few} series each)."
    header = [f"{word}, n = {n}" for n in counts for word in detectors]
    return [*section("Drift", text, ["series", *header], rows), *_leaks(rng, few)]


def _leaks(rng: Generator, replications: int) -> list[str]:
    rows = []
    for lost in (0.0, 0.1, 0.5, 1.0, 5.0):
        cells = [f"{lost:g} MiB a trial"]
        for n in (10, 20, 30):
            seen = [leak(x) for x in _memory(rng, replications, n, lost * MIB)]
            held = np.mean([x is not None and x.low <= lost * MIB <= x.high for x in seen])
            cells += [percent(np.mean([_suspected(x) for x in seen])), percent(float(held))]
        rows.append(cells)
    header = [f"{word}, n = {n}" for n in (10, 20, 30) for word in ("suspected", "size covered")]
    text = "Free memory that goes up and down by 3 MiB (standard deviation), and what is lost on top of it:"
    return [*paragraph(text), *table(["loss", *header], rows)]


def shapes(rng: Generator, replications: int) -> list[str]:
    """Outliers, two groups, not normal, coarse clock."""
    few = max(20, replications // 4)
    cases: list[Case] = [(s.name, s.draw) for s in SERIES]
    cases += [
        ("uniform", lambda r, s, n: 0.9 + 0.2 * r.random((s, n))),
        ("exponential", lambda r, s, n: 0.5 + r.exponential(0.5, (s, n))),
        ("modes 5 deviations apart", mixture(0.5, plus=0.05)),
    ]
    detectors: dict[str, Detector] = {
        "outliers": lambda x: count_outliers(x) > 0,
        "two groups": lambda x: groups(x) is not None,
        "not normal": lambda x: (found := normality(x)) is not None and found.p < 0.05,
        "coarse": lambda x: (found := ticks(x)) is not None and found.coarse,
    }
    rows = _rows(rng, few, cases, (10, 30), [*detectors.values()])
    text = (
        f"Share of series with a warning, in % ({few} series each): generalised ESD on logarithms at 5 %, two groups, "
        "Shapiro and Wilk at 5 %, values that are multiples of a step as large as their spread."
    )
    header = [f"{word}, n = {n}" for n in (10, 30) for word in detectors]
    return section("Outliers and shape", text, ["series", *header], rows)


def flags(rng: Generator, replications: int) -> list[str]:
    """Outliers by Étude's rule and by Getstats', and Kendall's test at 5 %, beside the study."""
    few = max(20, replications // 2)
    counts = (10, 20, 30)
    rows = []
    for name, rule in {"z above 2": _z_above_two, "ESD on logarithms": count_outliers}.items():
        shares = [np.mean([rule(x) > 0 for x in normal(0.05)(rng, few, n)]) for n in counts]
        for slow, times in ((1, 1.3), (2, 1.3), (3, 1.5)):
            drawn = normal(0.05)(rng, few, 10)
            drawn[:, :slow] *= times
            shares.append(np.mean([min(rule(x), slow) / slow for x in drawn]))
        cells = [with_study(percent(s), CLEAN_OUTLIERS, name, i) for i, s in enumerate(shares)]
        rows.append([name, *cells])
    cases: list[Case] = [
        ("normal cv5", normal(0.05)),
        ("lognormal cv30", lognormal(0.30)),
        ("AR1 .5 cv5", autoregressive(0.5, 0.05)),
        ("rises by 10 %, cv5", rising(0.10, 0.05)),
    ]
    found = _rows(rng, few, cases, counts, [lambda x: (p := trend_p(x)) is not None and p < 0.05])
    beside = [
        [name, *(with_study(cell, KENDALL, name, i) for i, cell in enumerate(cells))]
        for name, *cells in found
    ]
    text = (
        "Share of clean normal series (cv 5 %) with at least one flag, and how many of the slow trials in series of "
        f"ten are flagged, in % ({few} series each). In brackets the study's."
    )
    header = ["rule", *(f"clean, n = {n}" for n in counts), "1 of +30 %", "2 of +30 %", "3 of +50 %"]
    return [
        *section("Single slow trials, and trends", text, header, rows),
        *paragraph("Kendall's test at 5 % (the warnings ask for 1 % and a practical size as well):"),
        *table(["series", *(f"n = {n}" for n in counts)], beside),
    ]


def _rows(
    rng: Generator, few: int, cases: Sequence[Case], counts: Sequence[int], detectors: Sequence[Detector]
) -> list[list[str]]:
    """A row a case: of each number of trials the share of series, in %, of which each detector says so."""
    rows = []
    for name, draw in cases:
        cells = [name]
        for n in counts:
            drawn = draw(rng, few, n)
            cells += [percent(np.mean([detector(x) for x in drawn])) for detector in detectors]
        rows.append(cells)
    return rows


def rising(by: float, cv: float) -> Draw:
    """Normal, and `by` more at the end than at the beginning."""
    return lambda rng, series, trials: normal(cv)(rng, series, trials) * np.linspace(1.0, 1.0 + by, trials)


def _slower_from(first: Callable[[int], float]) -> Draw:
    """Normal, and 10 % slower from a trial on."""

    def draw(rng: Generator, series: int, trials: int) -> Floats:
        return normal(0.02)(rng, series, trials) * np.where(np.arange(trials) < first(trials), 1.0, 1.1)

    return draw


def exactly(count: int, times: float, cv: float) -> Draw:
    """Normal, but for so many trials, anywhere."""

    def draw(rng: Generator, series: int, trials: int) -> Floats:
        values = normal(cv)(rng, series, trials)
        places = np.argsort(rng.random((series, trials)), axis=1)[:, :count]
        values[np.arange(series)[:, None], places] *= times
        return values

    return draw


def _of(families: Sequence[object], name: str) -> Draw:
    draw: Draw = next(series.draw for series in families if series.name.startswith(name))  # type: ignore[attr-defined]
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
    ("last third +10 %, cv2", ("late-level", "warm-up", *TRENDS), _slower_from(lambda n: n - n // 3), 0.0),
    ("two groups 10 % apart, cv1", ("bimodal",), mixture(0.5, plus=0.1), 0.0),
    ("15 % of trials +30 %, cv1", ("bimodal", "outliers", "heavy-tail"), mixture(0.15, plus=0.3), 0.0),
    ("AR(1) .3 cv5", ("autocorrelated", *TRENDS), autoregressive(0.3, 0.05), 0.0),
    ("AR(1) .6 cv5", ("autocorrelated", *TRENDS), autoregressive(0.6, 0.05), 0.0),
    ("one trial +30 %, cv5", ("outliers",), exactly(1, 1.3, 0.05), 0.0),
    ("two trials +30 %, cv5", ("outliers", "bimodal", "heavy-tail"), exactly(2, 1.3, 0.05), 0.0),
    ("spikes 5 % ×1.5, cv3", ("outliers", "bimodal", "heavy-tail"), mixture(0.05, times=1.5, cv=0.03), 0.0),
    ("gamma, skewness 1.4", ("not-normal",), gamma, 0.0),
    ("Weibull .9, skewness 2.3", ("not-normal",), _of(OWN, "Weibull .9"), 0.0),
    ("Pareto tail", ("not-normal", "outliers", "heavy-tail"), _of(REFERENCE, "pareto"), 0.0),
    ("ticks of 5 %, cv 3 %", ("too-short",), _of(NEW, "ticks"), 0.0),
)
"""Name, kinds of warning that name it, series, and memory lost each trial, B."""


def _memory(rng: Generator, series: int, trials: int, lost: float) -> Floats:
    return 4096.0 * MIB + rng.normal(0.0, 3.0 * MIB, (series, trials)) - lost * np.arange(trials)


def _kinds(values: Floats, memory: Floats) -> set[str]:
    columns = {"elapsed": Column("s", "cost", values), "memory_available": Column("B", "cost", memory)}
    trials = np.arange(1, values.size + 1)
    series = Series("a", trials, np.ones(values.size, dtype=np.bool_), columns)
    return {w.kind for w in series_warnings(series, "elapsed", thresholds=Thresholds())}


def _suspected(found: object) -> bool:
    return bool(getattr(found, "suspected", False))


def _unsteady(x: Floats) -> bool:
    p = no_steady_state_p(x, level_shift(x))
    return p is not None and p < 0.01


def _z_above_two(x: Floats) -> int:
    """Getstats' warning."""
    return int(np.count_nonzero(np.abs(x - x.mean()) > 2.0 * x.std(ddof=1)))


if __name__ == "__main__":
    main()
