"""A configuration as a job: the request to its node and the node's result, as files in the attempt's directory.

The controller writes `cell.json`; the node writes `node.json` when it begins and `sample.json` at the end. Each is
written atomically, so a crash of controller or node leaves no partial file.
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
from etude.cluster.pool.job_files import RECORD
from etude.codec import plain, read
from etude.errors import InputError
from etude.experiment.session import utc_now
from etude.machine import snapshot
from etude.machine.boot.record import boot_id
from etude.peak.record import instant
from etude.peak.search import benchmarking_time_s
from etude.peak.search_store import SearchStore
from etude.results.reader import read_experiment
from etude.results.writer import replace_json
from etude.surface.factors import Space
from etude.surface.map_store import Attempt, resources_of, sample_of_member
from etude.surface.metric import EXPERIMENT
from etude.surface.next_configuration import Visit
from etude.surface.peaks import SEARCH
from etude.surface.response import Response
from etude.surface.samples import Sample

CELL, NODE, SAMPLE = "cell.json", "node.json", "sample.json"


@dataclass(frozen=True)
class NodeRequest:
    """Request to a node."""

    visit: Visit
    spec: str
    """Path of SPEC.toml; empty for simulated servers."""
    simulate: str
    """Name of the simulated servers; else empty."""
    text: str
    """All that the measurement depends on (`depends_on`): nothing is measured if it has changed."""
    lesson: Any
    """`Response.learned_state`."""
    left_s: float | None
    """Budget of benchmarking time, s."""
    deadline: datetime | None


def depends_on(response: Response, spec: str, settings: Mapping[str, str]) -> str:
    """All that a configuration's measurement depends on. `spec`: the text of SPEC.toml."""
    return json.dumps([response.text, resources_of(spec), dict(settings)], ensure_ascii=False)


def read_request(place: Path) -> NodeRequest:
    """The request in a directory. Raises InputError if it is missing or was edited."""
    return read(place / CELL, NodeRequest)


def write_request(place: Path, todo: NodeRequest) -> None:
    """Write the request. Raises MachineRefuses."""
    deadline = None if todo.deadline is None else todo.deadline.isoformat()
    place.mkdir(parents=True, exist_ok=True)
    replace_json(place / CELL, asdict(todo) | {"deadline": deadline})


def begin_on_node(place: Path) -> None:
    """Record the node and the time of the begin. Raises MachineRefuses."""
    start, start_ns = instant()
    here = {"host": os.uname().nodename, "boot_id": boot_id(), "start": start, "start_ns": start_ns}
    replace_json(place / NODE, here | {"machine": snapshot.take()})


def engine_was_on_node(place: Path) -> None:
    """Record the same if only the engine was on the node, from the experiment; nothing if that was never begun. Raises
    InputError if it was edited, MachineRefuses."""
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
    """Write the result. Raises MachineRefuses."""
    replace_json(place / SAMPLE, plain(sample))


def read_sample(place: Path, space: Space) -> Sample | None:
    """The node's result; None if it did not finish. Raises InputError if it was edited."""
    path = place / SAMPLE
    return sample_of_member(read(path, dict), list(space), str(path)) if path.exists() else None


def read_attempt(place: Path, ended: JobEnd | None = None) -> Attempt:
    """The attempt made in a directory: from its node's record, else from the pool's."""
    made = _attempt_in(place, ended)
    return replace(made, system=ended.nodes[1]) if ended is not None and len(ended.nodes) > 1 else made


def _attempt_in(place: Path, ended: JobEnd | None) -> Attempt:
    try:
        return read(place / NODE, Attempt)
    except InputError:
        if ended is None or not ended.nodes:
            # A job that never ran was on no machine; a measurement without a job was made here.
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
    """True if a measurement was begun or submitted there."""
    return any((place / name).exists() for name in (RECORD, NODE, SEARCH, EXPERIMENT))


def spent_on_disk(place: Path) -> tuple[float, int]:
    """Benchmarking time, s, and number of trials on disk of an unfinished search."""
    try:
        trials = SearchStore(place / SEARCH).trials() if (place / SEARCH / "experiment.json").exists() else []
    except InputError:
        trials = []  # a partial file of a dead node must not fail the map
    return benchmarking_time_s(trials), len(trials)


@dataclass(frozen=True)
class ConfigurationJobs:
    """Configurations of one map as jobs."""

    name: str
    """Name of the map."""
    space: Space
    response: Response
    spec: Path | None
    simulate: str = ""
    deadline: datetime | None = None
    python: str = sys.executable
    """Python interpreter on the nodes."""
    text: str = ""
    """Text of SPEC.toml."""

    def job(self, visit: Visit, place: Path, left_s: float | None) -> Job:
        """The job that measures a configuration. Raises MachineRefuses if its directory cannot be written."""
        place = place.resolve()
        spec = "" if self.spec is None else str(self.spec.resolve())
        lesson = self.response.learned_state
        text = depends_on(self.response, self.text, self.space.settings(visit.cell))
        write_request(place, NodeRequest(visit, spec, self.simulate, text, lesson, left_s, self.deadline))
        command = worker_command(place, self.python)
        name = f"{self.name}: {self.space.name(visit.cell)}"
        return Job(name, command, place, Path.cwd(), self.nodes)

    @property
    def nodes(self) -> int:
        """Nodes per job."""
        return self.response.nodes

    def learn(self, place: Path) -> None:
        """Update the response by a measured configuration."""
        self.response.learn(place)
