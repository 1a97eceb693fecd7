"""A pool by Slurm: each job has exclusive nodes; one squeue follows all jobs.

A job's own `end.json` decides how it ended; without one, Slurm's state does.
"""

from __future__ import annotations

import math
import re
import secrets
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from etude.cluster.pool.job import How, Job, JobEnd, PoolSpec
from etude.cluster.pool.job_files import (
    SCRIPT,
    Checks,
    JobStatus,
    StagedJob,
    end_from_status,
    note,
    read_end,
    read_start,
    stage_job,
    staged_job,
)
from etude.cluster.pool.slurm import states
from etude.cluster.pool.slurm.answers import Node, SlurmJob, expand
from etude.cluster.pool.slurm.commands import Slurm, SlurmUnreachable, unreachable_error
from etude.errors import MachineRefuses

_WORDS = re.compile("[A-Za-z0-9_.:-]+(?:[&|][A-Za-z0-9_.:-]+)*")


def arguments(job: Job, token: str, spec: PoolSpec, known: Collection[Node]) -> list[str]:
    """Arguments of sbatch. `token` is the name by which the job is found again; `known`: all nodes of the partition.

    Nodes are exclusive, with all of their memory; those that the job avoids are excluded as long as enough others fit
    the pool's settings. A job never runs twice under one id: one that Slurm would requeue is reported as lost, and
    submitted again on other nodes.
    """
    words = [
        f"--job-name={token}",
        f"--comment={job.name}",
        f"--nodes={job.nodes}-{job.nodes}",
        *("--ntasks-per-node=1", "--exclusive", "--mem=0", "--no-requeue", "--export=ALL"),
        *("--input=/dev/null", "--output=/dev/null", f"--chdir={job.place}"),
    ]
    for key in ("partition", "account", "qos", "constraint", "reservation"):
        if getattr(spec, key):
            words.append(f"--{key}={getattr(spec, key)}")
    if spec.time_s is not None:
        words.append(f"--time={math.ceil(spec.time_s / 60)}")
    names = {node.name for node in known}
    without = set(expand(spec.exclude) or ())
    if spec.nodelist:
        # --nodelist of sbatch requests all of these nodes; here it means only these.
        without |= names - set(expand(spec.nodelist) or ())
    if len({node.name for node in known if fits(node, spec)} - job.avoid) >= job.nodes:
        without |= job.avoid
    if job.only is not None:
        words.append(f"--nodelist={job.only}")
        without.discard(job.only)
    # Slurm refuses a job that names a node which is no longer configured.
    without &= names
    if without:
        words.append(f"--exclude={','.join(sorted(without))}")
    return [*words, str(job.place / SCRIPT)]


def fits(node: Node, spec: PoolSpec) -> bool:
    """True if jobs of this pool may run on that node. Only constraints `a&b` and `a|b` are checked; any other
    counts as met, and Slurm judges it."""
    if spec.nodelist and node.name not in (expand(spec.nodelist) or ()):
        return False
    if node.name in (expand(spec.exclude) or ()):
        return False
    if not _WORDS.fullmatch(spec.constraint):
        return True
    return any(
        all(feature in node.features for feature in either.split("&"))
        for either in spec.constraint.split("|")
    )


OPEN_S, ANSWER_S = 20.0, 300.0
"""Time that Slurm may be silent when a pool is opened, and while jobs are under way, s."""
SHARED_S = 15.0
"""Time until a file that was written on a node is visible here, s: NFS caches its absence for a few seconds."""
LOOK_S, MAX_LOOK_S, QUEUE_S = 0.1, 10.0, 1.0
"""Files are polled with growing pauses, 2 % of the time since the last end; Slurm is asked at most once a second."""


UNSEEN = SlurmJob("", "PENDING")


@dataclass
class _Followed:
    job: Job
    submitted_s: float
    seen: SlurmJob = UNSEEN
    stuck_since: float | None = None
    gone_since: float | None = None


class SlurmPool:
    """See `Pool`."""

    name = "slurm"

    def __init__(
        self,
        spec: PoolSpec,
        slurm: Slurm | None = None,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Raises MachineRefuses: Slurm does not answer, or has no such partition or nodes."""
        self._spec, self._clock, self._pause = spec, clock, pause
        self._slurm = slurm or Slurm()
        self._followed: dict[str, _Followed] = {}
        self._asked_s, self._event_s = -math.inf, clock()
        self._silent: tuple[float, SlurmUnreachable] | None = None
        """Start of Slurm's silence and its last error; None while it answers."""
        try:
            known = self._slurm.nodes(spec.partition, OPEN_S)
        except SlurmUnreachable as error:
            raise MachineRefuses(
                f"Slurm does not answer: {error.last}; see that slurmctld runs (scontrol ping) and SLURM_CONF "
                "names its file"
            ) from None
        if not known:
            where = f"no partition {spec.partition!r}, or no nodes in it" if spec.partition else "no nodes"
            raise MachineRefuses(f"Slurm has {where}: sinfo lists what there is")
        self._known = known
        if not any(fits(node, spec) for node in known):
            keys = ("partition", "constraint", "nodelist", "exclude")
            asked = ", ".join(f"{key}={getattr(spec, key)}" for key in keys if getattr(spec, key))
            raise MachineRefuses(
                f"Slurm has no node that fits the request ({asked}): see sinfo -N -o '%N %f'"
            )

    def width(self, nodes: int = 1) -> int:
        """Nodes that sinfo reports as usable, divided by `nodes`; busy nodes count, since they will be free."""
        known = self._slurm.nodes(self._spec.partition, ANSWER_S)
        usable = len({node.name for node in known if node.usable and fits(node, self._spec)})
        return max(min(usable, self._spec.nodes_at_once or usable) // nodes, 1)

    def submit(self, job: Job) -> str:
        """Submit a job; one that was submitted from the same directory before is followed instead."""
        before = staged_job(job.place)
        if before is not None:
            found = before.id or self._slurm.find_job(before.token, ANSWER_S)
            if found is not None:
                self._follow(found, job, before.submitted_s)
                return found
        python = self._spec.python if self._spec.etude == "shared" else None
        checks = Checks(python, is_shared=self._spec.results == "shared")
        now = before or StagedJob(f"etude-{secrets.token_hex(6)}", self._clock())
        stage_job(job, now, checks)
        words = arguments(job, now.token, self._spec, self._known)
        try:
            id = self._slurm.submit(words)
        except SlurmUnreachable as lost:
            id = self._submitted_again(words, now.token, lost)
        except MachineRefuses as error:
            raise MachineRefuses(f"{job.name}: Slurm refuses the job: {error}") from None
        note(job.place, replace(now, id=id))
        self._follow(id, job, now.submitted_s)
        return id

    def adopt(self, id: str, job: Job) -> None:
        """Follow the job by its id; the time of submission comes from its directory."""
        before = staged_job(job.place)
        self._follow(id, job, before.submitted_s if before else self._clock())

    def ended(self, timeout_s: float | None = None) -> Sequence[JobEnd]:
        """See `Pool`. Raises MachineRefuses if Slurm is silent for too long; jobs continue and can be adopted."""
        until = None if timeout_s is None else self._clock() + timeout_s
        while self._followed:
            found = self._look()
            if found:
                self._event_s = self._clock()
                return found
            pause = min(max(LOOK_S, 0.02 * (self._clock() - self._event_s)), MAX_LOOK_S)
            if until is not None:
                pause = min(pause, until - self._clock())
            if pause <= 0:
                break
            self._pause(pause)
        return ()

    def running(self) -> frozenset[str]:
        """Ids of the running jobs, as of the last poll."""
        return frozenset(id for id, each in self._followed.items() if each.seen.state in states.RUNNING)

    def seen(self, id: str) -> SlurmJob:
        """A job as of the last poll."""
        return self._followed[id].seen

    def cancel(self, id: str) -> None:
        """Cancel with scancel: processes on the nodes have KillWait to end."""
        self._followed.pop(id, None)
        self._slurm.cancel(id, ANSWER_S)

    def clock_s(self) -> float:
        """Seconds since the epoch."""
        return self._clock()

    def close(self) -> None:
        """Does nothing: jobs continue."""
        self._followed.clear()

    def _follow(self, id: str, job: Job, submitted_s: float) -> None:
        self._followed[id] = _Followed(job, submitted_s)
        self._event_s = self._clock()

    def _submitted_again(self, words: Sequence[str], token: str, lost: SlurmUnreachable) -> str:
        """Submit again after a lost answer; the job is looked up by its name first."""
        waited, pause = 0.0, 1.0
        while waited < ANSWER_S:
            self._pause(pause)
            waited, pause = waited + pause, min(2 * pause, 30.0)
            try:
                return self._slurm.find_job(token, 0.0) or self._slurm.submit(words)
            except SlurmUnreachable as error:
                lost = error
        raise unreachable_error(lost, ANSWER_S)

    def _look(self) -> list[JobEnd]:
        """Jobs that have ended since the last poll."""
        ends = [self._done(id) for id in tuple(self._followed)]
        now = self._clock()
        # Slurm is also asked while files report ends: some jobs never write theirs.
        every_s = MAX_LOOK_S if any(ends) else max(QUEUE_S, 0.02 * (now - self._event_s))
        if now - self._asked_s >= min(every_s, MAX_LOOK_S):
            ends += self._asked(now)
        found = [each for each in ends if each is not None]
        if not found and self._silent is not None and now - self._silent[0] > ANSWER_S:
            raise unreachable_error(self._silent[1], ANSWER_S)
        return found

    def _done(self, id: str) -> JobEnd | None:
        """The end of a job that succeeded, or that its node could not run. A failure may be Slurm's doing: then its
        state decides."""
        written = read_end(self._followed[id].job.place)
        return None if written is None or written.how == "failed" else self._by_itself(id, written)

    def _asked(self, now: float) -> list[JobEnd | None]:
        if not self._followed:
            return []
        self._asked_s = now
        try:
            seen = self._slurm.queue()
        except SlurmUnreachable as error:
            self._silent = (now if self._silent is None else self._silent[0], error)
            return []
        self._silent = None
        busy = any(seen[id].state in states.RUNNING for id in self._followed if id in seen)
        ends: list[JobEnd | None] = []
        for id in tuple(self._followed):
            with suppress(SlurmUnreachable):  # further questions on one job are repeated at the next poll
                ends.append(self._judged(id, seen.get(id), now, busy))
        return ends

    def _judged(self, id: str, seen: SlurmJob | None, now: float, busy: bool) -> JobEnd | None:
        followed = self._followed[id]
        if seen is None:
            return self._forgotten(id, now)
        followed.seen = seen
        if seen.state in states.WAITING:
            return self._waiting(id, seen, now, busy)
        how = states.end_of_state(seen)
        if how is None:
            return None
        if seen.state in ("COMPLETED", "FAILED"):
            written = read_end(followed.job.place)
            if written is not None:
                return self._by_itself(id, written)
            if not self._waited_for_files(followed, now):
                return None
            seen = self._slurm.job(id) or seen
            how = states.end_of_state(seen) or how
        if seen.state in ("SUSPENDED", "STOPPED", "REQUEUE_HOLD", "SPECIAL_EXIT"):
            self._slurm.cancel(id, 0.0)
        return self._by_slurm(id, seen, *how)

    def _waiting(self, id: str, seen: SlurmJob, now: float, busy: bool) -> JobEnd | None:
        followed = self._followed[id]
        why = states.held_reason(seen.reason)
        if why is None:
            if busy or not states.is_stuck(seen.reason):
                followed.stuck_since = None
                return None
            followed.stuck_since = now if followed.stuck_since is None else followed.stuck_since
            if now - followed.stuck_since < self._spec.patience_s:
                return None
            why = f"it has waited for {self._spec.patience_s:g} s for what may not come"
        self._slurm.cancel(id, 0.0)
        return self._by_slurm(id, seen, "held", f"{why} ({seen.reason}); it was withdrawn")

    def _forgotten(self, id: str, now: float) -> JobEnd | None:
        """The end of a job that Slurm has forgotten."""
        followed = self._followed[id]
        written = read_end(followed.job.place)
        if written is not None:
            return self._by_itself(id, written)
        if not self._waited_for_files(followed, now):
            return None
        seen = self._slurm.accounted_job(id)
        how = states.end_of_state(seen) if seen is not None else None
        if seen is not None and how is not None:
            return self._by_slurm(id, seen, *how)
        why = "Slurm has forgotten it, and it has not written its end: something ended it"
        return self._by_slurm(id, SlurmJob(id, "UNKNOWN"), "node-lost", why)

    def _waited_for_files(self, followed: _Followed, now: float) -> bool:
        followed.gone_since = now if followed.gone_since is None else followed.gone_since
        return now - followed.gone_since >= SHARED_S

    def _by_itself(self, id: str, written: JobStatus) -> JobEnd:
        followed = self._followed.pop(id)
        nodes = expand(written.nodes) or (written.nodes,)
        return end_from_status(id, followed.job, written, nodes, followed.submitted_s)

    def _by_slurm(self, id: str, seen: SlurmJob, how: How, why: str) -> JobEnd:
        followed = self._followed.pop(id)
        written = read_start(followed.job.place)
        nodes = (expand(written.nodes) or () if written else ()) or seen.nodes
        started = written.began_s if written else seen.started_s if nodes else None
        now = self._clock()
        ended_s = min(seen.ended_s, now) if seen.ended_s is not None and how != "held" else now
        where = f" ({', '.join(nodes)})" if how == "node-lost" and nodes else ""
        code = seen.code if how in ("done", "failed") else None
        return JobEnd(
            id, how, code, nodes, f"{why}{where}", followed.submitted_s, started, max(ended_s, started or 0.0)
        )
