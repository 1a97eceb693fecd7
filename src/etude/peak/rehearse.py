"""Rehearsal of a search on simulated servers: its cost, and how often its answer is right."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import betaincinv

from etude.errors import InputError, MachineRefuses
from etude.peak.harnesses.curves import LIMIT_MS, Curve
from etude.peak.harnesses.simulated import NOISE, Noise, SimulatedServer
from etude.peak.policies.belief.evidence import batch_readings, between_trial_variance, evidence_of
from etude.peak.search import Policy, search
from etude.peak.task import Answer, Criterion, Goal, Kind, Task, Trial, TrialRequest

MARGIN = 1.5
"""Factor by which peaks lie inside the task's range, so that loads on both sides can be tried."""

SEED_SD = 0.25
"""Standard deviation of the log of a seed load over its peak: the peak of a neighbouring configuration."""


@dataclass(frozen=True, slots=True)
class Place:
    """Cost and noise of a trial on the rehearsed bench."""

    fixed_cost_s: float = 170.0
    window_s: float = 10.0
    noise: Noise = NOISE

    def server(self, curve: Curve, peak: float, seed: int, limit_s: float) -> SimulatedServer:
        """A simulated server with this cost and noise; `limit_s`: its mean response at the peak."""
        return SimulatedServer(
            curve,
            peak,
            seed,
            limit_s=limit_s,
            fixed_cost_s=self.fixed_cost_s,
            window_s=self.window_s,
            noise=self.noise,
        )


LEAST_WINDOWS = 4
"""Minimum windows of a trial whose variance is used."""
SETTLING = 2
"""Windows at the start of a trial that are skipped, if there are more than that many others."""


def bench_model_like(task: Task, trials: Sequence[Trial], rate: float) -> Place:
    """A place with the cost and noise of an earlier search or calibration; `rate`: its peak. The windows' variance is
    the median over trials; the between-trial variance is from repeated loads (`evidence.between_trial_variance`).

    Raises InputError if no trial has a window.
    """
    lengths = [window.duration_s for trial in trials for window in trial.windows]
    if not lengths:
        raise InputError("no trial has a window from which cost and variation of trials are known")
    window_s = float(np.median(lengths))
    usual = NOISE.stretched(mean_goal(task.goal).criteria[0].limit / (1e-3 * LIMIT_MS))
    ratios = []
    for trial in trials:
        readings = batch_readings(task.goal, trial.windows)
        settled = readings[SETTLING if len(readings) > 2 * SETTLING else 0 :]
        rho = trial.load / rate
        if len(settled) >= LEAST_WINDOWS and settled.mean() > 0 and rho <= 1.5:
            batch_s = trial.ran_s / len(readings)
            ratios.append(settled.var(ddof=1) / settled.mean() ** 2 * batch_s / usual.white_s(rho))
    more = float(np.median(ratios)) if ratios else 1.0
    trial_sd = math.sqrt(between_trial_variance(evidence_of(task, trials)))
    noise = replace(NOISE, trial_sd=trial_sd, white=NOISE.white * more, white_most=NOISE.white_most * more)
    fixed_cost_s = float(np.median([each.cost_s - each.ran_s for each in trials]))
    return Place(max(fixed_cost_s, 0.0), window_s, noise)


@dataclass(frozen=True, slots=True)
class Share:
    """A proportion with its exact binomial interval (Clopper and Pearson, 1934)."""

    hits: int
    of: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """NaN if there was no trial."""
        return self.hits / self.of if self.of else math.nan


@dataclass(frozen=True, slots=True)
class Outcome:
    """One rehearsed search."""

    curve: str
    peak: float
    """The true peak."""
    answer: Answer
    trials: int
    spent_s: float
    near: bool
    """True if the rate is within the task's `within` of the peak."""
    in_region: bool
    """True if the true response at the rate is within the task's `width` of the limit."""
    covered: bool
    """True if the peak is between the answer's bounds."""

    @property
    def hours(self) -> float:
        """Benchmarking time, h."""
        return self.spent_s / 3600

    @property
    def findings(self) -> frozenset[Kind]:
        """Kinds of the answer's findings."""
        return frozenset(finding.kind for finding in self.answer.findings)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Outcomes of all searches, or of those on one curve."""

    task: Task
    outcomes: tuple[Outcome, ...]
    confidence: float = 0.95
    """Confidence of the intervals of shares."""

    def hours(self, share: float) -> float:
        """Quantile of benchmarking time, h: 0.5 is the median, 0.25 and 0.75 the quartiles."""
        return float(np.quantile([outcome.hours for outcome in self.outcomes], share))

    @property
    def near(self) -> Share:
        """Rates within `task.within` of the true peak."""
        return self.share(outcome.near for outcome in self.outcomes)

    @property
    def in_region(self) -> Share:
        """Rates at which the true response is within `task.width` of the limit."""
        return self.share(outcome.in_region for outcome in self.outcomes)

    @property
    def kept(self) -> Share:
        """Answers that claim to meet the target."""
        return self.share(outcome.answer.kept for outcome in self.outcomes)

    @property
    def kept_right(self) -> Share:
        """Answers of those that do meet it: near or in the region, by the task's target."""
        return self.share(self.right(outcome) for outcome in self.outcomes if outcome.answer.kept)

    @property
    def covered(self) -> Share:
        """Peaks between the answer's bounds."""
        return self.share(outcome.covered for outcome in self.outcomes)

    def right(self, outcome: Outcome) -> bool:
        """True if an outcome meets the task's target."""
        return outcome.near if self.task.promise == "rate" else outcome.in_region

    def named(self, *kinds: Kind) -> Share:
        """Searches with one of these findings."""
        return self.share(bool(outcome.findings & set(kinds)) for outcome in self.outcomes)

    def share(self, hits: Iterable[bool]) -> Share:
        """Proportion of hits with its interval."""
        each = list(hits)
        low, high = binomial_interval(sum(each), len(each), self.confidence)
        return Share(sum(each), len(each), low, high)

    def by_curve(self) -> dict[str, Rehearsal]:
        """Rehearsals by curve, in the order given."""
        names = dict.fromkeys(outcome.curve for outcome in self.outcomes)
        return {
            name: replace(self, outcomes=tuple(each for each in self.outcomes if each.curve == name))
            for name in names
        }


@dataclass(frozen=True, slots=True)
class _Job:
    curve: Curve
    peak: float
    seed: int
    """Seed of the server."""
    task: Task


def rehearse(
    policy: Policy,
    task: Task,
    servers: Sequence[Curve],
    searches: int,
    seed: int,
    *,
    place: Place | None = None,
    processes: int = 2,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Rehearsal:
    """Search `searches` times on each of `servers`, whose peaks are spread evenly in log over the task's range.

    If the task has a seed load, each search is seeded with its own peak times exp(N(0, 0.25)). A goal without a mean
    response (simulated windows have no histograms) is rehearsed on the mean with the same limit. `progress` gets the
    number of searches done and in all. More than one process needs a policy that can be pickled; the result does not
    depend on the number of processes. Raises InputError if there is nothing to do, MachineRefuses if a process is
    killed.
    """
    if not servers or searches < 1 or not 0 < task.lowest < task.highest < math.inf:
        raise InputError(
            "nothing to rehearse: it takes a server and a search at least, and loads from above 0 to a higher one, "
            f"not from {task.lowest:g} to {task.highest:g}"
        )
    jobs = list(_jobs(task, servers, searches, seed))
    outcomes = []
    with _over(processes, policy, place or Place()) as carried_out:
        for outcome in carried_out(jobs):
            outcomes.append(outcome)
            progress(len(outcomes), len(jobs))
    return Rehearsal(task, tuple(outcomes))


def binomial_interval(hits: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper's and Pearson's exact interval of a proportion; from 0 to 1 without trials."""
    if not 0 <= hits <= of:
        raise ValueError(f"no more hits than trials, not {hits} of {of}")
    outside = (1 - confidence) / 2
    low = float(betaincinv(hits, of - hits + 1, outside)) if hits else 0.0
    high = float(betaincinv(hits + 1, of - hits, 1 - outside)) if hits < of else 1.0
    return low, high


def _jobs(task: Task, servers: Sequence[Curve], searches: int, seed: int) -> Iterator[_Job]:
    """Jobs with their own random draws, which depend on the position of a server but not on the other servers."""
    low, high = math.log(task.lowest), math.log(task.highest)
    margin = min(math.log(MARGIN), (high - low) / 3)
    low, high = low + margin, high - margin
    goal = mean_goal(task.goal)
    for row, curve in enumerate(servers):
        for place in range(searches):
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(row, place)))
            peak = math.exp(low + (high - low) * (place + rng.random()) / searches)
            near = min(max(peak * math.exp(SEED_SD * rng.standard_normal()), task.lowest), task.highest)
            of_server, of_policy = (int(each) for each in rng.integers(0, 2**31, 2))
            seed_load = None if task.seed_load is None else round(near) if task.whole else near
            yield _Job(curve, peak, of_server, replace(task, goal=goal, seed=of_policy, seed_load=seed_load))


def mean_goal(goal: Goal) -> Goal:
    """The part of a goal that can be simulated: its limit of the mean, else that of a percentile taken as a mean."""
    limits = {each.of: each.limit for each in reversed(goal.criteria)}
    limit_s = limits.get("mean", limits.get("percentile", 1e-3 * LIMIT_MS))
    return Goal((Criterion("mean", limit_s),))


def _rehearsed(policy: Policy, place: Place, job: _Job) -> Outcome:
    limit_s = job.task.goal.criteria[0].limit
    server = place.server(job.curve, job.peak, job.seed, limit_s)
    made: list[Trial] = []

    def keep(request: TrialRequest, trial: Trial) -> None:
        made.append(trial)

    answer = search(policy, job.task, server, made=keep)
    rate = answer.rate
    off = math.inf if rate is None else abs(rate / job.peak - 1)
    beside = math.inf if rate is None else abs(server.response_s(rate) / limit_s - 1)
    return Outcome(
        job.curve.name,
        job.peak,
        answer,
        len(made),
        server.spent_s,
        near=off <= job.task.within,
        in_region=beside <= job.task.width,
        covered=answer.low <= job.peak <= answer.high,
    )


@contextmanager
def _over(
    processes: int, policy: Policy, place: Place
) -> Iterator[Callable[[Sequence[_Job]], Iterator[Outcome]]]:
    """Run searches here or in processes, in order; pending ones are dropped if it is left by an exception.

    Each process gets the policy once, so that its caches are shared by all its searches.
    """
    if processes <= 1:
        yield partial(map, partial(_rehearsed, policy, place))
        return
    with executor(processes, _begin, (policy, place)) as pool:
        yield partial(pool.map, _rehearsed_there)


@contextmanager
def executor(
    processes: int, begin: Callable[..., None] | None = None, given: tuple[Any, ...] = ()
) -> Iterator[ProcessPoolExecutor]:
    """Processes that each call `begin` first. Raises MachineRefuses if one is killed from outside."""
    pool = ProcessPoolExecutor(processes, initializer=begin, initargs=given)
    try:
        yield pool
    except BrokenProcessPool as error:
        raise MachineRefuses(
            "a process of the rehearsal was ended from outside (memory?): rehearse in one process"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_given: list[tuple[Policy, Place]] = []
"""Policy and place of a process of the pool."""


def _begin(policy: Policy, place: Place) -> None:
    _given[:] = [(policy, place)]


def _rehearsed_there(job: _Job) -> Outcome:
    return _rehearsed(*_given[0], job)
