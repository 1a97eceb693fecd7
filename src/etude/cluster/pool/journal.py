"""`pool.jsonl` in a results directory: a line for each submission and each end, in order.

The timeline is made from it, and a new controller finds the jobs of one that died in it.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from etude import trail
from etude.cluster.pool.job import Job, JobEnd, Pool
from etude.codec import decoded
from etude.errors import EDITED, InputError
from etude.results.writer import write_error

FILE = "pool.jsonl"


@dataclass(frozen=True, slots=True)
class Submitted:
    """A job in the journal."""

    job: Job
    what: str
    """Label of its work, chosen by the submitter: the key of a configuration, a test, a number of blocks."""
    at_s: float
    """Time of submission, by the pool's clock, s."""
    id: str | None = None
    """Id in the pool. None: unknown if the pool ever had it; `Pool.submit` of the same job finds out."""
    ended: JobEnd | None = None


class Journal:
    """The journal of one directory. Only its sole writer has one (results.writer.sole_writer)."""

    def __init__(self, directory: Path) -> None:
        """Read the file without changing it. Raises InputError: a line other than the last is invalid."""
        self._directory = directory
        self._path = directory / FILE
        self._jobs: dict[str, Submitted] = {}
        self.torn = False
        """True if the last line was torn; it is dropped."""
        self._size = self._read()
        """Length of the complete lines, bytes: the offset of the next line."""

    @property
    def jobs(self) -> tuple[Submitted, ...]:
        """All jobs, in the order of submission."""
        return tuple(self._jobs.values())

    def unfinished(self) -> tuple[Submitted, ...]:
        """Jobs whose end is not in the journal."""
        return tuple(each for each in self._jobs.values() if each.ended is None)

    def submitting(self, job: Job, what: str, at_s: float) -> None:
        """Record an intent, before `Pool.submit`. Raises MachineRefuses if it cannot be written, like all of these."""
        line = {"event": "submitting", "what": what, "at_s": at_s, "job": self._members(job)}
        self._append(line)

    def submitted(self, job: Job, id: str) -> None:
        """Record the id, after `Pool.submit`."""
        self._append({"event": "submitted", "place": self._shown(job.place), "id": id})

    def ended(self, job: Job, ended: JobEnd) -> None:
        """Record the end, after all results are stored: until then, a new controller gets the job's end again."""
        self._append({"event": "ended", "place": self._shown(job.place), **asdict(ended)})

    def _append(self, line: Mapping[str, Any]) -> None:
        text = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8", "replace")
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                os.ftruncate(file, self._size)  # a torn last line is dropped
                if os.pwrite(file, text, self._size) != len(text):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise write_error(self._path, error) from error
        self._size += len(text)
        self._take(line)

    def _read(self) -> int:
        """Read all complete lines; returns their length in bytes."""
        try:
            found = self._path.read_bytes()
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise InputError(f"{self._path}: cannot be read: {error.strerror}") from None
        whole = found[: found.rfind(b"\n") + 1]
        self.torn = whole != found
        for number, line in enumerate(whole.decode("utf-8", "replace").split("\n")[:-1], 1):
            try:
                self._take(json.loads(line), f"{self._path}:{number}")
            except EDITED:
                raise InputError(f"{self._path}:{number}: is no line of a journal of jobs") from None
        return len(whole)

    def _take(self, line: Mapping[str, Any], where: str = FILE) -> None:
        if line["event"] == "submitting":
            job = decoded(Job, line["job"], where, "job")
            job = replace(job, place=self._directory / job.place)
            self._jobs[str(job.place)] = Submitted(job, str(line["what"]), float(line["at_s"]))
            return
        place = str(self._directory / str(line["place"]))
        known = self._jobs[place]
        if line["event"] == "submitted":
            self._jobs[place] = Submitted(known.job, known.what, known.at_s, str(line["id"]))
        elif line["event"] == "ended":
            self._jobs[place] = Submitted(
                known.job, known.what, known.at_s, str(line["id"]), decoded(JobEnd, line, where)
            )
        else:
            raise ValueError(line["event"])

    def _shown(self, place: Path) -> str:
        """The path relative to the directory, if it is within, so that the directory can be moved."""
        return str(place.relative_to(self._directory) if place.is_relative_to(self._directory) else place)

    def _members(self, job: Job) -> dict[str, Any]:
        paths = {"place": self._shown(job.place), "directory": str(job.directory)}
        return asdict(job) | paths | {"avoid": sorted(job.avoid), "environment": dict(job.environment)}


class JournaledPool:
    """Jobs under way by id, each with its label. A job is submitted, ended, and then concluded."""

    def __init__(self, pool: Pool, journal: Journal) -> None:
        self.pool, self.journal = pool, journal
        self.under_way: dict[str, Submitted] = {}

    def recover(self) -> tuple[Submitted, ...]:
        """Follow all jobs that an earlier controller left under way. Raises MachineRefuses."""
        for each in self.journal.unfinished():
            if each.id is not None:
                self.pool.adopt(each.id, each.job)
                trail.note("pool", f"job {each.id} of an earlier controller is followed: {each.what}")
                self.under_way[each.id] = each
            else:
                self._submit(each)
        return tuple(self.under_way.values())

    def submit(self, job: Job, what: str) -> str:
        """`what` is the label for the journal. Raises MachineRefuses; then the next controller tries again."""
        at_s = self.pool.clock_s()
        self.journal.submitting(job, what, at_s)
        return self._submit(Submitted(job, what, at_s))

    def ended(self, timeout_s: float | None = None) -> Sequence[tuple[Submitted, JobEnd]]:
        """Same as `Pool.ended`, each with its journal entry."""
        return [(self.under_way[ended.id], ended) for ended in self.pool.ended(timeout_s)]

    def conclude(self, submitted: Submitted, ended: JobEnd) -> None:
        """Record that all results are stored; without this, a new controller gets the job's end again."""
        self.journal.ended(submitted.job, ended)
        where = ", ".join(ended.nodes) or "no node"
        trail.note("pool", f"job {ended.id} {ended.how} on {where}: {ended.why or submitted.what}")
        self.under_way.pop(ended.id, None)

    def cancel(self, id: str, why: str) -> None:
        """Cancel the job, and record it as cancelled."""
        each = self.under_way.pop(id)
        trail.note("pool", f"job {id} is cancelled: {why}")
        self.pool.cancel(id)
        self.journal.ended(
            each.job, JobEnd(id, "cancelled", None, (), why, each.at_s, None, self.pool.clock_s())
        )

    def _submit(self, each: Submitted) -> str:
        id = self.pool.submit(each.job)
        self.journal.submitted(each.job, id)
        trail.note("pool", f"job {id} is submitted: {each.what}")
        self.under_way[id] = Submitted(each.job, each.what, each.at_s, id)
        return id


HEADER = ("waited", "from", "to", "on", "job", "ended")


def timeline(jobs: Sequence[Submitted]) -> tuple[str, ...]:
    """One row per job, in the order of their starts; times are minutes and seconds since the first submission."""
    if not jobs:
        return ()
    origin_s = min(job.at_s for job in jobs)
    ordered = sorted(jobs, key=lambda job: (_began_s(job), job.at_s))
    rows = [HEADER, *(_row(job, origin_s) for job in ordered)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    return tuple(
        "  ".join(
            cell.rjust(width) if column < 3 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _began_s(submitted: Submitted) -> float:
    ended = submitted.ended
    return ended.started_s if ended is not None and ended.started_s is not None else float("inf")


def _row(submitted: Submitted, origin_s: float) -> tuple[str, ...]:
    ended, name = submitted.ended, submitted.job.name
    if ended is None:
        return ("", "", "", "", name, "under way")
    began = ended.started_s
    waited = (began if began is not None else ended.ended_s) - submitted.at_s
    how = ended.how if not ended.why else f"{ended.how}: {ended.why}"
    return (
        _clock(waited),
        _clock(began - origin_s) if began is not None else "",
        _clock(ended.ended_s - origin_s),
        " ".join(ended.nodes) or "-",
        name,
        how,
    )


def _clock(seconds: float) -> str:
    """Time as minutes and seconds; clocks of nodes may differ a little, so never below 0."""
    minutes, rest = divmod(max(round(seconds), 0), 60)
    return f"{minutes}:{rest:02}"
