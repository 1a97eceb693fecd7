"""Response that is a peak rate: the search of one configuration, warm-started from others, and its sample.

`response_of` is for a peak rate and for the other kind of response (metric.py).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from etude.errors import InputError, UsageError
from etude.peak import sources
from etude.peak.harnesses.simulated import SimulatedServer
from etude.peak.harnesses.spec import Harness as CommandHarness
from etude.peak.policies import DEFAULT
from etude.peak.policies.belief.evidence import evidence_of
from etude.peak.policies.belief.grid import posterior_of
from etude.peak.search import Bench, Watcher, benchmarking_time_s
from etude.peak.search_session import run_search
from etude.peak.search_store import SearchSpec, SearchStore
from etude.peak.sources import HIGHEST, LOWEST, Source
from etude.peak.task import Answer, Criterion, Goal, Task, Trial, TrialRequest
from etude.peak.window import Window
from etude.surface.factors import Configuration, Space
from etude.surface.metric import Metric
from etude.surface.next_configuration import Visit
from etude.surface.response import ConfigurationRequest, Response, Tell
from etude.surface.samples import Sample, State
from etude.surface.simulated import SURFACES, SimulatedSurface
from etude.surface.spec import MetricOf, PeakOf, Spec

Shapes = tuple[tuple[str, float], ...]
SEARCH = "search"
"""Subdirectory of a configuration's search."""


def task_of(task: Task, visit: Visit, shapes: Shapes) -> Task:
    """Task of a configuration's search: a seed within the permitted loads, and its standard deviation."""
    if visit.expected is None:
        return replace(task, seed_shapes=shapes)
    load = min(max(visit.expected, task.lowest), task.highest)
    if task.whole:
        load = float(min(max(round(load), math.ceil(task.lowest)), math.floor(task.highest)))
    spread = visit.spread if task.lowest <= visit.expected <= task.highest else None
    counts = int(visit.proven and spread is not None)
    return replace(task, seed_load=load, seed_spread=spread, seed_trials=counts, seed_shapes=shapes)


def shapes_after(task: Task, trials: Sequence[Trial]) -> Shapes:
    """Probabilities of the shapes of the curve after a search, passed to the next configuration."""
    evidence = evidence_of(task, trials)
    return posterior_of(task, evidence).shapes() if evidence else task.seed_shapes


def sample_of(
    configuration: Configuration,
    task: Task,
    answer: Answer,
    trials: Sequence[Trial],
    policy_name: str = DEFAULT,
) -> Sample:
    """Sample from the answer of a search. The default policy also counts the seed as evidence."""
    state: State = "measured"
    if answer.rate is None:
        state = "bounded" if answer.low > 0 or math.isfinite(answer.high) else "failed"
    found = answer.rate, answer.low, answer.high, task.confidence
    told = task.seed_load is not None and task.seed_spread is not None
    expected = (task.seed_load, task.seed_spread, policy_name == DEFAULT) if told else (None, None, False)
    return Sample(
        configuration, state, *found, benchmarking_time_s(trials), len(trials), answer.kept, answer.why, *expected
    )  # fmt: skip


Opened = Callable[[ConfigurationRequest], AbstractContextManager[Bench]]
"""Opens the bench of a configuration."""


@dataclass
class PeakRate:
    """A response (`response.Response`): each configuration's peak rate, by a search stored in the configuration's
    directory."""

    source: str
    """Name of the source."""
    task: Task
    policy: str
    text: str
    opened: Opened
    unit: str
    deadline: datetime | None = None
    """Time at which each search answers at the latest."""
    name: str = "peak rate"
    better: Literal["higher", "lower"] = "higher"
    shapes: Shapes = ()
    """Probabilities of the shapes of the curve from the configurations so far."""
    nodes: int = 1
    load_hosts: int = 0
    """Number of load hosts of its source."""

    def learn(self, place: Path) -> None:
        """Update the shapes from the trials of a configuration."""
        if self.policy == DEFAULT and (place / SEARCH / "experiment.json").exists():
            kept = SearchStore(place / SEARCH)
            self.shapes = shapes_after(kept.task, kept.trials())

    @property
    def learned_state(self) -> Any:
        return [list(each) for each in self.shapes]

    def restore(self, learned_state: Any) -> None:
        """Set the shapes. Raises ValueError or TypeError for anything else."""
        self.shapes = tuple((str(name), float(weight)) for name, weight in learned_state)

    def measure(self, asked: ConfigurationRequest, tell: Tell) -> Sample:
        """Run one search. Raises EtudeError from the harness; trials are on disk by then."""
        place = asked.place / SEARCH
        sought = self._sought(asked, place)

        def window(request: TrialRequest, windows: Sequence[Window]) -> None:
            tell(f"load {request.load:.6g}, {sum(each.duration_s for each in windows):.0f} s")

        watcher = Watcher(lambda request: tell(f"load {request.load:.6g}"), window)
        kept = run_search(
            place,
            sought,
            lambda kept: self.opened(asked),
            deadline=self.deadline,
            watch=lambda kept, policy: nullcontext(watcher),
        )
        trials = kept.trials()
        assert kept.answer is not None
        if self.policy == DEFAULT:
            self.shapes = shapes_after(sought.task, trials)
        return sample_of(asked.visit.cell, sought.task, kept.answer, trials, self.policy)

    def _sought(self, asked: ConfigurationRequest, place: Path) -> SearchSpec:
        budget_s = self.task.budget_s if asked.left_s is None else asked.left_s
        if (place / "experiment.json").exists() and (kept := SearchStore(place)).trials():
            return replace(kept.sought, task=replace(kept.task, budget_s=budget_s))  # else as it was begun
        shapes = self.shapes if self.policy == DEFAULT else ()
        task = replace(task_of(self.task, asked.visit, shapes), budget_s=budget_s)
        return SearchSpec(self.source, task, self.policy, self.text, dict(asked.settings))


def of_harness(
    source: Source,
    policy_name: str,
    space: Space,
    resources: Collection[str],
    where: str,
) -> PeakRate:
    """Peak rate by a HARNESS.toml or a harness in Python.

    Raises:
        InputError: a factor is unknown to the harness, or a resource is to confine a system that the harness does not
        start.
    """
    harness = source.harness
    assert harness is not None
    known = getattr(harness, "factors", None)
    for factor in space.factors:
        if known is not None and factor.name not in known and factor.name not in resources:
            which = f"expected one of {', '.join(known)}" if known else "it has no [factors]"
            raise InputError(
                f"{where}: factor {factor.name} is no resource, and {source.name} has no such factor: {which}"
            )

    @contextmanager
    def opened(asked: ConfigurationRequest) -> Iterator[Bench]:
        given = {**asked.settings, **asked.setting.values}
        factors = {name: text for name, text in given.items() if known is None or name in known}
        words = asked.setting.prefix
        if words and not isinstance(harness, CommandHarness):
            raise InputError(
                f"{where}: {source.name} is a harness in Python: it cannot be confined by a resource"
            )
        if isinstance(harness, CommandHarness):
            if words and not harness.commands.start:
                raise InputError(f"{where}: {source.name} starts no system that a resource could confine")
            groups = asked.setting.groups
            with harness.bench(factors, asked.place / "harness", words, groups) as bench:
                yield bench
        else:
            with harness.bench(factors, asked.place / "harness") as bench:
                yield bench

    unit = "clients" if source.task.closed else "1/s"
    return PeakRate(
        source.name,
        source.task,
        policy_name,
        source.text,
        opened,
        unit,
        nodes=source.nodes,
        load_hosts=source.load_hosts,
    )


def of_simulation(system: SimulatedSurface, policy_name: str) -> PeakRate:
    """Peak rate of simulated servers, as in the paper's experiments: 40 ms, and loads from 50/s."""

    @contextmanager
    def opened(asked: ConfigurationRequest) -> Iterator[Bench]:
        configuration = asked.visit.cell
        kept = SearchStore(asked.place / SEARCH)
        drawn = int(np.random.default_rng([system.seed, *configuration, 1]).integers(2**31))
        yield SimulatedServer(system.curve, system.peak(configuration), drawn, before=kept.trials())

    task = Task(Goal((Criterion("mean", 0.040),)), LOWEST, HIGHEST, step=20.0)
    text = f"simulate {system.law.name}:{system.seed}"
    return PeakRate(f"simulated-{system.law.name}", task, policy_name, text, opened, "1/s")


def simulated(words: str) -> SimulatedSurface:
    """A simulated surface from `DB_TP`, or `DB_TP:7` with another seed. Raises UsageError for an unknown surface."""
    name, colon, seed = words.partition(":")
    if name not in SURFACES:
        raise UsageError(f"--simulate {words}: no such surface; there are {', '.join(SURFACES)}")
    if colon and not re.fullmatch(r"[0-9]{1,18}", seed):
        raise UsageError(f"--simulate {words}: expected NAME or NAME:SEED, such as DB_TP:7")
    return SimulatedSurface(SURFACES[name], int(seed or 0))


def response_of(spec: Spec, deadline: datetime | None) -> Response:
    """Response of a SPEC.toml; a search answers by the deadline. Raises InputError if its harness is invalid."""
    if isinstance(spec.response, MetricOf):
        return Metric(spec.response, spec.path.parent)
    source = source_of(spec.response, spec.path.parent)
    found = of_harness(source, spec.response.policy, spec.space, spec.resources, str(spec.path))
    return replace(found, deadline=deadline)


def source_of(response: PeakOf, base: Path) -> Source:
    """Source searched at each configuration; a file is relative to `base`. Raises InputError if it is invalid."""
    word = response.harness
    return sources.of_harness(word if ":" in word and not (base / word).exists() else str(base / word))


def simulated_response(words: str) -> tuple[SimulatedSurface, Response]:
    """Response of `DB_TP`, or `DB_TP:7`. Raises UsageError for an unknown surface."""
    system = simulated(words)
    return system, of_simulation(system, "posterior")
