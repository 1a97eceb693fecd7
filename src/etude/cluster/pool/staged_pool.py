"""A pool whose nodes do not share the results directory: files are copied to a job's node, and its results back.

A job's directory exists under the same name on the node's own disk. Its files are copied there before the command
starts. After the end, the job reports it to Slurm (in its comment) and keeps node and results until they have been
fetched, by this controller or the next.
"""

from __future__ import annotations

import io
import shlex
import subprocess
import tarfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from etude.cluster.pool.job import How, Job, JobEnd, Pool
from etude.cluster.pool.job_status import BEGUN, END, RECORD, SCRIPT, last_line
from etude.errors import MachineRefuses
from etude.machine.remote.slurm import slurm, srun
from etude.osutil.commands import run_to_end
from etude.osutil.trust import tool_words
from etude.results.writer import write_error

LOOK_S = 2.0
"""Interval between polls of Slurm for ended commands, s: one for all jobs."""
WITHIN_S = 600.0
"""Timeout for copying a job's files, either way, s."""
ENDED_PREFIX = "etude-ended-"
"""Prefix of the comment of a job whose command has ended; its exit status follows."""
POOL_FILES = (BEGUN, END, RECORD, SCRIPT)
"""Files of the inner pool, which has its own on either side; never copied."""
_END = bytes(1024)
"""End of every archive."""
MAX_COPY_ATTEMPTS = 5
COPIED_MARK, STATUS_FILE = ":given", ":code"
"""Files of ours in a job's directory. No directory of a test has a colon in its name."""
SHARED = "shared"
_JOB = """\
cd {place} || exit
while [ ! -e {given} ]; do sleep 0.2; done
cd {directory} && {command}
code=$?
cd {place} && echo $code >{code}
until scontrol update JobId="$SLURM_JOB_ID" Comment={ended}$code; do sleep 5; done
while [ -e {place}/{code} ]; do sleep 2; done
exit $code
"""

RunCommand = Callable[[Sequence[str]], str]
RunWithInput = Callable[[Sequence[str], bytes], bytes]
"""Runs a command with that standard input; returns its output."""


class _Shared(MachineRefuses):
    """A node shares the results directory."""


@dataclass
class _Away:
    job: Job
    submitted_s: float
    node: str = ""
    began_s: float | None = None
    tries: int = 0
    """Failed attempts to copy its files."""


class StagedPool:
    """A pool (job.py) on top of an inner pool."""

    def __init__(self, nodes: Pool, ask: RunCommand = slurm, carry: RunWithInput | None = None) -> None:
        self._nodes, self._ask, self._carry = nodes, ask, carry or run_with_input
        self._away: dict[str, _Away] = {}
        self.name = nodes.name

    def width(self, nodes: int = 1) -> int:
        """Same as the inner pool."""
        return self._nodes.width(nodes)

    def submit(self, job: Job) -> str:
        """Raises MachineRefuses: same as the inner pool; or a job of two nodes, of which one would not have the
        files."""
        id = self._nodes.submit(_there(job))
        self._away[id] = _Away(job, self.clock_s())
        return id

    def adopt(self, id: str, job: Job) -> None:
        """Follow a job; if it has ended, its results are still on its node."""
        self._nodes.adopt(id, _there(job))
        self._away[id] = _Away(job, self.clock_s())

    def ended(self, timeout_s: float | None = None) -> Sequence[JobEnd]:
        """Same as `Pool.ended`; the results of a job returned as done or failed are here.

        Raises MachineRefuses: they cannot be copied, or the inner pool is silent; they stay on the node.
        """
        until = time.monotonic() + (float("inf") if timeout_s is None else timeout_s)
        while self._away:
            pause_s = min(LOOK_S, max(until - time.monotonic(), 0.0))
            found = [self._lost(end) for end in self._nodes.ended(pause_s)]
            found += self._looked()
            if found or time.monotonic() >= until:
                return found
        return ()

    def running(self) -> frozenset[str]:
        """Same as the inner pool."""
        return self._nodes.running()

    def cancel(self, id: str) -> None:
        """End a job and forget it; its files on the node are removed."""
        away = self._away.pop(id)
        if away.node:
            with suppress(MachineRefuses):
                self._on(id, away, f"rm -rf {shlex.quote(str(away.job.place))}")
        self._nodes.cancel(id)

    def clock_s(self) -> float:
        """Same as the inner pool."""
        return self._nodes.clock_s()

    def close(self) -> None:
        """Does nothing: jobs continue, and keep their results."""
        self._nodes.close()

    def _looked(self) -> list[JobEnd]:
        """Poll all running jobs: copy files to those that have started, fetch the results of those that have ended."""
        running = sorted(self._nodes.running() & self._away.keys())
        if not running:
            return []
        said = self._ask(["squeue", "-h", "-j", ",".join(running), "-o", "%A|%N|%k"])
        found = []
        for line in said.splitlines():
            id, node, comment = (*line.split("|", 2), "", "")[:3]
            away = self._away.get(id)
            if away is None:
                continue
            try:
                if not away.node:
                    self._give(id, away, node)
                if comment.startswith(ENDED_PREFIX):
                    found.append(self._fetch(id, away, comment.removeprefix(ENDED_PREFIX)))
            except _Shared:
                raise
            except MachineRefuses:  # the inner pool reports lost nodes
                away.tries += 1
                if away.tries >= MAX_COPY_ATTEMPTS:
                    raise
        return found

    def _give(self, id: str, away: _Away, node: str) -> None:
        """Copy a job's files to its node, unless an earlier controller has."""
        place = shlex.quote(str(away.job.place))
        away.node = node
        try:
            given = f"[ -e {COPIED_MARK} ] || {{ tar -x && touch {COPIED_MARK}; }}"
            # A file that only this side writes is visible on the node: it is this very directory, so remove nothing.
            line = f"cd {place} && if [ -e {RECORD} ]; then cat >/dev/null; echo {SHARED}; else {given}; fi"
            shared = self._on(id, away, line, pack_files(away.job)).strip() == SHARED.encode()
        except MachineRefuses:
            away.node = ""
            raise
        if shared:
            for each in self._away:
                self._nodes.cancel(each)
            raise _Shared(
                f"{away.job.name}: node {node} sees {away.job.place}, the results directory: leave out results=copied"
            )
        away.began_s = self.clock_s()

    def _fetch(self, id: str, away: _Away, code: str) -> JobEnd:
        """Fetch a job's results, then remove them on the node. Idempotent."""
        place = shlex.quote(str(away.job.place))
        unpack(self._on(id, away, f"tar -C {place} -c ."), away.job)
        del self._away[id]
        with suppress(MachineRefuses):
            self._on(id, away, f"rm -rf {place}")
        self._nodes.cancel(id)
        status = int(code) if code.isdigit() else None
        why = (
            "" if status == 0 else f"exit status {code}: {last_line(away.job.place) or 'it printed nothing'}"
        )
        how: How = "done" if status == 0 else "failed"
        ended_s = self.clock_s()
        return JobEnd(id, how, status, (away.node,), why, away.submitted_s, away.began_s, ended_s)

    def _lost(self, end: JobEnd) -> JobEnd:
        """The end of a job that ended before its results were fetched."""
        away = self._away.pop(end.id)
        if end.how in ("done", "failed"):
            return replace(end, how="node-lost", code=None, why=f"its results were not fetched: {end.why}")
        where = f"; what it had measured is on {end.nodes[0]} in {away.job.place}" if end.nodes else ""
        return replace(end, why=f"{end.why}{where}") if end.how in ("out-of-time", "cancelled") else end

    def _on(self, id: str, away: _Away, line: str, data: bytes = b"") -> bytes:
        return self._carry([*srun(id, away.node), "--chdir=/", "/bin/sh", "-c", line], data)


def pack_files(job: Job) -> bytes:
    """A tar archive of the job's directory here."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as files:
        for path in sorted(job.place.iterdir()) if job.place.is_dir() else ():
            if path.name not in POOL_FILES:
                files.add(path, path.name)
    return archive.getvalue()


def unpack(data: bytes, job: Job) -> None:
    """Extract an archive of results into the job's directory. Raises MachineRefuses: incomplete, or not writable."""
    if not data.endswith(_END):
        raise MachineRefuses(f"{job.name}: its results did not come whole: {len(data)} bytes, and no end")
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                if member.name.removeprefix("./") not in (*POOL_FILES, COPIED_MARK, STATUS_FILE):
                    archive.extract(member, job.place, filter="data")
    except tarfile.TarError as error:
        raise MachineRefuses(f"{job.name}: its results did not come whole: {error}") from None
    except OSError as error:
        raise write_error(job.place, error) from error


def run_with_input(words: Sequence[str], data: bytes) -> bytes:
    """Output of a command of Slurm that reads `data`. Raises MachineRefuses: it fails, or times out."""
    try:
        done = run_to_end(tool_words(words), given=data, patience_s=WITHIN_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineRefuses(f"{words[0]}: {error}") from None
    if done.status:
        raise MachineRefuses(f"{words[0]}: {done.why}")
    return done.output


def _there(job: Job) -> Job:
    if job.nodes != 1:
        raise MachineRefuses(
            f"{job.name}: wants {job.nodes} nodes: with results=copied a job has one; put the results directory on a "
            "file system that the nodes share"
        )
    text = _JOB.format(
        place=shlex.quote(str(job.place)),
        directory=shlex.quote(str(job.directory)),
        command=shlex.join(job.command),
        given=COPIED_MARK,
        code=STATUS_FILE,
        ended=ENDED_PREFIX,
    )
    return replace(job, command=("/bin/sh", "-c", text))
