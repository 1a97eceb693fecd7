"""Jobs whose files are copied to a node that another pool gives, and their results back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from etude.cluster.pool.job import Job
from etude.cluster.pool.simulated import Death, SimulatedPool
from etude.cluster.pool.staged_pool import ENDED_PREFIX, StagedPool, pack_files
from etude.errors import MachineRefuses


class Nodes(SimulatedPool):
    """One node, whose jobs hold it for ever; they are not cancelled while the scheduler is silent."""

    is_silent = False

    def cancel(self, id: str) -> None:
        if self.is_silent:
            raise MachineRefuses("no answer")
        super().cancel(id)


def staged(nodes: Nodes, comment: str) -> StagedPool:
    def carry(words: Sequence[str], data: bytes) -> bytes:
        return pack_files(Job("", (), Path("/nowhere"), Path())) if "tar -C" in words[-1] else b""

    return StagedPool(nodes, lambda words: f"1|node001|{comment}\n", carry)


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
