"""`pool.jsonl` in a results directory: what was submitted and how it ended, a line each, in the order in which it was.

It is what the timeline is drawn from, and what the next controller knows of the jobs of one that died.
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
    """What it measures, in the words of who submitted it: the key of a cell, a test, a number of blocks."""
    at_s: float
    """Of the pool's clock."""
    id: str | None = None
    """None: it is not known whether the pool ever had it. `Pool.submit` of the same job finds out."""
    ended: JobEnd | None = None


class Journal:
    """One directory's. Only its sole writer has one (results.writer.sole_writer)."""

    def __init__(self, directory: Path) -> None:
        """Reads what is there, and changes nothing. Raises InputError: a line but the last is none of a journal."""
        self._directory = directory
        self._path = directory / FILE
        self._jobs: dict[str, Submitted] = {}
        self.torn = False
        """Whether the last line was cut short; it is dropped."""
        self._size = self._read()
        """Of what is whole, bytes: where the next line is to stand."""

    @property
    def jobs(self) -> tuple[Submitted, ...]:
        """All, in the order in which they were submitted."""
        return tuple(self._jobs.values())

    def unfinished(self) -> tuple[Submitted, ...]:
        """Those whose end is not in the journal."""
        return tuple(each for each in self._jobs.values() if each.ended is None)

    def submitting(self, job: Job, what: str, at_s: float) -> None:
        """To be called before `Pool.submit`. Raises MachineRefuses where it cannot be written, as all of these."""
        line = {"event": "submitting", "what": what, "at_s": at_s, "job": self._members(job)}
        self._append(line)

    def submitted(self, job: Job, id: str) -> None:
        """To be called once the pool has taken it."""
        self._append({"event": "submitted", "place": self._shown(job.place), "id": id})

    def ended(self, job: Job, ended: JobEnd) -> None:
        """To be called once all that it brought is kept: until then the next controller is told of it again."""
        self._append({"event": "ended", "place": self._shown(job.place), **asdict(ended)})

    def _append(self, line: Mapping[str, Any]) -> None:
        text = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8", "replace")
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                os.ftruncate(file, self._size)  # what was not written to its end goes
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
        """All whole lines; returns how many bytes they are."""
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
        """Within the directory where it is within, so that the directory can be moved."""
        return str(place.relative_to(self._directory) if place.is_relative_to(self._directory) else place)

    def _members(self, job: Job) -> dict[str, Any]:
        paths = {"place": self._shown(job.place), "directory": str(job.directory)}
        return asdict(job) | paths | {"avoid": sorted(job.avoid), "environment": dict(job.environment)}


class JournaledPool:
    """Jobs under way by id, with what each measures. A job is submitted, ended, and then concluded."""

    def __init__(self, pool: Pool, journal: Journal) -> None:
        self.pool, self.journal = pool, journal
        self.under_way: dict[str, Submitted] = {}

    def take_up(self) -> tuple[Submitted, ...]:
        """Follow all that an earlier controller left under way. Raises MachineRefuses."""
        for each in self.journal.unfinished():
            if each.id is not None:
                self.pool.adopt(each.id, each.job)
                trail.note("pool", f"job {each.id} of an earlier controller is followed: {each.what}")
                self.under_way[each.id] = each
            else:
                self._submit(each)
        return tuple(self.under_way.values())

    def submit(self, job: Job, what: str) -> str:
        """`what` is for the journal: what it measures. Raises MachineRefuses; then the next controller tries again."""
        at_s = self.pool.clock_s()
        self.journal.submitting(job, what, at_s)
        return self._submit(Submitted(job, what, at_s))

    def ended(self, timeout_s: float | None = None) -> Sequence[tuple[Submitted, JobEnd]]:
        """As `Pool.ended`, with what was submitted."""
        return [(self.under_way[ended.id], ended) for ended in self.pool.ended(timeout_s)]

    def conclude(self, submitted: Submitted, ended: JobEnd) -> None:
        """All that it brought is kept; without this, the next controller is told of it again."""
        self.journal.ended(submitted.job, ended)
        where = ", ".join(ended.nodes) or "no node"
        trail.note("pool", f"job {ended.id} {ended.how} on {where}: {ended.why or submitted.what}")
        self.under_way.pop(ended.id, None)

    def cancel(self, id: str, why: str) -> None:
        """End it; in the journal it stands as cancelled."""
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
