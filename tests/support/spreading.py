"""Maps over a pool in virtual time: nodes write what a response of the cell would have them write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from etude.cluster.pool.job import How, Job, JobEnd
from etude.cluster.pool.journal import Journal, JournaledPool
from etude.cluster.pool.simulated import Death, SimulatedPool
from etude.results.writer import replace_json
from etude.surface.configuration_jobs import NODE, ConfigurationJobs, read_request, write_sample
from etude.surface.distributed_map import DistributedDisplay, run_map_over_pool
from etude.surface.factors import Configuration, Space
from etude.surface.map_store import MapStore, define_map, open_map
from etude.surface.next_configuration import Rules
from etude.surface.run_map import MapBudget
from etude.surface.samples import Sample
from support.charting import SPACE, Made, product


class Response(Made):
    """One that is measured on nodes."""

    learned_state: Any = None

    def __init__(self, nodes: int = 1) -> None:
        super().__init__()
        self.nodes = nodes

    def restore(self, learned_state: Any) -> None:
        self.learned_state = learned_state


class Nodes(SimulatedPool):
    """Remembers what ran where; some jobs end as they are told to."""

    def __init__(
        self,
        count: int,
        *,
        deaths: Sequence[Death] = (),
        ends: Mapping[Configuration, How] | Callable[[Configuration, str], How | None] | None = None,
        code: int | None = None,
        of: Callable[[Configuration], float] = product,
    ) -> None:
        super().__init__(count, lambda job, node: 60.0, self._measure, deaths)
        self.ran: list[tuple[Configuration, str]] = []
        self.jobs: list[Job] = []
        self._followed: dict[str, Job] = {}
        self._over: dict[str, JobEnd] = {}
        self._of, self._ends, self._code = of, ends, code

    def submit(self, job: Job) -> str:
        """A place is one job."""
        known = [number for number, other in enumerate(self.jobs, 1) if other.place == job.place]
        if not known:
            self.jobs.append(job)
        id = str(known[0]) if known else super().submit(job)
        self._followed[id] = job
        return id

    def adopt(self, id: str, job: Job) -> None:
        self._followed[id] = job

    def cancel(self, id: str) -> None:
        self._followed.pop(id)
        super().cancel(id)

    def close(self) -> None:
        """Jobs go on."""
        self._followed.clear()

    def ended(self, timeout_s: float | None = None) -> Sequence[JobEnd]:
        """Also of what ended while nobody followed it."""
        told = [each for id, each in self._over.items() if id in self._followed]
        if not told:
            self._over |= {each.id: self._as_told(each) for each in super().ended(timeout_s)}
            told = [each for id, each in self._over.items() if id in self._followed]
        for each in told:
            del self._followed[each.id]
        return told

    def running(self) -> frozenset[str]:
        return super().running() & set(self._followed)

    def _how(self, cell: Configuration, node: str) -> How | None:
        return self._ends(cell, node) if callable(self._ends) else (self._ends or {}).get(cell)

    def _as_told(self, ended: JobEnd) -> JobEnd:
        job = self.jobs[int(ended.id) - 1]
        how = self._how(read_request(job.place).visit.cell, ended.nodes[0]) if ended.nodes else None
        return ended if how is None else replace(ended, how=how, code=self._code, why=f"it was {how}")

    def _measure(self, job: Job, node: str) -> None:
        cell = read_request(job.place).visit.cell
        if self._how(cell, node) is not None:
            return
        self.ran.append((cell, node))
        start = {"host": node, "boot_id": f"boot of {node}", "start": "2026-11-22T12:00:00.000000Z"}
        replace_json(job.place / NODE, start | {"start_ns": 1, "machine": {"cpu": {"model": "one"}}})
        value = self._of(cell)
        write_sample(job.place, Sample(cell, "measured", value, value / 1.01, value * 1.01, 0.95, 60.0, 3))


def mapped_over(
    path: Path,
    nodes: Nodes,
    *,
    rules: Rules | None = None,
    means: MapBudget | None = None,
    space: Space = SPACE,
    display: DistributedDisplay | None = None,
    retry: bool = False,
    response: Response | None = None,
) -> MapStore:
    """One session."""
    response = response or Response()
    what = define_map("made", space, rules or Rules(), response, "")
    with open_map(path, what, elsewhere=True) as kept:
        if retry:
            kept.forget_failed()
        cells = ConfigurationJobs("made", space, response, None, "made")
        pool = JournaledPool(nodes, Journal(path))
        try:
            run_map_over_pool(kept, cells, pool, means or MapBudget({}), display or DistributedDisplay())
        finally:
            nodes.close()
    return kept
