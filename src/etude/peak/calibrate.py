"""Calibration before a search: number and length of the trials that a server needs ("Cutting Corners", section 3.2).

Trials at several load factors, all of the longest run length; what a shorter one would have said is read from their
first windows. Harnesses without windows make trials of each length instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.special import chdtri, stdtrit

from etude.errors import InputError
from etude.peak.search_session import BenchOpener
from etude.peak.search_store import SearchSpec, SearchStore, open_store
from etude.peak.task import Answer, Task, Trial, TrialRequest, slo_ratio_of

Floats = NDArray[np.float64]

FACTORS = (0.3, 0.5, 0.7, 0.9, 1.0)
"""Load factors; the paper's Figures 5 and 6 show the first and the fourth."""

ROUNDS = 5
"""Trials at each load, as in the paper."""

LONGEST_OVER_RUNLENGTH = 5 / 3
"""Longest trial over the task's run length: 300 s for 180 s, as in the paper."""

MOST_RUN_LENGTHS = 10
"""Maximum number of run lengths that are evaluated."""

TRANSIENT_DURATIONS = (0.0, 1 / 60, 1 / 30, 1 / 15, 1 / 8, 1 / 4)
"""Candidate durations of the start-up transient, as shares of the longest run."""

LEAST = 1e-12
"""Lower bound of variances."""

ITERATIONS = 12
"""Iterations of the fit of a `Law`: its weights depend on the fitted values."""

MOST_TRIALS = 1000
"""Upper bound of the trials that a calibration recommends."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Trials of one load and run length: a column of dots in the paper's Figures 4 and 5."""

    runlength_s: float
    values: tuple[float, ...]
    """SLO ratio (response over limit) of each trial."""
    mean: float
    cv: float
    """Standard deviation over mean."""
    cv_low: float
    cv_high: float
    """95 % interval of `cv`, by the χ² of normal values: wide for five trials."""


@dataclass(frozen=True, slots=True)
class Law:
    """Variance of a trial's mean against its length, fitted to the spreads of one load.

    cv² = `trial`² + (B(r)/r)² + `white_s`/r for r seconds, B(r) = `startup_s`·(1 - exp(-r/`fades_s`)).
    """

    trial: float
    """Part that longer trials do not reduce."""
    startup_s: float
    """Start-up transient, as its contribution to the sum over a trial."""
    fades_s: float
    """Decay time of the transient; 0: none."""
    white_s: float
    """White noise: the part that averages out."""

    def cv(self, runlength_s: float) -> float:
        """Coefficient of variation of a trial of `runlength_s`."""
        parts = np.array([self.trial**2, self.startup_s**2, self.white_s])
        return math.sqrt(float(_terms(np.array([runlength_s]), self.fades_s)[0] @ parts))


@dataclass(frozen=True, slots=True)
class TrialsNeeded:
    """Trials of one run length that give the task's accuracy at its confidence: a point of the paper's Figure 6."""

    runlength_s: float
    trials: int | None
    """None if a thousand are too few."""
    trials_low: int | None
    trials_high: int | None
    """`trials` at the ends of the 95 % interval of the variance, by χ². Far apart after five trials."""
    bench_s: float
    """Benchmarking time of all of them, with the fixed cost of each; inf if a thousand are too few."""


@dataclass(frozen=True, slots=True)
class LoadCalibration:
    """Calibration of one load, by run length."""

    load: float
    factor: float
    """ρ: the load over the peak rate."""
    spreads: tuple[Spread, ...]
    law: Law
    needs: tuple[TrialsNeeded, ...]

    @property
    def cheapest(self) -> TrialsNeeded:
        """The need with the least benchmarking time; the longest run length if all need too many trials."""
        return min(self.needs, key=lambda need: (need.bench_s, -need.runlength_s))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Result of a calibration."""

    peak: float
    fixed_cost_s: float
    """Benchmarking time of a trial besides its run: the median."""
    accuracy: float
    confidence: float
    loads: tuple[LoadCalibration, ...]
    """Sorted by load."""
    warm_up_s: float | None = None
    """Warm-up in addition to the declared one (`warm_up.warm_up_s`); None if trials do not show it."""

    @property
    def suggested(self) -> TrialsNeeded:
        """Run length and trials for the load nearest to the peak, which needs the highest accuracy."""
        return min(self.loads, key=lambda at: abs(at.factor - 1)).cheapest


def run_calibration(
    directory: Path,
    sought: SearchSpec,
    peak: float,
    opened: BenchOpener,
    *,
    command_line: Sequence[str] = (),
    begins: Callable[[int, int, TrialRequest], None] = lambda number, of, request: None,
) -> tuple[SearchStore, Calibration]:
    """Make the trials of a calibration that are not on disk yet.

    peak: a load near the peak. begins: called before each trial, with its number and that of all trials. Raises
    EtudeError: same as `search_session.run_search`.
    """
    task, requests = sought.task, plan(sought.task, peak)
    with open_store(directory, sought, command_line) as kept:
        with opened(kept) as bench:
            for number, request in enumerate(requests[len(kept.trials()) :], len(kept.trials()) + 1):
                begins(number, len(requests), request)
                kept.keep(request, bench.run(request, lambda windows: False))
        found = calibrate(task, peak, kept.trials())
        kept.answered(Answer(None, 0.0, math.inf, task.confidence, False, "a calibration"))
    return kept, found


def plan(
    task: Task,
    peak: float,
    *,
    factors: Sequence[float] = FACTORS,
    rounds: int = ROUNDS,
    windows: bool = True,
) -> list[TrialRequest]:
    """The trials of a calibration around the assumed peak rate.

    Round by round, each with every load once in an order of its own, so that drift is not confounded with load.
    `windows`: whether the harness has them; without, each round has trials of a sixth, a third and a half too. Loads
    are those of the task's range. Raises InputError where none is left.
    """
    every = {task.rounded(factor * peak) for factor in factors}
    loads = sorted(load for load in every if task.lowest <= load <= task.highest)
    if not loads or rounds < 2:
        raise InputError(
            f"nothing to calibrate: two rounds at least, and a peak rate (not {peak:g}) whose loads lie between "
            f"{task.lowest:g} and {task.highest:g}"
        )
    longest = LONGEST_OVER_RUNLENGTH * task.runlength_s
    lengths = (longest,) if windows else tuple(longest * share for share in (1 / 6, 1 / 3, 1 / 2, 1))
    offers = [
        TrialRequest(load, length, f"calibration at {load / peak:.0%} of the peak")
        for load in loads
        for length in lengths
    ]
    rng = np.random.default_rng(np.random.SeedSequence(task.seed, spawn_key=(len(offers), rounds)))
    return [offers[place] for _ in range(rounds) for place in rng.permutation(len(offers))]


def calibrate(task: Task, peak: float, trials: Sequence[Trial]) -> Calibration:
    """Calibration from the trials of a plan, complete or not.

    `peak`: the rate that load factors are relative to. Trials in which the generator fell behind are excluded, and
    loads with fewer than two other trials. Raises InputError where no load is left.
    """
    usable = [trial for trial in trials if trial.of_server and trial.windows]
    fixed_cost_s = float(np.median([trial.cost_s - trial.ran_s for trial in usable])) if usable else 0.0
    by_load = {load: [each for each in usable if each.load == load] for load in {t.load for t in usable}}
    found = []
    for load, group in sorted(by_load.items()):
        if spreads := _spreads(task, group):
            law = _law(spreads)
            needs = tuple(_need(task, law, spread, fixed_cost_s) for spread in spreads)
            found.append(LoadCalibration(load, load / peak, spreads, law, needs))
    if not found:
        raise InputError("a calibration needs two trials at one load at least; make all trials of its plan")
    warm_s = warm_up_s(task, usable)
    return Calibration(peak, fixed_cost_s, task.accuracy, task.confidence, tuple(found), warm_s)


def trials_for(cv: float, accuracy: float, confidence: float) -> int | None:
    """Number of trials, at least two, whose interval of the mean is accurate enough (the paper's equation 2).

    Accuracy is 1 - (high - low)/(high + low), so that Student's margin of error over the mean may be 1 - `accuracy`.
    None where `MOST_TRIALS` are too few.
    """
    counts = np.arange(2, MOST_TRIALS + 1)
    fine = np.flatnonzero(_half_widths(confidence) * cv <= 1 - accuracy + 1e-12)
    return int(counts[fine[0]]) if fine.size else None


@lru_cache(maxsize=16)
def _half_widths(confidence: float) -> Floats:
    """Margins of error of Student's interval of 2, 3, … values, in standard deviations."""
    counts = np.arange(2, MOST_TRIALS + 1)
    widths: Floats = stdtrit(counts - 1, (1 + confidence) / 2) / np.sqrt(counts)
    return widths


def _spreads(task: Task, trials: Sequence[Trial]) -> tuple[Spread, ...]:
    """Spreads by run length; each needs two trials with a window that ends there."""
    found = []
    for length in _lengths(trials):
        begun = [first for trial in trials if (first := _first(trial, length)) is not None]
        values = np.array(
            [value for trial in begun if not math.isnan(value := slo_ratio_of(task.goal, trial))]
        )
        if values.size >= 2 and values.mean() > 0:
            found.append(_spread(length, values))
    return tuple(found)


def _lengths(trials: Sequence[Trial]) -> list[float]:
    """Run lengths at which windows of two trials end, thinned evenly in their logarithm."""
    ends = [set(np.cumsum([w.duration_s for w in trial.windows]).round(6).tolist()) for trial in trials]
    known = sorted(float(end) for end in set().union(*ends) if sum(end in those for those in ends) >= 2)
    if len(known) <= MOST_RUN_LENGTHS:
        return known
    wanted = np.geomspace(known[0], known[-1], MOST_RUN_LENGTHS)
    return sorted({min(known, key=lambda end: abs(math.log(end / want))) for want in wanted.tolist()})


def _first(trial: Trial, length: float) -> Trial | None:
    """The trial cut after `length` seconds; None if no window ends there."""
    ends = np.cumsum([window.duration_s for window in trial.windows])
    place = int(np.argmin(np.abs(ends - length)))
    if abs(ends[place] - length) > 1e-5:
        return None
    windows = trial.windows[: place + 1]
    return Trial(trial.load, length, windows, trial.cost_s, trial.ended, trial.limited)


def _spread(length: float, values: Floats) -> Spread:
    mean = float(values.mean())
    cv = float(values.std(ddof=1)) / mean
    low, high = _factors(values.size)
    return Spread(length, tuple(values.tolist()), mean, cv, low * cv, high * cv)


def _factors(count: int) -> tuple[float, float]:
    """Factors from the standard deviation of `count` normal values to its 95 % interval."""
    degrees = count - 1
    low, high = (math.sqrt(degrees / float(chdtri(degrees, tail))) for tail in (0.025, 0.975))
    return low, high


def _need(task: Task, law: Law, spread: Spread, fixed_cost_s: float) -> TrialsNeeded:
    cv = law.cv(spread.runlength_s)
    count, low, high = (
        trials_for(times * cv, task.accuracy, task.confidence)
        for times in (1.0, *_factors(len(spread.values)))
    )
    cost_s = math.inf if count is None else count * (spread.runlength_s + fixed_cost_s)
    return TrialsNeeded(spread.runlength_s, count, low, high, cost_s)


def _law(spreads: Sequence[Spread]) -> Law:
    """The maximum-likelihood sum of non-negative parts for χ²-distributed variances: each is weighted relative to its
    fit."""
    lengths = np.array([spread.runlength_s for spread in spreads])
    squares = np.array([max(spread.cv**2, LEAST) for spread in spreads])
    degrees = np.array([len(spread.values) - 1.0 for spread in spreads])
    fits = []
    for fades_s in (share * float(lengths.max()) for share in TRANSIENT_DURATIONS):
        terms = _terms(lengths, fades_s)
        parts = _parts(terms, squares, np.sqrt(degrees))
        ratio = squares / np.maximum(terms @ parts, LEAST)
        law = Law(math.sqrt(parts[0]), math.sqrt(parts[1]), fades_s, float(parts[2]))
        fits.append((float(degrees @ (ratio - np.log(ratio))), law))
    return min(fits, key=lambda fit: fit[0])[1]


def _parts(terms: Floats, squares: Floats, known: Floats) -> Floats:
    """Weights of the terms, shape (3,), ≥ 0."""
    fitted = np.full_like(squares, squares.mean())
    parts: Floats = np.zeros(3)
    for _ in range(ITERATIONS):
        weights = known / fitted
        parts = nnls(terms * weights[:, None], squares * weights)[0]
        fitted = np.maximum(terms @ parts, LEAST)
    return parts


def _terms(lengths: Floats, fades_s: float) -> Floats:
    """Regressors of a `Law`, shape (lengths, 3)."""
    started = -np.expm1(-lengths / fades_s) if fades_s else np.ones_like(lengths)
    return np.column_stack([np.ones_like(lengths), (started / lengths) ** 2, 1 / lengths])


FEWEST_TRIALS, FEWEST_WINDOWS = 3, 6
SLOWER = math.log(1.1)
"""Log by which windows must be slower to count as warm-up."""
SURE = 3.0
"""Standard errors by which windows must be slower."""


def warm_up_s(task: Task, trials: Sequence[Trial]) -> float | None:
    """Duration of the warm-up, s: the time after which windows are as fast as in the second half of a trial. 0 without
    warm-up; the length of the first half if the warm-up takes at least that long.

    By the mean of all trials of the server that met the goal, window by window, each relative to the median of its own
    second half. None where fewer than three trials have six windows of one length.
    """
    rows, lengths = [], []
    for trial in trials:
        if trial.of_server and len(trial.windows) >= FEWEST_WINDOWS and slo_ratio_of(task.goal, trial) <= 1:
            values = np.array([task.goal.reading([window]) for window in trial.windows])
            if (values > 0).all():
                logs = np.log(values)
                rows.append(logs - np.median(logs[len(logs) // 2 :]))
                lengths.append(trial.windows[0].duration_s)
    if len(rows) < FEWEST_TRIALS or max(lengths) > 1.01 * min(lengths):
        return None
    return min(lengths) * _slow_windows([row[: min(map(len, rows))] for row in rows])


def _slow_windows(rows: Sequence[Floats]) -> int:
    """Number of windows of the first half up to its last slower one."""
    table = np.array(rows)
    half = table.shape[1] // 2
    means = table.mean(axis=0)
    # One window's spread over trials is known badly from few: that of all windows of the second half is taken.
    error = float(table[:, half:].std()) / math.sqrt(len(rows))
    slower = np.flatnonzero(means[:half] > max(SLOWER, SURE * error))
    return int(slower[-1]) + 1 if slower.size else 0
