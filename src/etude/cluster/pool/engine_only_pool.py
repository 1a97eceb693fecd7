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
from collections.abc import Sequence
from dataclasses import dataclass, replace

from etude.cluster.pool.holding_pool import HeldNode, HoldingPool, failure_text
from etude.cluster.pool.job import How, Job, JobEnd
from etude.cluster.pool.job_status import OUTPUT
from etude.errors import MachineRefuses
from etude.experiment.remote_engine import VARIABLE
from etude.machine.remote.link import PREFIX, srun
from etude.program import engine_path

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


@dataclass
class _LocalCommand(HeldNode):
    process: subprocess.Popen[bytes] | None = None
    lost_s: float | None = None
    """Start of the node's silence, on the monotonic clock; None while it answers."""


class EngineOnlyPool(HoldingPool[_LocalCommand]):
    """A pool (job.py) on top of an inner pool, which provides the nodes."""

    look_s = 1.0
    one_node = "etude=copied a job has one; a client and a server need Étude on the nodes"
    lost_why = "the job that held its node has ended"
    held_type = _LocalCommand

    def running(self) -> frozenset[str]:
        """Ids of jobs whose command runs."""
        return frozenset(id for id, held in self._held.items() if held.process is not None)

    def close(self) -> None:
        """End the commands; nodes are held for ten minutes more, for a controller that adopts the jobs."""
        for held in self._held.values():
            _end(held.process)
        super().close()

    def _holder(self, job: Job) -> Job:
        return replace(job, command=("/bin/sh", "-c", _HOLD), environment={})

    def _drop(self, id: str, held: _LocalCommand) -> None:
        _end(held.process)

    def _lost(self, end: JobEnd) -> JobEnd:
        _end(self._held[end.id].process)
        return super()._lost(end)

    def _looked(self, running: Sequence[str]) -> list[JobEnd]:
        return [end for id in running if (end := self._look(id, self._held[id])) is not None]

    def _look(self, id: str, held: _LocalCommand) -> JobEnd | None:
        """Start the command of a job that has its node, or return its end. A command that ended with an earlier
        controller starts again, on the same node."""
        if held.process is None:
            return self._begin(id, held)
        code = held.process.poll()
        if code is None:
            return None
        if code == 0 or (held.lost_s is None and self._answers(id, held.node)):
            return self._by_status(id, code, str(code))
        # The engine's loss is seen at once; the scheduler reports why its node is gone some time later.
        held.lost_s = held.lost_s or time.monotonic()
        why = failure_text(held.job, str(code))
        return self._ended(id, "node-lost", None, why) if time.monotonic() - held.lost_s > LOST_S else None

    def _begin(self, id: str, held: _LocalCommand) -> JobEnd | None:
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
