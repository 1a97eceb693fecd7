"""Jobs whose files are copied to a node that another pool gives, and their results back."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from etude.cluster.pool.held_pool import HeldPool, SharedDirectory
from etude.cluster.pool.job import Job
from etude.cluster.pool.job_files import RECORD
from etude.cluster.pool.simulated import Death, SimulatedPool
from etude.cluster.pool.slurm.answers import SlurmJob
from etude.cluster.pool.staging import ENDED_PREFIX, MAX_COPY_ATTEMPTS, ResultStaging
from etude.errors import MachineRefuses
from support.transports import Local


class Nodes(SimulatedPool):
    """One node, whose jobs hold it for ever; they are not cancelled while the scheduler is silent."""

    is_silent = False
    comment = ""

    def cancel(self, id: str) -> None:
        if self.is_silent:
            raise MachineRefuses("no answer")
        super().cancel(id)

    def seen(self, id: str) -> SlurmJob:
        return SlurmJob(id, "RUNNING", nodes=("node001",), comment=self.comment)


def staged(nodes: Nodes, comment: str) -> HeldPool:
    """Above nodes that take files, and give back none."""
    nodes.comment = comment
    empty = ("sh", "-c", "cat >/dev/null; head -c 10240 /dev/zero")
    return HeldPool(nodes, ResultStaging, partial(Local, answer=empty))


@pytest.mark.parametrize(("code", "how"), [("0", "done"), ("5", "failed")])
@pytest.mark.parametrize("is_silent", [False, True])
def test_results_that_were_fetched_are_reported_also_if_the_holder_cannot_be_cancelled(
    tmp_path: Path, code: str, how: str, is_silent: bool
) -> None:
    nodes = Nodes(1, lambda job, node: 1e9)
    nodes.is_silent = is_silent
    pool = staged(nodes, f"{ENDED_PREFIX}{code}")
    id = pool.submit(Job("a", ("true",), tmp_path, tmp_path))
    (end,) = pool.ended(1.0)
    assert (end.id, end.how, end.code, end.nodes) == (id, how, int(code), ("node001",))


def test_a_node_that_dies_before_the_results_are_fetched_has_lost_the_job(tmp_path: Path) -> None:
    nodes = Nodes(1, lambda job, node: 1e9, deaths=[Death("node001", 1.0)])
    pool = staged(nodes, "")
    pool.submit(Job("a", ("true",), tmp_path, tmp_path))
    (end,) = pool.ended(10.0)
    assert (end.how, end.nodes) == ("node-lost", ("node001",))
    assert pool.ended(0.0) == ()


def test_a_job_of_two_nodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MachineRefuses, match=r"^a: .*\b2\b.*results=copied"):
        staged(Nodes(2, lambda job, node: 1.0), "").submit(Job("a", ("true",), tmp_path, tmp_path, 2))


def test_a_node_that_shares_the_directory_is_refused_and_nothing_is_removed(tmp_path: Path) -> None:
    nodes = Nodes(1, lambda job, node: 1e9)
    pool = HeldPool(nodes, ResultStaging, Local)
    (tmp_path / RECORD).write_text("{}")
    id = pool.submit(Job("a", ("true",), tmp_path, tmp_path))
    with pytest.raises(SharedDirectory, match="leave out results=copied"):
        pool.ended(1.0)
    pool.cancel(id)
    assert (tmp_path / RECORD).exists()


def test_copying_is_tried_again_a_few_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ResultStaging, "look_s", 0.0)
    nodes = Nodes(1, lambda job, node: 1e9)
    pool = HeldPool(nodes, ResultStaging, partial(Local, answer=("false",)))
    pool.submit(Job("a", ("true",), tmp_path, tmp_path))
    for _ in range(MAX_COPY_ATTEMPTS - 1):
        assert pool.ended(0.0) == []
    with pytest.raises(MachineRefuses, match="this machine"):
        pool.ended(0.0)
