"""A pool whose nodes have no Étude: its jobs hold nodes, and measure with an engine that is copied to them.

A job's command runs here, in one process per job. It measures through the engine on its node
(`etude.experiment.remote_engine`), and writes results here. A controller that dies leaves these results and a node
without our processes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from etude.cluster.pool.job import How, Job, JobEnd, Pool
from etude.cluster.pool.job_status import OUTPUT, last_line
from etude.errors import MachineRefuses
from etude.experiment.remote_engine import VARIABLE
from etude.machine.remote.remote_directory import PREFIX
from etude.machine.remote.slurm import slurm, srun
from etude.program import engine_path

LOOK_S = 1.0
"""Interval between checks of the commands that run here, s."""
LOST_S = 120.0
"""Time within which the inner pool reports the state of a node that does not answer, s."""
GRACE_S = 30.0
"""Time between SIGTERM and SIGKILL for a command, s."""
_HOLD = f"""\
minutes=0
while [ "$minutes" -lt 10 ]; do
    sleep 60
    minutes=$((minutes + 1))
    for used in /tmp/{PREFIX}*; do [ -d "$used" ] && [ -O "$used" ] && minutes=0; done
done
"""
"""Keeps its node while an engine runs there and for ten minutes more, so that a new controller can adopt the job."""

RunCommand = Callable[[Sequence[str]], str]


@dataclass
class _Held:
    """A job: its node is held, or waited for."""

    job: Job
    submitted_s: float
    node: str = ""
    process: subprocess.Popen[bytes] | None = None
    started_s: float = 0.0
    lost_s: float | None = None
    """Start of the node's silence, on the monotonic clock; None while it answers."""


class EngineOnlyPool:
    """A pool (job.py) on top of an inner pool, which provides the nodes."""

    def __init__(self, nodes: Pool, ask: RunCommand = slurm) -> None:
        self._nodes, self._ask = nodes, ask
        self._held: dict[str, _Held] = {}

    @property
    def name(self) -> str:
        """Same as the inner pool."""
        return self._nodes.name

    def width(self, nodes: int = 1) -> int:
        """Same as the inner pool."""
        return self._nodes.width(nodes)

    def submit(self, job: Job) -> str:
        """Request a node for it. Raises MachineRefuses: the pool refuses, or the job needs two nodes."""
        id = self._nodes.submit(_holder(job))
        self._held[id] = _Held(job, self.clock_s())
        return id

    def adopt(self, id: str, job: Job) -> None:
        """Start its command again, on the same node: it ended with the controller that had started it."""
        self._nodes.adopt(id, _holder(job))
        self._held[id] = _Held(job, self.clock_s())

    def ended(self, timeout_s: float | None = None) -> Sequence[JobEnd]:
        """Same as `Pool.ended`."""
        until = time.monotonic() + (float("inf") if timeout_s is None else timeout_s)
        while self._held:
            found = [
                self._lost(end) for end in self._nodes.ended(min(LOOK_S, max(until - time.monotonic(), 0)))
            ]
            for id in sorted(self._nodes.running() & self._held.keys()):
                end = self._looked(id)
                found += [end] if end is not None else []
            if found or time.monotonic() >= until:
                return found
        return ()

    def running(self) -> frozenset[str]:
        """Ids of jobs whose command runs."""
        return frozenset(id for id, held in self._held.items() if held.process is not None)

    def cancel(self, id: str) -> None:
        """End a job and forget it."""
        held = self._held.pop(id)
        _end(held.process)
        self._nodes.cancel(id)

    def clock_s(self) -> float:
        """Same as the inner pool."""
        return self._nodes.clock_s()

    def close(self) -> None:
        """End the commands; nodes are held for ten minutes more, for a controller that adopts the jobs."""
        for held in self._held.values():
            _end(held.process)
        self._nodes.close()

    def _looked(self, id: str) -> JobEnd | None:
        """Check a job that has its node: start its command, or return its end."""
        held = self._held[id]
        if held.process is None:
            return self._begin(id, held)
        code = held.process.poll()
        if code is None:
            return None
        if code == 0:
            return self._ended(id, "done", code, "")
        why = f"exit status {code}: {last_line(held.job.place) or 'it printed nothing'}"
        if held.lost_s is None and self._answers(id, held.node):
            return self._ended(id, "failed", code, why)
        # The engine's loss is seen at once; the scheduler reports why its node is gone some time later.
        held.lost_s = held.lost_s or time.monotonic()
        return self._ended(id, "node-lost", None, why) if time.monotonic() - held.lost_s > LOST_S else None

    def _begin(self, id: str, held: _Held) -> JobEnd | None:
        """Start the command if the node can run the engine."""
        held.started_s = self.clock_s()
        try:
            held.node = self._ask(["squeue", "-h", "-j", id, "-o", "%N"]).strip()
            said = self._ask([*srun(id, held.node), "sh", "-c", "uname -m; df -Pk /tmp | tail -n 1"])
        except MachineRefuses as error:
            return self._ended(id, "node-lost", None, str(error))
        refused = unsuitable_reason(said, held.node)
        if refused is not None:
            return self._ended(id, *refused)
        given = {**os.environ, **held.job.environment, VARIABLE: f"{id}:{held.node}"}
        # If this process ends, its commands are ended too: nobody would read what they measure.
        words = [*(["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []), *held.job.command]
        held.job.place.mkdir(parents=True, exist_ok=True)
        with open(held.job.place / OUTPUT, "ab") as file:
            try:
                held.process = subprocess.Popen(
                    words,
                    cwd=held.job.directory,
                    env=given,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    process_group=0,
                )
            except OSError as error:
                return self._ended(id, "failed", None, f"{words[0]}: cannot be run: {error.strerror}")
        return None

    def _answers(self, id: str, node: str) -> bool:
        try:
            self._ask([*srun(id, node), "true"])
        except MachineRefuses:
            return False
        return True

    def _lost(self, end: JobEnd) -> JobEnd:
        """The end of a job that lost its node: one that holds a node never ends by itself while its command runs."""
        held = self._held.pop(end.id)
        _end(held.process)
        if end.how in ("done", "failed"):
            return replace(end, how="node-lost", code=None, why="the job that held its node has ended")
        return end

    def _ended(self, id: str, how: How, code: int | None, why: str) -> JobEnd:
        held = self._held.pop(id)
        with suppress(MachineRefuses):
            self._nodes.cancel(id)
        nodes = (held.node,) if held.node else ()
        return JobEnd(id, how, code, nodes, why, held.submitted_s, held.started_s, self.clock_s())


def unsuitable_reason(said: str, node: str) -> tuple[How, None, str] | None:
    """Reason why a node cannot run the engine, from `uname -m` and the last line of `df -Pk`; None if it can."""
    lines = said.splitlines()
    machine, here = lines[0].strip() if lines else "", os.uname().machine
    if machine != here:
        return (
            "other-architecture",
            None,
            f"node {node} is {machine or 'unknown'}, the engine here is for {here}",
        )
    fields = lines[-1].split()
    need = os.path.getsize(engine_path())
    if len(fields) > 3 and fields[3].isdigit() and int(fields[3]) * 1024 < need:
        free = int(fields[3]) * 1024 / 1e6
        return (
            "no-space",
            None,
            f"node {node} has {free:.1f} MB free in /tmp, the engine needs {need / 1e6:.1f} MB",
        )
    return None


def _holder(job: Job) -> Job:
    if job.nodes != 1:
        raise MachineRefuses(
            f"{job.name}: wants {job.nodes} nodes: with etude=copied a job has one; a client and a server need "
            "Étude on the nodes"
        )
    return replace(job, command=("/bin/sh", "-c", _HOLD), environment={})


def _end(process: subprocess.Popen[bytes] | None) -> None:
    """Send SIGTERM, on which a command releases its engine; SIGKILL after the grace period."""
    if process is None or process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
