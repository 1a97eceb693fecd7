"""What intervals cover: where stop rules stopped, at fixed counts, over levels, and of crossings of curves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import study
from numpy.random import Generator
from own_series import OWN as NEW
from scipy.special import stdtrit

from etude.stats.crossings import crossing
from etude.stats.intervals import Interval, mean_interval, median_interval
from etude.stats.levels import split_variance
from etude.stats.means import Kind, average, wilson
from etude.stats.percentiles import percentile, trimmed_mean
from etude.stats.predicate import figures
from etude.stats.series import (
    MACHINES,
    OWN,
    REFERENCE,
    Draw,
    Floats,
    Series,
    autoregressive,
    deal_into_blocks,
    lognormal,
    mixture,
    normal,
)
from etude.stats.simulation import mean_stops, ratio_stops
from etude.stats.stopping import MeanPrecision, RatioPrecision
from markdown import percent, section, share

SERIES: tuple[Series, ...] = (*REFERENCE, *OWN, *NEW)
DRAWS = 400_000

Limits = Callable[[Floats], Interval | None]


def mean_rule(rng: Generator, replications: int) -> list[str]:
    """Coverage of the mean's interval where MeanPrecision stopped, the first trial excluded."""
    rows = []
    for series in SERIES:
        rule = MeanPrecision()
        stops = mean_stops(series.draw(rng, replications, rule.maximum + 1)[:, 1:], rule)
        covered = "no mean"
        if series.mean is not None:
            truth = series.mean + series.drift * (stops.count + 1) / 2.0
            covered = share(stops.covers(truth), replications)
        covered = study.beside(covered, study.MEAN, series.name, 3)
        unfinished = f"{100 * np.mean(~stops.converged):.0f}"
        rows.append([series.name, covered, f"{stops.count.mean():.1f}", unfinished])
    text = (
        "MeanPrecision as it is shipped (10 to 50 trials, the first one excluded). Coverage of the mean's interval in "
        "%, in brackets the study's; trials on average; share that stopped unconverged at 50, in %."
    )
    header = ["series", "covers", "trials", "unconverged"]
    return section("The mean, stopped at a margin of error of 5 %", text, header, rows)


def ratio_rule(rng: Generator, replications: int) -> list[str]:
    """False differences of two identical tests where RatioPrecision stopped, by machine."""
    noise = normal(0.02)
    cases: list[tuple[str, Draw]] = [
        (machine.name, lambda *of, draw=machine.draw: draw(*of) * noise(*of)) for machine in MACHINES
    ]
    cases += [
        (f"{series.name} (both tests)", lambda *of, draw=series.draw: np.maximum(draw(*of), 1e-9))
        for series in SERIES
    ]
    rows = []
    for name, draw in cases:
        cells = [name]
        for target in (0.02, 0.05):
            rule = RatioPrecision(precision=target)
            trials = draw(rng, replications, 2 * (rule.maximum + 1))
            stops = ratio_stops(deal_into_blocks(rng, trials, 2)[..., 1:], rule)
            cells += [share(stops.covers(0.0), replications), f"{stops.count.mean():.1f}"]
        rows.append(cells)
    text = (
        "RatioPrecision as it is shipped, the first block excluded. Coverage of a ratio of 1 in % and pairs on "
        "average, for targets of 2 and 5 %. Machines have noise of cv 2 %; below them both tests are one of the series."
    )
    header = ["machine or series", "2 %: covers", "pairs", "5 %: covers", "pairs"]
    return section("The ratio of two identical tests in random blocks", text, header, rows)


def fixed(rng: Generator, replications: int) -> list[str]:
    """Mean and median at 10 and 30 trials; Student's interval, which Getstats prints; Auto-pilot's stop rule."""
    rows = []
    for series in SERIES:
        middle = _median(series, rng)
        cells = [series.name]
        for place, n in enumerate((10, 30)):
            drawn = series.draw(rng, replications, n)
            mean = None if series.mean is None else series.mean + series.drift * (n - 1) / 2.0
            plain = _cover(_student, drawn, mean)
            cells += [
                _cover(mean_interval, drawn, mean),
                study.beside(plain, study.MEAN, series.name, place),
                _cover(median_interval, drawn, middle),
            ]
        cells.append(study.beside(_auto_pilot(series, rng, replications), study.MEAN, series.name, 2))
        rows.append(cells)
    text = (
        "Coverage in % of the mean's interval with n_eff (\"mean\"), of Student's, which Getstats prints, and of the "
        "median's between order statistics (in brackets the series that are worth too few independent trials for one), "
        "the first trial not excluded; and of Student's interval where the rule of Auto-pilot stopped (10 to 30 "
        "trials, margin of error below 5 %). In brackets otherwise the study's."
    )
    header = [f"{what}, n = {n}" for n in (10, 30) for what in ("mean", "Student", "median")]
    return section("A fixed number of trials", text, ["series", *header, "Auto-pilot"], rows)


def kinds(rng: Generator, replications: int) -> list[str]:
    """Means that fit other kinds of metrics, the trimmed mean, percentiles, proportions."""
    steady, skewed, spikes = normal(0.05), lognormal(0.3), mixture(0.05, times=1.5, cv=0.03)
    cases: list[tuple[str, Draw, Limits, Callable[[Floats], float]]] = [
        ("harmonic mean of rates, normal cv5", steady, _of_kind("rate"), _harmonic),
        ("harmonic mean of rates, lognormal cv30", skewed, _of_kind("rate"), _harmonic),
        ("geometric mean of ratios, lognormal cv30", skewed, _of_kind("ratio"), _geometric),
        ("trimmed mean, 10 %, normal cv5", steady, _trimmed, _middle_of),
        ("trimmed mean, 10 %, spikes 5% x1.5", spikes, _trimmed, _middle_of),
        ("p90, lognormal cv30", skewed, _p90, _ninth_tenth),
        ("p90, AR1 .6 cv5", autoregressive(0.6, 0.05), _p90, _ninth_tenth),
    ]
    rows = []
    for name, draw, limits, truth in cases:
        true = truth(draw(rng, DRAWS // 40, 40).ravel())
        rows.append([name, *(_cover(limits, draw(rng, replications, n), true) for n in (10, 30, 60))])
    for p in (0.5, 0.9, 0.99):
        cells = [f"proportion of {p:g}"]
        for n in (10, 30, 60):
            found = [wilson(int(k), n) for k in rng.binomial(n, p, replications)]
            cells.append(share(float(np.mean([i.low <= p <= i.high for i in found])), replications))
        rows.append(cells)
    text = "Coverage in % at a fixed number of trials; – where so few values have no interval."
    header = ["interval", "n = 10", "n = 30", "n = 60"]
    return section("Other means, percentiles, proportions", text, header, rows)


def levels(rng: Generator, replications: int) -> list[str]:
    """Trials within boots: the interval over boots, and the one over all trials as if they were independent."""
    few = max(20, replications // 2)
    rows = []
    for between in (0.0, 0.01, 0.03):
        for boots, trials in ((3, 10), (5, 10), (10, 5)):
            held = np.zeros(2)
            labels = {"boot": np.repeat(np.arange(boots), trials).tolist()}
            for _ in range(few):
                level = np.repeat(rng.normal(0.0, between, boots), trials)
                x = 1.0 + level + rng.normal(0.0, 0.01, boots * trials)
                both = split_variance(x, labels).interval, mean_interval(x)
                held += [i is not None and i.low <= 1.0 <= i.high for i in both]
            cells = [share(count / few, few) for count in held]
            rows.append([f"{100 * between:g} % between boots, 1 % within", f"{boots} × {trials}", *cells])
    text = f"Coverage in % ({few} experiments each) of the mean over all boots that could have been."
    header = ["spread", "boots × trials", "interval over boots", "interval over trials"]
    return section("Levels", text, header, rows)


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
    text = (
        "Two tests that differ by 0.3 ms, over 1 KiB to 1 GiB at 8 GB/s. Of the interval of the size from which on "
        "they differ by less: coverage in % of the crossing of the line that is drawn between powers of two, and "
        "of that of the true curve between them; median width in powers of two; share without an interval, in % "
        f"({few} experiments each)."
    )
    header = ["level and spread", "trials", "line covered", "curve covered", "width", "no interval"]
    return section("Where a ratio falls below a level", text, header, rows)


def _cover(limits: Limits, drawn: Floats, truth: float | None) -> str:
    """Share of the intervals that hold the truth, and in brackets of the rows without one."""
    if truth is None:
        return "–"
    each = [limits(x) for x in drawn]
    found = [interval for interval in each if interval is not None]
    if not found:
        return "–"
    held = [interval.low <= truth <= interval.high for interval in found]
    without = f" ({100 * (1 - len(found) / len(each)):.0f})" if len(found) < 0.995 * len(each) else ""
    return share(float(np.mean(held)), len(held)) + without


def _auto_pilot(series: Series, rng: Generator, replications: int) -> str:
    """`0.05 * $mean > $delta` judged after every trial from the tenth on, at most thirty."""
    if series.mean is None:
        return "–"
    x = series.draw(rng, replications, 30)
    n = np.arange(1, 31)
    mean = np.cumsum(x, axis=1) / n
    centred = x - x.mean(axis=1, keepdims=True)
    variance = np.cumsum(centred**2, axis=1) - np.cumsum(centred, axis=1) ** 2 / n
    error = np.sqrt(np.maximum(variance, 0.0) / np.maximum(n - 1, 1) / n)
    half = stdtrit(np.maximum(n - 1, 1), 0.975) * error
    passed = (half < 0.05 * mean)[:, 9:]
    at = np.where(passed.any(axis=1), 9 + passed.argmax(axis=1), 29)
    rows = np.arange(replications)
    first = figures(x[0, : at[0] + 1])  # the shipped figures say the same
    assert abs(first.delta - half[0, at[0]]) < 1e-9
    assert abs(first.mean - mean[0, at[0]]) < 1e-9
    truth = series.mean + series.drift * at / 2.0
    return share(float(np.mean(np.abs(mean[rows, at] - truth) <= half[rows, at])), replications)


def _median(series: Series, rng: Generator) -> float | None:
    """Of a steady trial, late in the series; None under drift."""
    if series.drift:
        return None
    return float(np.median(series.draw(rng, DRAWS // 40, 80)[:, 40:]))


def _student(x: Floats) -> Interval:
    said = figures(x)
    return Interval(said.mean - said.delta, said.mean + said.delta)


def _of_kind(kind: Kind) -> Limits:
    return lambda x: average(x, kind).interval


def _trimmed(x: Floats) -> Interval | None:
    return trimmed_mean(x, 0.1).interval


def _p90(x: Floats) -> Interval | None:
    return percentile(x, 0.9).interval


def _ninth_tenth(x: Floats) -> float:
    return float(np.quantile(x, 0.9))


def _harmonic(x: Floats) -> float:
    return 1.0 / float(np.mean(1 / x))


def _geometric(x: Floats) -> float:
    return float(np.exp(np.mean(np.log(x))))


def _middle_of(x: Floats) -> float:
    k = int(0.1 * x.size)
    return float(np.sort(x)[k : x.size - k].mean())
