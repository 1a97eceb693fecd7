"""What is found falsely, and found: by tests of two samples, in families of tests, by plans, between sessions."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from coverage import DESIGNS, INDEPENDENT, RESAMPLED, SERIES, UNADJUSTED, with_study
from numpy.random import Generator
from scipy.special import ndtr

from etude.stats.cross_session import NotSupported, between_sessions, compare_sessions, stated_session_spread
from etude.stats.equivalence import equivalence_of
from etude.stats.multiplicity import benjamini_hochberg, holm
from etude.stats.planning import noise_of_pairs, plan_for_effect
from etude.stats.ranks import mann_whitney, wilcoxon
from etude.stats.ratio import Ratio, paired_mean_ratio, paired_ratio, unpaired_mean_ratio
from etude.stats.resampling import (
    Histograms,
    bootstrap_ratio,
    merged_percentile,
    percentile_ratio,
    permutation,
)
from etude.stats.twosample import student, welch
from rows import percent, section, share
from support.synthetic_series import (
    MACHINES,
    Draw,
    Floats,
    autoregressive,
    deal_into_blocks,
    gamma,
    lognormal,
    mixture,
    normal,
)

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


def independent(rng: Generator, replications: int) -> list[str]:
    """Two samples of one series, made at different times, by every test."""
    cases = [(f"{s.name}, 10 and 10", s.draw, 10, s.draw, 10) for s in SERIES]
    rows = []
    for name, first, n, second, m in (*cases, *UNEVEN):
        drawn = first(rng, replications, n), second(rng, replications, m)
        cells = [percent(found(test, *drawn)) for test in TESTS.values()]
        rows.append([name, *(with_study(cell, INDEPENDENT, name, i) for i, cell in enumerate(cells))])
    for effect in (1.02, 1.05):
        drawn = normal(0.05)(rng, replications, 10) * effect, normal(0.05)(rng, replications, 10)
        shifted = [percent(found(test, *drawn)) for test in TESTS.values()]
        rows.append([f"found: normal cv5, {100 * (effect - 1):.0f} % apart", *shifted])
    text = (
        "Share of pairs of samples that a test at 5 % calls different, in %. But for the last two lines nothing "
        "differs. No test survives dependence within a sample. In brackets the study's."
    )
    return section("Two independent samples", text, ["series and trials", *TESTS], rows)


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
        cells = [with_study(cell, DESIGNS, machine.name, i) for i, cell in enumerate(same)]
        cells.append(percent(found(lambda a, b: wilcoxon(a, b).p < 0.05, base, other)))
        rows.append([machine.name, *cells, percent(found(_paired_differs, base, 1.02 * other))])
    text = (
        "Two identical tests, 10 trials each, noise of cv 2 %: share called different at 5 %, in %. The last column is "
        "what the paired ratio finds when one test is 2 % slower. In brackets the study's."
    )
    pairs = [f"pairs, {name}" for name in ("Welch", "paired ratio", "Wilcoxon")]
    return section("Designs", text, ["machine", "AAAABBBB, Welch", *pairs, "2 % found"], rows)


def equivalence(rng: Generator, replications: int) -> list[str]:
    """How often two tests are called the same within 2 %: when they are, and at the margin, where 5 % may be."""

    def same(ratio_of: Callable[[Floats, Floats], Ratio], base: Floats, other: Floats) -> list[str]:
        return [
            percent(
                found(lambda a, b: equivalence_of(ratio_of(a, b)).verdict == "the same", base, ratio * other)
            )
            for ratio in (1.0, 1.01, 1.02, 1.05)
        ]

    rows = []
    for cv in (0.005, 0.01, 0.02, 0.05):
        for n in (10, 30):
            base, other = normal(cv)(rng, 2 * replications, n).reshape(2, replications, n)
            rows.append([f"normal cv {100 * cv:g} %", str(n), *same(unpaired_mean_ratio, base, other)])
    for machine in MACHINES:
        trials = machine.draw(rng, replications, 40) * normal(0.01)(rng, replications, 40)
        base, other = deal_into_blocks(rng, trials, 2)
        rows.append([f"{machine.name}, cv 1 %, in pairs", "20", *same(paired_mean_ratio, base, other)])
    text = (
        "Share called the same, in %, by how far the tests really lie apart. At 2 % and beyond it must not exceed "
        "5 %."
    )
    return section("The same within 2 %", text, ["noise", "trials", "equal", "1 %", "2 %", "5 %"], rows)


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
                ratio = bootstrap_ratio(a, b, of=of, resamples=RESAMPLES, seed=seed)  # type: ignore[arg-type]
                counts[place] += _excludes_one(ratio)
        shares = counts / few
        rows.append([name, *(with_study(percent(shares[i]), RESAMPLED, name, i) for i in range(4))])
    text = (
        f"Share of pairs of samples of 10 trials that do not differ but are called different at 5 %, in % ({few} pairs "
        f"each, {RESAMPLES} resamples; as shipped there are 9999). In brackets the study's."
    )
    header = ["series", "permutation", "permutation, studentised", "ratio of medians", "ratio of means"]
    return section("Two samples by resampling", text, header, rows)


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
                    false[place] += _excludes_one(percentile_ratio(a, b, q, resamples=RESAMPLES, seed=seed))
            shares = [f"{share(h / few, few)} / {percent(f / few)}" for h, f in zip(held, false, strict=True)]
            rows.append([name, str(trials), *shares])
    text = (
        f"{RESPONSES} responses a trial, log-normal of cv 60 %, in classes 1 % wide. Coverage of the interval in %, "
        f"and share of two identical tests whose ratio excludes 1, in % ({few} experiments each, {RESAMPLES} "
        "resamples; as shipped there are 1999)."
    )
    header = ["trials are", "trials", "p50", "p90", "p99", "p99.9"]
    return section("Percentiles of merged histograms", text, header, rows)


def families(rng: Generator, replications: int) -> list[str]:
    """Chance of any false finding among many tests, unadjusted and adjusted; what is still found."""
    few = max(20, replications // 4)
    rows = []
    for tests in (5, 20, 100):
        for place, rho in enumerate((0.0, 0.5)):
            common, own = rng.standard_normal((few, 1)), rng.standard_normal((few, tests))
            z = np.sqrt(rho) * common + np.sqrt(1.0 - rho) * own
            real = np.arange(tests) < tests // 5
            none, some = 2.0 * ndtr(-np.abs(z)), 2.0 * ndtr(-np.abs(z + 3.0 * real))
            plain = percent(float(np.mean((none < 0.05).any(axis=1))))
            cells = [str(tests), "independent" if rho == 0 else "correlated .5"]
            cells.append(with_study(plain, UNADJUSTED, str(tests), place))
            for adjust in (holm, benjamini_hochberg):
                without, rejected = (
                    np.array([[a.adjusted < 0.05 for a in adjust(row.tolist())] for row in p])
                    for p in (none, some)
                )
                false = rejected[:, ~real].sum(axis=1) / np.maximum(rejected.sum(axis=1), 1)
                shares = (without.any(axis=1), false, rejected[:, real])
                cells += [percent(float(np.mean(each))) for each in shares]
            rows.append(cells)
    text = (
        f'In % of {few} families; a fifth of the tests is real, at three standard errors, but for the columns "any '
        "false\", where none is. In brackets the study's."
    )
    words = ("any false, none real", "false of what is found", "real found")
    header = [f"{name}: {what}" for name in ("Holm", "BH") for what in words]
    return section("Many tests", text, ["tests", "", "any false, unadjusted", *header], rows)


def plans(rng: Generator, replications: int) -> list[str]:
    """A pilot of 10 or 30 pairs, the plan for an effect, and how often an experiment of that size finds it."""
    few = max(20, replications // 4)
    rows = []
    for cv in (0.01, 0.03):
        for effect in (0.01, 0.02, 0.05):
            for pilot in (10, 30):
                trials, seen, ranged = [], 0, 0
                exact = _exact_trials(rng, cv, effect)
                for _ in range(few):
                    base, other = normal(cv)(rng, 2, pilot)
                    plan = plan_for_effect(noise_of_pairs(base, other, seconds_per_trial=1.0), effect)
                    assert plan is not None
                    assert plan.likely_trials is not None
                    trials.append(plan.trials)
                    ranged += plan.likely_trials[0] <= exact <= plan.likely_trials[1]
                    base, other = normal(cv)(rng, 2, plan.trials)
                    seen += _excludes_one(paired_ratio(base, (1.0 + effect) * other))
                low, middle, high = np.quantile(trials, (0.1, 0.5, 0.9))
                case = [f"{100 * cv:g} %", f"{100 * effect:g} %", str(pilot)]
                planned = [f"{middle:.0f} ({low:.0f}–{high:.0f})", str(exact)]
                rows.append([*case, *planned, percent(ranged / few), percent(seen / few)])
    text = (
        "Pairs that `etude plan` asks for to find an effect with a probability of 80 % (median, and what lies between "
        f"the 10th and 90th percentile of {few} pilots); what the true spread needs; how often the range that the plan "
        "names holds that; and how often an experiment of the planned size finds the effect, in %."
    )
    header = ["noise", "effect", "pilot", "planned", "needed", "range holds", "effect found"]
    return section("Plans", text, header, rows)


def sittings(rng: Generator, replications: int) -> list[str]:
    """Two identical tests, measured in one session each."""
    few = max(20, replications // 2)
    rows = []
    for between in (0.0, 0.03, 0.15):
        for stored in (3, 5, 10):
            false = np.zeros(3)
            for _ in range(few):
                effects = lognormal(between)(rng, 1, stored + 2)[0]
                *known, base, other = (e * np.exp(rng.normal(0.0, 0.03, 10)) for e in effects)
                widened = compare_sessions(base, other, between_sessions(known))
                given = compare_sessions(base, other, stated_session_spread(100.0 * between))
                assert not isinstance(widened, NotSupported)
                assert not isinstance(given, NotSupported)
                false += [_excludes_one(widened), _excludes_one(given), welch(base, other).p < 0.05]
            cells = [percent(count / few) for count in false]
            rows.append([f"{100 * between:g} % between sessions, 3 % within", str(stored), *cells])
    text = (
        f"Identical tests called different at 5 %, in % ({few} comparisons each), 10 trials a side: widened by what "
        "the stored sessions show, by the true spread as given, and not at all (Welch on the inner samples)."
    )
    header = ["spread", "stored sessions", "widened", "given", "inner samples"]
    return section("One session a side", text, header, rows)


def found(test: Differs, first: Floats, second: Floats) -> float:
    """Share of the pairs of rows for which the test says so; rows that it refuses count as no."""
    count = 0
    for a, b in zip(first, second, strict=True):
        with suppress(ValueError):
            count += test(a, b)
    return count / len(first)


def _excludes_one(ratio: Ratio) -> bool:
    return not ratio.low <= 1.0 <= ratio.high


def _paired_differs(a: Floats, b: Floats) -> bool:
    ratio = paired_ratio(a, b)
    return _excludes_one(ratio) and not math.isnan(ratio.ratio)


def _exact_trials(rng: Generator, cv: float, effect: float) -> int:
    """What a pilot of very many pairs asks for."""
    base, other = normal(cv)(rng, 2, 200_000)
    plan = plan_for_effect(noise_of_pairs(base, other, seconds_per_trial=1.0), effect)
    assert plan is not None
    return plan.trials


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
