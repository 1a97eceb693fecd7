"""Mapping a surface on a pool: as many configurations at once as there are nodes, until the rules are satisfied.

`run_map` is the same for one configuration at a time. The attempt of a lost node is stored but does not count, and its
configuration is measured again on another node: a search is never resumed on another machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from etude.analysis.warnings.machine import machine_warnings
from etude.cluster.job_loop import EndedJob, JobLoop, Losses
from etude.cluster.pool.job import RETRYABLE, Job, JobEnd
from etude.cluster.pool.journal import JournaledPool
from etude.errors import CommandFailed, EtudeError, InputError, MachineRefuses
from etude.peak.search import BUDGET_SPENT
from etude.present.sentences.warnings import found_text
from etude.stats.twosample import Difference, welch
from etude.surface.configuration_jobs import (
    ConfigurationJobs,
    is_begun,
    read_attempt,
    read_request,
    read_sample,
    spent_on_disk,
)
from etude.surface.factors import Configuration, Floats
from etude.surface.map_store import INTERRUPTED, Attempt, MapStore
from etude.surface.next_configuration import Visit, decide, fit_surrogate, visit
from etude.surface.plans import LEAST_COSTS, expected_cost
from etude.surface.response import failed_sample
from etude.surface.run_map import (
    HOPELESS,
    LEAST_S,
    MapBudget,
    findings,
    forecast_of,
    is_hopeless,
    restore_learned_state,
)
from etude.surface.samples import Sample, known_samples
from etude.surface.surrogates.selection import Choice
from etude.units.formatting import percent

LEAST_ON_MACHINE = 4
"""Minimum number of configurations on a machine, and on all others, for a comparison."""
CONFIDENCE = 0.95
"""Confidence that no machine is reported if none differs."""


def machine_findings(kept: MapStore, fit: Choice | None) -> list[str]:
    """Findings on differences between machines; empty for one machine. `fit`: surrogate of the surface. If the system
    has its own machine, that one is compared."""
    hosts = {line.sample.cell: line.system or line.host for line in kept.attempts() if not line.lost}
    if len(set(hosts.values())) < 2:
        return []
    several = [found_text(w) for w in machine_warnings(kept.document) if w.kind == "several-machines"]
    if fit is None:
        return several
    data = known_samples(kept.samples())
    off = data.log - fit.left_out.log
    return [*several, *machines_apart(off, [hosts[configuration] for configuration in data.cells])]


def machines_apart(off: Floats, hosts: Sequence[str]) -> list[str]:
    """Machines whose residuals (measured minus predicted) differ from those of the other machines, the farthest first,
    which is then excluded from the others.

    `off`: leave-one-out residuals, in logs. Source: Welch's test of each machine against all others, with the
    Bonferroni correction.
    """
    names, where = sorted(set(hosts)), np.array(hosts)
    said = []
    while len(names) > 1:
        shown = names[:1] if len(names) == 2 else names  # for two machines both tests are the same
        found = {name: one for name in shown if (one := _difference(off, where, name, names, len(shown)))}
        if not found:
            break
        name = min(found, key=lambda each: found[each].p)
        if found[name].low <= 0 <= found[name].high:
            break
        said.append(_told(name, found[name], len(names) == 2))
        names.remove(name)
    return said


def _difference(
    off: Floats, where: NDArray[np.str_], name: str, names: Sequence[str], count: int
) -> Difference | None:
    """Comparison of one machine with the others; None with too few configurations or without variance."""
    here, others = off[where == name], off[np.isin(where, [each for each in names if each != name])]
    if min(len(here), len(others)) < LEAST_ON_MACHINE:
        return None
    try:
        return welch(here, others, confidence=1 - (1 - CONFIDENCE) / count)
    except ValueError:
        return None


def _told(name: str, found: Difference, pair: bool) -> str:
    near, far = sorted(abs(math.expm1(bound)) for bound in (found.low, found.high))
    middle = percent(abs(math.expm1(found.difference)))
    return (
        f"configurations measured on {name} are {middle} ({percent(near)} … {percent(far)}) "
        f"{'above' if found.low > 0 else 'below'} those of the other machine{'' if pair else 's'}, held against what "
        "all configurations predict: a machine is in these differences, besides the factors"
    )


DEADLINE, BUDGET = "the deadline has come", BUDGET_SPENT


def end_reason(kept: MapStore, budget: MapBudget, pending: Sequence[Configuration]) -> str:
    """Reason why no further configuration is started; empty if one may be."""
    if budget.left_s() < LEAST_S:
        return DEADLINE
    left_s = budget_left(kept, budget, pending)
    return BUDGET if left_s is not None and left_s <= 0 else ""


def budget_left(kept: MapStore, budget: MapBudget, pending: Sequence[Configuration]) -> float | None:
    """Benchmarking time neither spent nor expected to be spent by pending configurations, s; None if not bounded.

    With few measured costs their mean is expected; with none, the budget of a configuration.
    """
    if budget.budget_s is None:
        return None
    cost = _cost(kept)
    spent = sum(line.sample.cost_s for line in kept.attempts())
    paid = [sample.cost_s for sample in kept.samples() if sample.cost_s > 0]
    usual_s = fmean(paid) if paid else budget.cell_s or math.inf
    return (
        budget.budget_s
        - spent
        - sum(usual_s if cost is None else cost(configuration) for configuration in pending)
    )


def next_visit(kept: MapStore, budget: MapBudget, pending: Sequence[Configuration]) -> Visit | str:
    """The next visit, or the reason why none starts now. A configuration that would miss the deadline is not
    started."""
    space, rules, samples = kept.definition.space, kept.definition.rules, kept.samples()
    if again := _lost(kept, pending):
        return visit(space, rules, again[0], samples)
    bounded = budget.budget_s is not None or math.isfinite(budget.left_s())
    cost = _cost(kept) if bounded else None
    late: list[Configuration] = []
    while True:
        decision = decide(space, rules, samples, [*pending, *late], cost)
        if not isinstance(decision, Visit):
            return "no other configuration would end before the deadline" if late else decision.why
        if cost is None or cost(decision.cell) <= budget.left_s():
            return decision
        late.append(decision.cell)


def _cost(kept: MapStore) -> Callable[[Configuration], float] | None:
    """Expected benchmarking time of a configuration, s; None with too few measured costs."""
    samples = kept.samples()
    paid = sum(sample.cost_s > 0 for sample in samples)
    return expected_cost(kept.definition.space, samples) if paid >= LEAST_COSTS else None


def _lost(kept: MapStore, pending: Sequence[Configuration]) -> list[Configuration]:
    """Configurations whose last attempt does not count, in the order of these attempts."""
    last = {line.sample.cell: line.lost for line in kept.attempts()}
    closed = {*pending, *(sample.cell for sample in kept.samples()), *kept.definition.space.without}
    return [configuration for configuration, lost in last.items() if lost and configuration not in closed]


LOOK_S = 20.0
"""Interval between checks of the number of nodes, s."""


@dataclass(frozen=True)
class DistributedDisplay:
    """Callbacks for progress."""

    begins: Callable[[Visit], None] = lambda visit: None
    looks: Callable[[Sequence[Configuration], int], None] = lambda configurations, running: None
    """Pending configurations, and how many of them run; the others wait for a node."""
    made: Callable[[Visit, Sample, str], None] = lambda visit, sample, host: None
    lost: Callable[[Visit, JobEnd], None] = lambda visit, ended: None


def run_map_over_pool(
    kept: MapStore,
    configurations: ConfigurationJobs,
    pool: JournaledPool,
    budget: MapBudget,
    display: DistributedDisplay,
) -> str:
    """Measure until the rules are satisfied, and return the reason. Jobs of an earlier controller are waited for; an
    interruption leaves running jobs to the next controller.

    Raises:
        EtudeError: nothing can be measured at all, the pool refuses, or results cannot be written.
    """
    why = _DistributedMap(kept, configurations, pool, budget, display).made()
    samples = kept.samples()
    surrogate = fit_surrogate(kept.definition.space, tuple(samples))
    said = [*findings(samples), *machine_findings(kept, surrogate)]
    kept.ended(why, "" if surrogate is None else surrogate.name, said)
    return why


@dataclass(frozen=True)
class _Attempt:
    """One attempt at a configuration."""

    visit: Visit
    attempt: int

    @property
    def key(self) -> Configuration:
        """The configuration."""
        return self.visit.cell


class _DistributedMap:
    def __init__(
        self,
        kept: MapStore,
        configurations: ConfigurationJobs,
        pool: JournaledPool,
        budget: MapBudget,
        display: DistributedDisplay,
    ) -> None:
        self.kept, self.cells, self.budget, self.display = kept, configurations, budget, display
        restore_learned_state(kept, configurations)
        lost = {
            configuration: self._losses(configuration)
            for configuration in {line.sample.cell for line in kept.attempts()}
        }
        self.jobs: JobLoop[_Attempt] = JobLoop(pool, self._adopted, lost)
        self.why = ""
        """Reason why no more jobs start now."""
        self.stopped: EtudeError | None = None
        """Reason why no more jobs start at all: the pool refuses, or the subject has changed."""
        self.refused = 0
        """Consecutive jobs that were ended from outside."""

    def made(self) -> str:
        error = self.jobs.follow(self._submit, self._ended, self._look_s)
        self._withdraw("the map came to its end")
        if error := error or self.stopped:
            raise error
        return self.why

    def _losses(self, configuration: Configuration) -> Losses:
        lines = [line for line in self.kept.losses(configuration) if line.lost in RETRYABLE]
        return Losses(len(lines), frozenset(line.host for line in lines if line.lost == "node-lost"))

    def _adopted(self, job: Job) -> _Attempt:
        visit = read_request(job.place).visit
        return _Attempt(visit, self._losses(visit.cell).attempts + (not self._is_stored(visit, job)))

    def _is_stored(self, visit: Visit, job: Job) -> bool:
        """True if a killed controller has stored this attempt but not recorded its end in the journal."""
        return self.kept.attempt_place(visit.cell).resolve() != job.place.resolve()

    def _look_s(self) -> float:
        left_s = self.budget.left_s()
        return left_s if LEAST_S < left_s < LOOK_S else LOOK_S

    def _pending(self) -> list[Configuration]:
        return [each.key for each in self.jobs.under_way.values()]

    def _submit(self) -> None:
        """Submit configurations while nodes are free."""
        self.why = ""
        free = self.jobs.free(self.cells.nodes)
        while not self.why:
            self.why = str(self.stopped or "") or end_reason(self.kept, self.budget, self._pending())
            if self.why == DEADLINE:
                self._withdraw(self.why, waiting_only=True)
            if self.why or not free:
                break
            chosen = next_visit(self.kept, self.budget, self._pending())
            if isinstance(chosen, str):
                self.why = chosen
            else:
                self._begin(chosen)
                free -= 1
        if self.jobs.under_way:
            self.display.looks(self._pending(), self.jobs.running)

    def _begin(self, visit: Visit) -> None:
        place = self.kept.attempt_place(visit.cell)
        if is_begun(place):  # by a session without a pool, or by a withdrawn job
            self._interrupted(visit, place, "it was interrupted, and is begun anew")
            place = self.kept.attempt_place(visit.cell)
        bounds = (self.budget.cell_s, budget_left(self.kept, self.budget, self._pending()))
        left_s = min((bound for bound in bounds if bound is not None), default=None)
        left_s = None if left_s is None else max(left_s, LEAST_S)
        job = self.cells.job(visit, place, left_s)
        name = self.kept.definition.space.name(visit.cell)
        self.jobs.submit(_Attempt(visit, self.jobs.attempt(visit.cell)), job, name)
        self.display.begins(visit)

    def _ended(self, ended: EndedJob[_Attempt]) -> EtudeError | None:
        """Store the result of a job; returns the error if the map cannot resume."""
        refusal = None if self._is_stored(ended.work.visit, ended.job) else self._keep(ended)
        tried = self.kept.samples()
        if len(tried) >= HOPELESS and all(each.state == "failed" for each in tried):
            return is_hopeless(CommandFailed(tried[-1].why), len(tried))
        return refusal

    def _keep(self, of: EndedJob[_Attempt]) -> EtudeError | None:
        """Store one attempt, whatever its result; returns the error if the map cannot resume."""
        visit, place, ended = of.work.visit, of.job.place, of.end
        sample = read_sample(place, self.kept.definition.space)
        if sample is not None:
            self._made(visit, place, ended, sample)
        elif ended.how in RETRYABLE:
            self._lost(of.work, place, ended, again=of.again)
        elif ended.how == "held":
            self._stop(MachineRefuses(ended.why), visit, place)
        elif ended.code == InputError.exit_code:  # not the configuration's: its own failures leave a sample
            self._stop(InputError(_said(ended)), visit, place)
        else:
            return self._refused(visit, place, ended)
        return None

    def _made(self, visit: Visit, place: Path, ended: JobEnd, sample: Sample) -> None:
        attempt, self.refused = read_attempt(place, ended), 0
        if sample.state == "failed" and self.budget.left_s() < LEAST_S:  # out of time
            self._keep_lost(visit, attempt, INTERRUPTED, sample)
            return
        sample = forecast_of(sample, visit)
        self.kept.keep(visit, sample, attempt)
        if sample.trials:
            self.cells.learn(place)
        self.display.made(visit, sample, where_measured(attempt))

    def _lost(self, work: _Attempt, place: Path, ended: JobEnd, *, again: bool) -> None:
        """Store a lost attempt, which does not count; the last one that is allowed has failed."""
        visit = work.visit
        attempt, sample = read_attempt(place, ended), failed_sample(visit.cell, ended.why, _took(ended))
        self.display.lost(visit, ended)
        if again:
            self._keep_lost(visit, attempt, ended.how, replace(sample, trials=spent_on_disk(place)[1]))
            return
        sample = replace(sample, why=f"{work.attempt} nodes came to no end of it; the last: {ended.why}")
        self.kept.keep(visit, forecast_of(sample, visit), attempt)
        self.display.made(visit, sample, where_measured(attempt))

    def _refused(self, visit: Visit, place: Path, ended: JobEnd) -> EtudeError | None:
        """Store a failed sample of a job that was cancelled, ran out of time, or failed inside Étude. Returns an error
        if all jobs end like this."""
        why = ended.why or "its job has ended well, and what it measured is not here"
        sample, attempt = failed_sample(visit.cell, why, _took(ended)), read_attempt(place, ended)
        self.kept.keep(visit, forecast_of(sample, visit), attempt)
        self.display.made(visit, sample, where_measured(attempt))
        self.refused += 1
        if self.refused < HOPELESS:
            return None
        return MachineRefuses(f"{self.refused} jobs in a row came to nothing; the last: {why}")

    def _stop(self, why: EtudeError, visit: Visit, place: Path) -> None:
        """Start no more jobs, and let running ones end; another session measures the configuration."""
        self.stopped = self.stopped or why
        self._interrupted(visit, place, str(why))

    def _interrupted(self, visit: Visit, place: Path, why: str) -> None:
        cost_s, trials = spent_on_disk(place)
        sample = replace(failed_sample(visit.cell, why, cost_s), trials=trials)
        self._keep_lost(visit, read_attempt(place), INTERRUPTED, sample)

    def _keep_lost(self, visit: Visit, attempt: Attempt, how: str, sample: Sample) -> None:
        self.kept.keep(visit, sample, replace(attempt, lost=how))

    def _withdraw(self, why: str, *, waiting_only: bool = False) -> None:
        """Cancel jobs; another session measures their configurations."""
        for work, job in self.jobs.cancel(why, waiting_only=waiting_only):
            self._interrupted(work.visit, job.place, why)


def where_measured(attempt: Attempt) -> str:
    """Names of the nodes."""
    return f"{attempt.host} and {attempt.system}" if attempt.system else attempt.host


def _said(ended: JobEnd) -> str:
    """The error with which a job ended, without its context."""
    return ended.why.partition("etude: ")[2] or ended.why


def _took(ended: JobEnd) -> float:
    """Benchmarking time of a job without a result, s."""
    return 0.0 if ended.started_s is None else max(ended.ended_s - ended.started_s, 0.0)
