"""What intervals cover: where stop rules stopped, at fixed counts, over levels, and of crossings of curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.random import Generator
from scipy.special import stdtrit

from etude.stats.crossings import crossing
from etude.stats.describe import percentile, trimmed_mean
from etude.stats.intervals import Interval, mean_interval, median_interval
from etude.stats.levels import split_variance
from etude.stats.means import Kind, average, wilson
from etude.stats.predicate import figures
from etude.stats.stopping import MeanPrecision, RatioPrecision
from rows import percent, section, share
from support.simulated_rules import mean_stops, ratio_stops
from support.synthetic_series import (
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

# Series of families that no rule was designed or calibrated with. All values are multiples of
# a typical trial; shape (series, trials), in order of time along the second axis.


def turbo(rng: Generator, series: int, trials: int) -> Floats:
    """A processor that is quick until its heat budget is used up, after 4 to 12 trials, then slows by 8 % for good."""
    budget = rng.integers(4, 13, (series, 1))
    beyond = np.maximum(0, np.arange(trials) - budget)
    return rng.normal(1.0, 0.015, (series, trials)) - 0.08 * np.exp(-beyond / 2.0)


def neighbour(rng: Generator, series: int, trials: int) -> Floats:
    """Another tenant comes before one trial in fifteen, stays for 2 to 5 of them and costs 20 %."""
    before = 50
    slow = np.zeros((series, trials + before), dtype=bool)
    comes = rng.random(slow.shape) < 1.0 / 15.0
    stays = rng.integers(2, 6, slow.shape)
    for place in range(5):
        slow[:, place:] |= (comes & (stays > place))[:, : slow.shape[1] - place]
    return rng.normal(1.0, 0.02, (series, trials)) * (1.0 + 0.2 * slow[:, before:])


def neighbour_mean() -> float:
    """1.2 but for the share of trials before which nobody came in time to be still there."""
    alone = 1.0
    for stay_beyond in (1.0, 1.0, 0.75, 0.5, 0.25):
        alone *= 1.0 - stay_beyond / 15.0
    return 1.0 + 0.2 * (1.0 - alone)


def page_colours(rng: Generator, series: int, trials: int) -> Floats:
    """Four layouts of memory, drawn anew with every start, 0, 2, 5 and 9 % slower, the better ones more often."""
    slower = rng.choice([0.0, 0.02, 0.05, 0.09], (series, trials), p=[0.4, 0.3, 0.2, 0.1])
    return 1.0 + slower + rng.normal(0.0, 0.003, (series, trials))


def fragmentation(rng: Generator, series: int, trials: int) -> Floats:
    """The mean stays, but the spread grows from 2 to 8 % over fifty trials."""
    return 1.0 + rng.standard_normal((series, trials)) * (
        0.02 + 0.06 * np.minimum(np.arange(trials) / 50.0, 1.0)
    )


def throughput(rng: Generator, series: int, trials: int) -> Floats:
    """Skewed to the left, as rates are: 1.2 less a gamma variate of shape 2 and scale 0.1."""
    return 1.2 - np.minimum(rng.gamma(2.0, 0.1, (series, trials)), 1.1)


def long_memory(rng: Generator, series: int, trials: int) -> Floats:
    """Noise of 3 % on all time scales: white, over three, and over ten trials, a third of the variance each."""
    z = rng.standard_normal((3, series, trials))
    for part, rho in ((z[1], np.exp(-1.0 / 3.0)), (z[2], np.exp(-1.0 / 10.0))):
        part[:, 1:] *= np.sqrt(1.0 - rho * rho)
        for i in range(1, trials):
            part[:, i] += rho * part[:, i - 1]
    return 1.0 + 0.03 * z.sum(axis=0) / np.sqrt(3.0)


def coarse_clock(rng: Generator, series: int, trials: int) -> Floats:
    """Normal of cv 3 %, counted in the ticks of 5 % that fall into it; it begins anywhere between two."""
    return 0.05 * np.floor(rng.normal(1.0, 0.03, (series, trials)) / 0.05 + rng.random((series, trials)))


def cold_every_boot(rng: Generator, series: int, trials: int) -> Floats:
    """The first six trials fill a cache: 40 % slower at first, evenly falling, then steady at cv 4 %."""
    extra = 0.4 * np.maximum(0.0, 1.0 - np.arange(trials) / 6.0)
    return rng.normal(1.0, 0.04, (series, trials)) * (1.0 + extra)


NEW: tuple[Series, ...] = (
    Series("turbo, 8 % slower after a while", turbo),
    Series("neighbour, stays for 2-5 trials", neighbour, neighbour_mean()),
    Series("page colours, four levels", page_colours, 1.025),
    Series("spread grows 2 to 8 %", fragmentation),
    Series("rates, skewed to the left", throughput),
    Series("noise on all time scales", long_memory),
    Series("ticks of 5 %, cv 3 %", coarse_clock),
    Series("six trials fill a cache", cold_every_boot),
)
"""The mean of the last one is that of a steady trial."""

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
        covered = with_study(covered, MEAN, series.name, 3)
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
                with_study(plain, MEAN, series.name, place),
                _cover(median_interval, drawn, middle),
            ]
        cells.append(with_study(_auto_pilot(series, rng, replications), MEAN, series.name, 2))
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


# What the study that the rules were designed by found, with its own code and seeds, on synthetic series: 20,000
# replications for coverage and designs, 10,000 for bootstrap intervals, 6,000 for tests of two samples.
Figures = Mapping[str, tuple[float, ...]]

MEAN: Figures = {
    "normal cv5": (95.1, 95.0, 95.1, 96.4),
    "normal cv10": (94.8, 95.0, 93.5, 95.5),
    "normal cv20": (95.2, 95.1, 95.0, 96.6),
    "lognormal cv10": (94.9, 95.1, 93.6, 95.2),
    "lognormal cv30": (94.0, 94.3, 94.3, 96.3),
    "bimodal 50/50 +10%": (94.0, 94.8, 94.0, 96.2),
    "bimodal 85/15 +30%": (80.0, 94.0, 79.5, 80.1),
    "gamma .8+G(2)": (92.4, 93.7, 89.7, 92.0),
    "pareto tail a=2.5": (79.7, 84.4, 78.5, 80.8),
    "AR1 .3 cv10": (85.6, 85.1, 82.9, 88.1),
    "AR1 .6 cv10": (67.0, 66.5, 63.6, 80.4),
    "warm-up 3 trials +30%, cv5": (84.5, 82.5, 82.0, 99.2),
    "warm-up exp 30%, cv5": (11.1, 40.0, 21.9, 73.7),
    "spikes 5% x1.5, cv3": (61.2, 78.8, 61.0, 65.4),
    "spikes 2% x3, cv3": (21.2, 45.0, 21.1, 24.4),
}
"""Coverage in %: t at a fixed 10 and 30 trials, Auto-pilot's rule (10 to 30), MeanPrecision."""

INDEPENDENT: Figures = {
    "normal cv5, 10 and 10": (5.3, 5.4, 5.5, 4.7),
    "lognormal cv30, 10 and 10": (5.0, 5.3, 5.3, 4.7),
    "spikes 5% x1.5, cv3, 10 and 10": (1.8, 1.9, 2.1, 4.0),
    "bimodal 50/50 +10%, 10 and 10": (5.0, 5.0, 5.0, 4.2),
    "normal cv2 and cv8, 10 and 10": (5.5, 5.5, 6.6, 7.1),
    "normal cv2 and cv8, 30 and 10": (5.6, 5.7, 23.8, 13.2),
    "lognormal cv40 and cv10, 10 and 10": (7.1, 8.5, 8.0, 9.9),
    "lognormal cv40 and cv10, 10 and 30": (6.8, 8.2, 25.2, 17.9),
    "AR1 .3 cv5, 10 and 10": (15.0, 15.1, 15.2, 13.0),
    "AR1 .6 cv5, 10 and 10": (34.2, 34.0, 34.5, 31.1),
    "AR1 .6 cv5, 30 and 30": (33.6, 33.4, 33.7, 31.7),
}
"""False findings in %: Welch, Welch on logarithms, Student, Mann-Whitney."""

RESAMPLED: Figures = {
    "normal cv5": (5.3, 5.3, 4.2, 8.4),
    "normal cv2 and cv8": (6.6, 6.6, 5.7, 9.7),
    "lognormal cv30": (5.0, 5.0, 4.2, 8.5),
    "spikes 5% x1.5, cv3": (4.3, 4.3, 2.9, 10.2),
    "bimodal 50/50 +10%": (4.7, 4.7, 4.0, 7.0),
    "AR1 .6 cv5": (33.8, 33.8, 26.5, 40.0),
}
"""False findings in %, 10 trials a side: permutation of means, studentised, bootstrap of medians, of means."""

DESIGNS: Figures = {
    "steady": (4.8, 4.9, 4.9),
    "drift 2% per 20 trials": (18.7, 4.0, 5.0),
    "drift 5% per 20 trials": (72.5, 1.5, 5.1),
    "drift 10% per 20 trials": (99.7, 0.0, 5.1),
    "random walk 0.5%/trial": (21.6, 3.4, 5.1),
    "random walk 1%/trial": (41.7, 1.9, 5.3),
    "AR1 .8 sd 3%": (33.9, 1.5, 5.1),
    "one step +5% in the first 20": (52.2, 1.2, 4.9),
    "warm-up 3 trials +20%": (13.3, 0.0, 0.8),
    "period 2, ±1.5%": (1.4, 9.0, 5.1),
    "sine 3%, 20 trials a cycle": (49.0, 0.6, 5.0),
}
"""False findings in %: one test after the other; random pairs by Welch; random pairs by the paired ratio."""

CLEAN_OUTLIERS: Figures = {
    "z above 2": (24.0, 62.1, 82.0, 99.2, 21.1, 0.0),
    "ESD on logarithms": (8.8, 6.9, 6.7, 85.7, 73.9, 98.8),
}
"""In %: clean normal series of 10, 20, 30 trials with a flag; then what is found of 1 of +30 %, 2 of +30 %, 3 of +50 %
in ten."""

KENDALL: Figures = {
    "normal cv5": (4.7, 4.5, 4.8),
    "lognormal cv30": (4.7, 4.5, 4.8),
    "AR1 .5 cv5": (17.4, 21.1, 23.5),
    "rises by 10 %, cv5": (36.8, 67.5, 85.5),
}
"""Kendall's test at 5 % finds a trend, in %, by 10, 20, 30 trials."""

UNADJUSTED: Figures = {"5": (23.0, 18.0), "20": (64.0, 42.0), "100": (99.0, 77.0)}
"""Chance of at least one false finding among so many tests, in %: independent, and correlated by .5."""


def with_study(text: str, figures: Figures, key: str, place: int) -> str:
    """Our figure, and the study's in brackets where it looked at that case."""
    found = figures.get(key)
    return text if found is None else f"{text} ({found[place]:.1f})"
