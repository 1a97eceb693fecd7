"""Rehearsal of a map on simulated surfaces: its cost, and the share of correct configurations.

Each rehearsed map has its own surface, drawn from the surrogate's prior (a smooth Gaussian process and roughness;
Matérn 5/2 by random Fourier features: Rahimi & Recht 2007) around the middle of the permitted loads, and one curve for
all configurations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from etude.errors import InputError
from etude.peak.harnesses.curves import CURVES
from etude.peak.harnesses.simulated import SimulatedServer
from etude.peak.policies import policy
from etude.peak.rehearse import MARGIN, Place, executor, mean_goal
from etude.peak.search import benchmarking_time_s, search
from etude.peak.task import Task, Trial, TrialRequest
from etude.surface.factors import Configuration, Floats, Space
from etude.surface.next_configuration import Rules, Visit, decide, predicted_samples
from etude.surface.peaks import Shapes, sample_of, shapes_after, task_of
from etude.surface.samples import Sample
from etude.surface.surrogates.process import Prior

FEATURES = 500
"""Number of cosines of a surface."""
FREEDOM = 5
"""Degrees of freedom of Student's law, the spectral density of a Matérn process with ν = 5/2."""
MOST_CONFIGURATIONS = 400
"""Maximum number of configurations of a rehearsed map, for its run time."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Budgets of benchmarking time, s; None: unlimited."""

    map_s: float | None = None
    cell_s: float | None = None


@dataclass(frozen=True, slots=True)
class RehearsedMap:
    """Result of one rehearsed map."""

    curve: str
    measured: int
    predicted: int
    """Unmeasured configurations with a value."""
    trials: int
    spent_s: float
    """Benchmarking time."""
    near: int
    """Configurations whose value is within the task's `within` of the truth, measured or predicted."""


@dataclass(frozen=True, slots=True)
class _Job:
    space: Space
    rules: Rules
    task: Task
    policy: str
    place: Place
    bounds: Bounds


def rehearse_maps(
    space: Space,
    rules: Rules,
    task: Task,
    policy_name: str,
    maps: int,
    *,
    place: Place | None = None,
    bounds: Bounds | None = None,
    processes: int = 2,
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[RehearsedMap, ...]:
    """Rehearse `maps` maps, each with another surface. The result depends only on the arguments. `progress` gets the
    number of finished ones. Raises InputError for a space that is too large, MachineRefuses if a process is killed."""
    if space.size > MOST_CONFIGURATIONS and not (rules.count and rules.count <= MOST_CONFIGURATIONS):
        raise InputError(
            f"nothing rehearsed: the surface has {space.size} configurations; expected {MOST_CONFIGURATIONS} at most, "
            "or a count"
        )
    job = _Job(
        space,
        rules,
        replace(task, goal=mean_goal(task.goal)),
        policy_name,
        place or Place(),
        bounds or Bounds(),
    )
    found = []
    with executor(min(processes, maps)) as pool:
        for each in pool.map(partial(_rehearsed, job), range(maps)):
            found.append(each)
            progress(len(found))
    return tuple(found)


def _rehearsed(job: _Job, number: int) -> RehearsedMap:
    drawn = np.random.default_rng([job.task.seed, number])
    curve = list(CURVES.values())[number % len(CURVES)]
    configurations = list(job.space)
    peaks = dict(
        zip(configurations, drawn_surface(job.space, configurations, job.task, drawn).tolist(), strict=True)
    )
    limit_s = job.task.goal.criteria[0].limit

    def server(configuration: Configuration) -> SimulatedServer:
        seed = int(np.random.default_rng([job.task.seed, number, *configuration]).integers(2**31))
        return job.place.server(curve, peaks[configuration], seed, limit_s)

    samples = simulated_map(job.space, job.rules, job.task, job.policy, server, job.bounds)
    every = (*samples, *predicted_samples(job.space, samples, job.task.confidence))
    near = sum(
        each.value is not None and abs(each.value / peaks[each.cell] - 1) <= job.task.within for each in every
    )
    return RehearsedMap(
        curve.name,
        len({each.cell for each in samples}),
        len(every) - len(samples),
        sum(each.trials for each in samples),
        sum(each.cost_s for each in samples),
        near,
    )


def simulated_map(
    space: Space,
    rules: Rules,
    task: Task,
    policy_name: str,
    server: Callable[[Configuration], SimulatedServer],
    bounds: Bounds,
) -> list[Sample]:
    """Samples of one map, with each search warm-started from other configurations."""
    samples: list[Sample] = []
    shapes: Shapes = ()
    left_s = math.inf if bounds.map_s is None else bounds.map_s
    while left_s > 0 and isinstance(visit := decide(space, rules, samples), Visit):
        budget_s = min(left_s, math.inf if bounds.cell_s is None else bounds.cell_s)
        asked = replace(
            task_of(task, visit, shapes), budget_s=budget_s if budget_s < math.inf else task.budget_s
        )
        trials: list[Trial] = []

        def keep(_: TrialRequest, trial: Trial, made: list[Trial] = trials) -> None:
            made.append(trial)

        answer = search(policy(policy_name), asked, server(visit.cell), made=keep)
        samples.append(sample_of(visit.cell, asked, answer, trials, policy_name))
        shapes = shapes_after(asked, trials)
        left_s -= benchmarking_time_s(trials)
    return samples


def drawn_surface(
    space: Space, configurations: Sequence[Configuration], task: Task, drawn: np.random.Generator
) -> Floats:
    """Peak rates, shape (configurations,), within the task's loads and far enough from their ends to try both sides."""
    prior = Prior()
    places = _places(space, configurations)
    waves = drawn.standard_normal((FEATURES, places.shape[1])) / prior.length
    waves *= np.sqrt(FREEDOM / drawn.chisquare(FREEDOM, (FEATURES, 1)))
    phases = drawn.uniform(0, 2 * math.pi, FEATURES)
    smooth = prior.signal * math.sqrt(2 / FEATURES) * np.cos(places @ waves.T + phases).sum(axis=1)
    low, high = math.log(task.lowest * MARGIN), math.log(task.highest / MARGIN)
    middle = (low + high) / 2 if task.seed_load is None else math.log(task.seed_load)
    rough = prior.rough * drawn.standard_normal(len(configurations))
    return np.asarray(np.exp(np.clip(middle + smooth + rough, min(low, middle), max(high, middle))))


def _places(space: Space, configurations: Sequence[Configuration]) -> Floats:
    """Coded levels, shape (configurations, …); levels of a categorical factor are at distance 1."""
    coded, columns = space.coded(configurations), []
    for at, factor in enumerate(space.factors):
        if factor.scale == "categorical":
            columns.append(np.eye(len(factor.levels))[coded[:, at].astype(int)] / math.sqrt(2))
        else:
            columns.append(coded[:, at : at + 1])
    return np.hstack(columns)
