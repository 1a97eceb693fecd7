"""A simulated pool whose jobs fail where their parts have told of an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from etude.cluster.pool.job import Job, JobEnd
from etude.cluster.pool.simulated import SimulatedPool


class Telling(SimulatedPool):
    """See above."""

    _places: dict[str, Path]

    def submit(self, job: Job) -> str:
        self._places = getattr(self, "_places", {})
        id = super().submit(job)
        self._places[id] = job.place
        return id

    def ended(self, timeout_s: float | None = None) -> Sequence[JobEnd]:
        return [
            replace(each, how="failed", code=4) if (self._places[each.id] / "error.json").exists() else each
            for each in super().ended(timeout_s)
        ]
