"""A job's files, written before it is submitted: its script, and the name by which it is found again.

The name is on disk first, so a controller that dies before Slurm's answer leaves no job that the next one cannot find.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from etude import codec
from etude.cluster.pool.job import Job
from etude.cluster.pool.job_status import BEGUN, END, RECORD, SCRIPT, read_start
from etude.cluster.pool.shell import Checks, script
from etude.codec import read
from etude.errors import InputError
from etude.results.writer import replace_json, write_error


@dataclass(frozen=True, slots=True)
class StagedJob:
    """Contents of `job.json`."""

    token: str
    """Unique name of the job."""
    submitted_s: codec.Finite
    """Seconds since the epoch."""
    id: str | None = None
    """The scheduler's id; None until it has answered."""


def staged_job(place: Path) -> StagedJob | None:
    """Record of a directory from which a job was submitted, or was about to be; None for any other directory."""
    try:
        found = read(place / RECORD, StagedJob)
    except InputError:
        return None
    written = read_start(place) if found.id is None else None
    return replace(found, id=(written.id if written else found.id) or None)


def stage_job(job: Job, record: StagedJob, checks: Checks) -> None:
    """Write the script, then the record; removes the files of an earlier job. Raises MachineRefuses."""
    try:
        job.place.mkdir(parents=True, exist_ok=True)
        for name in (BEGUN, END):
            (job.place / name).unlink(missing_ok=True)
        (job.place / SCRIPT).write_text(
            script(job, record.token, checks), encoding="utf-8", errors="surrogateescape"
        )
    except OSError as error:
        raise write_error(job.place, error) from error
    note(job.place, record)


def note(place: Path, record: StagedJob) -> None:
    """Write the record, again once the scheduler has assigned an id. Raises MachineRefuses."""
    replace_json(place / RECORD, asdict(record))
