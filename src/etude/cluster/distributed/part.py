"""A part of an experiment: the work of one job, in a directory of its own, with the results of that job.

Parts lie in `.pool` of the results directory; no test's directory can have that name. A measured part is never
changed: the experiment's own directory holds what was merged from the parts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etude.cluster.pool.job import Job, worker_command
from etude.codec import read
from etude.errors import EDITED, CommandFailed, EtudeError, InputError, MachineRefuses, UsageError
from etude.results.writer import mode_of, replace_json, write_error

PARTS, TASK, RESULTS, ERROR = ".pool", "part.json", "results", "error.json"
ERROR_CLASSES = {each.__name__: each for each in (UsageError, InputError, CommandFailed, MachineRefuses)}
"""Error classes that a job reports by name; any other name becomes MachineRefuses."""


@dataclass(frozen=True)
class Part:
    """One part. `task` has its `kind`, the key of its program on the node (cluster/worker.py), and its parameters."""

    place: Path
    task: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of its directory, such as `part-0003`."""
        return self.place.name

    @property
    def results(self) -> Path:
        """Its results directory."""
        return self.place / RESULTS

    @property
    def key(self) -> tuple[str, ...]:
        """Tests that it measures; empty for a search."""
        return tuple(self.task.get("tests") or self.task.get("only") or ())

    @property
    def attempt(self) -> int:
        """Number of the attempt, from 1; later ones replace a job that lost its node."""
        return int(self.task.get("attempt", 1))

    @property
    def measured(self) -> bool:
        """True if it has left results, however it ended."""
        return (self.results / "experiment.json").exists()

    def error(self) -> EtudeError | None:
        """The error that its job reported; None if it reported none."""
        try:
            told = json.loads((self.place / ERROR).read_bytes())
            return ERROR_CLASSES.get(str(told["kind"]), MachineRefuses)(str(told["text"]))
        except (OSError, *EDITED):
            return None

    def report_error(self, error: EtudeError) -> None:
        """Write the error for the controller."""
        replace_json(self.place / ERROR, {"kind": type(error).__name__, "text": str(error)})


def new_part(directory: Path, task: Mapping[str, Any]) -> Part:
    """Create the next part of the experiment in that directory.

    Raises:
        MachineRefuses: it cannot be written.
    """
    parts = directory.resolve() / PARTS
    try:
        parts.mkdir(exist_ok=True)
        numbers = [int(each.name[5:]) for each in parts.glob("part-*") if each.name[5:].isdecimal()]
        place = parts / f"part-{max(numbers, default=0) + 1:04d}"
        place.mkdir()
    except OSError as error:
        raise write_error(parts, error) from error
    replace_json(place / TASK, task, mode=mode_of(task.get("plan") or task))
    return Part(place, task)


def read_part(place: Path) -> Part:
    """Read a part from disk.

    Raises:
        InputError: there is none.
    """
    task = read(place / TASK, dict)
    if not isinstance(task.get("kind"), str):
        raise InputError(f"{place / TASK}: is no part of an experiment; was it edited?")
    return Part(place, task)


def parts_of(directory: Path) -> list[Part]:
    """All parts, in the order of creation."""
    places = sorted(
        (directory.resolve() / PARTS).glob("part-*"), key=lambda place: (len(place.name), place.name)
    )
    return [read_part(place) for place in places if (place / TASK).exists()]


def job_of(part: Part, name: str, *, nodes: int = 1, python: str = sys.executable) -> Job:
    """The job that measures it, in the current working directory."""
    return Job(name, worker_command(part.place, python), part.place, Path.cwd(), nodes)
