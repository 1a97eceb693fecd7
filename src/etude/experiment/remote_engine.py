"""A session on a node of a running job: the engine is copied there, and all decisions are made here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from etude.engine import Engine, EngineLost, Interrupts, Launch, Repeated, Worker
from etude.errors import InputError, MachineRefuses, UsageError
from etude.experiment.bench import EngineLike
from etude.experiment.plan import Plan
from etude.machine.remote.host import SNAPSHOT_S, Host, node_of, take_snapshot

VARIABLE = "ETUDE_NODE"
"""JOB:NODE of Slurm, the place of the engine; without it, the engine is here."""
CAPTURE_BYTES = 4 << 20
"""Maximum bytes recorded of the end of a remote hook's output."""


class NodeEngine:
    """An engine on a node; output of its workers for files is sent here with their rows."""

    def __init__(self, engine: Engine, there: NodeSession) -> None:
        self._engine, self.there = engine, there
        self.hello: Mapping[str, Any] = engine.hello

    def launch(self, launch: Launch, *, patience: int = 0) -> list[dict[str, Any]]:
        """One trial's worth of processes, in the engine's own directory on the node. Raises MachineRefuses: the engine
        is lost, or could not parse the request; EngineLost also if it was ended because the node was taken away, which
        is no failure of the command."""
        workers = tuple(_sent(worker) for worker in launch.workers)
        files = [_files(worker) for worker in launch.workers]
        most = max(launch.capture_bytes, CAPTURE_BYTES) if any(files) else launch.capture_bytes
        rows = self._engine.launch(replace(launch, workers=workers, capture_bytes=most), patience=patience)
        if any(row["cancelled"] or row["signal"] for row in rows) and not self.there.is_held():
            raise EngineLost(
                f"node {self.there.node}: job {self.there.job} has ended, and with it what was measured there"
            )
        for row in rows:
            for stream, path in files[row["worker"]].items():
                with open(path, "a", encoding="utf-8", errors="replace") as file:
                    file.write((row.get(stream) or {}).get("tail", ""))
        return rows

    def repeat(self, launch: Launch, progress: Callable[[int], None]) -> Repeated:
        """Refused: its journal would be written on the node."""
        raise MachineRefuses("an engine on a node does not write journals")

    def end(self) -> int:
        """End the processes that launches with `leftovers="keep"` left; returns their number."""
        return self._engine.end()

    def close(self, *, wait: bool = True) -> None:
        """End it and all that it started; the session's own engine also removes its files on the node."""
        self._engine.close(wait=wait)
        self.there.closed(self)


class NodeSession:
    """Makes the engines of one session on a node (a session's `make_engine`)."""

    def __init__(self, job: str, node: str) -> None:
        self.job, self.node = job, node
        self._host: Host | None = None
        self._main: NodeEngine | None = None
        self._made = 0

    def __call__(self, interrupts: Interrupts) -> EngineLike:
        """The session's engine; later ones run beside it. Raises MachineRefuses: the node is not available."""
        if self._host is None:
            self._host = node_of(self.job, self.node, interrupts)
            self._host.connect()
            self._main = NodeEngine(self._host.engine, self)
            return self._main
        self._made += 1
        return NodeEngine(self._host.keeper(str(self._made)), self)

    def closed(self, engine: NodeEngine) -> None:
        """Note that an engine was closed; the first engine is closed last."""
        if engine is self._main and self._host is not None:
            self._host.close()
            self._host = self._main = None

    def is_held(self) -> bool:
        """True if its job still has the node."""
        try:
            if self._host is not None:
                self._host.run("true", within_s=SNAPSHOT_S)
        except MachineRefuses:
            return False
        return True

    @property
    def boot_id(self) -> str:
        """Boot id of the node."""
        return self._host.boot_id if self._host is not None else ""

    def snapshot(self) -> dict[str, Any]:
        """Snapshot of the node. Raises MachineRefuses: it is gone."""
        if self._host is None:
            raise MachineRefuses(f"node {self.node} is not connected")
        host = self._host
        return take_snapshot(lambda line: host.run(line, within_s=SNAPSHOT_S))

    def snapshot_after(self) -> dict[str, Any] | None:
        """Snapshot of the node after all measurements; None if it is gone."""
        with suppress(MachineRefuses):
            return self.snapshot()
        return None


def engine_maker() -> Callable[[Interrupts], EngineLike]:
    """A function that makes a session's engine: here, unless `ETUDE_NODE` names a node."""
    named = os.environ.get(VARIABLE)
    if not named:
        return Engine
    job, colon, node = named.partition(":")
    if not colon or not job.isdigit() or not node:
        raise InputError(f"${VARIABLE} is {named!r}: expected JOB:NODE of Slurm, as 12:n1")
    return NodeSession(job, node)


def node_session_of(engine: EngineLike) -> NodeSession | None:
    """The node that an engine is on; None if it is here."""
    return engine.there if isinstance(engine, NodeEngine) else None


def require_local_engine(what: str) -> None:
    """Refuse measurements that need more than an engine on a node. Raises UsageError."""
    if os.environ.get(VARIABLE):
        raise UsageError(
            f"{what}: needs Étude on the nodes: with etude=copied only commands run there; install Étude on a file "
            "system that the nodes share, and leave out etude=copied"
        )


def check_plan(plan: Plan) -> None:
    """Refuse a plan that needs more on the node than the engine. Raises UsageError."""
    if any(test.cool != "none" for test in plan.tests):
        require_local_engine("--cool")
    if any(test.stdin is not None for test in plan.tests):
        require_local_engine("--input")


def _sent(worker: Worker) -> Worker:
    def where(output: str | Mapping[str, str]) -> str | Mapping[str, str]:
        return output if isinstance(output, str) else "capture"

    return replace(worker, cwd=None, stdout=where(worker.stdout), stderr=where(worker.stderr))


def _files(worker: Worker) -> dict[str, Path]:
    """Local files for its output, by stream."""
    outputs = {"stdout": worker.stdout, "stderr": worker.stderr}
    return {name: Path(to["file"]) for name, to in outputs.items() if not isinstance(to, str)}
