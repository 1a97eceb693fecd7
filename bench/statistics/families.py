"""Many tests at once, whether plans keep what they promise, and which trials are flagged."""

from __future__ import annotations

import numpy as np
import study
from numpy.random import Generator
from scipy.special import ndtr
from two_samples import percent

from calibrate_tables import table
from etude.stats.compare import paired_ratio
from etude.stats.multiplicity import benjamini_hochberg, holm
from etude.stats.outliers import count_outliers
from etude.stats.planning import noise_of_pairs, plan_for_effect
from etude.stats.series import Draw, Floats, autoregressive, lognormal, normal
from etude.stats.trend import trend_p

COUNTS = (10, 20, 30)


def families(rng: Generator, replications: int) -> list[str]:
    """Chance of any false finding among many tests, unadjusted and adjusted; what is still found."""
    few = max(20, replications // 4)
    rows = []
    for tests in (5, 20, 100):
        for place, rho in enumerate((0.0, 0.5)):
            common, own = rng.standard_normal((few, 1)), rng.standard_normal((few, tests))
            z = np.sqrt(rho) * common + np.sqrt(1.0 - rho) * own
            real = np.arange(tests) < tests // 5
            none = 2.0 * ndtr(-np.abs(z))
            some = 2.0 * ndtr(-np.abs(z + 3.0 * real))
            plain = percent(float(np.mean((none < 0.05).any(axis=1))))
            cells = [str(tests), "independent" if rho == 0 else "correlated .5"]
            cells.append(study.beside(plain, study.UNADJUSTED, str(tests), place))
            for adjust in (holm, benjamini_hochberg):
                without = _rejected(adjust, none)
                found = _rejected(adjust, some)
                false = found[:, ~real].sum(axis=1) / np.maximum(found.sum(axis=1), 1)
                cells += [
                    percent(float(np.mean(without.any(axis=1)))),
                    percent(float(np.mean(false))),
                    percent(float(np.mean(found[:, real]))),
                ]
            rows.append(cells)
    header = ["tests", "", "any false, unadjusted"]
    header += [
        f"{name}: {what}"
        for name in ("Holm", "BH")
        for what in ("any false, none real", "false of what is found", "real found")
    ]
    return [
        "## Many tests",
        "",
        f'In % of {few} families; a fifth of the tests is real, at three standard errors, but for the columns "any',
        "false\", where none is. In brackets the study's.",
        "",
        *table(header, rows),
    ]


def plans(rng: Generator, replications: int) -> list[str]:
    """A pilot of 10 or 30 pairs, the plan for an effect, and how often an experiment of that size finds it."""
    few = max(20, replications // 4)
    rows = []
    for cv in (0.01, 0.03):
        for effect in (0.01, 0.02, 0.05):
            for pilot in (10, 30):
                trials, found, ranged = [], 0, 0
                exact = _exact_trials(rng, cv, effect)
                for _ in range(few):
                    base, other = normal(cv)(rng, 2, pilot)
                    plan = plan_for_effect(noise_of_pairs(base, other, seconds_per_trial=1.0), effect)
                    assert plan is not None
                    assert plan.likely_trials is not None
                    trials.append(plan.trials)
                    ranged += plan.likely_trials[0] <= exact <= plan.likely_trials[1]
                    base, other = normal(cv)(rng, 2, plan.trials)
                    ratio = paired_ratio(base, (1.0 + effect) * other)
                    found += not ratio.low <= 1.0 <= ratio.high
                low, middle, high = np.quantile(trials, (0.1, 0.5, 0.9))
                rows.append(
                    [
                        f"{100 * cv:g} %",
                        f"{100 * effect:g} %",
                        str(pilot),
                        f"{middle:.0f} ({low:.0f}–{high:.0f})",
                        str(exact),
                        percent(ranged / few),
                        percent(found / few),
                    ]
                )
    return [
        "## Plans",
        "",
        "Pairs that `etude plan` asks for to find an effect with a probability of 80 % (median, and what lies between",
        f"the 10th and 90th percentile of {few} pilots); what the true spread needs; how often the range that the plan",
        "names holds that; and how often an experiment of the planned size finds the effect, in %.",
        "",
        *table(
            ["noise", "effect", "pilot", "planned", "needed", "range holds", "effect found"],
            rows,
        ),
    ]


def flags(rng: Generator, replications: int) -> list[str]:
    """Outliers by Étude's rule and by Getstats', and Kendall's test at 5 %, beside the study."""
    few = max(20, replications // 2)
    rules = {"z above 2": _z_above_two, "ESD on logarithms": count_outliers}
    rows = []
    for name, rule in rules.items():
        shares = [np.mean([rule(x) > 0 for x in normal(0.05)(rng, few, n)]) for n in COUNTS]
        for slow, times in ((1, 1.3), (2, 1.3), (3, 1.5)):
            drawn = normal(0.05)(rng, few, 10)
            drawn[:, :slow] *= times
            shares.append(np.mean([min(rule(x), slow) / slow for x in drawn]))
        cells = [study.beside(percent(float(s)), study.CLEAN_OUTLIERS, name, i) for i, s in enumerate(shares)]
        rows.append([name, *cells])
    trends: list[tuple[str, Draw]] = [
        ("normal cv5", normal(0.05)),
        ("lognormal cv30", lognormal(0.30)),
        ("AR1 .5 cv5", autoregressive(0.5, 0.05)),
        ("rises by 10 %, cv5", lambda r, s, n: normal(0.05)(r, s, n) * np.linspace(1.0, 1.1, n)),
    ]
    found = []
    for name, draw in trends:
        shares = [np.mean([_below(trend_p(x)) for x in draw(rng, few, n)]) for n in COUNTS]
        found.append(
            [name, *(study.beside(percent(float(s)), study.KENDALL, name, i) for i, s in enumerate(shares))]
        )
    return [
        "## Single slow trials, and trends",
        "",
        "Share of clean normal series (cv 5 %) with at least one flag, and how many of the slow trials in series of",
        f"ten are flagged, in % ({few} series each). In brackets the study's.",
        "",
        *table(
            ["rule", *(f"clean, n = {n}" for n in COUNTS), "1 of +30 %", "2 of +30 %", "3 of +50 %"], rows
        ),
        "Kendall's test at 5 % (the warnings ask for 1 % and a practical size as well):",
        "",
        *table(["series", *(f"n = {n}" for n in COUNTS)], found),
    ]


def _rejected(adjust: object, p: Floats) -> np.ndarray:
    assert callable(adjust)
    return np.array([[a.adjusted < 0.05 for a in adjust(row.tolist())] for row in p])


def _exact_trials(rng: Generator, cv: float, effect: float) -> int:
    """What a pilot of very many pairs asks for."""
    base, other = normal(cv)(rng, 2, 200_000)
    plan = plan_for_effect(noise_of_pairs(base, other, seconds_per_trial=1.0), effect)
    assert plan is not None
    return plan.trials


def _z_above_two(x: Floats) -> int:
    """Getstats' warning."""
    return int(np.count_nonzero(np.abs(x - x.mean()) > 2.0 * x.std(ddof=1)))


def _below(p: float | None) -> bool:
    return p is not None and p < 0.05
