"""A session whose machine is a node of a running job: the engine is copied there, and all that decides stays here."""

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
from etude.machine.remote import machine
from etude.machine.remote.host import Host
from etude.machine.remote.slurm import node_of

VARIABLE = "ETUDE_NODE"
"""JOB:NODE of Slurm, where the engine is to be; without it, it is here."""
CAPTURE_BYTES = 4 << 20
"""What is kept of the end of what a hook says there."""


class NodeEngine:
    """An engine on a node; what its workers would write to files comes here with their rows."""

    def __init__(self, engine: Engine, there: NodeSession) -> None:
        self._engine, self.there = engine, there
        self.hello: Mapping[str, Any] = engine.hello

    def launch(self, launch: Launch, *, patience: int = 0) -> list[dict[str, Any]]:
        """One trial's worth of processes, in the engine's own directory there.

        Raises:
            MachineRefuses: the engine is lost, or could not make sense of the request; EngineLost also where it was
                told to end by those who took its node, which is no failure of what ran.
        """
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
        """Refused: its journal would be written there."""
        raise MachineRefuses("an engine on a node does not write journals")

    def end(self) -> int:
        """End what launches with `leftovers="keep"` left; how many processes that were."""
        return self._engine.end()

    def close(self, *, wait: bool = True) -> None:
        """End it and all that it started; with the session's own all that was made there is removed."""
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
        """The session's engine; later ones are beside it. Raises MachineRefuses: the node cannot be had."""
        if self._host is None:
            self._host = node_of(self.job, self.node, interrupts)
            self._host.connect()
            self._main = NodeEngine(self._host.engine, self)
            return self._main
        self._made += 1
        return NodeEngine(self._host.keeper(str(self._made)), self)

    def closed(self, engine: NodeEngine) -> None:
        """One of them was; the first is the last."""
        if engine is self._main and self._host is not None:
            self._host.close()
            self._host = self._main = None

    def is_held(self) -> bool:
        """Whether its job still has the node."""
        try:
            if self._host is not None:
                self._host.run("true", within_s=machine.WITHIN_S)
        except MachineRefuses:
            return False
        return True

    @property
    def boot_id(self) -> str:
        """Of the node."""
        return self._host.boot_id if self._host is not None else ""

    def snapshot(self) -> dict[str, Any]:
        """Of the node. Raises MachineRefuses: it is gone."""
        if self._host is None:
            raise MachineRefuses(f"node {self.node} is not connected")
        host = self._host
        return machine.take(lambda line: host.run(line, within_s=machine.WITHIN_S))

    def snapshot_after(self) -> dict[str, Any] | None:
        """Of the node, once all is measured; None where it is gone."""
        with suppress(MachineRefuses):
            return self.snapshot()
        return None


def engine_maker() -> Callable[[Interrupts], EngineLike]:
    """What makes a session's engine: here, unless `ETUDE_NODE` names a node."""
    named = os.environ.get(VARIABLE)
    if not named:
        return Engine
    job, colon, node = named.partition(":")
    if not colon or not job.isdigit() or not node:
        raise InputError(f"${VARIABLE} is {named!r}: expected JOB:NODE of Slurm, as 12:n1")
    return NodeSession(job, node)


def there_of(engine: EngineLike) -> NodeSession | None:
    """The node that an engine is on; None where it is here."""
    return engine.there if isinstance(engine, NodeEngine) else None


def only_here(what: str) -> None:
    """Refuse what measures with more than the engine, where that is on a node. Raises UsageError."""
    if os.environ.get(VARIABLE):
        raise UsageError(
            f"{what}: needs Étude on the nodes: with etude=copied only commands run there; install Étude on a file "
            "system that the nodes share, and leave out etude=copied"
        )


def check_plan(plan: Plan) -> None:
    """Refuse a plan that needs more on the node than the engine. Raises UsageError."""
    if any(test.cool != "none" for test in plan.tests):
        only_here("--cool")
    if any(test.stdin is not None for test in plan.tests):
        only_here("--input")


def _sent(worker: Worker) -> Worker:
    def where(output: str | Mapping[str, str]) -> str | Mapping[str, str]:
        return output if isinstance(output, str) else "capture"

    return replace(worker, cwd=None, stdout=where(worker.stdout), stderr=where(worker.stderr))


def _files(worker: Worker) -> dict[str, Path]:
    """Files here of what it says, by stream."""
    outputs = {"stdout": worker.stdout, "stderr": worker.stderr}
    return {name: Path(to["file"]) for name, to in outputs.items() if not isinstance(to, str)}
