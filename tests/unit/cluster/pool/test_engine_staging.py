"""Jobs whose commands run here, on nodes that another pool gives."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.cluster.pool.held_pool import HeldPool
from etude.cluster.pool.job import How, Job, JobEnd
from etude.cluster.pool.job_files import last_line
from etude.cluster.pool.slurm.answers import SlurmJob
from etude.cluster.pool.staging import EngineStaging, unsuitable_reason
from etude.errors import MachineRefuses
from support.transports import Local

FITS = f"{os.uname().machine}\n/dev/a 100 1 99999999 1% /tmp\n"


class Nodes:
    """A pool whose jobs run at once, and end when the test says so."""

    name = "nodes"

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.cancelled: list[str] = []
        self.ends: list[JobEnd] = []

    def width(self, nodes: int = 1) -> int:
        return 1

    def submit(self, job: Job) -> str:
        self.jobs[str(len(self.jobs) + 1)] = job
        return str(len(self.jobs))

    def adopt(self, id: str, job: Job) -> None:
        self.jobs[id] = job

    def ended(self, timeout_s: float | None = None) -> Sequence[JobEnd]:
        time.sleep(0.005)
        found, self.ends = self.ends, []
        return found

    def running(self) -> frozenset[str]:
        return frozenset(self.jobs)

    def seen(self, id: str) -> SlurmJob:
        return SlurmJob(id, "RUNNING", nodes=("n1",))

    def cancel(self, id: str) -> None:
        self.cancelled.append(id)

    def clock_s(self) -> float:
        return time.time()

    def close(self) -> None:
        return

    def end(self, id: str, how: How) -> None:
        self.ends.append(JobEnd(id, how, None, ("n1",), "it is gone", 0.0, 1.0, 2.0))


@dataclass
class Node:
    """Transports to a node, which says this of itself; commands fail once it is not there."""

    said: str = FITS
    is_there: bool = True
    asked: int = 0

    def __call__(self, job: str, node: str) -> Local:
        return NodeTransport(job, node, source=self)


@dataclass(frozen=True)
class NodeTransport(Local):
    source: Node = field(default_factory=Node)

    def command(self, line: str, *, first: bool = False) -> list[str]:
        if line != "true":
            return ["printf", "%s", self.source.said]
        self.source.asked += 1
        return ["true" if self.source.is_there else "false"]


def pool_of(nodes: Nodes | None = None, node: Node | None = None) -> HeldPool:
    return HeldPool(nodes or Nodes(), EngineStaging, node or Node())


def job(place: Path, script: str, nodes: int = 1) -> Job:
    return Job("a job", ("/bin/sh", "-c", script), place, place, nodes)


def one(pool: HeldPool) -> JobEnd:
    (found,) = pool.ended(30.0)
    return found


def test_a_command_runs_here_and_is_told_its_node(tmp_path: Path) -> None:
    nodes = Nodes()
    pool = pool_of(nodes)
    id = pool.submit(job(tmp_path, 'echo "engine on $ETUDE_NODE"'))
    found = one(pool)
    assert (found.id, found.how, found.code, found.nodes) == (id, "done", 0, ("n1",))
    assert last_line(tmp_path) == "engine on 1:n1"
    assert nodes.cancelled == [id], "its node is given back"


def test_a_command_that_fails_on_a_node_that_answers_has_failed(tmp_path: Path) -> None:
    pool = pool_of()
    pool.submit(job(tmp_path, "echo broken; exit 5"))
    found = one(pool)
    assert (found.how, found.code) == ("failed", 5)
    assert found.why.endswith("5: broken")


def test_what_became_of_a_node_that_does_not_answer_is_the_schedulers_to_say(tmp_path: Path) -> None:
    """An engine's loss shows at once, and is no failure of the job."""
    nodes, node = Nodes(), Node(is_there=False)
    pool = pool_of(nodes, node)
    id = pool.submit(job(tmp_path, "exit 5"))
    until = time.monotonic() + 30
    while not node.asked and time.monotonic() < until:
        assert pool.ended(0.01) == []
    nodes.end(id, "preempted")
    found = one(pool)
    assert (found.how, found.why) == ("preempted", "it is gone")
    assert node.asked == 1


def test_a_holder_that_ends_while_its_command_runs_takes_the_command_with_it(tmp_path: Path) -> None:
    nodes = Nodes()
    pool = pool_of(nodes)
    id = pool.submit(job(tmp_path, "echo $$ >pid; exec sleep 1000"))
    until = time.monotonic() + 30
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()) and time.monotonic() < until:
        assert pool.ended(0.01) == []
    nodes.end(id, "done")
    assert one(pool).how == "node-lost"
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_a_job_of_two_nodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MachineRefuses, match=r"^a job: .*\b2\b"):
        pool_of().submit(job(tmp_path, "true", 2))


UNFIT = [
    pytest.param(
        "riscv64\n/dev/a 1 1 99999999 1% /tmp", "other-architecture", "is riscv64", id="architecture"
    ),
    pytest.param(FITS.replace("99999999", "100"), "no-space", "0.1 MB free in /tmp", id="space"),
    pytest.param("", "other-architecture", "is unknown", id="nothing"),
]


@pytest.mark.parametrize(("said", "how", "why"), UNFIT)
def test_a_node_that_cannot_bear_the_engine_is_told_as_such(
    tmp_path: Path, said: str, how: str, why: str
) -> None:
    node = Node(said)
    pool = pool_of(node=node)
    pool.submit(job(tmp_path, "true"))
    found = one(pool)
    assert found.how == how
    assert why in found.why


@given(st.text())
def test_whatever_a_node_says_is_an_answer(said: str) -> None:
    found = unsuitable_reason(said, "n1")
    assert found is None or found[0] in ("other-architecture", "no-space")
