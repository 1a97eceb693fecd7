"""A part of an experiment: what one job is to do, in a directory of its own, and what it left there.

Parts lie in `.pool` of the results directory, whose name no test's directory can have. A part that was measured stays
as it is: what the experiment's own directory holds is merged from the parts.
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
TOLD = {each.__name__: each for each in (UsageError, InputError, CommandFailed, MachineRefuses)}
"""Errors that a job tells of by their class; any other is the machine's."""


@dataclass(frozen=True)
class Part:
    """One part. `task` has its `kind`, by which the node knows what to do (cluster/worker.py), and what that needs."""

    place: Path
    task: Mapping[str, Any]

    @property
    def name(self) -> str:
        """As its directory, such as `part-0003`."""
        return self.place.name

    @property
    def results(self) -> Path:
        """Its results directory."""
        return self.place / RESULTS

    @property
    def attempt(self) -> int:
        """From 1; a later one is in place of another, which lost its node."""
        return int(self.task.get("attempt", 1))

    @property
    def measured(self) -> bool:
        """Whether it has left results, to whatever end it came."""
        return (self.results / "experiment.json").exists()

    def error(self) -> EtudeError | None:
        """What went wrong in it, as it told; None where it told of nothing."""
        try:
            told = json.loads((self.place / ERROR).read_bytes())
            return TOLD.get(str(told["kind"]), MachineRefuses)(str(told["text"]))
        except (OSError, *EDITED):
            return None

    def tell(self, error: EtudeError) -> None:
        """Leave the error for the controller."""
        replace_json(self.place / ERROR, {"kind": type(error).__name__, "text": str(error)})


def new_part(directory: Path, task: Mapping[str, Any]) -> Part:
    """The next part of the experiment in that directory, on disk.

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
    """One that is on disk.

    Raises:
        InputError: there is none.
    """
    task = read(place / TASK, dict)
    if not isinstance(task.get("kind"), str):
        raise InputError(f"{place / TASK}: is no part of an experiment; was it edited?")
    return Part(place, task)


def parts_of(directory: Path) -> list[Part]:
    """All parts, in the order in which they were made."""
    places = sorted(
        (directory.resolve() / PARTS).glob("part-*"), key=lambda place: (len(place.name), place.name)
    )
    return [read_part(place) for place in places if (place / TASK).exists()]


def job_of(
    part: Part,
    name: str,
    *,
    nodes: int = 1,
    avoid: frozenset[str] = frozenset(),
    python: str = sys.executable,
) -> Job:
    """The job that does it, in the working directory of here."""
    command = worker_command(part.place, python)
    return Job(name, command, part.place, Path.cwd(), nodes, avoid)
