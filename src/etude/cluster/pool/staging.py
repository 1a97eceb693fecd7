"""Ways of staging on a node that lacks something: its engine (etude=copied), or files and results (results=copied).

With the engine only, a job's command runs here, in one process per job. It measures through the engine on its node
(`etude.experiment.remote_engine`), and writes results here. A controller that dies leaves these results and a node
without our processes.

With files, a job's directory exists under the same name on the node's own disk. Its files are copied there before the
command starts. After the end, the job reports it to Slurm (in its comment) and keeps node and results until they have
been fetched, by this controller or the next.
"""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import tarfile
import time
from contextlib import suppress
from dataclasses import dataclass, replace

from etude.cluster.pool.held_pool import HeldJob, Outcome, SharedDirectory
from etude.cluster.pool.job import Job, JobEnd
from etude.cluster.pool.job_files import BEGUN, END, OUTPUT, RECORD, SCRIPT
from etude.errors import MachineRefuses
from etude.experiment.remote_engine import VARIABLE
from etude.machine.remote.link import PREFIX
from etude.machine.remote.transport import run
from etude.program import engine_path
from etude.results.writer import write_error

ANSWER_S = 30.0
"""Timeout for an answer of a node, s."""
LOST_S = 120.0
"""Time within which the inner pool reports the state of a node that does not answer, s."""
HOLD = f"""\
minutes=0
while [ "$minutes" -lt 10 ]; do
    sleep 60
    minutes=$((minutes + 1))
    for used in /tmp/{PREFIX}*; do [ -d "$used" ] && [ -O "$used" ] && minutes=0; done
done
"""
"""Keeps its node while an engine runs there and for ten minutes more, so that a new controller can adopt the job."""


@dataclass
class EngineStaging(HeldJob):
    """A job whose command runs here, and measures with an engine that is copied to its node. A controller that ends
    ends the command; its node is held for ten minutes more."""

    look_s = 1.0
    one_node = "etude=copied a job has one; a client and a server need Étude on the nodes"
    lost_why = "the job that held its node has ended"

    silent_s: float | None = None
    """Start of the node's silence, on the monotonic clock; None while it answers."""

    @staticmethod
    def holder(job: Job) -> Job:
        """A job that sleeps."""
        return replace(job, command=("/bin/sh", "-c", HOLD), environment={})

    def look(self, comment: str) -> Outcome | None:
        """Start the command, or return its outcome. A command that ended with an earlier controller starts again, on
        the same node."""
        if self.process is None:
            return self._begin()
        code = self.process.poll()
        if code is None:
            return None
        if code == 0 or (self.silent_s is None and self._answers()):
            return self.by_status(code, str(code))
        # The engine's loss is seen at once; the scheduler reports why its node is gone some time later.
        self.silent_s = self.silent_s or time.monotonic()
        is_over = time.monotonic() - self.silent_s > LOST_S
        return ("node-lost", None, self.failure(str(code))) if is_over else None

    def _begin(self) -> Outcome | None:
        """Start the command if the node can run the engine."""
        try:
            said = self._ask("uname -m; df -Pk /tmp | tail -n 1")
        except MachineRefuses as error:
            return "node-lost", None, str(error)
        if (refused := unsuitable_reason(said, self.node)) is not None:
            return refused
        # If this process ends, its commands are ended too: nobody would read what they measure.
        words = [*(["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []), *self.job.command]
        self.job.place.mkdir(parents=True, exist_ok=True)
        with open(self.job.place / OUTPUT, "ab") as file:
            try:
                self.process = subprocess.Popen(
                    words,
                    cwd=self.job.directory,
                    env={**os.environ, **self.job.environment, VARIABLE: f"{self.id}:{self.node}"},
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    process_group=0,
                )
            except OSError as error:
                return "failed", None, f"{words[0]}: cannot be run: {error.strerror}"
        return None

    def _answers(self) -> bool:
        with suppress(MachineRefuses):
            self._ask("true")
            return True
        return False

    def _ask(self, line: str) -> str:
        way = self.reach(self.id, self.node)
        return run(way, way.command(line), within_s=ANSWER_S).decode("utf-8", "replace")


def unsuitable_reason(said: str, node: str) -> Outcome | None:
    """Reason why a node cannot run the engine, from `uname -m` and the last line of `df -Pk`; None if it can."""
    lines = said.splitlines()
    machine, here = lines[0].strip() if lines else "", os.uname().machine
    if machine != here:
        why = f"node {node} is {machine or 'unknown'}, the engine here is for {here}"
        return "other-architecture", None, why
    fields = lines[-1].split()
    need = os.path.getsize(engine_path())
    if len(fields) > 3 and fields[3].isdigit() and int(fields[3]) * 1024 < need:
        free = int(fields[3]) * 1024 / 1e6
        why = f"node {node} has {free:.1f} MB free in /tmp, the engine needs {need / 1e6:.1f} MB"
        return "no-space", None, why
    return None


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


@dataclass
class ResultStaging(HeldJob):
    """A job whose files are copied to its node, and its results back. It continues without a controller, and keeps its
    results."""

    look_s = 2.0
    one_node = "results=copied a job has one; put the results directory on a file system that the nodes share"
    lost_why = "its results were not fetched: {}"

    is_copied: bool = False
    """True once its files are on the node."""
    tries: int = 0
    """Failed attempts to copy files."""

    @staticmethod
    def holder(job: Job) -> Job:
        """The job, which waits for its files and for its results to be fetched."""
        text = _JOB.format(
            place=shlex.quote(str(job.place)),
            directory=shlex.quote(str(job.directory)),
            command=shlex.join(job.command),
            given=COPIED_MARK,
            code=STATUS_FILE,
            ended=ENDED_PREFIX,
        )
        return replace(job, command=("/bin/sh", "-c", text))

    def look(self, comment: str) -> Outcome | None:
        """Copy its files to the node if it has started, fetch its results if it has ended."""
        try:
            if not self.is_copied:
                self._give()
            return (
                self._fetch(comment.removeprefix(ENDED_PREFIX)) if comment.startswith(ENDED_PREFIX) else None
            )
        except SharedDirectory:
            raise
        except MachineRefuses:  # the inner pool reports lost nodes
            self.tries += 1
            if self.tries >= MAX_COPY_ATTEMPTS:
                raise
        return None

    def drop(self) -> None:
        """Remove its directory on the node."""
        if self.is_copied:
            with suppress(MachineRefuses):
                self._run(f"rm -rf {shlex.quote(str(self.job.place))}")

    def lost(self, end: JobEnd) -> JobEnd:
        """The end of its holder, with the place of its results."""
        end = super().lost(end)
        where = f"; what it had measured is on {end.nodes[0]} in {self.job.place}" if end.nodes else ""
        return replace(end, why=f"{end.why}{where}") if end.how in ("out-of-time", "cancelled") else end

    def _give(self) -> None:
        """Copy its files to the node, unless an earlier controller has."""
        place = shlex.quote(str(self.job.place))
        given = f"[ -e {COPIED_MARK} ] || {{ tar -x && touch {COPIED_MARK}; }}"
        # A file that only this side writes is visible on the node: it is this very directory, so remove nothing.
        line = f"cd {place} && if [ -e {RECORD} ]; then cat >/dev/null; echo {SHARED}; else {given}; fi"
        if self._run(line, pack_files(self.job)).strip() == SHARED.encode():
            raise SharedDirectory(
                f"{self.job.name}: node {self.node} sees {self.job.place}, the results directory: leave out "
                "results=copied"
            )
        self.is_copied = True

    def _fetch(self, code: str) -> Outcome:
        """Fetch its results, then remove them on the node. Idempotent."""
        unpack(self._run(f"tar -C {shlex.quote(str(self.job.place))} -c ."), self.job)
        self.drop()
        return self.by_status(int(code) if code.isdigit() else None, code)

    def _run(self, line: str, data: bytes = b"") -> bytes:
        way = self.reach(self.id, self.node)
        return run(way, way.command(line), given=data, within_s=WITHIN_S)


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
