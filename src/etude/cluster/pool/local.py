"""This machine as a pool: one job at a time, also with several controllers.

Jobs are the same scripts as on a cluster, in processes of their own that outlive a killed controller: the next one
adopts what still runs, and reads the status files of what has ended.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from etude.cluster.pool.job import How, Job, JobEnd
from etude.cluster.pool.job_files import (
    REFUSALS,
    SCRIPT,
    SIGTERM_STATUS,
    Checks,
    StagedJob,
    end_from_status,
    read_end,
    read_start,
    stage_job,
    staged_job,
)
from etude.errors import MachineRefuses
from etude.osutil.files import lock_holder, named_process, try_lock

LOOK_S, GRACE_S = 0.05, 10.0
JOB_VARIABLE = "ETUDE_JOB"
"""Environment variable of a job's processes: its id."""


USERS_LOCK, ROOTS_LOCK = Path("/tmp/etude-machine.lock"), Path("/run/etude-machine.lock")
PATIENCE_S = 24 * 3600.0
"""Time to wait for another Étude that measures on this machine, s."""


def lock_path() -> Path:
    """The lock that all users of the machine share, whatever their TMPDIR; only root can hold root's lock."""
    return ROOTS_LOCK if os.geteuid() == 0 else USERS_LOCK


@dataclass
class _Started:
    id: str
    job: Job
    submitted_s: float
    pid: int
    process: subprocess.Popen[bytes] | None
    """None if another controller started the job."""


class LocalPool:
    """See `Pool`. A job of several nodes has this machine for all of them."""

    name = "local"

    def __init__(
        self,
        lock: Path | None = None,
        say: Callable[[str], None] = lambda line: None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`say` receives a line each time it starts to wait for another controller."""
        self._lock, self._say, self._pause = lock or lock_path(), say, pause
        self._others = () if lock else tuple({USERS_LOCK, ROOTS_LOCK} - {self._lock})
        self._until_s: float | None = None
        self._waiting: dict[str, tuple[Job, float]] = {}
        self._started: _Started | None = None

    def width(self, nodes: int = 1) -> int:
        """1: one job at a time."""
        return 1

    def submit(self, job: Job) -> str:
        """Queue the job; it starts after those before it. One directory is one job, as in a pool by Slurm."""
        before = staged_job(job.place)
        if before is not None:
            self.adopt(before.token, job)
            return before.token
        record = StagedJob(f"local-{secrets.token_hex(6)}", time.time())
        stage_job(job, record, Checks(None))
        self._waiting[record.token] = (job, record.submitted_s)
        self._start_next()
        return record.token

    def adopt(self, id: str, job: Job) -> None:
        """Follow a job: run it if it never began, wait for it if it runs."""
        before = staged_job(job.place)
        if before is None:
            raise MachineRefuses(f"{job.place}: no job was submitted from here")
        self._waiting[id] = (job, before.submitted_s)
        self._start_next()

    def ended(self, timeout_s: float | None = None) -> Sequence[JobEnd]:
        """See `Pool`."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while self._waiting or self._started:
            self._start_next()
            found = self._concluded()
            if found is not None:
                self._start_next()
                return (found,)
            left = LOOK_S if until is None else min(LOOK_S, until - time.monotonic())
            if left <= 0:
                break
            self._wait(self._started, left)
        return ()

    def running(self) -> frozenset[str]:
        """The id of the running job, or none."""
        return frozenset((self._started.id,)) if self._started else frozenset()

    def cancel(self, id: str) -> None:
        """SIGTERM to all of its processes, then SIGKILL."""
        self._waiting.pop(id, None)
        if self._started is not None and self._started.id == id:
            self._end(self._started)
            self._started = None

    def clock_s(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def close(self) -> None:
        """End the running job."""
        self._waiting.clear()
        if self._started is not None:
            self.cancel(self._started.id)

    def _start_next(self) -> None:
        """Start the first waiting job if the machine is free; a job that has already begun is waited for instead."""
        if self._started is not None or not self._waiting:
            return
        for id, (job, submitted_s) in self._waiting.items():
            written = read_start(job.place)
            if read_end(job.place) is not None or written is not None:
                pid = written.pid if written is not None and written.pid is not None else 0
                self._started = _Started(id, job, submitted_s, pid, None)
                del self._waiting[id]
                return
        id, (job, submitted_s) = next(iter(self._waiting.items()))
        lock = self._locked()
        if lock is None:
            return
        if (
            read_start(job.place) is not None
        ):  # an earlier controller's, which began while the lock was waited for
            os.close(lock)
            return
        del self._waiting[id]
        # The job holds the lock, not this process: when all of its processes are gone, the machine is free.
        try:
            process = subprocess.Popen(
                ["/bin/sh", str(job.place / SCRIPT)],
                env={**os.environ, JOB_VARIABLE: id},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=(lock,),
            )
        finally:
            os.close(lock)
        self._started = _Started(id, job, submitted_s, process.pid, process)

    def _locked(self) -> int | None:
        """The machine's lock; None while another process holds it.

        Raises:
            MachineRefuses: another process held it for too long, or it cannot be opened.
        """
        try:
            lock = _opened(self._lock)
        except OSError as error:
            raise MachineRefuses(f"{self._lock}: cannot be opened: {error.strerror}") from None
        busy: Path | None = self._lock
        if try_lock(lock):
            busy = next((other for other in self._others if lock_holder(other) is not None), None)
        # A user could hold the users' lock forever: root does not wait for it.
        if busy is not None and not (self._lock == ROOTS_LOCK and busy == USERS_LOCK):
            os.close(lock)
            self._wait_for(busy)
            return None
        if busy is not None and self._until_s is None:
            self._say(f"{_named(busy)} measures on this machine as well: root does not wait for it")
        self._until_s = None
        return lock

    def _wait_for(self, busy: Path) -> None:
        now = time.monotonic()
        if self._until_s is None:
            self._until_s = now + PATIENCE_S
            hours = f"{PATIENCE_S / 3600:g} h"
            self._say(f"{_named(busy)} measures on this machine: waiting until it has ended, at most {hours}")
        elif now > self._until_s:
            raise MachineRefuses(
                f"{_named(busy)} still measures on this machine, by {busy}; wait for its end"
            )

    def _wait(self, started: _Started | None, seconds: float) -> None:
        """Wait for the job to end, at most `seconds`; the end of another controller's child cannot be waited for."""
        if started is None or started.process is None:
            self._pause(seconds)
            return
        with suppress(subprocess.TimeoutExpired):
            started.process.wait(seconds)

    def _concluded(self) -> JobEnd | None:
        started = self._started
        if started is None or _lives(started):
            return None
        self._started = None
        written = read_end(started.job.place)
        began = written or read_start(started.job.place)
        # An earlier controller may have run it on another machine that shares this directory.
        where = (began.nodes,) if began is not None and began.nodes else (os.uname().nodename,)
        if written is not None:
            return end_from_status(started.id, started.job, written, where, started.submitted_s)
        how, why = _without_end(started.process.returncode if started.process is not None else None)
        began_s = began.began_s if began else None
        return JobEnd(started.id, how, None, where, why, started.submitted_s, began_s, time.time())

    def _end(self, started: _Started) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not _lives(started):
                break
            try:
                os.killpg(started.pid, number)
            except ProcessLookupError:
                break
            until = time.monotonic() + GRACE_S
            while _lives(started) and time.monotonic() < until:
                self._wait(started, LOOK_S)


def _opened(lock: Path) -> int:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # another could have made a FIFO
    try:
        return os.open(lock, flags | os.O_CREAT, 0o600 if lock == ROOTS_LOCK else 0o644)
    except PermissionError:  # another user's, in a directory that is everybody's (fs.protected_regular)
        return os.open(lock, flags)


def _named(lock: Path) -> str:
    """The holder of the lock, for a message."""
    pid = lock_holder(lock)
    found = named_process(pid) if pid else None
    return f"another Étude ({found})" if found else "another Étude"


def _without_end(code: int | None) -> tuple[How, str]:
    """The end of a job that wrote none; `code` is `Popen.returncode`, None for another controller's child."""
    if code is None:
        return "node-lost", "it was ended with the machine, or by something on it, without a record of how"
    if code in REFUSALS:
        return REFUSALS[code]
    if code == SIGTERM_STATUS:
        return "cancelled", "a signal ended it"
    return "failed", f"signal {-code} ended it" if code < 0 else "its end could not be written"


def _lives(started: _Started) -> bool:
    if started.process is not None:
        return started.process.poll() is None
    try:
        environment = Path(f"/proc/{started.pid}/environ").read_bytes()
    except OSError:
        return False
    return f"{JOB_VARIABLE}={started.id}".encode() in environment.split(b"\0")
