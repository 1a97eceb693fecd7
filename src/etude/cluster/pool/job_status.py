"""A job's own status files in its directory: `begun.json`, `end.json`. They survive a controller crash.

The scheduler forgets ended jobs within minutes, and a controller may be away for days.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from etude import codec
from etude.cluster.pool.job import How, Job, JobEnd
from etude.codec import decoded, parsed
from etude.errors import InputError

BEGUN, END, OUTPUT, SCRIPT, RECORD = "begun.json", "end.json", "output", "job.sh", "job.json"

SIGTERM_STATUS = 143
"""Exit status of a job whose shell got SIGTERM; the scheduler knows the reason."""

REFUSALS: dict[int | None, tuple[How, str]] = {
    121: ("no-etude", "its node has no Étude as this one: install it there, or give etude=copied"),
    122: ("other-architecture", "its node has another architecture: keep to one by constraint="),
    123: ("no-space", "its node has no space for results: free some"),
    124: (
        "no-space",
        "the results directory is not there on its node: is it shared with it? (results=copied)",
    ),
}
"""Exit statuses of a job that its node could not run: known even if it could write no file."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """Contents of one of the two files."""

    nodes: str
    """List of nodes, in the scheduler's notation."""
    began_s: codec.Finite
    """Seconds since the epoch, by the node's clock."""
    ended_s: codec.Finite | None = None
    how: How | None = None
    code: int | None = None
    why: str = ""
    pid: int | None = None
    id: str = ""
    """The scheduler's id; empty without one."""


def read_start(place: Path) -> JobStatus | None:
    """Status that the job wrote at its start; None if it has not started."""
    return _read(place / BEGUN)


def read_end(place: Path) -> JobStatus | None:
    """Status that the job wrote at its end; None if it has not ended by itself."""
    found = _read(place / END)
    return found if found is not None and found.how is not None and found.ended_s is not None else None


def end_from_status(
    id: str, job: Job, written: JobStatus, nodes: tuple[str, ...], submitted_s: float
) -> JobEnd:
    """The end of a job by its own status file."""
    how, why = written.how or "failed", written.why
    if how == "failed":
        said = last_line(job.place)
        why = f"exit status {written.code}" + (f": {said}" if said else "")
    ended_s = written.began_s if written.ended_s is None else written.ended_s
    return JobEnd(id, how, written.code, nodes, why, submitted_s, written.began_s, ended_s)


def last_line(place: Path) -> str:
    """Last non-empty line of the job's output, at most 200 characters."""
    try:
        with open(place / OUTPUT, "rb") as file:
            file.seek(max(file.seek(0, 2) - 4096, 0))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip()]
    return "".join(c if c.isprintable() else " " for c in said[-1])[:200] if said else ""


def _read(path: Path) -> JobStatus | None:
    try:
        return parse_status(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None


def parse_status(text: str) -> JobStatus | None:
    """Status read from the text of such a file; None if it cannot be read (a disk that was full)."""
    try:
        return decoded(JobStatus, parsed(text, END), END)
    except InputError:
        return None
