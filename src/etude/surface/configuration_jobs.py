"""A cell as a job: what its node is told, and what the node wrote of it. All of it is in the attempt's directory.

`cell.json` is the controller's; `node.json`, once it has begun, and `sample.json`, in the end, are the node's. Each is
written whole or not at all, so neither a controller nor a node that dies leaves half of one.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from etude.cluster.pool.job import Job, JobEnd, worker_command
from etude.cluster.pool.job_status import RECORD
from etude.codec import plain, read
from etude.errors import InputError
from etude.machine import snapshot
from etude.machine.boot.record import boot_id
from etude.peak.record import instant, utc_now
from etude.peak.search import benchmarking_time_s
from etude.peak.search_store import SearchStore
from etude.results.reader import read_experiment
from etude.results.writer import replace_json
from etude.surface.attempt import Attempt
from etude.surface.factors import Space
from etude.surface.map_store import resources_of, sample_of_member
from etude.surface.metric import EXPERIMENT
from etude.surface.next_configuration import Visit
from etude.surface.peaks import SEARCH
from etude.surface.response import Response
from etude.surface.samples import Sample

CELL, NODE, SAMPLE = "cell.json", "node.json", "sample.json"


@dataclass(frozen=True)
class Todo:
    """What a node is told."""

    visit: Visit
    spec: str
    """The path of SPEC.toml; empty of simulated servers."""
    simulate: str
    """Which simulated servers; else empty."""
    text: str
    """All that the cell depends on (`depends_on`): nothing is measured where it is another by now."""
    lesson: Any
    """`Response.lesson`."""
    left_s: float | None
    """Benchmarking time that it may take."""
    deadline: datetime | None


def depends_on(response: Response, spec: str, settings: Mapping[str, str]) -> str:
    """All that a cell's measurement depends on. `spec`: the text of SPEC.toml."""
    return json.dumps([response.text, resources_of(spec), dict(settings)], ensure_ascii=False)


def read_todo(place: Path) -> Todo:
    """Raises InputError: it is not there, or was edited."""
    return read(place / CELL, Todo)


def write_todo(place: Path, todo: Todo) -> None:
    """Raises MachineRefuses."""
    deadline = None if todo.deadline is None else todo.deadline.isoformat()
    place.mkdir(parents=True, exist_ok=True)
    replace_json(place / CELL, asdict(todo) | {"deadline": deadline})


def begin_on_node(place: Path) -> None:
    """Note where and when it is begun. Raises MachineRefuses."""
    start, start_ns = instant()
    here = {"host": os.uname().nodename, "boot_id": boot_id(), "start": start, "start_ns": start_ns}
    replace_json(place / NODE, here | {"machine": snapshot.take()})


def engine_was_on_node(place: Path) -> None:
    """Note the same where the engine alone was on the node, and this is not: its experiment knows. Nothing is noted of
    one that was never begun. Raises InputError: it was edited; MachineRefuses."""
    if not (place / EXPERIMENT / "experiment.json").exists():
        return
    document = read_experiment(place / EXPERIMENT)
    if not document["sittings"]:
        return
    last = document["sittings"][-1]
    there = {name: last[name] for name in ("host", "boot_id", "start")}
    replace_json(
        place / NODE, there | {"start_ns": None, "machine": last["machine"] or document["machine"]["before"]}
    )


def write_sample(place: Path, sample: Sample) -> None:
    """What came of it. Raises MachineRefuses."""
    replace_json(place / SAMPLE, plain(sample))


def sample_in(place: Path, space: Space) -> Sample | None:
    """What a node wrote; None where it came to no end. Raises InputError: it was edited."""
    path = place / SAMPLE
    return sample_of_member(read(path, dict), list(space), str(path)) if path.exists() else None


def attempt_in(place: Path, ended: JobEnd | None = None) -> Attempt:
    """Where an attempt was made: by what its node wrote, else by what the pool says."""
    made = _attempt_in(place, ended)
    return replace(made, system=ended.nodes[1]) if ended is not None and len(ended.nodes) > 1 else made


def _attempt_in(place: Path, ended: JobEnd | None) -> Attempt:
    try:
        return read(place / NODE, Attempt)
    except InputError:
        if ended is None or not ended.nodes:
            # A job that never ran was on no machine; what is no job's was made here.
            return (
                Attempt("")
                if (place / RECORD).exists()
                else Attempt(os.uname().nodename, boot_id(), utc_now())
            )
        start = None if ended.started_s is None else _instant(ended.started_s)
        return Attempt(ended.nodes[0], start=start)


def _instant(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def is_begun(place: Path) -> bool:
    """Whether something was measured there, or a job was to."""
    return any((place / name).exists() for name in (RECORD, NODE, SEARCH, EXPERIMENT))


def on_disk(place: Path) -> tuple[float, int]:
    """What a search that came to no end has on disk: benchmarking time, s, and trials."""
    try:
        trials = SearchStore(place / SEARCH).trials() if (place / SEARCH / "experiment.json").exists() else []
    except InputError:
        trials = []  # what a dead node left half written costs nobody a map
    return benchmarking_time_s(trials), len(trials)


@dataclass(frozen=True)
class CellJobs:
    """Cells of one map as jobs."""

    name: str
    """Of the map."""
    space: Space
    response: Response
    spec: Path | None
    simulate: str = ""
    deadline: datetime | None = None
    python: str = sys.executable
    """On the nodes."""
    text: str = ""
    """Of SPEC.toml."""

    def job(self, visit: Visit, place: Path, avoid: frozenset[str], left_s: float | None) -> Job:
        """What measures a cell. Raises MachineRefuses: its directory cannot be written."""
        place = place.resolve()
        spec = "" if self.spec is None else str(self.spec.resolve())
        lesson = self.response.lesson
        text = depends_on(self.response, self.text, self.space.settings(visit.cell))
        write_todo(place, Todo(visit, spec, self.simulate, text, lesson, left_s, self.deadline))
        command = worker_command(place, self.python)
        name = f"{self.name}: {self.space.name(visit.cell)}"
        return Job(name, command, place, Path.cwd(), self.nodes, avoid)

    @property
    def nodes(self) -> int:
        """Of each job."""
        return self.response.nodes

    def learn(self, place: Path) -> None:
        """What a measured cell teaches of others."""
        self.response.learn(place)
