"""Mapping a surface over a pool: as many cells at once as it has nodes for, until the rules have enough.

`run_map` is the same for one cell at a time. What a lost node was measuring is kept as an attempt that does not count,
and its cell is measured anew on another node: a half search is not gone on with on another machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from etude.analysis.warnings.machine import machine_warnings
from etude.cluster.pool.job import ELSEWHERE, TRIES, UNFIT, JobEnd
from etude.cluster.pool.journal import JournaledPool, Submitted
from etude.errors import CommandFailed, EtudeError, InputError, MachineRefuses
from etude.peak.search import BUDGET_SPENT
from etude.present.sentences.warnings import found_text
from etude.stats.twosample import Difference, welch
from etude.surface.attempt import INTERRUPTED, Attempt
from etude.surface.configuration_jobs import CellJobs, attempt_in, is_begun, on_disk, read_todo, sample_in
from etude.surface.cost_model import LEAST, expected_cost
from etude.surface.factors import Cell, Floats
from etude.surface.map_store import MapStore
from etude.surface.measure_configuration import failed_sample
from etude.surface.next_configuration import Visit, decide, fit_surrogate, visit
from etude.surface.run_map import HOPELESS, LEAST_S, Means, findings, forecast_of, is_hopeless, taught_before
from etude.surface.samples import Sample, known_samples
from etude.surface.surrogates.selection import Choice
from etude.units.formatting import percent

LEAST_ON_MACHINE = 4
"""Cells on a machine, and on all others, before they are held against each other."""
CONFIDENCE = 0.95
"""That no machine is named apart where none is."""


def machine_findings(kept: MapStore, fit: Choice | None) -> list[str]:
    """Lines; none of a surface that was measured on one machine. `fit`: what is believed of the surface. Of a system
    that has a machine of its own, it is that one which counts."""
    hosts = {line.sample.cell: line.system or line.host for line in kept.attempts() if not line.lost}
    if len(set(hosts.values())) < 2:
        return []
    several = [found_text(w) for w in machine_warnings(kept.document) if w.kind == "several-machines"]
    if fit is None:
        return several
    data = known_samples(kept.samples())
    off = data.log - fit.left_out.log
    return [*several, *machines_apart(off, [hosts[cell] for cell in data.cells])]


def machines_apart(off: Floats, hosts: Sequence[str]) -> list[str]:
    """Machines whose cells are off from what all other cells predict in another way than those of the others; the
    farthest first, which then is none of the others any more.

    `off`: measured less predicted, in logs, each predicted without itself. Source: Welch's test of each machine
    against all others, at a level at which all of them hold together (Bonferroni).
    """
    names, where = sorted(set(hosts)), np.array(hosts)
    said = []
    while len(names) > 1:
        shown = (
            names[:1] if len(names) == 2 else names
        )  # of two, one is apart from the other as the other from it
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
    """One machine against the others; None where they are too few, or nothing varies."""
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
        f"cells measured on {name} are {middle} ({percent(near)} … {percent(far)}) "
        f"{'above' if found.low > 0 else 'below'} those of the other machine{'' if pair else 's'}, held against what "
        "all cells predict: a machine is in these differences, besides the factors"
    )


DEADLINE, BUDGET = "the deadline has come", BUDGET_SPENT


def why_over(kept: MapStore, means: Means, pending: Sequence[Cell]) -> str:
    """Why no further cell is begun; empty if one may be."""
    if means.left_s() < LEAST_S:
        return DEADLINE
    left_s = budget_left(kept, means, pending)
    return BUDGET if left_s is not None and left_s <= 0 else ""


def budget_left(kept: MapStore, means: Means, pending: Sequence[Cell]) -> float | None:
    """Benchmarking time that is neither spent nor expected to be spent by cells under way, s; None if not bounded.

    While few have told what a cell takes, it is taken to be their mean; while none has, all that a cell may.
    """
    if means.budget_s is None:
        return None
    cost = _cost(kept)
    spent = sum(line.sample.cost_s for line in kept.attempts())
    paid = [sample.cost_s for sample in kept.samples() if sample.cost_s > 0]
    usual_s = fmean(paid) if paid else means.cell_s or math.inf
    return means.budget_s - spent - sum(usual_s if cost is None else cost(cell) for cell in pending)


def following(kept: MapStore, means: Means, pending: Sequence[Cell]) -> Visit | str:
    """A cell, or why none is begun now. What would not end before the deadline is not begun."""
    space, rules, samples = kept.charted.space, kept.charted.rules, kept.samples()
    if again := _lost(kept, pending):
        return visit(space, rules, again[0], samples)
    bounded = means.budget_s is not None or math.isfinite(means.left_s())
    cost = _cost(kept) if bounded else None
    late: list[Cell] = []
    while True:
        decision = decide(space, rules, samples, [*pending, *late], cost)
        if not isinstance(decision, Visit):
            return "no other cell would end before the deadline" if late else decision.why
        if cost is None or cost(decision.cell) <= means.left_s():
            return decision
        late.append(decision.cell)


def _cost(kept: MapStore) -> Callable[[Cell], float] | None:
    """Benchmarking time that a cell is expected to take, s; None while too few have told."""
    samples = kept.samples()
    paid = sum(sample.cost_s > 0 for sample in samples)
    return expected_cost(kept.charted.space, samples) if paid >= LEAST else None


def _lost(kept: MapStore, pending: Sequence[Cell]) -> list[Cell]:
    """Cells of which the last attempt does not count, in the order of these attempts."""
    last = {line.sample.cell: line.lost for line in kept.attempts()}
    closed = {*pending, *(sample.cell for sample in kept.samples()), *kept.charted.space.without}
    return [cell for cell, lost in last.items() if lost and cell not in closed]


LOOK_S = 20.0
"""So often it is looked at how many nodes there are, s."""


@dataclass(frozen=True)
class SpreadDisplay:
    """Is told what happens."""

    begins: Callable[[Visit], None] = lambda visit: None
    looks: Callable[[Sequence[Cell], int], None] = lambda cells, running: None
    """Cells under way, and how many of them run; the others wait for a node."""
    made: Callable[[Visit, Sample, str], None] = lambda visit, sample, host: None
    lost: Callable[[Visit, JobEnd], None] = lambda visit, ended: None


def run_map_over_pool(
    kept: MapStore, cells: CellJobs, pool: JournaledPool, means: Means, display: SpreadDisplay
) -> str:
    """Measure until there is enough, and say why it is. Jobs that an earlier controller left are waited for; those that
    are under way when this is interrupted go on, for the next one.

    Raises:
        EtudeError: nothing can be measured at all, the pool refuses, or results cannot be written.
    """
    why = _Spread(kept, cells, pool, means, display).made()
    samples = kept.samples()
    surrogate = fit_surrogate(kept.charted.space, tuple(samples))
    said = [*findings(samples), *machine_findings(kept, surrogate)]
    kept.ended(why, "" if surrogate is None else surrogate.name, said)
    return why


@dataclass
class _Spread:
    kept: MapStore
    cells: CellJobs
    pool: JournaledPool
    means: Means
    display: SpreadDisplay
    visits: dict[str, Visit] = field(default_factory=dict)
    """Under way, by the job's id."""
    unfit: set[str] = field(default_factory=set)
    """Nodes that can run no cell."""
    widest: int = 1
    """So many jobs there were nodes for, at most."""
    stopped: EtudeError | None = None
    """Why no more is begun: the pool takes no more, or what is measured has changed."""
    refused: int = 0
    """Jobs in a row that others ended."""

    def made(self) -> str:
        taught_before(self.kept, self.cells)
        for job in self.pool.take_up():
            assert job.id is not None
            self.visits[job.id] = read_todo(job.job.place).visit
        while True:
            why = self._fill()
            if not self.visits:
                if self.stopped is not None:
                    raise self.stopped
                return why
            self.display.looks(self._pending(), len(self.pool.pool.running() & set(self.visits)))
            left_s = self.means.left_s()
            for submitted, ended in self.pool.ended(left_s if LEAST_S < left_s < LOOK_S else LOOK_S):
                self._ended(submitted, ended)

    def _pending(self) -> list[Cell]:
        return [visit.cell for visit in self.visits.values()]

    def _fill(self) -> str:
        """Hand over cells while nodes are free; says why no more, or nothing."""
        width = max((self.pool.pool.width() - len(self.unfit)) // self.cells.nodes, 1)
        self.widest = max(self.widest, width)
        while True:
            why = str(self.stopped or "") or why_over(self.kept, self.means, self._pending())
            if why == DEADLINE:
                self._withdraw(set(self.visits) - self.pool.pool.running(), why)
            if why or not self._room(width):
                return why
            chosen = following(self.kept, self.means, self._pending())
            if isinstance(chosen, str):
                return chosen
            self._submit(chosen)

    def _room(self, width: int) -> bool:
        """Whether a node is free. A job of a node that is dead is not told to have ended for minutes, and the node does
        not count in the width: until then another job is in place of it, one at a time."""
        count, running = len(self.visits), len(self.pool.pool.running() & set(self.visits))
        return count < width or (count == running and count < self.widest)

    def _submit(self, visit: Visit) -> None:
        place = self.kept.attempt_place(visit.cell)
        if is_begun(place):  # in a session without a pool, or by a job that was withdrawn
            self._interrupted(visit, place, "it was interrupted, and is begun anew")
            place = self.kept.attempt_place(visit.cell)
        bounds = (self.means.cell_s, budget_left(self.kept, self.means, self._pending()))
        left_s = min((bound for bound in bounds if bound is not None), default=None)
        left_s = None if left_s is None else max(left_s, LEAST_S)
        job = self.cells.job(visit, place, self._avoided(visit.cell), left_s)
        id = self.pool.submit(job, self.kept.charted.space.name(visit.cell))
        self.visits[id] = visit
        self.display.begins(visit)

    def _avoided(self, cell: Cell) -> frozenset[str]:
        """Nodes that a cell shall not run on, as long as others are left."""
        lost = {line.host for line in self.kept.losses(cell) if line.lost == "node-lost"}
        for avoid in (self.unfit | lost, self.unfit):
            if avoid and len(avoid) + self.cells.nodes <= self.pool.pool.width():
                return frozenset(avoid)
        return frozenset()

    def _ended(self, submitted: Submitted, ended: JobEnd) -> None:
        """Keep what a job has come to; it is on disk before the journal says that it has ended."""
        visit, place = self.visits.pop(ended.id), submitted.job.place
        refusal: EtudeError | None = None
        # Another attempt is next where a controller that was killed kept this one, and the journal did not know.
        if self.kept.attempt_place(visit.cell).resolve() == place.resolve():
            refusal = self._keep(visit, place, ended)
        self.pool.conclude(submitted, ended)
        tried = self.kept.samples()
        if len(tried) >= HOPELESS and all(each.state == "failed" for each in tried):
            refusal = is_hopeless(CommandFailed(tried[-1].why), len(tried))
        if refusal is not None:
            self._withdraw(set(self.visits), "the map came to its end")
            raise refusal

    def _keep(self, visit: Visit, place: Path, ended: JobEnd) -> EtudeError | None:
        """One attempt, whatever came of it; returns why the map cannot go on."""
        sample = sample_in(place, self.kept.charted.space)
        if sample is not None:
            self._made(visit, place, ended, sample)
        elif ended.how in ELSEWHERE:
            self._lost(visit, place, ended)
        elif ended.how == "held":
            self._stop(MachineRefuses(ended.why), visit, place)
        elif ended.code == InputError.exit_code:  # of no cell: those that fail so leave a sample
            self._stop(InputError(_said(ended)), visit, place)
        else:
            return self._refused(visit, place, ended)
        return None

    def _made(self, visit: Visit, place: Path, ended: JobEnd, sample: Sample) -> None:
        attempt, self.refused = attempt_in(place, ended), 0
        if sample.state == "failed" and self.means.left_s() < LEAST_S:  # for want of time
            self._keep_lost(visit, attempt, INTERRUPTED, sample)
            return
        sample = forecast_of(sample, visit)
        self.kept.keep(visit, sample, attempt)
        if sample.trials:
            self.cells.learn(place)
        self.display.made(visit, sample, where_measured(attempt))

    def _lost(self, visit: Visit, place: Path, ended: JobEnd) -> None:
        """Its node was lost: what it measured does not count, and it is tried again, TRIES times at most."""
        attempt, sample = attempt_in(place, ended), failed_sample(visit.cell, ended.why, _took(ended))
        if ended.how in UNFIT:
            self.unfit.update(ended.nodes[:1])
        tries = 1 + sum(line.lost in ELSEWHERE for line in self.kept.losses(visit.cell))
        self.display.lost(visit, ended)
        if tries < TRIES:
            self._keep_lost(visit, attempt, ended.how, replace(sample, trials=on_disk(place)[1]))
            return
        sample = replace(sample, why=f"{tries} nodes came to no end of it; the last: {ended.why}")
        self.kept.keep(visit, forecast_of(sample, visit), attempt)
        self.display.made(visit, sample, where_measured(attempt))

    def _refused(self, visit: Visit, place: Path, ended: JobEnd) -> EtudeError | None:
        """It was cancelled, or had no time left, or Étude itself failed there: the cell is failed, and tried again
        where that is asked for. Where all jobs end so, the map does."""
        why = ended.why or "its job has ended well, and what it measured is not here"
        sample, attempt = failed_sample(visit.cell, why, _took(ended)), attempt_in(place, ended)
        self.kept.keep(visit, forecast_of(sample, visit), attempt)
        self.display.made(visit, sample, where_measured(attempt))
        self.refused += 1
        if self.refused < HOPELESS:
            return None
        return MachineRefuses(f"{self.refused} jobs in a row came to nothing; the last: {why}")

    def _stop(self, why: EtudeError, visit: Visit, place: Path) -> None:
        """What runs goes on, nothing more is begun, and the cell is tried again in another session."""
        self.stopped = self.stopped or why
        self._interrupted(visit, place, str(why))

    def _interrupted(self, visit: Visit, place: Path, why: str) -> None:
        cost_s, trials = on_disk(place)
        sample = replace(failed_sample(visit.cell, why, cost_s), trials=trials)
        self._keep_lost(visit, attempt_in(place), INTERRUPTED, sample)

    def _keep_lost(self, visit: Visit, attempt: Attempt, how: str, sample: Sample) -> None:
        self.kept.keep(visit, sample, replace(attempt, lost=how))

    def _withdraw(self, ids: set[str], why: str) -> None:
        """End jobs from here; their cells are tried again in another session."""
        for id in sorted(ids):
            visit, place = self.visits.pop(id), self.pool.under_way[id].job.place
            self.pool.cancel(id, why)
            self._interrupted(visit, place, why)


def where_measured(attempt: Attempt) -> str:
    """On which nodes."""
    return f"{attempt.host} and {attempt.system}" if attempt.system else attempt.host


def _said(ended: JobEnd) -> str:
    """The error with which a job ended, without what is around it."""
    return ended.why.partition("etude: ")[2] or ended.why


def _took(ended: JobEnd) -> float:
    """Benchmarking time of a job without a result, s."""
    return 0.0 if ended.started_s is None else max(ended.ended_s - ended.started_s, 0.0)
